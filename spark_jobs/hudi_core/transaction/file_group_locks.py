"""Optional pessimistic locks on file groups: a service that rewrites a file group holds its lock until the commit.

`.hoodie/.airflow_hudi/file_groups/<hash>.json` is one lock. It is changed by conditional writes only and never deleted.
A lock names the claim that holds it. The lock is free when its content says so, or when that claim was released, has a
successor or has expired. So a holder that checks its claim need not check its locks. The locks exclude our processes
from each other; Hudi's own writers do not know them. The option is `airflow_hudi.lock.file_groups`.
"""

from __future__ import annotations

import hashlib
import json
import logging
import uuid
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from hudi_core.errors import ConflictError, LockError, StorageConflictError, StorageExistsError, StorageNotFoundError
from hudi_core.model.names import FileGroupId
from hudi_core.storage.base import Storage
from hudi_core.storage.one_look import look_again
from hudi_core.transaction.claim import Claim
from hudi_core.transaction.claim_file import is_live
from hudi_core.transaction.owner import Owner, damaged, parse_own

FOLDER = ".hoodie/.airflow_hudi/file_groups"
_VERSION = 1
_ATTEMPTS = 20
_WRITERS = 16

log = logging.getLogger(__name__)


class FileGroupLocks:
    """The locks of some file groups, for the owner of a claim. The context manager holds the locks and never waits."""

    def __init__(self, storage: Storage, claim: Claim, groups: Iterable[FileGroupId]) -> None:
        self._storage = storage
        self._claim = claim
        self._groups = tuple(sorted(set(groups)))
        self._held: dict[FileGroupId, str] = {}

    def __enter__(self) -> FileGroupLocks:
        self.acquire()
        look_again(self._storage)
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def acquire(self) -> None:
        """Takes all locks in sorted order or none: one of several processes wins. Raises LockError with a holder."""
        try:
            for group in self._groups:
                if group not in self._held:
                    self._held[group] = self._take(group)
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Frees the locks that are still ours. Idempotent. The locks of a killed process are free with its claim."""
        held, self._held = self._held, {}
        with ThreadPoolExecutor(max_workers=_WRITERS, thread_name_prefix="unlock") as pool:
            list(pool.map(self._free, held, held.values()))

    def _take(self, group: FileGroupId) -> str:
        path = lock_path(group)
        for _ in range(_ATTEMPTS):
            version = self._free_version(group, path)
            try:
                return self._storage.write_if(path, self._body(group, free=False), version=version)
            except (StorageExistsError, StorageConflictError):
                continue  # another process was faster: its lock is read next
        raise LockError(
            f"the lock of file group {group.file_id} changed hands {_ATTEMPTS} times", path=path, remedy="run again"
        )

    def _free_version(self, group: FileGroupId, path: str) -> str | None:
        """Returns the version of a replaceable lock; None when no lock exists. Raises LockError when another has it."""
        try:
            data, version = self._storage.read_versioned(path)
        except StorageNotFoundError:
            return None
        state = _parse(data, path)
        if state["free"]:
            return version
        instant, epoch = state["instant"], state["epoch"]
        mine = (instant, epoch) == (self._claim.instant, self._claim.epoch)
        if mine or not is_live(self._storage, instant, epoch):
            log.info("the lock of %s/%s is taken over from instant %s", group.partition, group.file_id, instant)
            return version
        owner = Owner.from_json(state["owner"], path=path)
        raise LockError(
            f"file group {group.file_id} of partition {group.partition!r} is locked by {owner.describe()} for instant "
            f"{instant}",
            path=path,
            remedy=f"wait until instant {instant} is over; a lock is free as soon as the run that holds it is dead",
        )

    def _free(self, group: FileGroupId, version: str) -> None:
        try:
            self._storage.write_if(lock_path(group), self._body(group, free=True), version=version)
        except (StorageConflictError, StorageNotFoundError, ConflictError):
            log.warning("the lock of file group %s was taken away from %s", group.file_id, self._claim.owner.describe())

    def _body(self, group: FileGroupId, *, free: bool) -> bytes:
        """Returns the content of the lock, with a new token: conditional writes need different bytes each time."""
        body = {
            "version": _VERSION,
            "token": uuid.uuid4().hex,
            "free": free,
            "partition": group.partition,
            "file_id": group.file_id,
            "instant": self._claim.instant,
            "epoch": self._claim.epoch,
            "owner": self._claim.owner.to_json(),
        }
        return json.dumps(body).encode()


def lock_path(group: FileGroupId) -> str:
    """Returns the path of a file group's lock, named by a hash: partitions and file ids may have any characters."""
    return f"{FOLDER}/{hashlib.sha256(json.dumps([group.partition, group.file_id]).encode()).hexdigest()[:40]}.json"


def _parse(data: bytes, path: str) -> dict[str, Any]:
    state = parse_own(data, "the lock of a file group", path=path)
    instant, epoch, owner = state.get("instant"), state.get("epoch"), state.get("owner")
    if (
        state.get("version") != _VERSION
        or not isinstance(state.get("free"), bool)
        or not (isinstance(instant, str) and instant.isdigit() and isinstance(epoch, int) and isinstance(owner, dict))
    ):
        raise damaged("the lock of a file group is not one", path)
    return state
