"""Ends a run in order when the process receives SIGTERM: locks, claims and heartbeats are released. What a process of
ours starts with, and logs.
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
    """Makes SIGTERM (from a scheduler, a pod or Airflow) act as Ctrl-C does, and remembers that it came.

    SparkContext's own SIGINT handler cancels its running jobs and raises KeyboardInterrupt; without Spark, Python's
    does the latter. A process that was started with SIGINT ignored, as a script starts one in the background, has no
    such handler.
    """

    def __init__(self) -> None:
        self.happened = False
        """Whether SIGTERM came."""

    def install(self) -> None:
        """Sets the handler; call it from the main thread."""
        signal.signal(signal.SIGTERM, self._on_signal)

    @property
    def exit_code(self) -> int:
        """143 after SIGTERM, else 130: what a shell expects of a process that ended for a signal."""
        return EXIT_TERMINATED if self.happened else EXIT_INTERRUPTED

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.happened = True
        # Looked up now: SparkContext installs its handler after ours, also where SIGINT was ignored.
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)


def start_process(log: TextIO, form: str, level: int = logging.INFO) -> Termination:
    """Installs the handler of SIGTERM, and logs to a stream: warnings, and of the engine what has the `level`."""
    termination = Termination()
    termination.install()
    handler = logging.StreamHandler(log)
    handler.setFormatter(LogFormatter(form))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("hudi_core").setLevel(level)
    return termination
