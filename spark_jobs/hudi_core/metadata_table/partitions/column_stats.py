"""The kind `column_stats`: the range of each indexed column in each base and log file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from hudi_core.metadata_table.indexed_table import IndexedTable, positive_setting
from hudi_core.metadata_table.partitions.protocol import numbered_file_ids
from hudi_core.metadata_table.records.file_statistics import CommitUpdate, FileStatistics, Needs, Record
from hudi_core.metadata_table.records.range_records import file_record

GROUPS: Final = "hoodie.metadata.index.column.stats.file.group.count"
_DEFAULT_GROUPS: Final = 2


class ColumnStatsPartition:
    """See Kind. Rows of files that a commit replaces stay until a clean deletes them: nobody asks for files that no
    slice has.
    """

    needs = Needs(ranges=True, older_slices=True)

    def __init__(self, partition: str, table: IndexedTable) -> None:
        self.partition = partition

    def of_commit(self, statistics: CommitUpdate) -> Iterator[Record]:
        """The ranges of every file written, whatever the operation."""
        return iter(()) if statistics.by_partition else file_ranges(statistics.written)

    def initial(self, instant: str, files: Iterable[FileStatistics]) -> Iterator[Record]:
        """Those of every file."""
        return file_ranges(files)

    def group_count(self, settings: Mapping[str, str], records: int = 0) -> int:
        """As GROUPS says, or two."""
        return positive_setting(settings, GROUPS, _DEFAULT_GROUPS)

    def file_ids(self, count: int) -> list[str]:
        """See Kind."""
        return numbered_file_ids("col-stats-", count)


def file_ranges(files: Iterable[FileStatistics]) -> Iterator[Record]:
    """The records of files: nothing of a column that a log file of partial rows says nothing of."""
    for statistics in files:
        for found in statistics.ranges:
            record = None if statistics.partial and not found.value_count else file_record(statistics.file, found)
            if record is not None:
                yield record
