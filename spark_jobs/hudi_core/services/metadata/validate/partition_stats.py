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

from hudi_core.expr.tree import Column, Operand
from hudi_core.metadata_table.partition_type import PARTITION_STATS
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.services.metadata.validate.check import PartitionCheck, PartitionFiles
from hudi_core.services.metadata.validate.difference import Findings
from hudi_core.services.metadata.validate.true_ranges import Counts, TrueRanges, contradictions, statistics_by
from hudi_core.view.file_group import FileSlice


class PartitionStatsCheck(PartitionCheck):
    """Compares what is stored of each partition; `operands` are its columns by dotted name."""

    def __init__(self, metadata: MetadataTable, operands: Mapping[str, Operand], findings: Findings) -> None:
        self._operands = operands
        self._findings = findings
        tables = metadata.partition_stats(list(operands))
        self._stored = {name: statistics_by(table, "partition") for name, table in tables.items()}
        self._true = TrueRanges(operands)
        self._rows = 0
        self._has_logs = False

    def row_columns(self) -> frozenset[str]:
        """The top-level columns."""
        return frozenset(operand.path[0] for operand in self._operands.values() if isinstance(operand, Column))

    def open_partition(self, files: PartitionFiles) -> None:
        """Forgets the last one."""
        self._true = TrueRanges(self._operands)
        self._rows = 0
        self._has_logs = False

    def add_rows(self, file_slice: FileSlice, batch: pa.RecordBatch) -> None:
        """Takes the rows' values in."""
        self._rows += batch.num_rows
        self._has_logs |= bool(file_slice.log_files)
        self._true.add(batch, list(self._operands))

    def close_partition(self, files: PartitionFiles) -> None:
        """Compares."""
        if not self._rows:
            return
        for name, by_partition in self._stored.items():
            stored = by_partition.get(files.partition)
            if stored is None:
                self._findings.add(
                    PARTITION_STATS, f"the partition has rows, but no statistics of {name}", partition=files.partition
                )
                continue
            for what in contradictions(
                stored, self._true.of(name), Counts.AT_LEAST if stored.is_tight and not self._has_logs else Counts.LOOSE
            ):
                self._findings.add(PARTITION_STATS, f"column {name}: {what}", partition=files.partition)
