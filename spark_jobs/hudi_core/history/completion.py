"""Completion times, from the active timeline and for older instants from the archive (CompletionTimeQueryViewV2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hudi_core.history.archived import ArchivedTimeline
from hudi_core.timeline.instant import WRITE_ACTIONS, Action
from hudi_core.timeline.timeline import Timeline

_COUNT: Final = WRITE_ACTIONS | {Action.SAVEPOINT}
"""The actions that define the start of the active timeline: writes, and savepoints, which exempt a write."""


def begin_of_writes(timeline: Timeline) -> str | None:
    """The start of the active timeline: a write requested before it can only be in the archive; None without writes. It
    is neither the first instant of all, as cleans are archived apart from writes and later, nor the first write, as an
    archiver may keep a savepoint's commit and archive those after it.
    """
    return timeline.filter(lambda instant: instant.action in _COUNT).start


class CompletionTimes:
    """Completion times of writes by requested time, for one state of the whole active timeline. Not thread-safe.
    `history` loads the archive, at most once and only for an instant older than the active timeline's writes. Where
    savepoints hold all of these, any other instant may be archived.
    """

    def __init__(self, timeline: Timeline, history: Callable[[], ArchivedTimeline]) -> None:
        self._history = history
        self._archive: ArchivedTimeline | None = None
        self._begin = begin_of_writes(timeline)
        self._times: dict[str, str] = {}
        # A savepoint shares the requested time of its commit and sorts after it: the commit's completion is the one
        # that counts.
        for instant in timeline:
            if instant.is_completed:
                self._times.setdefault(instant.requested_time, instant.completed_at)

    def of(self, requested_time: str) -> str | None:
        """The completion time of the instant, in layout 1 its requested time; None while it is pending or unknown. As
        CompletionTimeQueryViewV2. Raises StorageError or FormatError when the archive cannot be read.
        """
        found = self._times.get(requested_time)
        if found is not None or (self._begin is not None and requested_time >= self._begin):
            return found
        if self._archive is None:
            self._archive = self._history()
        return self._archive.completion_time(requested_time)

    def is_completed(self, requested_time: str) -> bool:
        """Whether the instant completed, by the two timelines."""
        return self.of(requested_time) is not None
