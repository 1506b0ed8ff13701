"""The leaf columns of nested Arrow columns, in the order in which a Parquet file has them: depth first."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc


def leaf_types(kind: pa.DataType) -> list[pa.DataType]:
    """The types of the leaf columns of a column."""
    if not pa.types.is_nested(kind):
        return [kind]
    return [leaf for number in range(kind.num_fields) for leaf in leaf_types(kind.field(number).type)]


def leaves_with_nan(table: pa.Table) -> frozenset[int]:
    """The numbers of the leaf columns of FLOAT or DOUBLE with a NaN among their values."""
    found: set[int] = set()
    first = 0
    for column in table.columns:
        kinds = leaf_types(column.type)
        if any(map(_is_float, kinds)):
            for chunk in column.chunks:
                found.update(first + number for number, leaf in enumerate(leaf_arrays(chunk)) if _has_nan(leaf))
        first += len(kinds)
    return frozenset(found)


def leaf_arrays(array: pa.Array) -> Iterator[pa.Array]:
    """The values of each leaf column; those of a struct, list or map that is null are none."""
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


def _has_nan(leaf: pa.Array) -> bool:
    return _is_float(leaf.type) and bool(pc.any(pc.is_nan(leaf)).as_py())
