"""The partitions of the metadata table that were initialized after a commit: they may contain it without its
deltacommit.

A rollback undoes the deltacommit of its instant, and nothing else. Such a partition would keep records of deleted files
and of keys without rows. Hudi does not check this (HoodieBackedTableMetadataWriter.validateRollback checks compactions
only).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import CorruptFileError, StorageNotFoundError
from hudi_core.metadata_table.instants import data_instant, is_early, is_solo
from hudi_core.metadata_table.partition_type import COLUMN_STATS, FILES_PARTITION, STATISTICS
from hudi_core.metadata_table.read.file_group import ROOT, data_files
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.model.partition import PARTITION_METADATA, join
from hudi_core.storage.base import Storage
from hudi_core.timeline.instant import Action, Instant
from hudi_core.timeline.timeline import Timeline

_COMMIT_TIME: Final = re.compile(rb"^commitTime=(\d+)\s*$", re.MULTILINE)


def columns_came_with(metadata_timeline: MetadataTimeline, instants: Iterable[Instant]) -> bool:
    """Whether one of `instants`, of the metadata table, wrote statistics of files without a listing, as no action of
    the data table does.

    A rollback of such an instant leaves an index that lacks columns of its definition: Hudi's readers take these for
    null.
    """
    for item in instants:
        if item.action == Action.DELTA_COMMIT and item.is_completed:
            stats = metadata_timeline.active.read_commit(item).partition_to_write_stats
            if stats.get(COLUMN_STATS) and not stats.get(FILES_PARTITION):
                return True
    return False


def initialized_since(
    storage: Storage, config: TableConfig, metadata_timeline: MetadataTimeline, commit: Instant
) -> frozenset[str]:
    """The partitions, listed or being built, that were initialized, or got columns, when `commit`, a completed one of
    the data table, may have been complete.

    One listing of each. In layout 1 a partition is initialized at the latest completed instant of the data table and a
    suffix; in layout 2 at an unrelated one, so that the completion time of that deltacommit decides. One that was
    archived, like one whose first slices were cleaned, is an older one: compactions since are checked by
    rollback.MetadataRollback. Raises MetadataUnavailableError where there is no metadata table.
    """
    timeline = metadata_timeline.active.load()
    names = config.metadata_partitions | config.metadata_partitions_inflight
    found = frozenset(name for name in names if _initialized_since(storage, metadata_timeline, timeline, name, commit))
    later = (item for item in timeline.commits() if item.completed_at > commit.completed_at)
    return found | names.intersection(STATISTICS) if columns_came_with(metadata_timeline, later) else found


def _initialized_since(
    storage: Storage, metadata_timeline: MetadataTimeline, timeline: Timeline, partition: str, commit: Instant
) -> bool:
    files = data_files(storage.list_files(f"{ROOT}/{partition}"))
    first = min((name.instant for _, name in files), default=None)
    if first is None:
        return False  # its building has not come to a file group
    early = is_early(first)
    if early or not metadata_timeline.features.completion_time_in_name:
        time = initialized_at(storage, partition) if early else first
        return not is_solo(time) and data_instant(time) >= commit.requested_time
    made = next((item for item in timeline.commits() if item.requested_time == first), None)
    if made is None:
        # Pending: it is being built now.
        return timeline.pending().contains(first)
    return made.completed_at > commit.completed_at


def initialized_at(storage: Storage, partition: str) -> str:
    """The instants.initialization_time of a partition whose file groups were initialized under an early instant.

    Raises CorruptFileError where its partition metadata does not say it.
    """
    path = join(f"{ROOT}/{partition}", PARTITION_METADATA)
    try:
        found = _COMMIT_TIME.search(storage.read(path))
    except StorageNotFoundError:
        found = None
    if found is None:
        raise CorruptFileError(
            "does not say when the index was initialized",
            path=path,
            remedy=(
                f"rebuild it: `hudictl metadata drop TABLE --partition {partition}`, then `hudictl metadata create`"
            ),
        )
    return found[1].decode("ascii")
