"""The table's lock as a file: Hudi's FileSystemBasedLockProvider.

Another process takes it when its holder is provably dead (transaction/owner.py), shows no sign of life, or has it for
longer than an option allows. How long that is: config/concurrency_config.py.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from contextlib import suppress

from hudi_core.config.concurrency_config import MAX_SILENCE_MS, HeartbeatConfig
from hudi_core.errors import ConflictError, StorageExistsError, StorageNotFoundError
from hudi_core.storage.base import Storage
from hudi_core.transaction.heartbeat_thread import Heartbeat, sign_age, storage_time
from hudi_core.transaction.locks.base import LockHolder, PolledLock, lost
from hudi_core.transaction.owner import Owner, damaged, drop_token, hold_token, parse_own

LOCK_PATH = ".hoodie/lock"
BREAKS = ".hoodie/.airflow_hudi/locks"
_MAX_BREAKERS = 1000
_FOREIGN = "hudi-"
"""Before the modification time of a lock of Hudi's, whose file names no token: the two are its token here."""


class FileSystemLock(PolledLock):
    """The lock file at `path`, with guards of its removal in the folder `breaks`. It is taken by an exclusive create
    and released by a delete, so Hudi's own writers and ours exclude each other. It is broken only when its process is
    provably dead, or when it is older than `expire_minutes` (0: never), which is Hudi's rule. With `heartbeat`, for a
    lock that Hudi ignores, it is also broken when lock and heartbeat are older than it says that they may get, by the
    storage's clock. Every removal of a lock, by its holder or by a breaker, first creates a guard file named after the
    lock's token: of two processes that try to remove the same lock one does, and the other cannot hit the lock that was
    taken afterwards.
    """

    def __init__(
        self,
        storage: Storage,
        owner: Owner,
        *,
        path: str = LOCK_PATH,
        breaks: str = BREAKS,
        expire_minutes: float = 0,
        wait_ms: int = 60_000,
        settle_ms: int = 0,
        heartbeat: HeartbeatConfig | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`settle_ms`: milliseconds to wait before an acquired lock counts, where Hudi's writers use the lock as well.
        They delete the file once to release the lock and once more to close it (LockManager.unlock), which hits a lock
        that was taken between; and on a local disk Hadoop checks whether the file exists before it opens it, and then
        truncates ours (RawLocalFileSystem.create).
        """
        super().__init__(path, owner, wait_ms)
        self._storage = storage
        self._path = path
        self._breaks = breaks
        self._expire_seconds = expire_minutes * 60
        self._settle_seconds = settle_ms / 1000
        self._beats = heartbeat
        self._heartbeat: Heartbeat | None = None
        self._has_beaten = False
        self._clock = now

    def _new_token(self) -> str:
        return uuid.uuid4().hex

    def _try(self, token: str) -> bool:
        heartbeat = self._new_heartbeat(token)  # before the lock: by its own clock it expires first
        try:
            self._storage.create_exclusive(self._path, self._content(token, self._beats))
        except StorageExistsError:
            return False
        if self._settle_seconds:
            time.sleep(self._settle_seconds)
            if not self._is_held_by(token):
                return False
        if heartbeat is not None:
            heartbeat.start(at_once=False)
        self._token, self._heartbeat = token, heartbeat
        return True

    def _new_heartbeat(self, token: str) -> Heartbeat | None:
        if self._beats is None:
            return None
        self._has_beaten = False
        return Heartbeat(
            lambda: self._beat(token),
            interval_seconds=self._beats.interval_ms / 1000,
            tolerance_seconds=self._beats.interval_ms * self._beats.tolerable_misses / 1000,
            name=f"the lock {self.name}",
        )

    def _beat(self, token: str) -> None:
        self._has_beaten = True
        self._storage.write(self._heartbeat_path(token), b"")

    def _heartbeat_path(self, token: str) -> str:
        return f"{self._breaks}/{token}.heartbeat"

    def _content(self, token: str, heartbeat: HeartbeatConfig | None = None) -> bytes:
        """Of a lock, or of a guard, which never expires: its maker, once stopped, must not remove another lock."""
        content = {"version": 1, "token": token, "owner": self._owner.to_json()}
        if heartbeat is not None:
            content["tolerance_ms"] = heartbeat.interval_ms * heartbeat.tolerable_misses
        return json.dumps(content).encode()

    def _is_held_by(self, token: str) -> bool:
        """Whether the lock is the one of `token`. One request; a lock of Hudi's, which has no token, takes two."""
        if token.startswith(_FOREIGN):
            holder = self.holder()
            return holder is not None and holder.token == token
        try:
            return _parse(self._storage.read(self._path), 0.0, self._path).token == token
        except StorageNotFoundError:
            return False

    def _blocker(self) -> LockHolder | None:
        holder = self.holder()
        if holder is None:
            return None
        if not ((self._is_stale(holder) or self._is_silent(holder)) and self._remove(holder.token)):
            return holder
        if holder.tolerance_seconds is not None:
            self._storage.delete(self._heartbeat_path(holder.token))
        return None

    def check(self) -> None:
        if self._token is None or not self._is_held_by(self._token):
            raise lost(self.name, self.holder())
        if self._heartbeat is not None:
            try:
                self._heartbeat.check()
            except ConflictError as error:
                raise lost(self.name, self.holder(), error.message) from error

    def _release(self, token: str) -> bool:
        heartbeat, self._heartbeat = self._heartbeat, None
        if heartbeat is not None:
            heartbeat.stop()
        released = self._remove(token)
        if self._has_beaten:
            self._storage.delete(self._heartbeat_path(token))
        return released

    def holder(self) -> LockHolder | None:
        return self._holder_in(self._path)

    def _holder_in(self, path: str) -> LockHolder | None:
        try:
            modified = self._storage.stat(path).modified
            return _parse(self._storage.read(path), modified, path)
        except StorageNotFoundError:
            return None

    def _is_stale(self, holder: LockHolder) -> bool:
        return holder.is_left_behind or (
            self._expire_seconds > 0 and self._clock() - holder.since > self._expire_seconds
        )

    def _is_silent(self, holder: LockHolder) -> bool:
        """Whether the holder is silent for too long. The storage's clock, which costs requests, is asked last."""
        tolerance, signs = holder.tolerance_seconds, [holder.since]
        if tolerance is None or sign_age(signs, self._clock(), tolerance) is not None:
            return False
        with suppress(StorageNotFoundError):  # none before the first interval is over
            signs.append(self._storage.stat(self._heartbeat_path(holder.token)).modified)
        if sign_age(signs, self._clock(), tolerance) is not None:
            return False
        return sign_age(signs, storage_time(self._storage, self._breaks), tolerance) is None

    def _remove(self, held_by: str) -> bool:
        """Removes the lock with the token `held_by` and no other. False when another process is about to do it."""
        token = self._new_token()
        hold_token(token)
        try:
            guards = self._guard(held_by, token)
            if not guards:
                return False
            same = self._is_held_by(held_by)
            if same:
                self._storage.delete(self._path)
            # The lock's token is never used again, so a process that creates the guard again finds another lock, or
            # none, and leaves it alone.
            for guard in guards:
                self._storage.delete(guard)
            return same
        finally:
            drop_token(token)

    def _guard(self, held_by: str, token: str) -> list[str]:
        """Creates the guard, numbered after those of dead processes; none while another one removes the lock."""
        guards: list[str] = []
        for number in range(_MAX_BREAKERS):
            path = f"{self._breaks}/{held_by}-{number:06d}.json"
            guards.append(path)
            try:
                self._storage.create_exclusive(path, self._content(token))
            except StorageExistsError:
                breaker = self._holder_in(path)
                if breaker is None or not self._is_stale(breaker):
                    return []
            else:
                return guards
        return []

    def _now(self) -> float:
        return self._clock()

    def how_to_break(self, holder: LockHolder) -> str:
        if holder.tolerance_seconds is None:
            return f"when its holder is dead, delete {self._path} or set hoodie.write.lock.filesystem.expire"
        return (
            f"the lock of a dead holder is free {holder.tolerance_seconds:.0f} s after its last sign of life; delete "
            f"{self._path} only when no process of the holder is left"
        )


def _parse(data: bytes, modified: float, path: str) -> LockHolder:
    """A lock of ours, or one that Hudi made: an empty file, or its own JSON, which has no token."""
    foreign = LockHolder(f"{_FOREIGN}{int(modified * 1000)}", None, modified)
    if not data.strip():
        return foreign
    value = parse_own(data, "the lock", path=path)
    if "token" not in value:
        return foreign
    token, owner = value["token"], value.get("owner")
    if not isinstance(token, str) or not token.isalnum() or len(token) > 64 or not isinstance(owner, dict):
        raise damaged("the lock's token or owner is not one", path)
    tolerance = value.get("tolerance_ms")
    if tolerance is not None and (not isinstance(tolerance, int) or tolerance < 1):
        raise damaged("how long the lock's holder may be silent is no number", path)
    seconds = None if tolerance is None else min(tolerance, MAX_SILENCE_MS) / 1000
    return LockHolder(token, Owner.from_json(owner, path=path), modified, tolerance_seconds=seconds)
