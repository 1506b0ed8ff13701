"""How far back the metadata table can be restored, and which of its indexes are dropped for that
(BaseHoodieWriteClient.restoreToSavepoint). Also which partitions were initialized after a commit, and may contain it
without its deltacommit.

A rollback rolls back only the deltacommit of its instant. So such a partition would keep records of deleted files and
of keys without rows. Hudi does not check this (validateRollback checks only compactions).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import partial
from typing import Final

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import CorruptFileError, StorageNotFoundError
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.instants import data_instant, is_early, is_solo, rolled_back_by, valid_instants
from hudi_core.metadata_table.partition_type import COLUMN_STATS, FILES_PARTITION, STATISTICS, needs_definition
from hudi_core.metadata_table.read.file_group import ROOT, data_files, partition_folders
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.model.names import BaseFileName, LogFileName, WriteToken
from hudi_core.model.partition import PARTITION_METADATA, join
from hudi_core.storage.base import Storage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action, Instant
from hudi_core.timeline.timeline import Timeline

_FIRST_LOG = WriteToken(0, 0, 0)
"""The write token of a file group's first log file (HoodieBackedTableMetadataWriter.initializeFileGroups)."""
_WRITES = COMMIT_ACTIONS | {Action.COMPACTION, Action.LOG_COMPACTION}

_COMMIT_TIME: Final = re.compile(rb"^commitTime=(\d+)\s*$", re.MULTILINE)


def columns_came_with(metadata_timeline: MetadataTimeline, instants: Iterable[Instant]) -> bool:
    """Returns whether one of the metadata table's `instants` wrote statistics of files without a listing: such an
    instant added columns. Its rollback leaves an index without columns of its definition, which Hudi reads as null.
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
    """Returns the partitions, listed or being built, that were initialized, or got columns, when the completed `commit`
    may already have been complete. One listing of each. In layout 1 a partition is initialized at the latest completed
    instant of the data table and a suffix; in layout 2 the completion time of its deltacommit decides. A partition
    whose deltacommit was archived, or whose first file slices were cleaned, is older; rollback.MetadataRollback checks
    the compactions since then. Raises MetadataUnavailableError without a metadata table.
    """
    timeline = metadata_timeline.active.load()
    names = config.metadata_partitions | config.metadata_partitions_inflight
    found = frozenset(name for name in names if _initialized_since(metadata_timeline, timeline, name, commit))
    later = (item for item in timeline.commits() if item.completed_at > commit.completed_at)
    return found | names.intersection(STATISTICS) if columns_came_with(metadata_timeline, later) else found


def _initialized_since(
    metadata_timeline: MetadataTimeline, timeline: Timeline, partition: str, commit: Instant
) -> bool:
    files = data_files(metadata_timeline.storage.list_files(f"{ROOT}/{partition}"))
    first = min((name.instant for _, name in files), default=None)
    if first is None:
        return False  # its build has no file group yet
    early = is_early(first)
    if early or not metadata_timeline.features.completion_time_in_name:
        time = initialized_at(metadata_timeline.storage, partition) if early else first
        return not is_solo(time) and data_instant(time) >= commit.requested_time
    made = next((item for item in timeline.commits() if item.requested_time == first), None)
    if made is None:
        # Pending: it is being built now.
        return timeline.pending().contains(first)
    return made.completed_at > commit.completed_at


def initialized_at(storage: Storage, partition: str) -> str:
    """Reads the initialization_time of a partition with an early base instant. Raises CorruptFileError if absent."""
    path = join(f"{ROOT}/{partition}", PARTITION_METADATA)
    try:
        found = _COMMIT_TIME.search(storage.read(path))
    except StorageNotFoundError:
        found = None
    if found is None:
        message = "does not say when the index was initialized"
        remedy = f"rebuild it: `hudictl metadata drop TABLE --partition {partition}`, then `hudictl metadata create`"
        raise CorruptFileError(message, path=path, remedy=remedy)
    return found[1].decode("ascii")


@dataclass(frozen=True, slots=True)
class Reach:
    """The consequences of a data table's restore for the metadata table. `reason` says why the metadata table cannot be
    restored to the instant and must be dropped; None: it can. `late` are the partitions that were built after the
    instant, are being built, or got columns since: they must be dropped (Hudi keeps them, and then they hide rows).
    """

    reason: str | None
    late: frozenset[str] = frozenset()


def reach_of(storage: Storage, config: TableConfig, metadata_timeline: MetadataTimeline, target: str) -> Reach:
    timeline = metadata_timeline.active.load()
    compacted = timeline.completed().of_actions(Action.COMMIT).first()
    if compacted is not None and compacted.requested_time >= target:
        return Reach(f"it was compacted at {compacted.requested_time}, after {target}")
    start = timeline.commits().start
    if start is None or start > target:
        return Reach(f"its timeline begins at {start}, after {target}")
    until = completed_at(metadata_timeline, timeline, target)
    if until is None:
        return Reach(f"its timeline does not say when {target} completed")
    later = instants_after(metadata_timeline, timeline, target, until)
    archived = _no_longer_counted(config, metadata_timeline, timeline, later)
    if archived is not None:
        return Reach(f"the table has archived {archived}, which it was compacted with only after {target}")
    folders = partition_folders(storage)
    late = {name for name in folders if not _holds(metadata_timeline, timeline, name, target, until)}
    if columns_came_with(metadata_timeline, later):
        late.update(STATISTICS)
    if FILES_PARTITION in late:
        return Reach(f"it was built after {target}, or what it held then was cleaned")
    listed = config.metadata_partitions | config.metadata_partitions_inflight
    dropped = listed & (late | config.metadata_partitions_inflight)
    # An index that needs a definition cannot be dropped alone: it would lose the definition.
    defined = sorted(filter(needs_definition, dropped))
    if defined:
        return Reach(f"{', '.join(defined)} was built after {target}")
    return Reach(None, dropped)


def completed_at(metadata_timeline: MetadataTimeline, timeline: Timeline, target: str) -> str | None:
    """Returns when `target` completed (layout 1: its requested time), which orders instants; None where unknown."""
    if not metadata_timeline.features.completion_time_in_name:
        return target
    found = timeline.find(target, Action.DELTA_COMMIT)
    return found.completion_time if found is not None and found.is_completed else None


def instants_after(metadata_timeline: MetadataTimeline, timeline: Timeline, target: str, until: str) -> list[Instant]:
    """Returns the writes of the metadata table after `target`, which completed at `until`; newest first
    (RestorePlanActionExecutor). In layout 2 completion decides, except for compactions and pending instants
    (RestoreInstantComparatorFactory).
    """
    by_completion = metadata_timeline.features.completion_time_in_name

    def is_after(item: Instant) -> bool:
        if not by_completion or not item.is_completed or item.action == Action.COMMIT:
            return item.requested_time > target
        return item.completed_at > until

    found = [item for item in timeline if item.action in _WRITES and is_after(item)]
    return sorted(
        found,
        key=lambda item: (item.completed_at if by_completion else item.requested_time, item.requested_time),
        reverse=True,
    )


def _no_longer_counted(
    config: TableConfig, metadata_timeline: MetadataTimeline, timeline: Timeline, later: Collection[Instant]
) -> str | None:
    """Returns a deltacommit that stays when `later` are rolled back, and whose blocks would then not count; None
    without any. In version 6 blocks of instants that the data table has archived do not count (valid_instants). The
    data table archives an instant when it is compacted here, and this compaction may be among `later`. Hudi does not
    check this (BaseHoodieWriteClient.restoreToSavepoint).
    """
    gone = {item.requested_time for item in later}
    stays = [item for item in timeline.completed() if item.requested_time not in gone]
    merged = max((item.requested_time for item in stays if item.action == Action.COMMIT), default="")
    active = ActiveTimeline(metadata_timeline.storage, config)
    data = active.load()
    suffixes = metadata_timeline.features.metadata_suffixes
    valid = valid_instants(data, timeline, partial(rolled_back_by, active), suffixes=suffixes)
    counted = valid | data.pending().requested_times
    writes = (item.requested_time for item in stays if item.action == Action.DELTA_COMMIT)
    return next((time for time in writes if time > merged and time not in counted), None)


def _holds(metadata_timeline: MetadataTimeline, timeline: Timeline, partition: str, target: str, until: str) -> bool:
    """Returns whether a partition existed at the target, and every file group of that time has a file slice that
    started by then. In layout 2 the completion of the deltacommit that created the partition says when it was built; an
    archived deltacommit is older than the timeline. A partitioned record index gets file groups with each new data
    partition; the file groups of a later data partition do not count: the restore deletes them.
    """
    storage, metadata_instant = metadata_timeline.storage, metadata_timeline.features.log_name_has_delta_commit
    groups: dict[str, list[BaseFileName | LogFileName]] = {}
    for _, name in data_files(storage.list_files(f"{ROOT}/{partition}")):
        groups.setdefault(name.file_id, []).append(name)
    if metadata_instant:
        groups = {file_id: names for file_id, names in groups.items() if not _born_after(names, target)}
    is_of_indexer = any(is_early(name.instant) for names in groups.values() for name in names)
    if is_of_indexer and initialized_at(storage, partition) > target:
        return False

    def begins(name: BaseFileName | LogFileName) -> bool:
        """Returns whether a file slice starts with this file. In layout 1 every file has the instant of its slice."""
        return not metadata_instant or isinstance(name, BaseFileName) or name.token == _FIRST_LOG

    if not groups or not all(
        any(begins(name) and name.instant <= target for name in names) for names in groups.values()
    ):
        return False
    if not metadata_timeline.features.completion_time_in_name:
        return True
    made = timeline.find(min(name.instant for names in groups.values() for name in names), Action.DELTA_COMMIT)
    return made is None or (made.is_completed and made.completed_at <= until)


def _born_after(names: list[BaseFileName | LogFileName], target: str) -> bool:
    first = min(names, key=lambda name: (name.instant, name.token != _FIRST_LOG))
    return first.instant > target and isinstance(first, LogFileName) and first.token == _FIRST_LOG
