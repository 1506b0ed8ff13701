"""The registry of checks: which check each partition type gets. One line adds a check."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from hudi_core.config.rows_config import READ_ZONE
from hudi_core.expr.functions import needs_zone
from hudi_core.expr.tree import Column
from hudi_core.index.expression_indexes import indexed_operand
from hudi_core.metadata_table.partition_type import BLOOM_FILTERS, COLUMN_STATS, FILES_PARTITION
from hudi_core.metadata_table.partitions.bloom_filters import BloomFiltersPartition
from hudi_core.metadata_table.partitions.column_stats import ColumnStatsPartition
from hudi_core.metadata_table.partitions.expression_index import ExpressionIndexPartition
from hudi_core.metadata_table.partitions.partition_stats import PartitionStatsPartition
from hudi_core.metadata_table.partitions.protocol import PartitionType
from hudi_core.metadata_table.partitions.record_index import RecordIndexPartition
from hudi_core.metadata_table.partitions.registry import registered
from hudi_core.metadata_table.partitions.secondary_index import SecondaryIndexPartition
from hudi_core.services.metadata.validate.bloom_filters import BloomFiltersCheck, ExpressionFiltersCheck
from hudi_core.services.metadata.validate.check import PartitionCheck
from hudi_core.services.metadata.validate.column_stats import (
    ColumnStatsCheck,
    ExpressionStatsCheck,
    PartitionStatsCheck,
)
from hudi_core.services.metadata.validate.row_indexes import RecordIndexCheck, SecondaryIndexCheck, can_print
from hudi_core.services.metadata.validate.subject import Subject
from hudi_core.services.metadata.validate.true_ranges import VALUE, IndexedOperands


def partition_checks(subject: Subject) -> list[PartitionCheck]:
    checks: list[PartitionCheck] = []
    for name in sorted(subject.metadata.partition_types - {FILES_PARTITION}):
        partition_type = registered(name)
        make = None if partition_type is None else _CHECKS.get(partition_type)
        if make is None:
            subject.findings.not_checked(name, "a partition type that this release does not know")
        else:
            checks.extend(make(subject, name))
    return checks


def _partition_stats(subject: Subject, name: str) -> Iterator[PartitionCheck]:
    columns = subject.columns_as_stored(name, subject.columns(COLUMN_STATS))
    yield PartitionStatsCheck(subject, IndexedOperands(columns))


def _secondary_index(subject: Subject, name: str) -> Iterator[PartitionCheck]:
    definition, findings = subject.definitions.get(name), subject.findings
    fields = () if definition is None else definition.source_fields
    column = subject.resolved(name, Column(tuple(fields[0].split(".")))) if len(fields) == 1 else None
    if definition is None or not isinstance(column, Column):
        findings.not_checked(name, "its definition names no single column of the table")
        return
    if not subject.columns_as_stored(name, {"": column}):
        return
    value_type = subject.type_of(column)
    if not can_print(value_type):
        findings.not_checked(name, f"values of type {value_type}, whose printed form depends on the writer")
        return
    yield SecondaryIndexCheck(name, column, subject, by_value=definition.version > 1)


def _expression_index(subject: Subject, name: str) -> Iterator[PartitionCheck]:
    definition, findings = subject.definitions.get(name), subject.findings
    written = None if definition is None else indexed_operand(definition)
    operand = None if written is None else subject.resolved(name, written)
    if definition is None or operand is None:
        findings.not_checked(name, "an expression that predicates cannot name")
        return
    zone = READ_ZONE.read(subject.context.options)
    has_values = zone is not None or not needs_zone(operand, subject.no_rows(), "UTC")
    if not has_values:
        findings.not_checked(
            name, f"values, as they depend on the zone of local time; give the writers' as {READ_ZONE.name}"
        )
    value = IndexedOperands({VALUE: operand}, zone or "UTC", has_values)
    if definition.type == COLUMN_STATS:
        yield ExpressionStatsCheck(name, definition.source_fields[0], value, subject)
    elif definition.type == BLOOM_FILTERS:
        yield ExpressionFiltersCheck(name, value, subject)
    else:
        findings.not_checked(name, f"an index of type {definition.type!r}")


_CHECKS: Final[Mapping[type[PartitionType], Callable[[Subject, str], Iterable[PartitionCheck]]]] = {
    ColumnStatsPartition: lambda subject, _: [ColumnStatsCheck(subject)],
    PartitionStatsPartition: _partition_stats,
    BloomFiltersPartition: lambda subject, _: [BloomFiltersCheck(subject)],
    RecordIndexPartition: lambda subject, _: [RecordIndexCheck(subject)],
    SecondaryIndexPartition: _secondary_index,
    ExpressionIndexPartition: _expression_index,
}
