"""A thread that renews this process's heartbeat at an interval."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable

from hudi_core.errors import ConflictError
from hudi_core.storage.base import Storage


def storage_time(storage: Storage, folder: str) -> float:
    """Seconds since the epoch: the modification time of a file made in `folder` now, and removed again."""
    probe = f"{folder}/clock-{uuid.uuid4().hex}"
    storage.write(probe, b"")
    try:
        return storage.stat(probe).modified
    finally:
        storage.delete(probe)


class Heartbeat:
    """Calls `beat` at once and then every `interval_seconds` until stopped.

    A failed beat is tried again at the next turn; `check` raises once the last good one is older than
    `tolerance_seconds`, since by then others may take this process for dead.
    """

    def __init__(
        self, beat: Callable[[], None], *, interval_seconds: float, tolerance_seconds: float, name: str
    ) -> None:
        self._beat = beat
        self._interval = interval_seconds
        self._tolerance = tolerance_seconds
        self._name = name
        self._stopped = threading.Event()
        self._failure: BaseException | None = None
        self._last = time.monotonic()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Sends the first heartbeat, whose failure is raised here, and starts the thread."""
        self._beat()
        self._last = time.monotonic()
        self._thread = threading.Thread(target=self._run, name=f"heartbeat {self._name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stops the thread and waits for a beat under way. Idempotent."""
        self._stopped.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
            self._thread = None

    def check(self) -> None:
        """Raises ConflictError when others may take this process for dead."""
        silent = time.monotonic() - self._last
        failure = self._failure
        if failure is not None and not isinstance(failure, Exception):
            raise failure
        if silent > self._tolerance:
            reason = f": {failure}" if failure is not None else ""
            raise ConflictError(
                f"the heartbeat of {self._name} could not be written for {silent:.0f} s{reason}",
                remedy="run it again when the storage answers",
            ) from failure

    def _run(self) -> None:
        while not self._stopped.wait(self._interval):
            try:
                self._beat()
            except Exception as error:  # noqa: BLE001 (kept for check(): a thread cannot raise to its caller)
                self._failure = error
            except BaseException as error:  # noqa: BLE001 (the process ends; the owner's next check() raises it)
                self._failure = error
                return
            else:
                self._failure = None
                self._last = time.monotonic()
