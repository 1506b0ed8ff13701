"""Widens the statistics of whole partitions before a missing commit is applied, under a new instant of the metadata
table.

In layout 2 log files of the metadata table merge by the instants in their names, whenever they were written. The
records of a late commit merge beneath those of later commits, whose ranges of whole partitions lack its files and would
replace its ranges: readers would skip its rows. So ranges of the current files are written first, under the newest
instant; they are valid before and after the late commit, and a repeated run uses another such instant. They widen the
older ranges and replace none: the ranges of a pending write with an older instant still count.
"""

from __future__ import annotations

from collections.abc import Sequence

from hudi_core.metadata_table.extract.data_file import StatisticsRequirements
from hudi_core.metadata_table.partition_type import is_row_level
from hudi_core.metadata_table.partitions.protocol import PartitionType
from hudi_core.metadata_table.partitions.registry import partition_types_of, requirements_of
from hudi_core.metadata_table.records.file_statistics import CommitUpdate, Record
from hudi_core.metadata_table.write.remaining_files import RecordedRanges, RemainingFiles, RemainingStatistics
from hudi_core.services.metadata.action_updates import ActionUpdates
from hudi_core.timeline.actions.commit import CommitMetadata, Operation
from hudi_core.timeline.instant import Action, Instant


def widen_partition_ranges(updates: ActionUpdates, commits: Sequence[Instant]) -> None:
    """Writes the missing ranges of the partitions that the missing `commits` touched, before any of these is applied.

    The caller holds the table lock. Memory: the statistics of the files in one partition, and the records, as data and
    as encoded cells.
    """
    context, metadata_timeline = updates.context, updates.metadata_timeline
    recorded = metadata_timeline.active.load().completed().of_actions(Action.DELTA_COMMIT)
    first = min((item.requested_time for item in commits), default="")
    is_late = any(item.requested_time > first for item in recorded) or any(map(updates.has_overtaken, commits))
    if not commits or not is_late or not metadata_timeline.features.log_name_has_delta_commit:
        return
    partitions: set[str] = set()
    for metadata in map(updates.commit, commits):
        partitions.update(metadata.partition_to_write_stats, metadata.replaced_file_ids or ())
    names = [name for name in context.config.metadata_partitions if not is_row_level(name)]
    partition_types = {
        name: partition_type
        for name, partition_type in partition_types_of(names, updates.table).items()
        if partition_type.needs.remaining
    }
    if not partition_types or not partitions:
        return
    # None that the data table has: while such an action is pending, nothing under its instant counts.
    newest = max(context.active.load().requested_times, default="")
    instant = metadata_timeline.clock.next(metadata_timeline.active.load(), minimum=newest)
    # A commit that writes nothing: all files in the slices of these partitions remain.
    nothing = CommitMetadata(dict.fromkeys(sorted(partitions), ()))
    files = RemainingFiles(context.storage, context.config, instant, nothing, updates.listing)
    requirements = requirements_of(updates.table, partition_types.values())
    records = {
        name: _records(partition_type, files, requirements, instant) for name, partition_type in partition_types.items()
    }
    if any(records.values()):
        updates.writer().write(instant, records)


def _records(
    partition_type: PartitionType, files: RemainingFiles, requirements: StatisticsRequirements, instant: str
) -> list[Record]:
    """The records of an operation that rewrites all these files, which widens ranges that do not contain them."""
    remaining, recorded = (
        RemainingStatistics(files, partition_type, requirements),
        RecordedRanges(files, partition_type, requirements),
    )
    parts = (
        CommitUpdate(instant, Operation.COMPACT, {}, remaining[name], recorded=recorded, by_partition=True)
        for name in remaining
    )
    return [record for statistics in parts for record in partition_type.of_commit(statistics)]
