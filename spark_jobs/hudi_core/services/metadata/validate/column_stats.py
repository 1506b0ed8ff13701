"""`column_stats` and `expr_index_*` of type column_stats against the records of their files, `partition_stats` against
the rows of each partition.

Of a file, exact: which files have statistics (a file that is not listed has none; a listed file with records has them
of every indexed column that it holds), and the counts of base files. Loose: bounds, which have to contain the values;
the counts of log files, which Hudi takes while it appends. Statistics of a partition that is no longer listed are not
compared: readers do not use them. Version 6 does not record which columns are indexed; there a file has to have
statistics of at least one. Nor do its cleans delete what is stored of the files that they delete
(TableVersion.cleans_leave_statistics); there such a file may have statistics.

Of a partition, exact: one with rows has statistics of every indexed column. Loose: bounds, as merging widens them;
counts, which are at least those of the rows where they are said to be tight and the partition's slices are base files
alone (Hudi counts replaced files as well); statistics of partitions without rows. Columns whose values a query takes
from the partition's path are not compared.

Of an expression, as of a file, but that a log file has statistics is loose, too, and so are files of older slices and
of replaced file groups: Hudi initializes such an index with the latest slices
(HoodieBackedTableMetadataWriter.initializeExpressionIndexPartition). Bounds of whole partitions have to contain the
values of the rows as they are now. Not compared are expressions that predicates cannot name, and, unless the zone is
given (airflow_hudi.read.zone), values that depend on the zone of the writer's session.

Memory: the statistics of one data partition's files, and those of all partitions, some 300 bytes for each column; the
names of files with statistics that are not listed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from hudi_core.metadata_table.keys import PARTITION_STATISTICS, column_id, partition_id
from hudi_core.metadata_table.partition_type import COLUMN_STATS, PARTITION_STATS
from hudi_core.metadata_table.records.column_stats import ColumnStats, ColumnStatsRules, statistics_table
from hudi_core.services.metadata.validate.check import FileHead, PartitionCheck, PartitionFiles
from hudi_core.services.metadata.validate.subject import Subject
from hudi_core.services.metadata.validate.true_ranges import (
    UNLISTED,
    VALUE,
    Counts,
    FileStatisticsCheck,
    IndexedOperands,
    Statistic,
    StatisticsCheck,
    TrueRanges,
    contradictions,
    statistics_by,
)
from hudi_core.view.file_group import FileSlice

_OTHERS = 3


class ColumnStatsCheck(StatisticsCheck):
    def __init__(self, subject: Subject) -> None:
        super().__init__(COLUMN_STATS, IndexedOperands(subject.columns(COLUMN_STATS)), subject.findings)
        self._subject = subject
        self._stored: dict[str, dict[str, Statistic]] = {}
        self._unlisted: dict[str, set[str]] = {}

    def open_partition(self, files: PartitionFiles) -> None:
        tables = self._subject.metadata.column_stats(list(self.indexed.operands), partitions=[files.partition])
        self._stored = {name: statistics_by(table, "file") for name, table in tables.items()}
        known = {file for stored in self._stored.values() for file in stored}
        if unlisted := known - files.listed.keys():
            self._unlisted[files.partition] = unlisted

    def finish(self) -> None:
        may_be_left = self._unlisted and self._subject.context.config.features.cleans_leave_statistics
        for changes in self._subject.cleans() if may_be_left else ():
            for partition, names in changes.deleted.items():
                self._unlisted.get(partition, set()).difference_update(names)
        for partition, files in self._unlisted.items():
            for file in sorted(files):
                self.add_difference(UNLISTED, partition=partition, file=file)

    def open_file(self, head: FileHead) -> FileStatisticsCheck:
        by_file = {name: stored.get(head.file.name) for name, stored in self._stored.items()}
        return FileStatisticsCheck(self, head, {name: found for name, found in by_file.items() if found is not None})

    def lacks(self, head: FileHead, names: Sequence[str], records: int) -> None:
        if records and (COLUMN_STATS in self._subject.definitions or len(names) == len(self.indexed.of(head))):
            more = "" if len(names) <= _OTHERS else f" and {len(names) - _OTHERS} more"
            self.add_of_file(head, f"has no statistics of {', '.join(names[:_OTHERS])}{more}")


class PartitionStatsCheck(PartitionCheck):
    def __init__(self, subject: Subject, columns: IndexedOperands) -> None:
        super().__init__(PARTITION_STATS, subject.findings)
        self._columns = columns
        tables = subject.metadata.partition_stats(list(columns.operands))
        self._stored = {name: statistics_by(table, "partition") for name, table in tables.items()}
        self._true = TrueRanges(columns)
        self._rows = 0
        self._has_logs = False

    def row_columns(self) -> frozenset[str]:
        return self._columns.columns()

    def open_partition(self, files: PartitionFiles) -> None:
        self._true = TrueRanges(self._columns)
        self._rows = 0
        self._has_logs = False

    def add_rows(self, file_slice: FileSlice, batch: pa.RecordBatch) -> None:
        self._rows += batch.num_rows
        self._has_logs |= bool(file_slice.log_files)
        self._true.add(batch, self._columns.operands)

    def close_partition(self, files: PartitionFiles) -> None:
        if not self._rows:
            return
        for name, by_partition in self._stored.items():
            stored = by_partition.get(files.partition)
            if stored is None:
                # Of a column that was added since its last write the partition has none.
                if self._true.of(name).has_values:
                    what = f"the partition has values of {name}, but no statistics"
                    self.add_difference(what, partition=files.partition)
                continue
            counts = Counts.AT_LEAST if stored.is_tight and not self._has_logs else Counts.LOOSE
            for what in contradictions(stored, self._true.of(name), counts):
                self.add_difference(f"column {name}: {what}", partition=files.partition)


class ExpressionStatsCheck(StatisticsCheck):
    """`column` is the one that its keys hash."""

    def __init__(self, name: str, column: str, value: IndexedOperands, subject: Subject) -> None:
        super().__init__(name, value, subject.findings)
        self._column = column_id(column)
        self._partition = subject.snapshot.partition(name, ColumnStatsRules())
        self._stored: Mapping[str, Statistic] = {}
        self._rows = TrueRanges(value)

    def row_columns(self) -> frozenset[str]:
        return self.indexed.columns()

    def open_partition(self, files: PartitionFiles) -> None:
        self._rows = TrueRanges(self.indexed)
        self._stored = self._read(files.partition, self._column + partition_id(files.partition))
        for file in sorted(self._stored.keys() - files.listed.keys()):
            self.add_difference(UNLISTED, partition=files.partition, file=file)

    def open_file(self, head: FileHead) -> FileStatisticsCheck | None:
        if not self.indexed.of(head):
            return None
        stored = self._stored.get(head.file.name)
        return FileStatisticsCheck(self, head, {} if stored is None else {VALUE: stored})

    def lacks(self, head: FileHead, names: Sequence[str], records: int) -> None:
        if head.is_base and head.is_latest and records:
            self.add_of_file(head, "has no statistics")

    def add_rows(self, file_slice: FileSlice, batch: pa.RecordBatch) -> None:
        self._rows.add(batch, [VALUE])

    def close_partition(self, files: PartitionFiles) -> None:
        """Compares what is stored of the partition as a whole, where anything is."""
        prefix = self._column + partition_id(PARTITION_STATISTICS) + partition_id(files.partition)
        for stored in self._read(files.partition, prefix).values():
            for what in contradictions(stored, self._rows.of(VALUE), Counts.LOOSE, bounds=self.indexed.has_values):
                self.add_difference(f"of the whole partition: {what}", partition=files.partition)

    def _read(self, partition: str, prefix: str) -> dict[str, Statistic]:
        rows: list[tuple[str, ColumnStats]] = [
            (partition, item) for _, item in self._partition.with_prefixes([prefix]) if not item.is_deleted
        ]
        # Hudi counts the values of an expression without the nulls (SparkMetadataWriterUtils.getExprIndexRecords).
        found = statistics_by(statistics_table(rows, None), "file")
        return {name: replace(item, value_count=item.value_count + item.null_count) for name, item in found.items()}
