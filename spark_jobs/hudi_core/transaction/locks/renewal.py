"""The thread that renews a lease while it is held."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

log = logging.getLogger(__name__)


class Renewal:
    """Calls `renew` every `interval_seconds` until it returns False, raises what ends a process, or is stopped.

    An Exception of `renew` is logged and the call tried again after the next interval: the lease itself expires when it
    was not renewed for too long.
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
        """Stops the thread and waits for a call under way. Idempotent."""
        self._stopped.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(self._interval):
            try:
                if not self._renew():
                    return
            except Exception as error:  # noqa: BLE001 (a thread cannot raise to its caller; the lease expires if it continues)
                log.warning("%s was not renewed, it is tried again: %s", self._name, error)
            except BaseException as error:  # noqa: BLE001 (the process ends; its lease runs out)
                log.warning("%s is renewed no more: %s", self._name, error)
                return
