"""What the locks of all providers have in common, and how a process waits; registry.py says which lock a table has."""

from __future__ import annotations

import logging
import random
import threading
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import ExitStack
from typing import Generic, Protocol, TypeVar

from hudi_core.errors import HudiError, LockError, Reminder
from hudi_core.frozen import dataclass
from hudi_core.transaction.heartbeat_thread import Renewal, pause
from hudi_core.transaction.instant_generator import times_pass_at_end
from hudi_core.transaction.owner import Owner, drop_token, hold_token, is_left_behind

_POLL_SECONDS = 0.05
_MAX_POLL_SECONDS = 0.5
_MAX_AT_ONCE = 1000
_SHORT_WAIT = 2.0
"""A wait of so many seconds is usual, and not logged."""

Held = TypeVar("Held", bound="TableLock")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LockHolder:
    """The holder of a lock. `token` names the acquisition; `owner` is None unless it is one of our processes."""

    token: str
    owner: Owner | None
    since: float
    """Seconds since the epoch, by the clock of the storage or service that keeps the lock."""
    text: str = "a Hudi writer (its lock has no owner's name)"
    """The holder in words, where `owner` is None."""
    tolerance_seconds: float | None = None
    """The seconds for which the holder of a lock file may show no sign of life; None where the file does not say."""

    def describe(self) -> str:
        return self.text if self.owner is None else self.owner.describe()

    @property
    def is_left_behind(self) -> bool:
        """Whether the holder's process is provably dead, or is this process, which has dropped the lock."""
        return self.owner is not None and is_left_behind(self.owner, self.token)


class TableLock(ABC):
    """A table's lock. One thread at a time acquires and releases it, once or several times. Every provider promises
    (tests/contract/test_locks.py): the lock has at most one holder at a time; another process can take the lock of a
    dead holder; `check` detects every loss that others caused before the call.
    """

    def __init__(self, name: str, owner: Owner, wait_ms: int) -> None:
        """Takes the lock's `name`, for messages, and the milliseconds that acquire() waits."""
        self.name = name
        self._owner = owner
        self._wait_seconds = wait_ms / 1000
        self._times = ExitStack()
        self.on_taken: Callable[[], None] = lambda: None
        """`with` calls it when the lock is taken: the state of the table that was read before may be out of date."""
        self.check_alone: Callable[[], None] = lambda: None
        """`with` calls it after on_taken. Raises LockError where the run is refused: another writer takes no lock."""

    def __enter__(self: Held) -> Held:
        self.acquire()
        try:
            self.on_taken()
            self.check_alone()
        except BaseException:
            self.release()
            raise
        self._times.enter_context(times_pass_at_end())
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._times.close()
        finally:
            if not self.release():
                log.warning("%s was taken away from %s while it was held", self.name, self._owner.describe())

    @abstractmethod
    def acquire(self) -> None:
        """Waits for the lock and takes it. Raises LockError with holder and remedy; KeyboardInterrupt at a stop."""

    @abstractmethod
    def release(self) -> bool:
        """Releases the lock. Returns False, and changes nothing, when the lock was not ours any more. Idempotent."""

    @abstractmethod
    def check(self) -> None:
        """Raises LockError when the lock is no longer ours: then nothing may be published."""

    @abstractmethod
    def holder(self) -> LockHolder | None:
        """Returns the present holder of the lock; None when the lock is free."""

    @abstractmethod
    def how_to_break(self, holder: LockHolder) -> str:
        """Returns the remedy for a dead holder."""

    def _now(self) -> float:
        return time.time()

    def _held_by(self, holder: LockHolder) -> str:
        return f"held by {holder.describe()} for {max(0.0, self._now() - holder.since):.0f} s"

    def _timeout(self, holder: LockHolder | None) -> HudiError:
        message = f"the lock went from hand to hand for {self._wait_seconds:.0f} s"
        remedy = "run again later"
        if holder is not None:
            message = f"the lock is {self._held_by(holder)}; waited {self._wait_seconds:.0f} s"
            remedy += f"; {self.how_to_break(holder)}"
        return LockError(message, path=self.name, remedy=remedy)


class PolledLock(TableLock):
    """A lock of a provider without a queue: acquire() tries again and again."""

    def __init__(self, name: str, owner: Owner, wait_ms: int) -> None:
        super().__init__(name, owner, wait_ms)
        self._token: str | None = None
        self._failure: HudiError | None = None  # set when the last try could not find out whether the lock was free

    def acquire(self) -> None:
        if self._token is not None:
            raise LockError(f"{self._owner.describe()} holds the lock already", path=self.name)
        deadline = time.monotonic() + self._wait_seconds
        seconds = _POLL_SECONDS
        at_once = 0
        reminder = Reminder(time.monotonic, quiet_for=_SHORT_WAIT)
        while not self._take():
            holder = self._blocker()
            if holder is None and self._failure is None and at_once < _MAX_AT_ONCE:
                at_once += 1
                continue
            left = deadline + self._patience() - time.monotonic()
            if left <= 0:
                raise self._failure or self._timeout(holder)
            if reminder.is_due():
                state = "which goes from hand to hand" if self._failure is None else "which cannot be read"
                held = state if holder is None else self._held_by(holder)
                log.warning("waiting for the lock %s, %s; for up to %.0f s more", self.name, held, left)
            pause(min(left, seconds * random.uniform(0.5, 1.0)))
            seconds = min(seconds * 2, _MAX_POLL_SECONDS)

    def release(self) -> bool:
        token = self._token
        if token is None:
            return False
        try:
            return self._release(token)
        finally:
            # Not before: a renewal beside it must know the lease as ours. Also when the storage failed: the next run of
            # this process may then take the lock at once.
            self._token = None
            drop_token(token)

    def _take(self) -> bool:
        """Tries once with a new token, held before the lock shows it, and dropped when the try failed."""
        token = self._new_token()
        hold_token(token)
        try:
            return self._try(token)
        finally:
            if self._token != token:
                drop_token(token)

    def _new_token(self) -> str:
        return str(uuid.uuid4())

    @abstractmethod
    def _try(self, token: str) -> bool:
        """Returns whether `token` has the lock now (then sets `_token`). Sets `_failure` if the outcome is unknown."""

    @abstractmethod
    def _release(self, token: str) -> bool:
        """Releases the lock of `token`. Returns False when the lock was not ours any more."""

    @abstractmethod
    def _blocker(self) -> LockHolder | None:
        """Returns the holder because of which the last try failed; None when the lock may be tried again at once."""

    def _patience(self) -> float:
        """Returns the seconds to wait beyond `wait_ms`: a provider may have to watch a holder first."""
        return 0.0


def lost(name: str, holder: LockHolder | None, reason: str = "") -> LockError:
    """Returns the error of check() for a lock that another holder has now, or that is free (None)."""
    now = "it is free now" if holder is None else f"it is now held by {holder.describe()}"
    because = f" ({reason})" if reason else ""
    return LockError(f"the lock was lost{because}, {now}", path=name, remedy="run the service again")


class LeaseState(Protocol):
    """The stored state of a lock, changed by conditional writes only."""

    @property
    def released(self) -> bool: ...


State = TypeVar("State", bound=LeaseState)


class LeasedLock(PolledLock, Generic[State]):
    """A lock for `lease_seconds` that a thread renews every `renew_seconds`. Each change replaces only the version of
    the state that it has read. After an unknown outcome, the state is read again: its owner has the lock.
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
        """Reads the present state; None when no state is stored."""

    @abstractmethod
    def _write_first(self, token: str, current: State | None) -> bool:
        """Takes the lock for `token` if the state is still `current`. Returns False when another process was faster."""

    @abstractmethod
    def _extend(self) -> bool:
        """Renews the lease. Sets `_taken_away` and returns False when the lease is lost for good."""

    @abstractmethod
    def _give_back(self) -> bool:
        """Releases the lease. Returns False when the lease was not ours any more."""

    @abstractmethod
    def _is_ours(self, current: State) -> bool:
        """Returns whether the state says that this process has the lock."""

    @abstractmethod
    def _holder_of(self, current: State) -> LockHolder:
        """Returns the holder that the state names."""

    def _is_running(self, current: State) -> bool:
        """Returns whether the state names a holder whose lease is not over."""
        return not current.released

    def _is_held(self, current: State) -> bool:
        return self._is_running(current) and not self._holder_of(current).is_left_behind

    def _is_overdue(self) -> bool:
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
        """Raises LockError when the lock is no longer ours (TableLock.check); costs one read."""
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
        current = self._read()
        return self._holder_of(current) if current is not None and self._is_running(current) else None
