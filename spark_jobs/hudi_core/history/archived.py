"""The archived timeline of a table (HoodieArchivedTimeline): what it answers, whichever layout it is kept in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from hudi_core.config.table_config import TableConfig
from hudi_core.history.log_archive import LogArchive
from hudi_core.history.lsm import LsmHistory
from hudi_core.model.partition import join
from hudi_core.storage.base import Storage
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.instant import Instant
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

    def timeline(self) -> Timeline:
        """All instants."""
        ...

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
