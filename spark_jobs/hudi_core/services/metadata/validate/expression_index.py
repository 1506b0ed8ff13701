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

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.expr.functions import evaluate
from hudi_core.expr.tree import Operand, operand_columns
from hudi_core.metadata_table.keys import PARTITION_STATISTICS, bloom_filter_key, column_id, partition_id
from hudi_core.metadata_table.read.snapshot import MetadataTableSnapshot
from hudi_core.metadata_table.records.bloom_filters import BloomFilterRules
from hudi_core.metadata_table.records.column_stats import ColumnStats, ColumnStatsRules, statistics_table
from hudi_core.services.metadata.validate.bloom_filters import DigestRules, FilterCheck, stored_digests
from hudi_core.services.metadata.validate.check import FileHead, Findings, PartitionCheck, PartitionFiles
from hudi_core.services.metadata.validate.true_ranges import (
    Counts,
    Statistic,
    TrueRanges,
    contradictions,
    statistics_by,
)
from hudi_core.view.file_group import FileSlice

_VALUE = "value"


@dataclass(frozen=True, slots=True)
class IndexedExpression:
    """One index: its name, the column that its keys hash, and the operand that it is over, in the zone of its wall
    time.

    `has_values` is off where the values are not known, as they depend on an unknown zone.
    """

    name: str
    column: str
    operand: Operand
    zone: str
    has_values: bool

    def columns(self) -> frozenset[str]:
        """The top-level columns of the operand."""
        return frozenset(path[0] for path in operand_columns(self.operand))

    def is_in(self, head: FileHead, carried: frozenset[str] | None = None) -> bool:
        """Whether a file, or some of its records, have what it takes."""
        return all(head.holds(name) and (carried is None or name in carried) for name in self.columns())

    def true_ranges(self) -> TrueRanges:
        """The range of its values, without records yet."""
        return TrueRanges({_VALUE: self.operand}, self.zone)


class ExpressionStatsCheck(PartitionCheck):
    """Compares an index of type column_stats."""

    def __init__(self, metadata_snapshot: MetadataTableSnapshot, index: IndexedExpression, findings: Findings) -> None:
        super().__init__(index.name, findings)
        self._index = index
        self._partition = metadata_snapshot.partition(index.name, ColumnStatsRules())
        self._stored: Mapping[str, Statistic] = {}
        self._rows = index.true_ranges()

    def file_columns(self) -> frozenset[str]:
        return self._index.columns()

    def row_columns(self) -> frozenset[str]:
        return self._index.columns()

    def open_partition(self, files: PartitionFiles) -> None:
        self._rows = self._index.true_ranges()
        self._stored = self._read(files.partition, column_id(self._index.column) + partition_id(files.partition))
        for file in sorted(self._stored.keys() - files.listed.keys()):
            what = "has statistics, but `files` does not list it"
            self.add_difference(what, partition=files.partition, file=file)

    def open_file(self, head: FileHead) -> _OfFile | None:
        if not self._index.is_in(head):
            return None
        return _OfFile(self, self._index, head, self._stored.get(head.file.name))

    def add_rows(self, file_slice: FileSlice, batch: pa.RecordBatch) -> None:
        self._rows.add(batch, [_VALUE])

    def close_partition(self, files: PartitionFiles) -> None:
        """Compares what is stored of the partition as a whole, where anything is."""
        prefix = column_id(self._index.column) + partition_id(PARTITION_STATISTICS) + partition_id(files.partition)
        for stored in self._read(files.partition, prefix).values():
            for what in contradictions(stored, self._rows.of(_VALUE), Counts.LOOSE, bounds=self._index.has_values):
                self.add_difference(f"of the whole partition: {what}", partition=files.partition)

    def _read(self, partition: str, prefix: str) -> dict[str, Statistic]:
        rows: list[tuple[str, ColumnStats]] = [
            (partition, item) for _, item in self._partition.with_prefixes([prefix]) if not item.is_deleted
        ]
        return statistics_by(statistics_table(rows, None), "file")


class _OfFile:
    def __init__(
        self, check: PartitionCheck, index: IndexedExpression, head: FileHead, stored: Statistic | None
    ) -> None:
        self._check = check
        self._index = index
        self._head = head
        self._stored = stored
        self._true = index.true_ranges()

    def add(self, batch: pa.RecordBatch, columns: frozenset[str] | None) -> None:
        if self._index.is_in(self._head, columns):
            self._true.add(batch, [_VALUE])

    def close(self) -> None:
        add = partial(self._check.add_difference, partition=self._head.file.partition, file=self._head.file.name)
        true = self._true.of(_VALUE)
        if self._stored is None:
            if self._head.is_base and self._head.is_latest and true.rows:
                add("has no statistics")
            return
        counts = Counts.EXACT if self._head.is_base else Counts.LOOSE
        for what in contradictions(self._stored, true, counts, bounds=self._index.has_values):
            add(what)


class ExpressionFiltersCheck(PartitionCheck):
    """Compares an index of type bloom_filters."""

    def __init__(self, metadata_snapshot: MetadataTableSnapshot, index: IndexedExpression, findings: Findings) -> None:
        super().__init__(index.name, findings)
        self._index = index
        self._digests = metadata_snapshot.partition(index.name, DigestRules())
        self._filters = metadata_snapshot.partition(index.name, BloomFilterRules())

    def file_columns(self) -> frozenset[str]:
        return self._index.columns()

    def open_partition(self, files: PartitionFiles) -> None:
        stored_digests(self, self._digests, files)

    def open_file(self, head: FileHead) -> FilterCheck | None:
        if not head.is_base or not self._index.is_in(head):
            return None
        stored = self._filters.get(bloom_filter_key(head.file.partition, head.file.name))
        if stored is None or stored.is_deleted or not stored.text:
            if head.is_latest:
                self.add_difference("has no filter", partition=head.file.partition, file=head.file.name)
            return None
        return FilterCheck(self, head, stored.parse(), self._texts) if self._index.has_values else None

    def _texts(self, batch: pa.RecordBatch) -> pa.Array:
        return pc.drop_null(evaluate(self._index.operand, batch, self._index.zone).cast(pa.string()))
