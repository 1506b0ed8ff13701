"""Progress of a Spark job without a JVM handle: finished units leave an empty file in a folder that the driver counts.

It works where executors run on the driver's machine (local masters). On a cluster the folder is not there, and only the
start and the end are reported; what a cluster job does is seen in Spark's own UI.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

_INTERVAL_SECONDS = 0.5


class ProgressFolder:
    """Calls `progress(done, total)` from a thread of its own when `done` grew, and at the start and the end."""

    def __init__(self, total: int, progress: Callable[[int, int], None] | None) -> None:
        self._total = total
        self._progress = progress
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="hudi-progress", daemon=True)
        self._reported = -1

    @property
    def path(self) -> str | None:
        """The folder of the ticks; None without a listener."""
        return None if self._folder is None else self._folder.name

    def __enter__(self) -> ProgressFolder:
        if self._progress is not None:
            self._folder = tempfile.TemporaryDirectory(prefix="hudi-progress-", ignore_cleanup_errors=True)
            # Executors of a standalone cluster may run here as another user.
            Path(self._folder.name).chmod(0o733)
            self._report(0)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._folder is None:
            return
        self._stop.set()
        self._thread.join()
        if kind is None:
            self._report(self._total)
        self._folder.cleanup()

    @staticmethod
    def tick(path: str | None, unit: int) -> None:
        """On an executor: marks `unit` as finished.

        Never fails the unit; a folder that is not on this machine is ignored.
        """
        if path is None:
            return
        try:
            (Path(path) / str(unit)).touch()
        except OSError:
            return

    def _watch(self) -> None:
        while not self._stop.wait(_INTERVAL_SECONDS):
            self._report(self._count())

    def _count(self) -> int:
        return sum(1 for _ in Path(self.path or "").iterdir())

    def _report(self, done: int) -> None:
        if self._progress is not None and done > self._reported:
            self._reported = done
            self._progress(done, self._total)
