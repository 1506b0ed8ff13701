"""Reads from a Parquet footer the ranges of values per row group, as Arrow arrays, and the calendar of the values.

Spark marks files in the proleptic Gregorian calendar, and files in the hybrid one, which has the Julian calendar before
it (DataSourceUtils.getRebaseSpec, RebaseDateTime). For Spark, a file without a mark, as Hudi's Avro writer makes, is in
the calendar of its options; here it is in the proleptic one. file.py refuses old dates of a hybrid file.
"""

from __future__ import annotations

import datetime as dt
import decimal
import struct
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hudi_core.codec.columns import leaf_types
from hudi_core.codec.parquet.footer import is_by_parquet_mr, schema_of
from hudi_core.codec.parquet.page_index import PageBounds, PagePlaces
from hudi_core.frozen import dataclass

_NUMBERS: Final = frozenset({"INT32", "INT64"})
_FORMATS: Final = {"INT32": "<i", "INT64": "<q", "FLOAT": "<f", "DOUBLE": "<d"}
_BYTES: Final = frozenset({"BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"})


@dataclass(frozen=True, slots=True)
class ChunkRanges:
    """The ranges of one column per row group: `minimum` and `maximum` as the file's Arrow type, `null_count` and
    `value_count` (rows) as int64. An entry is null when the footer has no reliable value. Bounds hold for all values
    that are not null; NaN is the greatest value.
    """

    minimum: pa.Array
    maximum: pa.Array
    null_count: pa.Array
    value_count: pa.Array


def leaf_columns(metadata: pq.FileMetaData) -> dict[tuple[str, ...], int]:
    """Returns the numbers of the leaf columns that have one value per row, by path. Lists and maps have none."""
    schema = schema_of(metadata)
    columns = [schema.column(number) for number in range(len(schema))]
    # A dotted path may be a field of a struct or a column with a dot in its name. Such a column is a top-level leaf.
    return {
        (column.path,) if column.name == column.path else tuple(column.path.split(".")): number
        for number, column in enumerate(columns)
        if column.max_repetition_level == 0
    }


def leaf_path(leaves: Collection[tuple[str, ...]], path: tuple[str, ...]) -> tuple[str, ...] | None:
    """Returns the path of `leaves` that equals `path` in any case; None when it is missing, or when two differ only in
    case.
    """
    if path in leaves:
        return path
    lowered = [name.lower() for name in path]
    alike = [leaf for leaf in leaves if [name.lower() for name in leaf] == lowered]
    return alike[0] if len(alike) == 1 else None


def chunk_ranges(metadata: pq.FileMetaData, number: int, kind: pa.DataType) -> ChunkRanges | None:
    """Returns the ranges of the leaf column `number`, of the Arrow type `kind`; None for a type without ranges here."""
    chunks = [metadata.row_group(group).column(number) for group in range(metadata.num_row_groups)]
    convert = _converter(kind, schema_of(metadata).column(number).physical_type)
    if convert is None:
        return None
    statistics = [chunk.statistics if chunk.is_stats_set else None for chunk in chunks]
    bounded = [stored if stored is not None and stored.has_min_max else None for stored in statistics]
    lower = [None if stored is None else convert(stored.min_raw) for stored in bounded]
    upper = [None if stored is None else convert(stored.max_raw) for stored in bounded]
    if _may_pass_over_nan(metadata, kind):
        upper = [None] * len(upper)
    nulls = [stored.null_count if stored is not None and stored.has_null_count else None for stored in statistics]
    counts = (pa.array(numbers, pa.int64()) for numbers in (nulls, [chunk.num_values for chunk in chunks]))
    return ChunkRanges(pa.array(lower, kind), pa.array(upper, kind), *counts)


def page_ranges(
    bounds: PageBounds, places: PagePlaces, metadata: pq.FileMetaData, number: int, kind: pa.DataType, rows: int
) -> ChunkRanges | None:
    """Returns the ranges of the pages of a chunk of the leaf column `number`, which is not nested, in a row group of
    `rows`; otherwise as chunk_ranges. Texts may be cut: then the bounds are further apart than the values.
    """
    column = schema_of(metadata).column(number)
    convert, value = _converter(kind, column.physical_type), raw_value(column)
    if convert is None or value is None:
        return None
    ends = [
        [None if null else convert(value(raw)) for null, raw in zip(bounds.is_null, raws, strict=True)]
        for raws in (bounds.least, bounds.greatest)
    ]
    if _may_pass_over_nan(metadata, kind):
        ends[1] = [None] * len(ends[1])
    counts = pa.array(np.diff(places.first_rows, append=rows), pa.int64())
    nulls = pa.array([None] * len(counts) if bounds.nulls is None else bounds.nulls, pa.int64())
    return ChunkRanges(pa.array(ends[0], kind), pa.array(ends[1], kind), nulls, counts)


def _may_pass_over_nan(metadata: pq.FileMetaData, kind: pa.DataType) -> bool:
    """Whether a range may leave out NaN. parquet-mr writes no range with NaN; others, such as pyarrow, pass over it."""
    return pa.types.is_floating(kind) and not is_by_parquet_mr(metadata)


def raw_value(column: pq.ColumnSchema) -> Callable[[bytes], Any] | None:
    """Returns the function from a bound in a footer or page index to a value in the column's order; None for a type
    without one here. The function raises struct.error for a bound of another length.
    """
    kind, meaning = column.physical_type, str(column.logical_type.type)
    if kind in _FORMATS:
        is_unsigned = str(column.converted_type).startswith("UINT")
        return None if is_unsigned else lambda bound: struct.unpack(_FORMATS[kind], bound)[0]
    if kind == "BOOLEAN":
        return lambda bound: bound != b"\0"
    if kind not in _BYTES or meaning == "FLOAT16":
        return None
    if meaning == "DECIMAL":
        return lambda bound: int.from_bytes(bound, "big", signed=True)
    return lambda bound: bound


def _converter(kind: pa.DataType, physical: str) -> Callable[[Any], Any] | None:
    """Returns the function from a raw bound to a Python value; None when raw values have another order."""
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
    """Returns the text; None when it was cut inside a character, since that is no usable bound."""
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


SPARK_VERSION: Final = "org.apache.spark.version"
_HYBRID: Final = b"3.0.0", b"org.apache.spark.legacyDateTime"
_HYBRID_INT96: Final = b"3.1.0", b"org.apache.spark.legacyINT96"
"""Files with this key, or of a version (as text) before this one, are in the hybrid calendar."""
_PROLEPTIC: Final = "3.1.0"
"""From this version on, a file without those keys is in the proleptic calendar."""
_FIRST_DAY: Final = (dt.date(1582, 10, 15) - dt.date(1970, 1, 1)).days
"""RebaseDateTime.lastSwitchJulianDay: from then on, a day has the same number in both calendars."""
_FIRST_SECOND: Final = -2_208_988_800
"""RebaseDateTime.lastSwitchJulianTs, 1900-01-01. Before it, Spark also converts local times of zones."""
_PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def hybrid_columns(metadata: pq.FileMetaData, schema: pa.Schema) -> list[str]:
    """Returns the columns whose least values in the footer may mean another date or time in the hybrid calendar."""
    keys = metadata.metadata or {}
    version = keys.get(SPARK_VERSION.encode())
    if version is None:
        return []
    hybrid, hybrid_int96 = (version < first or key in keys for first, key in (_HYBRID, _HYBRID_INT96))
    if not (hybrid or hybrid_int96):
        return []
    names: list[str] = []
    parquet = schema_of(metadata)
    leaves = [(field.name, kind) for field in schema for kind in leaf_types(field.type)]
    for number, (name, kind) in enumerate(leaves):
        is_int96 = parquet.column(number).physical_type == "INT96"
        first = _first_alike(kind, is_int96=is_int96)
        is_hybrid = hybrid_int96 if is_int96 else hybrid
        if is_hybrid and first is not None and name not in names and _may_be_below(metadata, number, first):
            names.append(name)
    return names


def proleptic_version(footers: Iterable[Mapping[str, str]]) -> str | None:
    """Returns the version of Spark that the footer of a new file names. Its rows come from log files and from base
    files with these footers, none of which has hybrid_columns. None when one of these files is in the calendar of the
    reader's options. Rows of log files are proleptic, since Hudi's AvroSerializer writes them so.
    """
    versions = [footer.get(SPARK_VERSION) for footer in footers]
    return None if None in versions else max(_PROLEPTIC, *filter(None, versions), "")


def _first_alike(kind: pa.DataType, *, is_int96: bool) -> int | None:
    """Returns the first number of a type that means the same in both calendars; None for other types."""
    if pa.types.is_date32(kind):
        return _FIRST_DAY
    if pa.types.is_timestamp(kind) and (kind.tz is not None or is_int96):
        return _FIRST_SECOND * _PER_SECOND[kind.unit]
    return None


def _may_be_below(metadata: pq.FileMetaData, number: int, first: int) -> bool:
    """Whether a column may hold a number below `first`: a column chunk has one, or does not say. INT96 never says."""
    for group in range(metadata.num_row_groups):
        chunk = metadata.row_group(group).column(number)
        statistics = chunk.statistics if chunk.is_stats_set and chunk.physical_type != "INT96" else None
        if statistics is not None and statistics.has_min_max:
            is_below = statistics.min_raw < first
        else:
            nulls = statistics.null_count if statistics is not None and statistics.has_null_count else 0
            is_below = chunk.num_values > nulls
        if is_below:
            return True
    return False
