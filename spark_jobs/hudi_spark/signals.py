"""Ends a run in order when the process receives SIGTERM: locks, claims and heartbeats are released. Also sets up the
signal handler and the log of our processes.
"""

from __future__ import annotations

import logging
import signal
from types import FrameType
from typing import TextIO

from hudi_core.errors import LogFormatter

EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143


class Termination:
    """Makes SIGTERM (from a scheduler, a pod or Airflow) act like Ctrl-C, and remembers that SIGTERM came.

    SparkContext's own SIGINT handler cancels its running jobs and raises KeyboardInterrupt. Without Spark, Python's
    handler raises KeyboardInterrupt. A process that was started with SIGINT ignored, such as a background process of a
    script, has no such handler.
    """

    def __init__(self) -> None:
        self.happened = False
        """Whether SIGTERM came."""

    def install(self) -> None:
        """Sets the handler; call it from the main thread."""
        signal.signal(signal.SIGTERM, self._on_signal)

    @property
    def exit_code(self) -> int:
        """The exit code that a shell expects after a signal: 143 after SIGTERM, else 130."""
        return EXIT_TERMINATED if self.happened else EXIT_INTERRUPTED

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.happened = True
        # The handler is looked up now: SparkContext installs its handler after ours, also if SIGINT was ignored.
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)


def start_process(log: TextIO, form: str, level: int = logging.INFO) -> Termination:
    """Installs the handler of SIGTERM, and a log of all warnings and the engine's messages from `level` on."""
    termination = Termination()
    termination.install()
    handler = logging.StreamHandler(log)
    handler.setFormatter(LogFormatter(form))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("hudi_core").setLevel(level)
    return termination
