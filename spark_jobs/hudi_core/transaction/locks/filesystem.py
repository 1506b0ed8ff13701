"""The table's lock as a file: Hudi's FileSystemBasedLockProvider.

Another process takes the lock when its holder is provably dead (transaction/owner.py), shows no sign of life, or has
had the lock for longer than an option allows. config/concurrency_config.py has these times.
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
"""The prefix of the token of a lock of Hudi's. Its file names no token: prefix and modification time replace it."""


class FileSystemLock(PolledLock):
    """The lock file at `path`, with guards of its removal in the folder `breaks`. An exclusive create takes the lock, a
    delete releases it, so Hudi's writers and ours exclude each other. Another process breaks the lock only when the
    holder's process is provably dead, or when the lock is older than `expire_minutes` (0: never; Hudi's rule). A lock
    with `heartbeat`, which Hudi ignores, is also broken when lock and heartbeat are older than the tolerance in the
    lock, by the storage's clock. Every removal of a lock, by its holder or by a breaker, first creates a guard file
    named after the lock's token: only one of two processes removes the lock, and none a lock that was taken afterwards.
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
        """Takes `settle_ms`, the milliseconds until a lock counts beside Hudi's writers. They delete the file twice, to
        release and to close the lock (LockManager.unlock): the second delete may remove a lock taken in between. On a
        local disk, Hadoop may truncate ours (RawLocalFileSystem.create).
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
        heartbeat = self._new_heartbeat(token)  # before the lock: its holder sees the expiry before others do
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
        """Returns the content of a lock or guard (no `heartbeat`). A guard never expires: its maker may be stopped."""
        content = {"version": 1, "token": token, "owner": self._owner.to_json()}
        if heartbeat is not None:
            content["tolerance_ms"] = heartbeat.interval_ms * heartbeat.tolerable_misses
        return json.dumps(content).encode()

    def _is_held_by(self, token: str) -> bool:
        """Returns whether the lock has this token. Makes one request; two for a lock of Hudi's, which has no token."""
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
        """Returns whether the holder is silent for too long. Asks the storage's clock last, since it costs requests."""
        tolerance, signs = holder.tolerance_seconds, [holder.since]
        if tolerance is None or sign_age(signs, self._clock(), tolerance) is not None:
            return False
        with suppress(StorageNotFoundError):  # the heartbeat file comes after the first interval
            signs.append(self._storage.stat(self._heartbeat_path(holder.token)).modified)
        if sign_age(signs, self._clock(), tolerance) is not None:
            return False
        return sign_age(signs, storage_time(self._storage, self._breaks), tolerance) is None

    def _remove(self, held_by: str) -> bool:
        """Removes the lock with token `held_by`. Returns False for another token, or if another process removes it."""
        token = self._new_token()
        hold_token(token)
        try:
            guards = self._guard(held_by, token)
            if not guards:
                return False
            same = self._is_held_by(held_by)
            if same:
                self._storage.remove(self._path)
            # Tokens are used once: a process that creates the guard again finds another lock, or none, and leaves it.
            for guard in guards:
                self._storage.remove(guard)
            return same
        finally:
            drop_token(token)

    def _guard(self, held_by: str, token: str) -> list[str]:
        """Creates a guard, numbered after the guards of dead processes, and returns the paths of all these guards.
        Returns none while another process removes the lock.
        """
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
    """Reads a lock of ours or of Hudi's: an empty file, or Hudi's own JSON, which has no token."""
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
