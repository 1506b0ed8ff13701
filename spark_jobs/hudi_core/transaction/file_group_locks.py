"""Pessimistic locks on file groups, optional: a service that rewrites a group holds its lock until the commit.

`.hoodie/.airflow_hudi/file_groups/<hash>.json` is one lock, changed by conditional writes only and never deleted, so
that one file is left per file group that was ever locked. A lock names the claim that holds it and is as alive as that
claim: it is free when its content says so, and an owner whose claim was released, succeeded or has expired holds no
lock any more. So a holder that checks its claim need not check its locks. Hudi's own writers do not know these locks:
they exclude our processes from each other. The option is `airflow_hudi.lock.file_groups`.
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
    """The locks of some file groups, held by a claim's owner; a context manager holds them and never waits."""

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
        """Takes all in one order, or none: one of several processes succeeds. LockError names the holder of a group."""
        try:
            for group in self._groups:
                if group not in self._held:
                    self._held[group] = self._take(group)
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Frees the locks that are still ours. Idempotent. Those of a killed process are free with its claim."""
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
                continue  # another process was faster: read its lock
        raise LockError(
            f"the lock of file group {group.file_id} changed hands {_ATTEMPTS} times", path=path, remedy="run again"
        )

    def _free_version(self, group: FileGroupId, path: str) -> str | None:
        """The version of the lock that may be replaced; None when there is none. Raises LockError when it is held."""
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
        """Never the same bytes twice, as conditional writes require."""
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
    """The lock of a file group: the name is a hash, since partitions and file ids of a table may hold anything."""
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
