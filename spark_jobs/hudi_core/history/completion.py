"""When an instant completed: from the active timeline, and only for older instants from the archive
(CompletionTimeQueryViewV2).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hudi_core.history.archived import ArchivedTimeline
from hudi_core.timeline.instant import WRITE_ACTIONS, Action
from hudi_core.timeline.timeline import Timeline

_COUNT: Final = WRITE_ACTIONS | {Action.SAVEPOINT}
"""The actions that say where the active timeline begins: writes, and savepoints, which exempt a write from that."""


def begin_of_writes(timeline: Timeline) -> str | None:
    """Where the active timeline begins: a write requested before that can only be in the archive; None for a timeline
    without writes.

    Neither at the first instant of all, as cleans are archived apart from writes and later, nor at the first write, as
    an archiver may leave a savepoint's commit behind and archive those after it.
    """
    return timeline.filter(lambda instant: instant.action in _COUNT).start


class CompletionTimes:
    """Completion times of writes by requested time, for one state of the active timeline.

    `timeline` is the whole active timeline. `history` loads the archive; it is called at most once, and only when
    somebody asks for an instant that is older than the writes of the active timeline. Not thread-safe.
    """

    def __init__(self, timeline: Timeline, history: Callable[[], ArchivedTimeline]) -> None:
        self._history = history
        self._archive: ArchivedTimeline | None = None
        self._begin = begin_of_writes(timeline) or ""
        self._times: dict[str, str] = {}
        # A savepoint shares the requested time of its commit and sorts after it: the commit's completion is the one
        # that counts.
        for instant in timeline:
            if instant.is_completed:
                self._times.setdefault(instant.requested_time, instant.completed_at)

    def of(self, requested_time: str) -> str | None:
        """When the instant at `requested_time` completed; None while it is pending, and when neither timeline knows it.

        Hudi takes an unknown old instant for pending too (facts 2.5). In layout 1 the answer is the requested time
        itself. Raises StorageError or FormatError when the archive is needed and cannot be read.
        """
        found = self._times.get(requested_time)
        if found is not None or requested_time >= self._begin:
            return found
        if self._archive is None:
            self._archive = self._history()
        return self._archive.completion_time(requested_time)

    def is_completed(self, requested_time: str) -> bool:
        """Whether the instant completed, as far as the timelines know."""
        return self.of(requested_time) is not None
