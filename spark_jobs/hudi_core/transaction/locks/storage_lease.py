"""The table's lock as a lease in its own storage: Hudi's StorageBasedLockProvider (RFC-91).

The lease is one small object, changed by conditional writes. Another process takes the lease when its time is over, or
at once when its owner is provably dead (transaction/owner.py). config/concurrency_config.py says how long a lease is.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hudi_core.errors import ConfigError, StorageConflictError, StorageError, StorageExistsError, StorageNotFoundError
from hudi_core.frozen import dataclass
from hudi_core.storage.base import Storage
from hudi_core.transaction.locks.base import LeasedLock, LockHolder
from hudi_core.transaction.owner import Owner, damaged, parse_own

LEASE_PATH = ".hoodie/.locks/table_lock.json"
MAX_DRIFT_SECONDS = 0.5
"""The seconds by which the clocks of two holders may differ (StorageBasedLockProvider.CLOCK_DRIFT_BUFFER_MS)."""

_OURS = "airflow_hudi"
"""Our own key in the object; Hudi ignores and drops it (StorageLockFile)."""
_MAX_BYTES = 1 << 16
_MAX_OWNER = 256
_REWRITES = 3


@dataclass(frozen=True, slots=True)
class _Lease:
    """The lease object. Times are milliseconds by its writer's clock; Hudi's lease has no `acquired` and no `owner`."""

    released: bool
    valid_until: int
    token: str
    owner: Owner | None
    acquired: int | None
    version: str = ""

    def encode(self) -> bytes:
        value: dict[str, Any] = {"expired": self.released, "validUntil": self.valid_until, "owner": self.token}
        if self.owner is not None:
            value[_OURS] = {"owner": self.owner.to_json(), "acquired": self.acquired}
        return json.dumps(value).encode()


class StorageLease(LeasedLock[_Lease]):
    """The lease at `.hoodie/.locks/table_lock.json`; the object is never deleted. A process acquires the lease when the
    object is absent or expired, or when its time is over by more than the clocks may differ. It acquires the lease at
    once when the holder is provably dead. A lease is no fence: a process that was stopped for longer than the lease is
    valid has lost it. `check` detects that, and the caller's own put must be one that only one process can make.
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
        """Takes `now`, in seconds since the epoch. Raises ConfigError for a storage without conditional writes."""
        super().__init__(LEASE_PATH, owner, wait_ms, lease_seconds=validity_seconds, renew_seconds=renew_seconds)
        if not storage.supports_conditional_write:
            message = f"{storage.uri} cannot write conditionally, so it cannot carry a storage lease"
            raise ConfigError(message, path=LEASE_PATH, remedy="use another lock provider, on all writers")
        self._storage = storage
        self._clock = now
        self._lease: _Lease | None = None

    def _write_first(self, token: str, current: _Lease | None) -> bool:
        started, now_ms = time.monotonic(), int(self._clock() * 1000)
        lease = _Lease(False, now_ms + self._validity_ms, token, self._owner, now_ms)
        try:
            self._put(lease, None if current is None else current.version, started)
        except (StorageExistsError, StorageConflictError):
            return False
        except StorageError as error:
            stored = self._read()
            if stored is None or stored.token != token:
                self._failure = error  # if this write arrives late, it holds nothing: its token is dropped
                return False
            self._hold(replace(lease, version=stored.version), started)
        return True

    def _put(self, lease: _Lease, version: str | None, started: float) -> None:
        written = self._storage.write_if(LEASE_PATH, lease.encode(), version=version)
        self._hold(replace(lease, version=written), started)

    def _hold(self, lease: _Lease, started: float) -> None:
        self._lease, self._alive_until = lease, started + self._lease_seconds

    def _extend(self) -> bool:
        return self._rewrite(expired=False)

    def _give_back(self) -> bool:
        return self._rewrite(expired=True)

    def _rewrite(self, *, expired: bool) -> bool:
        """Rewrites our lease. Returns False when it is not ours. Raises StorageError when the outcome is unknown."""
        failure = StorageError(
            "the lease changes although no other process holds it", path=LEASE_PATH, remedy="run again"
        )
        for _ in range(_REWRITES):
            lease = self._lease
            if lease is None:
                return False
            started = time.monotonic()
            until = lease.valid_until if expired else int(self._clock() * 1000) + self._validity_ms
            try:
                self._put(replace(lease, released=expired, valid_until=until), lease.version, started)
                return True
            except (StorageConflictError, StorageExistsError):
                if not self._adopt(lease.token, expired):
                    self._taken_away = True
                    return False
            except StorageError as error:
                if not self._adopt(lease.token, expired) or not expired:
                    raise
                failure = error
            if expired and self._lease is not None and self._lease.released:
                return True  # this request arrived, and only its answer was lost
        raise failure

    def _adopt(self, token: str, expiring: bool) -> bool:
        """Adopts the stored version of our lease after a write with a lost answer. Returns False if it is not ours."""
        current = self._read()
        if current is None or current.token != token or (current.released and not expiring):
            return False
        self._lease = current
        return True

    def _is_ours(self, current: _Lease) -> bool:
        return current.token == self._token and not current.released

    def _is_running(self, current: _Lease) -> bool:
        return not current.released and self._clock() <= current.valid_until / 1000 + MAX_DRIFT_SECONDS

    def _is_overdue(self) -> bool:
        return super()._is_overdue() or self._lease is None or self._clock() * 1000 >= self._lease.valid_until

    def _holder_of(self, current: _Lease) -> LockHolder:
        since = current.acquired if current.acquired is not None else current.valid_until - self._validity_ms
        return LockHolder(current.token, current.owner, since / 1000, f"a Hudi writer (lease of {current.token})")

    def _read(self) -> _Lease | None:
        try:
            data, version = self._storage.read_versioned(LEASE_PATH)
        except StorageNotFoundError:
            return None
        return replace(_decode(data), version=version)

    @property
    def _validity_ms(self) -> int:
        return int(self._lease_seconds * 1000)

    def _now(self) -> float:
        return self._clock()

    def how_to_break(self, holder: LockHolder) -> str:
        return (
            f"a dead holder loses it within {self._lease_seconds:g} s automatically; "
            f"delete {LEASE_PATH} only when no writer of the table runs"
        )


def _decode(data: bytes) -> _Lease:
    """Reads a lease of ours or of Hudi's (StorageLockData). Raises CorruptFileError for any other content."""
    if len(data) > _MAX_BYTES:
        raise damaged(f"{len(data)} bytes are too many for a lease", LEASE_PATH)
    value = parse_own(data, "the lease", path=LEASE_PATH)
    expired, until, token = value.get("expired"), value.get("validUntil"), value.get("owner")
    if not isinstance(expired, bool) or type(until) is not int or not 0 <= until < 2**53:
        raise damaged("the lease has no valid time", LEASE_PATH)
    if not isinstance(token, str) or not 0 < len(token) <= _MAX_OWNER or not token.isprintable():
        raise damaged("the lease has no owner", LEASE_PATH)
    ours = value.get(_OURS)
    if not isinstance(ours, dict):
        return _Lease(expired, until, token, None, None)
    owner, acquired = ours.get("owner"), ours.get("acquired")
    if not isinstance(owner, dict) or type(acquired) is not int:
        raise damaged("the holder in the lease is not one", LEASE_PATH)
    return _Lease(expired, until, token, Owner.from_json(owner, path=LEASE_PATH), acquired)
