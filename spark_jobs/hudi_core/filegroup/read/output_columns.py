"""The columns of a query's rows: which there are, where their values come from, and how stored rows become them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from hudi_core.codec.avro.arrow import arrow_schema, spark_schema
from hudi_core.codec.avro.arrow_conform import conform_batch
from hudi_core.codec.avro.schema import AvroSchema, add_meta_fields, field, without_meta_fields
from hudi_core.codec.avro.time_labels import only_mark
from hudi_core.codec.avro.vectors import Vector, vectors_of
from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConfigError
from hudi_core.filegroup.read.partition_values import PartitionColumns, as_text, path_values
from hudi_core.model.column_names import spelled
from hudi_core.model.names import OPERATION


@dataclass(frozen=True)
class OutputColumns:
    """The columns of one query.

    `schema` is the table's Avro schema without meta fields, `rule` gives the source of partition columns, `zone` is
    that of timestamps in partition paths, UTC when None.
    """

    config: TableConfig
    schema: AvroSchema
    rule: PartitionColumns
    zone: str | None = None

    @cached_property
    def stored(self) -> pa.Schema:
        """The columns that rows are stored with, in Spark's types: `_hoodie_*` first, unless the table has none."""
        dropped = self.config.dropped_columns
        return pa.schema([item for item in self._named if item.name not in dropped])

    @cached_property
    def _named(self) -> pa.Schema:
        """With the columns that the table's schema names and data files lack."""
        if self.config.populate_meta_fields:
            avro = add_meta_fields(self.schema, operation=field(self.schema, OPERATION) is not None)
        else:
            avro = without_meta_fields(self.schema)
        return spark_schema(arrow_schema(avro, path=self.config.path))

    @cached_property
    def path_columns(self) -> list[pa.Field]:
        """The columns whose values are read from the partition path.

        A field within a struct is none: Hudi 0.15 adds a column of its dotted name, which Spark puts behind all others;
        Hudi 1.x does not (HoodieHadoopFsRelationFactory).
        """
        names = [name for name in self.rule.from_path if self.rule.last or "." not in name or name in self._named.names]
        return [self.rule.field(name, self._named) for name in names]

    @cached_property
    def all(self) -> pa.Schema:
        """Every column of the query."""
        fields = {item.name: self._as_list(item) for item in self._named}
        for name in self.rule.as_text & fields.keys():
            fields[name] = pa.field(name, pa.string())
        for item in self.path_columns:
            if self.rule.last:
                fields.pop(item.name, None)
            fields[item.name] = item
        return pa.schema([only_mark(item) for item in fields.values()])

    def select(self, columns: Sequence[str] | None) -> pa.Schema:
        """The selected columns, in that order, or all; raises ConfigError for a column that the table lacks."""
        return select_columns(self.all, columns)

    def stored_of(self, names: Collection[str]) -> pa.Schema:
        """The stored columns among `names`, in their order."""
        named = frozenset(spelled(names, self.stored.names))
        return pa.schema([item for item in self.stored if item.name in named])

    def finish(self, batch: pa.RecordBatch, partition: str, schema: pa.Schema, *, path: str) -> pa.RecordBatch:
        """Stored rows of a partition as the columns of `schema`, which `select` gave.

        `path` names the file group in errors. Values of the path are read for the columns of `schema` alone, so that
        one that cannot be read is no error of a query without it.
        """
        batch = self._with_lists(batch, path)
        columns = [item for item in self.path_columns if item.name in schema.names]
        values = path_values(partition, self.config, columns, zone=self.zone)
        text = self.rule.as_text
        if not values and not text:
            return conform_batch(batch, schema, path=path)
        arrays = []
        for item in schema:
            index = batch.schema.get_field_index(item.name)
            if item.name in values:
                arrays.append(pa.repeat(values[item.name], batch.num_rows))
            elif index < 0:
                # A partition whose path does not have the table's depth gives no value for a column that rows lack.
                arrays.append(pa.nulls(batch.num_rows, item.type))
            elif item.name in text:
                arrays.append(as_text(batch.column(index), path=path))
            else:
                arrays.append(batch.column(index))
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    @cached_property
    def _vectors(self) -> Mapping[str, Vector]:
        return vectors_of(self.schema)

    def _as_list(self, item: pa.Field) -> pa.Field:
        return item.with_type(self._vectors[item.name].type) if item.name in self._vectors else item

    def _with_lists(self, batch: pa.RecordBatch, path: str) -> pa.RecordBatch:
        """The batch with lists for the bytes of vectors."""
        for at, name in enumerate(batch.schema.names):
            if name in self._vectors:
                batch = batch.set_column(at, name, self._vectors[name].lists(batch.column(at), name, path=path))
        return batch


def select_columns(schema: pa.Schema, columns: Sequence[str] | None) -> pa.Schema:
    """The selected columns of `schema`, named in any case, in that order, or all; raises ConfigError for one that it
    lacks.
    """
    if columns is None:
        return schema
    fields = {item.name: item for item in schema}
    columns = spelled(columns, list(fields))
    missing = [name for name in columns if name not in fields]
    if missing:
        raise ConfigError(f"no column {', '.join(map(repr, missing))}", remedy=f"the columns are {', '.join(fields)}")
    return pa.schema([fields[name] for name in columns])
