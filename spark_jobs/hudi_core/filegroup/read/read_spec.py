"""What a query's tasks need to read its slices, in a form that travels to any task, and the filters of rows.
OutputColumns has the columns of a query and their order; query/cdc_read.py has those of change data.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property, partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.codec.avro.arrow import Vector, arrow_schema, spark_schema, vectors_of
from hudi_core.codec.avro.arrow_conform import conform_batch
from hudi_core.codec.avro.arrow_types import only_mark
from hudi_core.codec.avro.schema import AvroSchema, add_meta_fields, without_meta_fields
from hudi_core.codec.avro.schema import field as avro_field
from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConfigError, UnsupportedError
from hudi_core.expr.bind import bind
from hudi_core.expr.bound import Bound, row_mask
from hudi_core.expr.tree import Expr
from hudi_core.filegroup.read.log_scan import CommittedInstants
from hudi_core.filegroup.read.partition_values import PartitionColumns, as_text, partition_columns, path_values
from hudi_core.frozen import dataclass
from hudi_core.model.names import COMMIT_TIME, OPERATION, spelled


@dataclass(frozen=True)
class OutputColumns:
    """The columns of one query. `schema` is the table's Avro schema without meta fields, `rule` says where partition
    columns come from, `zone` is that of timestamps in partition paths, UTC when None.
    """

    config: TableConfig
    schema: AvroSchema
    rule: PartitionColumns
    zone: str | None = None

    @cached_property
    def stored(self) -> pa.Schema:
        """The columns that rows are stored with, in Spark's types: `_hoodie_*` first, unless the table has none."""
        dropped = self.config.dropped_columns
        return pa.schema([column for column in self._named if column.name not in dropped])

    @cached_property
    def _named(self) -> pa.Schema:
        """The columns that the table's schema names, including those that data files lack."""
        if self.config.populate_meta_fields:
            avro = add_meta_fields(self.schema, operation=avro_field(self.schema, OPERATION) is not None)
        else:
            avro = without_meta_fields(self.schema)
        return spark_schema(arrow_schema(avro, path=self.config.path))

    @cached_property
    def path_columns(self) -> list[pa.Field]:
        """The columns whose values are read from the partition path. For a field within a struct, Hudi 0.15 adds a
        column of its dotted name, which Spark puts after all others; Hudi 1.x does not (HoodieHadoopFsRelationFactory).
        """
        names = [name for name in self.rule.from_path if self.rule.last or "." not in name or name in self._named.names]
        return [self.rule.field(name, self._named) for name in names]

    @cached_property
    def all(self) -> pa.Schema:
        fields = {column.name: column for column in self._named}
        for name, vector in self._vectors.items():
            fields[name] = fields[name].with_type(vector.type)
        for name in self.rule.as_text & fields.keys():
            fields[name] = pa.field(name, pa.string())
        for column in self.path_columns:
            if self.rule.last:
                fields.pop(column.name, None)
            fields[column.name] = column
        return pa.schema([only_mark(column) for column in fields.values()])

    def select(self, columns: Sequence[str] | None) -> pa.Schema:
        """Returns the selected columns, in that order, or all. Raises ConfigError for a column that the table lacks."""
        return select_columns(self.all, columns)

    def stored_of(self, names: Collection[str]) -> pa.Schema:
        named = frozenset(spelled(names, self.stored.names))
        return pa.schema([column for column in self.stored if column.name in named])

    def finish(self, batch: pa.RecordBatch, partition: str, schema: pa.Schema, *, path: str) -> pa.RecordBatch:
        """Returns stored rows of a partition with the columns of `schema`, a result of `select`. `path` names the file
        group in errors. A value of the path that cannot be read is an error only for a query with its column.
        """
        batch = self._with_lists(batch, path)
        columns = [column for column in self.path_columns if column.name in schema.names]
        values = path_values(partition, self.config, columns, zone=self.zone)
        text = self.rule.as_text
        if not values and not text:
            return conform_batch(batch, schema, path=path)
        arrays = []
        for column in schema:
            index = batch.schema.get_field_index(column.name)
            if column.name in values:
                arrays.append(pa.repeat(values[column.name], batch.num_rows))
            elif index < 0:
                # A partition whose path does not have the table's depth gives no value for a column that rows lack.
                arrays.append(pa.nulls(batch.num_rows, column.type))
            elif column.name in text:
                arrays.append(as_text(batch.column(index), path=path))
            else:
                arrays.append(batch.column(index))
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    @cached_property
    def _vectors(self) -> Mapping[str, Vector]:
        return vectors_of(self.schema)

    def _with_lists(self, batch: pa.RecordBatch, path: str) -> pa.RecordBatch:
        for at, name in enumerate(batch.schema.names):
            if name in self._vectors:
                batch = batch.set_column(at, name, self._vectors[name].lists(batch.column(at), name, path=path))
        return batch


def select_columns(schema: pa.Schema, columns: Sequence[str] | None) -> pa.Schema:
    """Returns the selected columns of `schema`, in any case, in that order, or all. Raises ConfigError for others."""
    if columns is None:
        return schema
    fields = {column.name: column for column in schema}
    columns = spelled(columns, list(fields))
    missing = [name for name in columns if name not in fields]
    if missing:
        raise ConfigError(f"no column {', '.join(map(repr, missing))}", remedy=f"the columns are {', '.join(fields)}")
    return pa.schema([fields[name] for name in columns])


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Keeps the rows for which `mask` is true, in batches with at least `columns`. Null drops a row."""

    columns: frozenset[str]
    mask: Callable[[pa.RecordBatch], pa.Array]

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.filter(self.mask(batch), null_selection_behavior="drop")


def of_commit_times(times: frozenset[str]) -> RowFilter:
    values = pa.array(sorted(times), pa.string())
    return RowFilter(frozenset({COMMIT_TIME}), lambda batch: pc.is_in(batch.column(COMMIT_TIME), value_set=values))


def of_predicate(predicate: Expr, schema: pa.Schema) -> RowFilter:
    """Returns a filter for the rows of a predicate. Raises ConfigError when it does not fit the columns of `schema`."""
    return _of_bound(bind(predicate, schema))


def _of_bound(bound: Bound) -> RowFilter:
    return RowFilter(frozenset(bound.columns), partial(row_mask, bound))


@dataclass(frozen=True)
class ReaderSpec:
    """One query, as its tasks see it. `schema` is the table's Avro schema without meta fields. `latest_instant` is the
    newest requested time whose log blocks are read; None reads none. `merge_logs` is False for a read-optimized query.
    `columns` None means all. `commit_times`, of an incremental query, are the requested times of the instants whose
    rows are kept. `predicate` may name columns that are not among `columns`; its local times are of `zone`, UTC when
    None. `history` is SchemaHistory.to_json of a table that schema-on-read changed.
    """

    config: TableConfig
    schema: AvroSchema
    committed: CommittedInstants
    latest_instant: str | None
    merge_logs: bool
    columns: tuple[str, ...] | None = None
    commit_times: frozenset[str] | None = None
    predicate: Expr | None = None
    zone: str | None = None
    history: list[list[Any]] | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    def up_to(self, instant: str) -> ReaderSpec:
        """Returns the same query without log blocks that were requested after `instant`."""
        return replace(self, latest_instant=instant)

    @cached_property
    def output(self) -> OutputColumns:
        """The columns of the query, computed once: for a wide table that takes longer than to read a small slice."""
        merged = self.merge_logs and self.config.is_merge_on_read
        rule = partition_columns(self.config, merged=merged, incremental=self.commit_times is not None)
        return OutputColumns(self.config, self.schema, rule, self.zone)

    @cached_property
    def bound(self) -> Bound | None:
        """The predicate over all columns. Raises ConfigError naming a column or literal that does not fit."""
        if self.predicate is None:
            return None
        return bind(self.predicate, self.output.all, zone=self.zone)

    @cached_property
    def filters(self) -> tuple[RowFilter, ...]:
        """The conditions for every row. Raises UnsupportedError when rows do not have their commit times."""
        conditions = []
        if self.commit_times is not None:
            if not self.config.populate_meta_fields:
                message = "the table has no _hoodie_ columns, so its rows do not record their commit"
                remedy = "an incremental query needs hoodie.populate.meta.fields=true"
                raise UnsupportedError(message, path=self.config.path, remedy=remedy)
            conditions.append(of_commit_times(self.commit_times))
        if self.bound is not None:
            conditions.append(_of_bound(self.bound))
        return tuple(conditions)
