"""Columns by dotted name, in a schema and in a batch. Which of them have statistics says statistics_columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc


def column_type(schema: pa.Schema, name: str) -> pa.DataType | None:
    """The type of a column by dotted name; None when it is not there."""
    found = field_path(schema, name)
    return None if found is None else found[-1].type


def column_of(batch: pa.RecordBatch, name: str) -> pa.Array | None:
    """A column by dotted name, null where a struct around it is; None when it is not there."""
    path = field_path(batch.schema, name)
    if path is None:
        return None
    array = batch.column(path[0].name)
    for step in path[1:]:
        array = pc.struct_field(array, step.name)
    return array


def top_columns(names: Iterable[str]) -> frozenset[str]:
    """The columns to read for those of dotted names."""
    return frozenset(name.split(".")[0] for name in names)


def field_path(schema: pa.Schema, name: str) -> Sequence[pa.Field] | None:
    """The fields from the top-level column to the one of that dotted name; a column with dots in its name comes
    first.
    """
    # Not `schema.names`, which lists them all: a table may have 10,000 columns.
    at = schema.get_field_index(name)
    if at >= 0:
        return (schema.field(at),)
    head, *rest = name.split(".")
    at = schema.get_field_index(head)
    if at < 0:
        return None
    path = [schema.field(at)]
    for step in rest:
        data_type = path[-1].type
        if not pa.types.is_struct(data_type) or data_type.get_field_index(step) < 0:
            return None
        path.append(data_type.field(step))
    return path
