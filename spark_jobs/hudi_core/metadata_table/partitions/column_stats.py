"""The kind `column_stats`: the range of each indexed column in each base and log file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from hudi_core.metadata_table.indexed_table import IndexedTable, positive_setting
from hudi_core.metadata_table.partitions.protocol import numbered_file_ids
from hudi_core.metadata_table.records.file_statistics import CommitFacts, FileFacts, Needs, Record
from hudi_core.metadata_table.records.range_records import file_record

GROUPS: Final = "hoodie.metadata.index.column.stats.file.group.count"
_DEFAULT_GROUPS: Final = 2


class ColumnStatsKind:
    """See Kind. Rows of files that a commit replaces stay until a clean deletes them: nobody asks for files that no
    slice has.
    """

    needs = Needs(ranges=True, older_slices=True)

    def __init__(self, partition: str, table: IndexedTable) -> None:
        self.partition = partition

    def of_commit(self, facts: CommitFacts) -> Iterator[Record]:
        """The ranges of every file written, whatever the operation."""
        return iter(()) if facts.by_partition else file_ranges(facts.written)

    def initial(self, instant: str, files: Iterable[FileFacts]) -> Iterator[Record]:
        """Those of every file."""
        return file_ranges(files)

    def group_count(self, settings: Mapping[str, str], records: int = 0) -> int:
        """As GROUPS says, or two."""
        return positive_setting(settings, GROUPS, _DEFAULT_GROUPS)

    def file_ids(self, count: int) -> list[str]:
        """See Kind."""
        return numbered_file_ids("col-stats-", count)


def file_ranges(files: Iterable[FileFacts]) -> Iterator[Record]:
    """The records of files: nothing of a column that a log file of partial rows says nothing of."""
    for facts in files:
        for found in facts.ranges:
            record = None if facts.partial and not found.value_count else file_record(facts.file, found)
            if record is not None:
                yield record
