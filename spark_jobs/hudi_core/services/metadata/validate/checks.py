"""Which checks a table's metadata table gets: one for each partition type that it lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import pyarrow as pa

from hudi_core.config.read_config import READ_ZONE
from hudi_core.errors import ConfigError
from hudi_core.expr.bind import resolve
from hudi_core.expr.functions import evaluate, needs_zone
from hudi_core.expr.tree import Column, Operand
from hudi_core.index.expression_indexes import indexed_operand
from hudi_core.metadata_table.index_definitions import IndexDefinition
from hudi_core.metadata_table.keys import secondary_hashed_part
from hudi_core.metadata_table.partition_type import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    EXPRESSION_PREFIX,
    FILES_PARTITION,
    PARTITION_STATS,
    RECORD_INDEX,
    SECONDARY_PREFIX,
)
from hudi_core.metadata_table.read.row_level import SecondaryIndexRules
from hudi_core.metadata_table.read.statistics import ColumnTypes
from hudi_core.model.names import META_FIELDS
from hudi_core.services.metadata.record_keys import KeysOfRows
from hudi_core.services.metadata.validate.bloom_filters import BloomFiltersCheck
from hudi_core.services.metadata.validate.check import PartitionCheck
from hudi_core.services.metadata.validate.column_stats import ColumnStatsCheck, IndexedColumns
from hudi_core.services.metadata.validate.difference import Findings
from hudi_core.services.metadata.validate.expression_index import (
    ExpressionFiltersCheck,
    ExpressionStatsCheck,
    IndexedExpression,
)
from hudi_core.services.metadata.validate.partition_stats import PartitionStatsCheck
from hudi_core.services.metadata.validate.record_index import RecordIndexCheck
from hudi_core.services.metadata.validate.secondary_index import SecondaryIndexCheck, can_print
from hudi_core.services.metadata.validate.subject import Subject

_RENAMED: Final = "columns that older files hold under another name"


class Checks:
    """Makes the checks of one table. Comparisons that are not possible are reported to `findings`."""

    def __init__(self, subject: Subject, findings: Findings) -> None:
        self._subject = subject
        self._findings = findings
        self._definitions: Mapping[str, IndexDefinition] = subject.metadata.index_definitions()
        self._output = subject.reader.spec.output
        self._stored: pa.Schema = self._output.stored
        self._types = ColumnTypes(subject.schema)
        self._keys = KeysOfRows.of(subject.context.config)

    def all(self) -> list[PartitionCheck]:
        """The checks of all partition types but `files`, which lists the files to check."""
        return [
            check
            for name in sorted(self._subject.metadata.partition_types - {FILES_PARTITION})
            for check in self._of(name)
        ]

    def _of(self, name: str) -> Iterator[PartitionCheck]:
        metadata, findings = self._subject.metadata, self._findings
        if name == COLUMN_STATS:
            leaves = self._subject.context.config.features.cleans_leave_statistics
            columns = IndexedColumns(self._columns(name), name in self._definitions)
            yield ColumnStatsCheck(metadata, columns, findings, left_by=self._subject.cleans if leaves else tuple)
        elif name == PARTITION_STATS:
            yield PartitionStatsCheck(metadata, self._of_rows(name, self._columns(COLUMN_STATS)), findings)
        elif name == BLOOM_FILTERS:
            yield BloomFiltersCheck(self._subject.metadata_snapshot, self._keys, findings)
        elif name == RECORD_INDEX:
            yield RecordIndexCheck(metadata.record_index, self._keys, findings)
        elif name.startswith(SECONDARY_PREFIX):
            yield from self._secondary(name)
        elif name.startswith(EXPRESSION_PREFIX):
            yield from self._expression(name)
        else:
            findings.not_checked(name, "a kind of metadata that this release does not know")

    def _columns(self, name: str) -> dict[str, Operand]:
        """The columns with statistics that are of a type that has an order, by dotted name."""
        definition = self._definitions.get(name)
        fields = [field["name"] for field in self._subject.schema["fields"]]
        meta = META_FIELDS if self._subject.context.config.populate_meta_fields else ()
        names = definition.source_fields if definition is not None and definition.source_fields else (*meta, *fields)
        found: dict[str, Operand] = {}
        for column in dict.fromkeys(names):
            path = tuple(column.split("."))
            if path[0] in self._subject.renamed:
                self._findings.not_checked(name, _RENAMED)
            elif path[0] in self._stored.names and not pa.types.is_null(self._types.of(column)[0]):
                found[column] = Column(path)
        return found

    def _of_rows(self, partition_type: str, operands: Mapping[str, Operand]) -> dict[str, Operand]:
        """Those whose values in a query's rows are those of the files."""
        hidden = {*self._output.rule.from_path, *self._output.rule.as_text}
        kept = {
            name: operand
            for name, operand in operands.items()
            if not (isinstance(operand, Column) and operand.path[0] in hidden)
        }
        if len(kept) < len(operands):
            self._findings.not_checked(partition_type, "columns whose values queries take from the partition's path")
        return kept

    def _secondary(self, name: str) -> Iterator[PartitionCheck]:
        definition = self._definitions.get(name)
        fields = () if definition is None else definition.source_fields
        column = self._operand(name, Column(tuple(fields[0].split(".")))) if len(fields) == 1 else None
        if definition is None or not isinstance(column, Column):
            self._findings.not_checked(name, "its definition names no single column of the table")
            return
        if not self._of_rows(name, {"": column}):
            return
        if not can_print(self._kind(column)):
            self._findings.not_checked(
                name, f"values of type {self._kind(column)}, whose printed form depends on the writer"
            )
            return
        by_value = definition.version > 1
        partition = self._subject.metadata_snapshot.partition(
            name, SecondaryIndexRules(), secondary_hashed_part if by_value else str
        )
        is_whole = self._subject.metadata.covers_all_rows(name)
        if not is_whole:
            self._findings.not_checked(
                name, "pairs that it lacks: it was built while a commit was written, and readers do not ask it"
            )
        yield SecondaryIndexCheck(partition, column, self._keys, self._findings, by_value=by_value, is_whole=is_whole)

    def _expression(self, name: str) -> Iterator[PartitionCheck]:
        definition = self._definitions.get(name)
        written = None if definition is None else indexed_operand(definition)
        operand = None if written is None else self._operand(name, written)
        if definition is None or operand is None:
            self._findings.not_checked(name, "an expression that predicates cannot name")
            return
        zone = READ_ZONE.read(self._subject.context.options)
        has_values = zone is not None or not needs_zone(operand, self._empty(), "UTC")
        if not has_values:
            self._findings.not_checked(
                name, f"values, as they depend on the zone of local time; give the writers' as {READ_ZONE.name}"
            )
        index = IndexedExpression(name, definition.source_fields[0], operand, zone or "UTC", has_values)
        if definition.type == COLUMN_STATS:
            yield ExpressionStatsCheck(self._subject.metadata_snapshot, index, self._findings)
        elif definition.type == BLOOM_FILTERS:
            yield ExpressionFiltersCheck(self._subject.metadata_snapshot, index, self._findings)
        else:
            self._findings.not_checked(name, f"an index of type {definition.type!r}")

    def _operand(self, name: str, operand: Operand) -> Operand | None:
        """The operand over the stored columns; None for a column that the table lacks, or holds under several names."""
        try:
            found = resolve(operand, self._stored)
            self._kind(found)
        except ConfigError as error:
            self._findings.not_checked(name, error.message)
            return None
        return found

    def _kind(self, operand: Operand) -> pa.DataType:
        return evaluate(operand, self._empty(), "UTC").type

    def _empty(self) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([pa.array([], item.type) for item in self._stored], schema=self._stored)
