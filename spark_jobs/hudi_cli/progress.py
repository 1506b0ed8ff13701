"""Progress of a run for people: one bar per instant, on stderr."""

from __future__ import annotations

import threading
from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn


class RunProgress:
    """A context manager to be called as HudiTable.run's progress.

    `units` names what is counted and what is done to it. Without a terminal it prints one line per instant when it is
    done.
    """

    def __init__(self, console: Console, units: str = "file groups written", *, shown: bool = True) -> None:
        self._console = console
        self._shown = shown
        self._units = units
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn(escape(units)),
            TimeElapsedColumn(),
        )
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
                self._console.print(f"{instant}: {done} of {total} {self._units}", highlight=False)

    def __enter__(self) -> RunProgress:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()
