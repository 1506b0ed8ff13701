"""Compares `expr_index_*` with the expression's values in the indexed files.

Of type column_stats. Exact: a base file with rows in a latest slice has statistics, a base file that has any its
counts, and no file has any that is not listed. Loose: bounds; that a log file has statistics; counts of log files.
Bounds of whole partitions have to contain the values of the rows as they are now.

Of type bloom_filters. Exact: a base file in a latest slice has a filter, a filter has every value of its file, and no
file has one that is not listed.

Files of older slices and of replaced file groups may have no record: Hudi initializes such an index with the latest
slices (HoodieBackedTableMetadataWriter.initializeExpressionIndexPartition).

Not compared are expressions that predicates cannot name, and, unless the zone is given (airflow_hudi.read.zone), values
that depend on the zone of the writer's session.

Memory: what is stored of one data partition; of filters, their digests and one filter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.expr.functions import evaluate
from hudi_core.metadata_table.keys import PARTITION_STATISTICS, column_id, partition_id
from hudi_core.metadata_table.read.snapshot import MetadataTableSnapshot
from hudi_core.metadata_table.records.column_stats import ColumnStats, ColumnStatsRules, statistics_table
from hudi_core.services.metadata.validate.bloom_filters import FilterCheck, FiltersCheck
from hudi_core.services.metadata.validate.check import FileHead, Findings, PartitionFiles
from hudi_core.services.metadata.validate.true_ranges import (
    UNLISTED,
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

VALUE = ""
"""The name of an index's one operand."""


class ExpressionStatsCheck(StatisticsCheck):
    """Compares an index of type column_stats; `column` is the one that its keys hash."""

    def __init__(
        self,
        name: str,
        column: str,
        metadata_snapshot: MetadataTableSnapshot,
        value: IndexedOperands,
        findings: Findings,
    ) -> None:
        super().__init__(name, value, findings)
        self._column = column_id(column)
        self._partition = metadata_snapshot.partition(name, ColumnStatsRules())
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


class ExpressionFiltersCheck(FiltersCheck):
    """Compares an index of type bloom_filters."""

    def __init__(
        self, name: str, metadata_snapshot: MetadataTableSnapshot, value: IndexedOperands, findings: Findings
    ) -> None:
        super().__init__(name, value.columns(), metadata_snapshot, findings)
        self._value = value

    def open_file(self, head: FileHead) -> FilterCheck | None:
        if not head.is_base or not self._value.of(head):
            return None
        stored = self.read(head)
        if stored is None:
            if head.is_latest:
                self.add_of_file(head, "has no filter")
            return None
        return FilterCheck(self, head, stored.parse(), self._texts) if self._value.has_values else None

    def _texts(self, batch: pa.RecordBatch) -> pa.Array:
        return pc.drop_null(evaluate(self._value.operands[VALUE], batch, self._value.zone).cast(pa.string()))
