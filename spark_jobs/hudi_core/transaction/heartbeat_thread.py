"""Threads that repeat a call (an instant's heartbeat, a lease's renewal), the storage's clock, the age of a sign of
life, and waits that end with the job. claim_file.py and writer_heartbeats.py say when a heartbeat is too old.

A signal reaches only the main thread of a process. The threads of a job's tables ask this module whether the job is
stopped: while they wait for a lock or for other writers, and before they start another instant. A wait then raises
KeyboardInterrupt, as the main thread does: claims and locks are released on the same paths.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Final

from hudi_core.errors import ConflictError
from hudi_core.storage.base import Storage

log = logging.getLogger(__name__)
_NEVER: Final = threading.Event()
_stopped: ContextVar[threading.Event] = ContextVar("stopped", default=_NEVER)
"""The event that stops the job of this thread."""


def storage_time(storage: Storage, folder: str) -> float:
    """Returns the storage's time in seconds since the epoch: the modification time of a temporary file in `folder`."""
    probe = f"{folder}/clock-{uuid.uuid4().hex}"
    storage.write(probe, b"")
    try:
        return storage.stat(probe).modified
    finally:
        storage.delete(probe)


def sign_age(signs: Iterable[float], now: float, tolerance: float) -> float | None:
    """Returns the seconds since the latest sign within `tolerance` before or after `now`; None without such a sign."""
    return min((now - sign for sign in signs if abs(now - sign) <= tolerance), default=None)


class Renewal:
    """Calls `renew` every `interval_seconds`, until `renew` returns False or raises an error that ends a process, or
    until `stop`. An Exception is logged and the call tried again: a lease that is not renewed for too long expires.
    """

    def __init__(self, renew: Callable[[], bool], *, interval_seconds: float, name: str) -> None:
        self._renew = renew
        self._interval = interval_seconds
        self._name = name
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"renew {name}", daemon=True)

    def start(self) -> None:
        """Starts the thread; the first call comes after one interval."""
        self._thread.start()

    def stop(self) -> None:
        """Stops the thread and waits for a call that is running. Idempotent."""
        self._stopped.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(self._interval):
            try:
                if not self._renew():
                    return
            except BaseException as error:  # noqa: BLE001 (a thread cannot raise to its caller)
                self._failed(error)
                if not isinstance(error, Exception):  # the process ends
                    return

    def _failed(self, error: BaseException) -> None:
        outcome = "was not renewed, it is tried again" if isinstance(error, Exception) else "is renewed no more"
        log.warning("%s %s: %s", self._name, outcome, error)


class Heartbeat(Renewal):
    """Calls `beat` at once and then every interval. `check` raises when other processes may take this one for dead."""

    def __init__(
        self, beat: Callable[[], None], *, interval_seconds: float, tolerance_seconds: float, name: str
    ) -> None:
        super().__init__(self._send, interval_seconds=interval_seconds, name=name)
        self._beat = beat
        self._tolerance = tolerance_seconds
        self._failure: BaseException | None = None
        self._last = time.monotonic()

    def start(self, *, at_once: bool = True) -> None:
        """Starts the thread. With `at_once`, sends the first heartbeat before, and raises its failure."""
        if at_once:
            self._send()
        super().start()

    def check(self) -> None:
        silent = time.monotonic() - self._last
        failure = self._failure
        if failure is not None and not isinstance(failure, Exception):
            raise failure
        if silent > self._tolerance:
            reason = f": {failure}" if failure is not None else ""
            message = f"the heartbeat of {self._name} could not be written for {silent:.0f} s{reason}"
            raise ConflictError(message, remedy="run it again when the storage answers") from failure

    def _send(self) -> bool:
        self._beat()
        self._failure, self._last = None, time.monotonic()
        return True

    def _failed(self, error: BaseException) -> None:
        self._failure = error


def stop_with(stopped: threading.Event) -> None:
    """Lets the waits of this thread end, from now on, when `stopped` is set."""
    _stopped.set(stopped)


def is_stopped() -> bool:
    """Returns whether the job of this thread is stopped and may start nothing more."""
    return _stopped.get().is_set()


def pause(seconds: float) -> None:
    """Sleeps for `seconds`. Raises KeyboardInterrupt as soon as the job of this thread is stopped."""
    if _stopped.get().wait(seconds):
        raise KeyboardInterrupt
