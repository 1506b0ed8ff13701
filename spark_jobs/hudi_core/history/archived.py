"""The archived timeline of a table (HoodieArchivedTimeline): what it answers, in either layout."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from hudi_core.config.table_config import TableConfig
from hudi_core.history.log_archive import LogArchive
from hudi_core.history.lsm import LsmHistory
from hudi_core.model.partition import join
from hudi_core.storage.base import Storage
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.instant import WRITE_ACTIONS, Action, Instant
from hudi_core.timeline.timeline import Timeline

ArchivedTimeline: TypeAlias = LogArchive | LsmHistory
"""The completed instants that were moved from the active timeline to its archive. Times are requested times unless
stated otherwise. An instant has the action under which it completed and, in layout 2, its completion time. Nothing is
read before the first query. Every query may raise StorageError, or FormatError naming the file that is damaged. Only a
missing folder or manifest is an empty archive.
"""


def load_history(storage: Storage, config: TableConfig, base: str = "") -> ArchivedTimeline:
    """Returns the archive of the table at `base`, whose properties are `config`. The first query reads it."""
    folder = join(base, config.history_folder)
    return LsmHistory(storage, folder) if config.features.completion_time_in_name else LogArchive(storage, folder)


def latest_commits(history: ArchivedTimeline) -> Iterator[tuple[Instant, CommitMetadata]]:
    """Yields the archive's commits, latest first, each read on demand: `archived` of timeline.schemas.schema_of."""
    for instant in reversed(history.timeline().commits().instants):
        yield from history.commits([instant])


_COUNT: Final = WRITE_ACTIONS | {Action.SAVEPOINT}
"""The actions that define the start of the active timeline: writes, and savepoints, which exempt a write."""


def begin_of_writes(timeline: Timeline) -> str | None:
    """Returns the start of the active timeline: a write requested before it can only be in the archive. Returns None
    without writes. The first instant of all is not the start, because cleans are archived later. The first write is
    not, because a savepoint may keep it.
    """
    return timeline.filter(lambda instant: instant.action in _COUNT).start


class CompletionTimes:
    """Completion times of writes by requested time, for one state of the timeline. Not thread-safe. `history` loads the
    archive, at most once: for an instant older than the timeline's writes, or where savepoints hold these.
    """

    def __init__(self, timeline: Timeline, history: Callable[[], ArchivedTimeline]) -> None:
        self._history = history
        self._archive: ArchivedTimeline | None = None
        self._begin = begin_of_writes(timeline)
        self._times: dict[str, str] = {}
        # A savepoint shares the requested time of its commit and sorts after it: the commit's completion counts.
        for instant in timeline:
            if instant.is_completed:
                self._times.setdefault(instant.requested_time, instant.completed_at)

    def of(self, requested_time: str) -> str | None:
        """Returns a write's completion time, in layout 1 its requested time; None while pending or unknown."""
        completed = self._times.get(requested_time)
        if completed is not None or (self._begin is not None and requested_time >= self._begin):
            return completed
        if self._archive is None:
            self._archive = self._history()
        return self._archive.completion_time(requested_time)

    def is_completed(self, requested_time: str) -> bool:
        return self.of(requested_time) is not None
