"""The table's lock as a lease in its own storage: Hudi's StorageBasedLockProvider (RFC-91).

It is one small object, changed by conditional writes.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hudi_core.errors import (
    ConfigError,
    CorruptFileError,
    StorageConflictError,
    StorageError,
    StorageExistsError,
    StorageNotFoundError,
)
from hudi_core.storage.base import Storage
from hudi_core.transaction.heartbeat_thread import Renewal
from hudi_core.transaction.locks.base import LockHolder, PolledLock, lost
from hudi_core.transaction.owner import Owner, drop_token, hold_token, is_left_behind

LEASE_PATH = ".hoodie/.locks/table_lock.json"
MAX_DRIFT_SECONDS = 0.5
"""How far the clocks of two holders may be apart (StorageBasedLockProvider.CLOCK_DRIFT_BUFFER_MS)."""

_OURS = "airflow_hudi"
"""Our own key of the object, which Hudi ignores and drops (StorageLockFile)."""
_MAX_BYTES = 1 << 16
_MAX_OWNER = 256
_REWRITES = 3


@dataclass(frozen=True, slots=True)
class _Lease:
    """The object.

    Times are milliseconds since the epoch by its writer's clock; `acquired` and `owner` are None in Hudi's.
    """

    expired: bool
    valid_until: int
    token: str
    owner: Owner | None
    acquired: int | None

    def encode(self) -> bytes:
        value: dict[str, Any] = {"expired": self.expired, "validUntil": self.valid_until, "owner": self.token}
        if self.owner is not None:
            value[_OURS] = {"owner": self.owner.to_json(), "acquired": self.acquired}
        return json.dumps(value).encode()


class StorageLease(PolledLock):
    """The lease at `.hoodie/.locks/table_lock.json`; the object is never deleted.

    It is acquired when it is absent, expired, or past its time by more than the clocks may differ; at once when its
    process is provably dead. A thread renews it. After a write with an unknown outcome the object is read again, and
    its owner decides. A lease is no fence: a process that was stopped for longer than it is valid has lost it, `check`
    detects that, and the caller's own put must be one that only one process can make.
    """

    def __init__(
        self,
        storage: Storage,
        owner: Owner,
        *,
        validity_seconds: float = 300,
        renew_seconds: float = 30,
        wait_ms: int = 60_000,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`now` is the clock, in seconds since the epoch.

        Raises ConfigError for a storage without conditional writes.
        """
        super().__init__(LEASE_PATH, owner, wait_ms)
        if not storage.supports_conditional_write:
            raise ConfigError(
                f"{storage.uri} cannot write conditionally, so it cannot carry a storage lease",
                path=LEASE_PATH,
                remedy="use another lock provider, on all writers",
            )
        self._storage = storage
        self._validity_ms = int(validity_seconds * 1000)
        self._renew_seconds = renew_seconds
        self._clock = now
        self._mutex = threading.Lock()  # the renewing thread against release() and check()
        self._lease: _Lease | None = None
        self._version = ""
        self._alive_until = 0.0  # on the monotonic clock, which does not jump
        self._renewal: Renewal | None = None
        self._taken_away = False
        self._seen: LockHolder | None = None

    def _take(self) -> bool:
        self._seen, self._failure = None, None
        token = str(uuid.uuid4())
        current, version = self._read()
        if current is not None and self._is_held(current):
            self._seen = self._holder_of(current)
            return False
        hold_token(token)
        taken = False
        try:
            taken = self._write_first(token, version)
        finally:
            if not taken:
                drop_token(token)
        if taken:
            self._token = token
            self._taken_away = False
            self._renewal = Renewal(self._renew, interval_seconds=self._renew_seconds, name=self.name)
            self._renewal.start()
        return taken

    def _write_first(self, token: str, version: str | None) -> bool:
        started, now_ms = time.monotonic(), int(self._clock() * 1000)
        lease = _Lease(False, now_ms + self._validity_ms, token, self._owner, now_ms)
        try:
            written = self._storage.write_if(LEASE_PATH, lease.encode(), version=version)
        except (StorageExistsError, StorageConflictError):
            return False
        except StorageError as error:
            current, found = self._read()
            if current is None or found is None or current.token != token:
                self._failure = error  # a late arrival of this write holds nothing: its token is dropped
                return False
            written = found
        self._hold(lease, written, started)
        return True

    def _hold(self, lease: _Lease, version: str, started: float) -> None:
        self._lease, self._version = lease, version
        self._alive_until = started + self._validity_ms / 1000

    def _blocker(self) -> LockHolder | None:
        return self._seen

    def _renew(self) -> bool:
        """Another lease period; False when the lease is lost for good."""
        with self._mutex:
            return self._rewrite(expired=False)

    def _rewrite(self, *, expired: bool) -> bool:
        """Writes our lease again, with a new time or as expired; False when it is not ours any more.

        Raises StorageError for an unknown outcome.
        """
        failure = StorageError(
            "the lease changes although no other process holds it", path=LEASE_PATH, remedy="run again"
        )
        for _ in range(_REWRITES):
            lease = self._lease
            if lease is None:
                return False
            started = time.monotonic()
            until = lease.valid_until if expired else int(self._clock() * 1000) + self._validity_ms
            written = _Lease(expired, until, lease.token, lease.owner, lease.acquired)
            try:
                self._hold(
                    written, self._storage.write_if(LEASE_PATH, written.encode(), version=self._version), started
                )
                return True
            except (StorageConflictError, StorageExistsError):
                if not self._adopt(lease.token, expired):
                    self._taken_away = True
                    return False
            except StorageError as error:
                if not self._adopt(lease.token, expired) or not expired:
                    raise
                failure = error
            if expired and self._lease is not None and self._lease.expired:
                return True  # this request arrived although its answer was lost
        raise failure

    def _adopt(self, token: str, expiring: bool) -> bool:
        """Adopts the version of our own object, which a write with a lost answer may have made; False when not ours."""
        current, version = self._read()
        if current is None or version is None or current.token != token or (current.expired and not expiring):
            return False
        self._lease, self._version = current, version
        return True

    def check(self) -> None:
        """TableLock.check; costs one read."""
        with self._mutex:
            lease = self._lease
            if self._token is None or lease is None:
                raise lost(self.name, self.holder())
            reason = ""
            if self._taken_away:
                reason = "another took it"
            elif time.monotonic() >= self._alive_until or self._clock() * 1000 >= lease.valid_until:
                reason = f"it was not renewed for {self._validity_ms / 1000:g} s"
            current, _ = self._read()
            if reason or current is None or current.token != self._token or current.expired:
                raise lost(self.name, None if current is None or current.expired else self._holder_of(current), reason)

    def release(self) -> bool:
        """TableLock.release: marks the lease as expired."""
        token, self._token = self._token, None
        if token is None:
            return False
        try:
            if self._renewal is not None:
                self._renewal.stop()
            with self._mutex:
                return not self._taken_away and self._rewrite(expired=True)
        finally:
            self._lease = self._renewal = None
            drop_token(
                token
            )  # also when the storage failed: the next run of this process may then take the lease at once

    def holder(self) -> LockHolder | None:
        """TableLock.holder."""
        current, _ = self._read()
        return self._holder_of(current) if current is not None and self._is_running(current) else None

    def _is_running(self, lease: _Lease) -> bool:
        return not lease.expired and self._clock() <= lease.valid_until / 1000 + MAX_DRIFT_SECONDS

    def _is_held(self, lease: _Lease) -> bool:
        return self._is_running(lease) and not (lease.owner is not None and is_left_behind(lease.owner, lease.token))

    def _holder_of(self, lease: _Lease) -> LockHolder:
        since = lease.acquired if lease.acquired is not None else lease.valid_until - self._validity_ms
        return LockHolder(lease.token, lease.owner, since / 1000, f"a Hudi writer (lease of {lease.token})")

    def _read(self) -> tuple[_Lease | None, str | None]:
        try:
            data, version = self._storage.read_versioned(LEASE_PATH)
        except StorageNotFoundError:
            return None, None
        return _decode(data), version

    def _now(self) -> float:
        return self._clock()

    def how_to_break(self, holder: LockHolder) -> str:
        """TableLock.how_to_break."""
        return (
            f"a dead holder loses it within {self._validity_ms / 1000:g} s automatically; "
            f"delete {LEASE_PATH} only when no writer of the table runs"
        )


def _decode(data: bytes) -> _Lease:
    """A lease of ours or of Hudi (StorageLockData); raises CorruptFileError."""
    if len(data) > _MAX_BYTES:
        raise _damaged(f"{len(data)} bytes are too many for a lease")
    try:
        value: Any = json.loads(data)
    except ValueError as error:
        raise _damaged("the lease is not JSON") from error
    if not isinstance(value, dict):
        raise _damaged("the lease is not a JSON object")
    expired, until, token = value.get("expired"), value.get("validUntil"), value.get("owner")
    if not isinstance(expired, bool) or type(until) is not int or not 0 <= until < 2**53:
        raise _damaged("the lease has no valid time")
    if not isinstance(token, str) or not 0 < len(token) <= _MAX_OWNER or not token.isprintable():
        raise _damaged("the lease has no owner")
    ours = value.get(_OURS)
    if not isinstance(ours, dict):
        return _Lease(expired, until, token, None, None)
    owner, acquired = ours.get("owner"), ours.get("acquired")
    if not isinstance(owner, dict) or type(acquired) is not int:
        raise _damaged("the holder in the lease is not one")
    return _Lease(expired, until, token, Owner.from_json(owner, path=LEASE_PATH), acquired)


def _damaged(reason: str) -> CorruptFileError:
    return CorruptFileError(
        reason, path=LEASE_PATH, remedy="find out which process wrote it; delete it when no writer of the table runs"
    )
