"""`partition_stats` against the rows of each partition as they are now.

Exact: a partition with rows has statistics of every indexed column. Loose: bounds, which have to contain the rows'
values, as merging widens them; counts, which are at least those of the rows where they are said to be tight and the
partition's slices are base files alone (Hudi counts files that a clustering or an overwrite replaced as well);
statistics of partitions without rows, which rule nothing out. Columns whose values a query takes from the partition's
path are not compared.

Memory: the statistics of all partitions, some 300 bytes for each column and partition.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from hudi_core.expr.tree import Column
from hudi_core.metadata_table.partition_type import PARTITION_STATS
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.services.metadata.validate.check import Findings, PartitionCheck, PartitionFiles
from hudi_core.services.metadata.validate.true_ranges import (
    Counts,
    TrueRanges,
    contradictions,
    statistics_by,
    top_level_columns,
)
from hudi_core.view.file_group import FileSlice


class PartitionStatsCheck(PartitionCheck):
    """Compares what is stored of each partition; `columns` are its columns by dotted name."""

    def __init__(self, metadata: MetadataTable, columns: Mapping[str, Column], findings: Findings) -> None:
        super().__init__(PARTITION_STATS, findings)
        self._columns = columns
        tables = metadata.partition_stats(list(columns))
        self._stored = {name: statistics_by(table, "partition") for name, table in tables.items()}
        self._true = TrueRanges(columns)
        self._rows = 0
        self._has_logs = False

    def row_columns(self) -> frozenset[str]:
        return top_level_columns(self._columns)

    def open_partition(self, files: PartitionFiles) -> None:
        self._true = TrueRanges(self._columns)
        self._rows = 0
        self._has_logs = False

    def add_rows(self, file_slice: FileSlice, batch: pa.RecordBatch) -> None:
        self._rows += batch.num_rows
        self._has_logs |= bool(file_slice.log_files)
        self._true.add(batch, list(self._columns))

    def close_partition(self, files: PartitionFiles) -> None:
        if not self._rows:
            return
        for name, by_partition in self._stored.items():
            stored = by_partition.get(files.partition)
            if stored is None:
                what = f"the partition has rows, but no statistics of {name}"
                self.add_difference(what, partition=files.partition)
                continue
            counts = Counts.AT_LEAST if stored.is_tight and not self._has_logs else Counts.LOOSE
            for what in contradictions(stored, self._true.of(name), counts):
                self.add_difference(f"column {name}: {what}", partition=files.partition)
