"""Progress of a run for people: one bar per instant, on stderr."""

from __future__ import annotations

import threading
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn


class RunProgress:
    """A context manager to be called as HudiTable.run's progress. Without a terminal it prints one line per instant when it is done."""

    def __init__(self, console: Console, *, shown: bool = True) -> None:
        self._console = console
        self._shown = shown
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("file groups"), TimeElapsedColumn())
        self._bars = Progress(*columns, console=console, disable=not (shown and console.is_terminal))
        self._tasks: dict[str, TaskID] = {}
        # Engines report from threads of their own.
        self._lock = threading.Lock()

    def __call__(self, instant: str, done: int, total: int) -> None:
        """`done` of the `total` units of `instant` are finished."""
        with self._lock:
            if instant not in self._tasks:
                self._tasks[instant] = self._bars.add_task(instant, total=total)
            self._bars.update(self._tasks[instant], completed=done, total=total)
            if self._shown and done == total and not self._console.is_terminal:
                self._console.print(f"{instant}: {done} of {total} file groups written", highlight=False)

    def __enter__(self) -> RunProgress:
        self._bars.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._bars.stop()
