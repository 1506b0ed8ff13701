"""A lock that its holder renews: what the lease in the storage and the item in DynamoDB have in common."""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from typing import Generic, Protocol, TypeVar

from hudi_core.transaction.heartbeat_thread import Renewal
from hudi_core.transaction.locks.base import LockHolder, PolledLock, lost
from hudi_core.transaction.owner import Owner


class LeaseState(Protocol):
    """The stored state of a lock, changed by conditional writes only."""

    @property
    def released(self) -> bool:
        """Whether its holder gave it back."""
        ...


State = TypeVar("State", bound=LeaseState)


class LeasedLock(PolledLock, Generic[State]):
    """A lock for `lease_seconds` that a thread renews every `renew_seconds`. Each change draws a new version and names
    the old one as its condition. After a change with an unknown outcome the state is read again, and its owner decides.
    """

    def __init__(self, name: str, owner: Owner, wait_ms: int, *, lease_seconds: float, renew_seconds: float) -> None:
        super().__init__(name, owner, wait_ms)
        self._lease_seconds = lease_seconds
        self._renew_seconds = renew_seconds
        self._mutex = threading.Lock()  # the renewing thread against release() and check()
        self._alive_until = 0.0  # on the monotonic clock, which does not jump
        self._renewal: Renewal | None = None
        self._taken_away = False
        self._seen: LockHolder | None = None

    @abstractmethod
    def _read(self) -> State | None:
        """The state now; None when there is none."""

    @abstractmethod
    def _write_first(self, token: str, current: State | None) -> bool:
        """Takes the lock for `token` if the state is still `current`; False when another process was faster."""

    @abstractmethod
    def _extend(self) -> bool:
        """Renews the lease; sets `_taken_away` and returns False when it is lost for good."""

    @abstractmethod
    def _give_back(self) -> bool:
        """Releases the lease; False when it was not ours any more."""

    @abstractmethod
    def _is_ours(self, current: State) -> bool:
        """Whether this holder has the lock by its state."""

    @abstractmethod
    def _holder_of(self, current: State) -> LockHolder:
        """The holder that the state names."""

    def _is_running(self, current: State) -> bool:
        """Whether the state names a holder whose lease is not over."""
        return not current.released

    def _is_held(self, current: State) -> bool:
        """Whether the lock may not be taken."""
        return self._is_running(current) and not self._holder_of(current).is_left_behind

    def _is_overdue(self) -> bool:
        """Whether our lease ended without being renewed."""
        return time.monotonic() >= self._alive_until

    def _try(self, token: str) -> bool:
        self._seen, self._failure = None, None
        current = self._read()
        if current is not None and self._is_held(current):
            self._seen = self._holder_of(current)
            return False
        if not self._write_first(token, current):
            return False
        self._token, self._taken_away = token, False
        self._renewal = Renewal(self._renew, interval_seconds=self._renew_seconds, name=self.name)
        self._renewal.start()
        return True

    def _blocker(self) -> LockHolder | None:
        return self._seen

    def _renew(self) -> bool:
        with self._mutex:
            return self._extend()

    def check(self) -> None:
        """TableLock.check; costs one read."""
        with self._mutex:
            if self._token is None:
                raise lost(self.name, self.holder())
            reason = ""
            if self._taken_away:
                reason = "another took it"
            elif self._is_overdue():
                reason = f"it was not renewed for {self._lease_seconds:g} s"
            current = self._read()
            if reason or current is None or not self._is_ours(current):
                raise lost(self.name, None if current is None or current.released else self._holder_of(current), reason)

    def _release(self, token: str) -> bool:
        if self._renewal is not None:
            self._renewal.stop()
        with self._mutex:
            return not self._taken_away and self._give_back()

    def holder(self) -> LockHolder | None:
        """TableLock.holder."""
        current = self._read()
        return self._holder_of(current) if current is not None and self._is_running(current) else None
