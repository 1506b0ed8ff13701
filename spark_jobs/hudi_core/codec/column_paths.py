"""Columns by dotted name, in a schema and in a batch, in any case (model.column_names). Which of them have statistics
says metadata_table.indexed_table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.model.column_names import alike


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
    whole = _field(schema, name)
    if whole is not None:
        return (whole,)
    path: list[pa.Field] = []
    for step in name.split("."):
        within = path[-1].type if path else schema
        found = _field(within, step) if not path or pa.types.is_struct(within) else None
        if found is None:
            return None
        path.append(found)
    return path


def column_named(name: str, schema: pa.Schema) -> str:
    """The dotted name as `schema` has it; `name` itself where it is not there, or there twice but for case."""
    return ".".join(field.name for field in field_path(schema, name) or ()) or name


def _field(within: pa.Schema | pa.StructType, name: str) -> pa.Field | None:
    # The names are listed for one that is not there as it is written only: a table may have 10,000 columns.
    at = within.get_field_index(name)
    if at < 0:
        same = alike((field.name for field in within), name)
        at = within.get_field_index(same[0]) if len(same) == 1 else -1
    return within.field(at) if at >= 0 else None
