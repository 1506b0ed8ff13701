"""The partition type `column_stats`: the range of each indexed column (indexed_table) in each base and log file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from hudi_core.config.metadata_config import COLUMN_STATS_GROUPS
from hudi_core.metadata_table.indexed_table import IndexDefinition, indexed_types
from hudi_core.metadata_table.keys import column_id, file_id, partition_id
from hudi_core.metadata_table.partition_type import COLUMN_STATS
from hudi_core.metadata_table.partitions.protocol import MergeData, PartitionType, numbered_file_ids
from hudi_core.metadata_table.record import FILE_NAME, FileDatum, RecordType
from hudi_core.metadata_table.records.column_stats import deletion, file_record, merge_stored
from hudi_core.metadata_table.records.file_statistics import (
    MAX_DELETIONS,
    Expression,
    FileChanges,
    FileStatistics,
    Needs,
    Record,
)
from hudi_core.model.names import META_FIELDS


class ColumnStatsPartition(PartitionType):
    """Rows of files that a commit replaces stay until a clean deletes them: readers use files of slices alone."""

    name = COLUMN_STATS
    by_file = updated_by_clean = True
    merges: ClassVar[Mapping[int, MergeData]] = {RecordType.COLUMN_STATS: merge_stored}
    groups = COLUMN_STATS_GROUPS
    needs = Needs(ranges=True, older_slices=True)

    @classmethod
    def of_files(cls, instant: str, files: Iterable[FileStatistics], expression: Expression | None) -> Iterator[Record]:
        """Without those of columns that the partial rows of a log file lack."""
        for statistics in files:
            for found in statistics.ranges:
                record = None if statistics.partial and not found.value_count else file_record(statistics.file, found)
                if record is not None:
                    yield record

    def of_clean(self, instant: str, changes: FileChanges) -> Iterator[Record]:
        """Deletions of the ranges of all columns that the index may hold."""
        definition = self.table.definitions.get(self.partition)
        if definition is not None and definition.source_fields:
            return deleted_ranges(changes, definition.source_fields, definition.version)
        columns = dict.fromkeys([*META_FIELDS, *(field["name"] for field in self.table.schema["fields"])])
        return deleted_ranges(changes, list(columns), 1 if definition is None else definition.version)

    def definition(self) -> IndexDefinition | None:
        """Readers of 1.x skip nothing without it, of version 6 neither (SparkBaseIndexSupport.getCandidateFiles)."""
        if not self.table.config.is_of_hudi_1:
            return None
        columns = tuple(indexed_types(self.table))
        return IndexDefinition(
            self.partition, COLUMN_STATS, COLUMN_STATS, columns, {}, self.table.version_of(COLUMN_STATS)
        )

    def file_ids(self, count: int) -> list[str]:
        return numbered_file_ids("col-stats-", count)


def deleted_ranges(changes: FileChanges, columns: Sequence[str], version: int) -> Iterator[Record]:
    """Of deleted files, MAX_DELETIONS at most; all of a file, or none."""
    stubs = {column_id(column): deletion(RecordType.COLUMN_STATS, FILE_NAME, column, version) for column in columns}
    written = 0
    for partition, names in sorted(changes.deleted.items()):
        place = partition_id(partition)
        for name in sorted(names):
            written += len(stubs)
            if written > MAX_DELETIONS:
                return
            file = file_id(name)
            for column, stub in stubs.items():
                yield column + place + file, FileDatum(stub, name)
