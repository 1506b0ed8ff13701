"""The table's lock as a file: Hudi's FileSystemBasedLockProvider (facts 11)."""

from __future__ import annotations

import json
import logging
import random
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from hudi_core.errors import CorruptFileError, LockError, StorageExistsError, StorageNotFoundError
from hudi_core.storage.base import Storage
from hudi_core.transaction import held
from hudi_core.transaction.owner import Owner

LOCK_PATH = ".hoodie/lock"
BREAKS = ".hoodie/.airflow_hudi/locks"
_POLL_SECONDS = 0.05
_MAX_POLL_SECONDS = 0.5
_MAX_BREAKERS = 1000

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LockHolder:
    """What a lock file says. `token` names this one taking of the lock; `owner` is None for a lock of Hudi, whose file is empty."""

    token: str
    owner: Owner | None
    modified: float
    """Seconds since the epoch by the storage's clock."""

    def describe(self) -> str:
        """For messages."""
        return "a Hudi writer (its lock names nobody)" if self.owner is None else self.owner.describe()


class FileSystemLock:
    """The lock at `path`, as a context manager.

    Taken by an exclusive create, given back by a delete, so Hudi's own writers and ours exclude each other. A lock is broken only when
    its process is provably dead, or when it is older than `expire_minutes` (0: never), which is Hudi's rule. Every removal of a lock,
    by its holder or by a breaker, first creates a guard file named after the lock's token: of two that want to remove the same lock
    one does, and the other cannot hit the lock that was taken afterwards.
    """

    def __init__(
        self,
        storage: Storage,
        owner: Owner,
        *,
        path: str = LOCK_PATH,
        expire_minutes: float = 0,
        wait_ms: int = 60_000,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._storage = storage
        self._owner = owner
        self._path = path
        self._expire_seconds = expire_minutes * 60
        self._wait_seconds = wait_ms / 1000
        self._now = now
        self._token: str | None = None

    def __enter__(self) -> FileSystemLock:
        self.acquire()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if not self.release():
            log.warning("%s was taken away from %s while it was held", self._path, self._owner.describe())

    def acquire(self) -> None:
        """Waits for the lock; raises LockError, naming the holder, its age and the way to break it, when `wait_ms` are over."""
        if self._token is not None:
            raise LockError(f"{self._owner.describe()} holds the lock already", path=self._path)
        token = uuid.uuid4().hex
        data = json.dumps({"version": 1, "token": token, "owner": self._owner.to_json()}).encode()
        deadline = time.monotonic() + self._wait_seconds
        pause = _POLL_SECONDS
        while True:
            if self._take(token, data):
                return
            holder = self.holder()
            if holder is None or (self._is_stale(holder) and self._remove(holder)):
                continue
            left = deadline - time.monotonic()
            if left <= 0:
                raise self._timeout(holder)
            time.sleep(min(left, pause * random.uniform(0.5, 1.0)))
            pause = min(pause * 2, _MAX_POLL_SECONDS)

    def _take(self, token: str, data: bytes) -> bool:
        held.hold(token)
        taken = False
        try:
            self._storage.create_exclusive(self._path, data)
            taken = True
        except StorageExistsError:
            return False
        finally:
            if not taken:
                held.drop(token)
        self._token = token
        return True

    def check(self) -> None:
        """Raises LockError when the lock is no longer ours: others broke it, so nothing may be published under it."""
        holder = self.holder()
        if self._token is None or holder is None or holder.token != self._token:
            now = "nobody" if holder is None else holder.describe()
            raise LockError(f"the lock was lost, it is now held by {now}", path=self._path, remedy="run the service again")

    def release(self) -> bool:
        """Gives the lock back. False when it was not ours any more; then nothing is touched."""
        token, self._token = self._token, None
        if token is None:
            return False
        try:
            holder = self.holder()
            return holder is not None and holder.token == token and self._remove(holder)
        finally:
            held.drop(token)  # also when the storage failed: the next run of this process may then remove the file

    def holder(self) -> LockHolder | None:
        """Who holds the lock now, None when nobody does."""
        try:
            modified = self._storage.stat(self._path).modified
            data = self._storage.read(self._path)
        except StorageNotFoundError:
            return None
        return _parse(data, modified, self._path)

    def _is_stale(self, holder: LockHolder) -> bool:
        return (holder.owner is not None and held.is_left_behind(holder.owner, holder.token)) or self._is_expired(holder.modified)

    def _is_expired(self, modified: float) -> bool:
        return self._expire_seconds > 0 and self._now() - modified > self._expire_seconds

    def _remove(self, holder: LockHolder) -> bool:
        """Removes the lock that `holder` describes and no other. False when another process is about to do it."""
        token = uuid.uuid4().hex
        held.hold(token)
        try:
            guards = self._guard(holder, token)
            if not guards:
                return False
            current = self.holder()
            same = current is not None and current.token == holder.token
            if same:
                self._storage.delete(self._path)
            # The lock's token never comes back, so whoever makes the guard anew finds another lock, or none, and leaves it alone.
            for guard in guards:
                self._storage.delete(guard)
            return same
        finally:
            held.drop(token)

    def _guard(self, holder: LockHolder, token: str) -> list[str]:
        """Creates the guard of the removal; one that a dead process left is followed by one with the next number.

        Returns the guards up to ours, or nothing when another process is about to remove the lock.
        """
        guards: list[str] = []
        data = json.dumps({"version": 1, "token": token, "owner": self._owner.to_json()}).encode()
        for number in range(_MAX_BREAKERS):
            path = f"{BREAKS}/{holder.token}-{number:06d}.json"
            guards.append(path)
            try:
                self._storage.create_exclusive(path, data)
            except StorageExistsError:
                if not self._is_abandoned(path):
                    return []
            else:
                return guards
        return []

    def _is_abandoned(self, path: str) -> bool:
        try:
            modified = self._storage.stat(path).modified
            breaker = _parse(self._storage.read(path), modified, path)
        except StorageNotFoundError:
            return False
        return (breaker.owner is not None and held.is_left_behind(breaker.owner, breaker.token)) or self._is_expired(modified)

    def _timeout(self, holder: LockHolder) -> LockError:
        age = max(0.0, self._now() - holder.modified)
        return LockError(
            f"the lock is held by {holder.describe()} for {age:.0f} s; waited {self._wait_seconds:.0f} s",
            path=self._path,
            remedy=f"run again later; when its holder is gone for good, delete {self._path} or set hoodie.write.lock.filesystem.expire",
        )


def _parse(data: bytes, modified: float, path: str) -> LockHolder:
    """A lock of ours, or one that Hudi made: an empty file, or its own JSON, which has no token."""
    foreign = LockHolder(f"hudi-{int(modified * 1000)}", None, modified)
    if not data.strip():
        return foreign
    try:
        value: Any = json.loads(data)
    except ValueError as error:
        raise CorruptFileError("the lock is neither Hudi's nor ours", path=path, remedy="look who wrote it; delete it when nobody runs") from error
    if not isinstance(value, dict) or "token" not in value:
        return foreign
    token, owner = value["token"], value.get("owner")
    if not isinstance(token, str) or not token.isalnum() or len(token) > 64 or not isinstance(owner, dict):
        raise CorruptFileError("the lock's token or owner is not one", path=path, remedy="look who wrote it; delete it when nobody runs")
    return LockHolder(token, Owner.from_json(owner, path=path), modified)
