"""The archived timeline of a table (HoodieArchivedTimeline): what it answers, whichever layout it is kept in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Protocol

from hudi_core.config.table_config import TableConfig
from hudi_core.history.log_archive import LogArchive
from hudi_core.history.lsm import LsmHistory
from hudi_core.model.partition import join
from hudi_core.storage.base import Storage
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.instant import WRITE_ACTIONS, Action, Instant
from hudi_core.timeline.timeline import Timeline


class ArchivedTimeline(Protocol):
    """The completed instants that were moved from the active timeline to its archive. Times are requested times unless
    stated otherwise; an instant has the action under which it completed and, in layout 2, its completion time. Nothing
    is read before the first query, and the content of instants only for the queries that need it. Every query may raise
    StorageError, or FormatError naming the file that is damaged; only a missing folder or manifest is an empty archive.
    """

    def instants(self, after: str | None = None, up_to: str | None = None) -> list[Instant]:
        """The instants requested after `after` (exclusive) and at or before `up_to`, in timeline order."""
        ...

    def completed_in(self, begin: str | None, end: str | None) -> list[Instant]:
        """The instants completed after `begin` (exclusive) and at or before `end`; in layout 1 those requested then."""
        ...

    def timeline(self) -> Timeline: ...

    def is_empty(self) -> bool:
        """Whether there are none. Opens files up to the first that holds one, in layout 2 none."""
        ...

    def latest(self) -> Iterator[Instant]:
        """All instants, the latest first; in layout 2 a file is opened when the caller comes to it."""
        ...

    def commit(self, requested_time: str) -> CommitMetadata | None:
        """The metadata of the commit, deltacommit or replacecommit at `requested_time`; None when not archived."""
        ...

    def commits(self, instants: Iterable[Instant]) -> Iterator[tuple[Instant, CommitMetadata]]:
        """The metadata of many commits of this archive, in no promised order; other instants are passed over."""
        ...

    def completion_time(self, requested_time: str) -> str | None:
        """The completion time of the instant, in layout 1 its requested time; None when it is not archived."""
        ...

    def content(self, instant: Instant) -> dict[str, Any]:
        """The completed file as a plain dictionary, for display; `{}` when it was empty or is not archived."""
        ...

    def plan(self, instant: Instant) -> dict[str, Any]:
        """The plan (requested file) as a plain dictionary, for display; `{}` when the archive has none."""
        ...


def load_history(storage: Storage, config: TableConfig, base: str = "") -> ArchivedTimeline:
    """The archive of the table at `base`, which `config` is of. Nothing is read before the first query."""
    folder = join(base, config.history_folder)
    return LsmHistory(storage, folder) if config.features.completion_time_in_name else LogArchive(storage, folder)


def latest_commits(history: ArchivedTimeline) -> Iterator[tuple[Instant, CommitMetadata]]:
    """The archive's commits, latest first, each read on demand: `archived` of timeline.schemas.schema_of."""
    for instant in reversed(history.timeline().commits().instants):
        yield from history.commits([instant])


_COUNT: Final = WRITE_ACTIONS | {Action.SAVEPOINT}
"""The actions that define the start of the active timeline: writes, and savepoints, which exempt a write."""


def begin_of_writes(timeline: Timeline) -> str | None:
    """The start of the active timeline: a write requested before it can only be in the archive; None without writes.
    Neither the first instant of all, as cleans are archived later, nor the first write, which a savepoint may keep.
    """
    return timeline.filter(lambda instant: instant.action in _COUNT).start


class CompletionTimes:
    """Completion times of writes by requested time, for one state of the whole active timeline. Not thread-safe.
    `history` loads the archive, once and only for an instant older than the timeline's writes, or where savepoints hold
    these.
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
        """In layout 1 the requested time; None while it is pending or unknown. Raises StorageError or FormatError."""
        completed = self._times.get(requested_time)
        if completed is not None or (self._begin is not None and requested_time >= self._begin):
            return completed
        if self._archive is None:
            self._archive = self._history()
        return self._archive.completion_time(requested_time)

    def is_completed(self, requested_time: str) -> bool:
        return self.of(requested_time) is not None
