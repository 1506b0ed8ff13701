"""Waits that end when the job is stopped. A signal reaches the main thread of a process alone; the threads of a job's
tables look here while they wait for a lock or for other writers, and before they start another instant.

What is raised then is KeyboardInterrupt, as in the main thread: claims and locks are released on the same paths.
"""

from __future__ import annotations

import threading
from contextvars import ContextVar
from typing import Final

_NEVER: Final = threading.Event()
_stopped: ContextVar[threading.Event] = ContextVar("stopped", default=_NEVER)
"""That of the job of this thread."""


def stop_with(stopped: threading.Event) -> None:
    """From now on waits of this thread end when `stopped` is set."""
    _stopped.set(stopped)


def is_stopped() -> bool:
    """Whether the job of this thread is to start nothing more."""
    return _stopped.get().is_set()


def pause(seconds: float) -> None:
    """Sleeps; raises KeyboardInterrupt as soon as the job of this thread is stopped."""
    if _stopped.get().wait(seconds):
        raise KeyboardInterrupt
