"""The archive of a table, by the layout of its timeline."""

from __future__ import annotations

from collections.abc import Iterator

from hudi_core.config.table_config import TableConfig
from hudi_core.history.archived import ArchivedTimeline
from hudi_core.history.log_archive import LogArchive
from hudi_core.history.lsm import LsmHistory
from hudi_core.model.partition import join
from hudi_core.storage.base import Storage
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.instant import Instant


def load_history(storage: Storage, config: TableConfig, base: str = "") -> ArchivedTimeline:
    """The archive of the table at `base` (`""`, or `.hoodie/metadata`). Nothing is read before the first question.

    `config` is that table's own configuration.
    """
    folder = join(base, config.history_folder)
    return LsmHistory(storage, folder) if config.features.completion_time_in_name else LogArchive(storage, folder)


def latest_commits(history: ArchivedTimeline) -> Iterator[tuple[Instant, CommitMetadata]]:
    """The archive's commits, latest first, each read on demand: `archived` of timeline.table_schema.schema_of."""
    for instant in reversed(history.timeline().commits().instants):
        yield from history.commits([instant])
