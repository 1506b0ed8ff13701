"""The ranges of values that a Parquet footer records per row group, as Arrow arrays with one element per row group."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_core.codec.parquet.footer import schema_of

_NUMBERS: Final = frozenset({"INT32", "INT64"})
_BYTES: Final = frozenset({"BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"})
_ORDERS_NAN: Final = "parquet-mr"
"""Writes no range for a column chunk with NaN. Others, pyarrow among them, write the range of the other values."""


@dataclass(frozen=True, slots=True)
class ChunkRanges:
    """Of one column, per row group: `minimum` and `maximum` as the file's Arrow type, and counts as int64.

    The counts are `null_count` and `value_count` (rows). An element is null where the footer has no reliable value:
    bounds hold for all values that are not null, NaN being the greatest of them.
    """

    minimum: pa.Array
    maximum: pa.Array
    null_count: pa.Array
    value_count: pa.Array


def leaf_columns(metadata: pq.FileMetaData) -> dict[tuple[str, ...], int]:
    """The numbers of the leaf columns that have one value per row, by path; lists and maps have none."""
    schema = schema_of(metadata)
    columns = [schema.column(number) for number in range(len(schema))]
    # A dotted path does not distinguish a field of a struct from a column with a dot in its name; those are top-level
    # leaves.
    return {
        (column.path,) if column.name == column.path else tuple(column.path.split(".")): number
        for number, column in enumerate(columns)
        if column.max_repetition_level == 0
    }


def leaf_path(leaves: Collection[tuple[str, ...]], path: tuple[str, ...]) -> tuple[str, ...] | None:
    """The one of the paths `leaves` that `path` is, in any case; None where it is not there, or twice but for case."""
    if path in leaves:
        return path
    lowered = [name.lower() for name in path]
    found = [leaf for leaf in leaves if [name.lower() for name in leaf] == lowered]
    return found[0] if len(found) == 1 else None


def chunk_ranges(metadata: pq.FileMetaData, number: int, kind: pa.DataType) -> ChunkRanges | None:
    """The ranges of the leaf column `number`, whose Arrow type in the file is `kind`.

    None for a type whose ranges are not read.
    """
    chunks = [metadata.row_group(group).column(number) for group in range(metadata.num_row_groups)]
    convert = _converter(kind, schema_of(metadata).column(number).physical_type)
    if convert is None:
        return None
    found = [chunk.statistics if chunk.is_stats_set else None for chunk in chunks]
    bounded = [item if item is not None and item.has_min_max else None for item in found]
    lower = [None if item is None else convert(item.min_raw) for item in bounded]
    upper = [None if item is None else convert(item.max_raw) for item in bounded]
    if pa.types.is_floating(kind) and not str(metadata.created_by or "").startswith(_ORDERS_NAN):
        upper = [None] * len(upper)
    return ChunkRanges(
        pa.array(lower, kind),
        pa.array(upper, kind),
        pa.array([item.null_count if item is not None and item.has_null_count else None for item in found], pa.int64()),
        pa.array([chunk.num_values for chunk in chunks], pa.int64()),
    )


def _converter(kind: pa.DataType, physical: str) -> Callable[[Any], Any] | None:
    """How a raw bound becomes a Python value of the type.

    None where the order of the raw values is not that of the type.
    """
    if pa.types.is_string(kind) and physical == "BYTE_ARRAY":
        return _text
    if pa.types.is_decimal(kind) and physical in _NUMBERS | _BYTES:
        return _decimal_of(kind.scale)
    plain = (
        (pa.types.is_signed_integer(kind) and physical in _NUMBERS)
        or (pa.types.is_floating(kind) and physical in ("FLOAT", "DOUBLE"))
        or (pa.types.is_boolean(kind) and physical == "BOOLEAN")
        or (pa.types.is_date32(kind) and physical == "INT32")
        or (pa.types.is_timestamp(kind) and physical == "INT64")
        or (pa.types.is_binary(kind) and physical == "BYTE_ARRAY")
    )
    return (lambda value: value) if plain else None


def _text(value: Any) -> str | None:
    """A text that was cut inside a character is no usable bound."""
    try:
        return value.decode() if isinstance(value, bytes) else str(value)
    except UnicodeDecodeError:
        return None


def _decimal_of(scale: int) -> Callable[[Any], decimal.Decimal]:
    def convert(value: Any) -> decimal.Decimal:
        unscaled = int.from_bytes(value, "big", signed=True) if isinstance(value, bytes) else int(value)
        # Not scaleb: that rounds to the context's 28 digits.
        return decimal.Decimal(f"{unscaled}E-{scale}")

    return convert
