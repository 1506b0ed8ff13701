"""Finds columns of Arrow schemas and batches by dotted name in any case (model.names), and reads their leaves and
buffers.

metadata_table.indexed_table says which columns have statistics. Leaves are in the order of a Parquet file: depth first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hudi_core.model.names import alike


def octets(array: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Returns where each value of a string or binary array begins, the last end, and the bytes of all, not copied."""
    _, offset_buffer, data_buffer = array.buffers()
    if not len(array) or data_buffer is None:
        return np.zeros(len(array) + 1, dtype=np.int64), np.zeros(0, dtype=np.uint8)
    wide = pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type)
    offsets = np.frombuffer(offset_buffer, dtype=np.int64 if wide else np.int32)
    offsets = offsets[array.offset : array.offset + len(array) + 1].astype(np.int64)
    data = np.frombuffer(data_buffer, dtype=np.uint8)[offsets[0] : offsets[-1]]
    return offsets - offsets[0] if offsets[0] else offsets, data


def running_sums(numbers: NDArray[np.int64] | NDArray[np.bool_]) -> NDArray[np.int64]:
    """Returns the sum of the numbers before each place, and at the end the sum of all."""
    return np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(numbers, dtype=np.int64)))


def is_string(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind))


def is_text(kind: pa.DataType) -> bool:
    return is_string(kind) or is_binary(kind)


def is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def unsliced(array: pa.Array) -> pa.Array:
    """Returns the array from the start of its buffers, for code that works on whole buffers."""
    return pa.concat_arrays([array]) if array.offset else array


def with_children(array: pa.Array, kind: pa.DataType, children: Sequence[pa.Array]) -> pa.Array:
    """Returns a struct, list or map of the type `kind` over `children`, with nulls and offsets of an unsliced array."""
    buffers = array.buffers()[:1]
    if not pa.types.is_struct(kind):
        offsets = pc.cast(array.offsets, pa.int64() if pa.types.is_large_list(kind) else pa.int32())
        buffers.append(offsets.buffers()[1])
    return pa.Array.from_buffers(kind, len(array), buffers, children=list(children))


def leaf_types(kind: pa.DataType) -> list[pa.DataType]:
    if not pa.types.is_nested(kind):
        return [kind]
    return [leaf for number in range(kind.num_fields) for leaf in leaf_types(kind.field(number).type)]


def leaves_with_nan(table: pa.Table) -> frozenset[int]:
    """Returns the numbers of the FLOAT and DOUBLE leaf columns that have a NaN."""
    numbers: set[int] = set()
    first = 0
    for column in table.columns:
        kinds = leaf_types(column.type)
        if any(map(_is_float, kinds)):
            for chunk in column.chunks:
                leaves = enumerate(leaf_arrays(chunk))
                nan = (number for number, leaf in leaves if _is_float(leaf.type) and pc.any(pc.is_nan(leaf)).as_py())
                numbers.update(first + number for number in nan)
        first += len(kinds)
    return frozenset(numbers)


def leaf_arrays(array: pa.Array) -> Iterator[pa.Array]:
    """Yields the values of each leaf column. A null struct, list or map has none."""
    if pa.types.is_struct(array.type):
        for child in array.flatten():
            yield from leaf_arrays(child)
    elif pa.types.is_map(array.type):
        yield from leaf_arrays(array.cast(pa.list_(array.type.field(0).type)).flatten())
    elif pa.types.is_nested(array.type):
        yield from leaf_arrays(array.flatten())
    else:
        yield array


def _is_float(kind: pa.DataType) -> bool:
    return bool(pa.types.is_float32(kind) or pa.types.is_float64(kind))


def column_type(schema: pa.Schema, name: str) -> pa.DataType | None:
    path = field_path(schema, name)
    return None if path is None else path[-1].type


def column_of(batch: pa.RecordBatch, name: str) -> pa.Array | None:
    """Returns a column by dotted name, null where a struct around it is null; None when `schema` lacks it."""
    path = field_path(batch.schema, name)
    if path is None:
        return None
    array = batch.column(path[0].name)
    for step in path[1:]:
        array = pc.struct_field(array, step.name)
    return array


def top_columns(names: Iterable[str]) -> frozenset[str]:
    return frozenset(name.split(".")[0] for name in names)


def field_path(schema: pa.Schema, name: str) -> Sequence[pa.Field] | None:
    """Returns the fields from the top-level column to that of a dotted name. A column with dots in its name wins."""
    whole = field_named(schema, name)
    if whole is not None:
        return (whole,)
    path: list[pa.Field] = []
    for step in name.split("."):
        within = path[-1].type if path else schema
        child = field_named(within, step) if not path or pa.types.is_struct(within) else None
        if child is None:
            return None
        path.append(child)
    return path


def column_named(name: str, schema: pa.Schema) -> str:
    """Returns the name as `schema` has it; `name` itself when it is missing, or when several differ only in case."""
    return ".".join(field.name for field in field_path(schema, name) or ()) or name


def field_named(within: pa.Schema | pa.StructType, name: str) -> pa.Field | None:
    """Returns the field of that name in any case; None when it is missing, or when several differ only in case."""
    # Only a name that is missing in its own case needs the list of names: a table may have 10,000 columns.
    at = within.get_field_index(name)
    if at < 0:
        same = alike((field.name for field in within), name)
        at = within.get_field_index(same[0]) if len(same) == 1 else -1
    return within.field(at) if at >= 0 else None
