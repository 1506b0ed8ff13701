"""Wider ranges of whole partitions, under an instant of the metadata table's own that is newer than all of its others.

In layout 2 log files of the metadata table merge by the instants in their names, not by completion. Records that are
written under an older instant merge beneath those of later commits. So ranges that have to hold whatever is there
already, or is still being written under an older instant, are written under a new one, and widen.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from hudi_core.metadata_table.indexed_table import IndexedTable
from hudi_core.metadata_table.partition_type import is_row_level
from hudi_core.metadata_table.partitions.protocol import PartitionType
from hudi_core.metadata_table.partitions.registry import partition_types_of, requirements_of
from hudi_core.metadata_table.records.file_statistics import CommitUpdate, FileStatistics, Record
from hudi_core.metadata_table.write.commit_updates import overtakes
from hudi_core.metadata_table.write.delta_writer import DeltaWriter
from hudi_core.metadata_table.write.remaining_files import RecordedRanges, RemainingFiles, RemainingStatistics
from hudi_core.timeline.actions.commit import CommitMetadata, Operation
from hudi_core.timeline.timeline import Timeline

Files = Callable[[str, CommitMetadata], RemainingFiles]
"""The files in the slices of a commit's partitions, for deltacommits of an instant."""


def range_types(table: IndexedTable, names: Collection[str]) -> dict[str, PartitionType]:
    """Those of the metadata partitions `names` that hold ranges of whole partitions."""
    by_name = partition_types_of([name for name in names if not is_row_level(name)], table)
    return {name: partition_type for name, partition_type in by_name.items() if partition_type.needs.remaining}


@dataclass(frozen=True, slots=True)
class Widening:
    """Ranges of the partitions in the commit of `files` that do not hold all values there are.

    `records` widen them, by metadata partition; `partitions` are the data partitions concerned.
    """

    records: Mapping[str, Sequence[Record]]
    partitions: tuple[str, ...]


def widening(
    table: IndexedTable,
    names: Collection[str],
    instant: str,
    files: RemainingFiles,
    written: Mapping[str, Sequence[FileStatistics]] | None = None,
    *,
    overtakes: bool = False,
) -> Widening:
    """Compares the ranges with the files in the partitions' slices, and with `written`, by partition.

    `names` are metadata partitions, `overtakes` is that of CommitUpdate. Memory: the statistics of the files in one
    partition, and the records. Raises UnsupportedError for a range that is unknown, ConflictError for one of another
    type that cannot be replaced now, and the errors of reading the files.
    """
    partition_types = range_types(table, names)
    requirements = requirements_of(table, partition_types.values())
    narrow: set[str] = set()
    records: dict[str, list[Record]] = {}
    for name, partition_type in partition_types.items():
        remaining = RemainingStatistics(files, partition_type, requirements)
        recorded = RecordedRanges(files, partition_type, requirements)
        records[name] = []
        for partition in remaining:
            # As of an operation that rewrites all these files: it widens ranges that do not contain them.
            statistics = (*remaining[partition], *(written or {}).get(partition, ()))
            update = CommitUpdate(
                instant,
                Operation.COMPACT,
                {},
                statistics,
                recorded=recorded,
                by_partition=True,
                overtakes=overtakes,
            )
            found = list(partition_type.of_commit(update))
            narrow.update([partition] if found else ())
            records[name] += found
    return Widening(records, tuple(sorted(narrow)))


def widen_ranges(
    writer: DeltaWriter,
    table: IndexedTable,
    names: Collection[str],
    data: Timeline,
    partitions: Collection[str],
    files_of: Files,
    written: Mapping[str, Sequence[FileStatistics]] | None = None,
) -> tuple[str, ...]:
    """Widens the ranges of `partitions` where they are too narrow; returns those partitions. No effect in layout 1.

    `data` is the data table's timeline. The older ranges are not replaced, but for those of another type: those of a
    pending write with an older instant still count. The caller holds the table lock. As widening.
    """
    metadata_timeline = writer.metadata_timeline
    if not partitions or not metadata_timeline.features.log_name_has_delta_commit or not range_types(table, names):
        return ()
    # None that the data table has: while such an action is pending, nothing under its instant counts.
    newest = max(data.requested_times, default="")
    instant = metadata_timeline.clock.next(metadata_timeline.active.load(), minimum=newest)
    files, is_overtaking = files_of(instant, nothing_in(partitions)), overtakes(table.config, data, instant)
    found = widening(table, names, instant, files, written, overtakes=is_overtaking)
    if found.partitions:
        writer.write(instant, found.records)
    return found.partitions


def nothing_in(partitions: Collection[str]) -> CommitMetadata:
    """A commit that writes nothing to `partitions`: all files in their slices remain."""
    return CommitMetadata(dict.fromkeys(sorted(partitions), ()))
