"""The partition type `partition_stats`: the range of each indexed column over all files of a partition's slices,
recomputed whenever one changes.

Hudi 1.x makes the range of a partition that a commit writes to from the `column_stats` records of the remaining files
and from the new ones, marks it tight, and so replaces the older record
(HoodieMetadataWriteUtils.convertMetadataToPartitionStatRecords).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import ClassVar, Final

import pyarrow as pa

from hudi_core.config.metadata_config import PARTITION_STATS_GROUPS
from hudi_core.errors import UnsupportedError
from hudi_core.metadata_table.partition_type import PARTITION_STATS
from hudi_core.metadata_table.partitions.column_stats import merge_statistics
from hudi_core.metadata_table.partitions.protocol import MergeData, PartitionType
from hudi_core.metadata_table.record import RecordType
from hudi_core.metadata_table.records.column_stats import partition_deletion, partition_record
from hudi_core.metadata_table.records.file_statistics import ColumnRange, CommitUpdate, FileStatistics, Needs, Record
from hudi_core.metadata_table.records.value_types import as_type, contains, merged

_REMEDY: Final = "drop it with `hudictl metadata drop TABLE --partition partition_stats`"
_DELETES_PARTITIONS: Final = "DELETE_PARTITION"


class PartitionStatsPartition(PartitionType):
    """Only partitioned tables have it. Statistics of whole partitions only ever grow wider, so a clean changes none."""

    name = PARTITION_STATS
    merges: ClassVar[Mapping[int, MergeData]] = {RecordType.PARTITION_STATS: merge_statistics}
    groups_option = PARTITION_STATS_GROUPS.name
    default_groups = PARTITION_STATS_GROUPS.default
    needs = Needs(ranges=True, remaining=True)

    def check_commit(self) -> None:
        """Refuses a table without partitions, of which Hudi makes none."""
        if not self.table.is_partitioned:
            raise UnsupportedError("statistics of partitions for a table without partitions", remedy=_REMEDY)

    def of_commit(self, statistics: CommitUpdate) -> Iterator[Record]:
        """The recomputed ranges of the partitions written to; deletions for those that the commit emptied.

        Of CommitUpdate.rewrites only what widens the older records. Raises UnsupportedError when the range of a
        partition is unknown: an older record would remain, and hide rows.
        """
        by_partition = statistics.written_in()
        if statistics.rewrites:
            for name, files in by_partition.items():
                yield from self._widened(name, files, statistics)
            return
        for name, files in by_partition.items():
            yield from self._records(name, self._ranges(name, [*files, *statistics.remaining.get(name, ())]))
        for name in sorted(statistics.replaced):
            if name not in by_partition:
                yield from self._emptied(name, statistics)

    def initial(self, instant: str, files: Iterable[FileStatistics]) -> Iterator[Record]:
        """Those of all partitions. Memory: the statistics of one partition where `files` come partition by
        partition.
        """
        held: list[FileStatistics] = []
        for statistics in files:
            if held and statistics.file.partition != held[0].file.partition:
                yield from self._of_partition(held)
                held = []
            held.append(statistics)
        if held:
            yield from self._of_partition(held)

    @cached_property
    def _version(self) -> int:
        return self.table.version_of(self.partition)

    @cached_property
    def _columns(self) -> dict[str, pa.DataType]:
        return self.table.indexed_types()

    def _of_partition(self, files: list[FileStatistics]) -> Iterator[Record]:
        name = files[0].file.partition
        return self._records(name, self._ranges(name, files))

    def _widened(self, name: str, files: list[FileStatistics], statistics: CommitUpdate) -> Iterator[Record]:
        """Ranges of rewritten rows beyond the current record: values that the log files lacked and the schema's
        defaults fill in.

        A column without a record gets one: Hudi takes a partition without one for a partition without rows
        (PartitionStatsIndexSupport).
        """
        current, found = statistics.recorded.get(name, {}), self._ranges(name, files)
        wider = {
            column: item for column, item in found.items() if column in current and not contains(current[column], item)
        }
        unrecorded = [column for column in found if column not in current]
        whole = self._ranges(name, [*files, *statistics.remaining.get(name, ())]) if unrecorded else {}
        return self._records(name, wider | {column: whole[column] for column in unrecorded}, widens=True)

    def _emptied(self, name: str, statistics: CommitUpdate) -> Iterator[Record]:
        """A partition whose groups were replaced without new files: the range of the remaining files, if any.

        Where the remaining files are unknown, the older record stays: it contains fewer files, too.
        """
        left = statistics.remaining.get(name)
        if left:
            yield from self._records(name, self._ranges(name, left))
        if left or (left is None and statistics.operation != _DELETES_PARTITIONS):
            return
        for column in self._columns:
            yield partition_deletion(name, column, self._version)

    def _ranges(self, name: str, files: Iterable[FileStatistics]) -> dict[str, ColumnRange]:
        """By column, of the types that columns have now; empty where no file has a row."""
        files = [statistics for statistics in files if statistics.bounds_rows]
        by_column: dict[str, list[ColumnRange]] = defaultdict(list)
        for statistics in files:
            for item in statistics.ranges:
                by_column[item.column].append(item)
        found: dict[str, ColumnRange] = {}
        for column, kind in self._columns.items() if files else ():
            ranges = by_column[column]
            whole = merged(ranges) if len(ranges) == len(files) else None
            if whole is None:
                raise self._unrecorded(name, column)
            found[column] = as_type(whole, kind, self._version)
        return found

    def _records(self, name: str, ranges: Mapping[str, ColumnRange], *, widens: bool = False) -> Iterator[Record]:
        for column, found in ranges.items():
            record = partition_record(name, found, widens=widens)
            if record is None:
                raise self._unrecorded(name, column)
            yield record

    def _unrecorded(self, name: str, column: str) -> UnsupportedError:
        return UnsupportedError(
            f"the range of the column {column!r} in the partition {name!r} cannot be told",
            remedy=_REMEDY,
        )
