"""How ranges of one column compare and merge: of the files of a partition, of two records of one key, of a column that
was widened (HoodieColumnRangeMetadata, HoodieTableMetadataUtil.mergeColumnStatsRecords); and which of those that real
Hudi recorded may be false.

Of a Parquet file Hudi records what parquet-mr says of a chunk, also where that knows nothing
(ParquetUtils.readColumnStatsFromMetadata of 0.15 to 1.2):

- A chunk with NaN has no range to parquet-mr, whose fields hold 0.0 and 0.0 then (Statistics.DoubleBuilder). These are
  recorded (apache/hudi#18754). A true minimum of zero is -0.0 to parquet-mr, so the sign distinguishes the two.
- A chunk whose least and greatest value have 4096 bytes or more has no statistics at all
  (ParquetMetadataConverter.MAX_STATS_SIZE). Recorded are no bounds, and as many nulls as values (apache/hudi#18755).

Merged with others a zero counts as a bound, a bound that is not there does not, and the nulls add up. Ranges of rows,
as of log files, are right: NaN is the greatest value (ConvertingGenericData.compare), nulls are counted, and their
sizes are 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.metadata_table.records.bounds import Bound, ValueType, logical_and_type, widened_float
from hudi_core.metadata_table.records.file_statistics import ColumnRange, DataFileRef, FileStatistics

_NULL_TYPE: Final = 1
NUMBERS: Final = ("int", "long", "float", "double")
"""Kinds that compare with each other, each wider than those before it: a column may have been widened."""

_FLOATS: Final = frozenset({"float", "double"})
_LONG: Final = 2048
"""The least bytes of a chunk without statistics, before compression: it stores the longer one of two values of 4096."""


def outer_bound(first: Bound | None, second: Bound | None, *, upper: bool) -> Bound | None:
    """The smaller (`upper`: larger) bound, or the one there is. None, nothing is known, where they do not compare."""
    if first is None or second is None:
        return first or second
    if first.logical != second.logical and not {first.logical, second.logical} <= {*NUMBERS}:
        return None
    logical = wider(first.logical, second.logical)
    one, other = order_of(widened(first, logical)), order_of(widened(second, logical))
    return first if one == other or (one > other) == upper else second


def wider(first: str, second: str) -> str:
    """The wider of two number types, or the one type that both are."""
    return first if first == second else max(first, second, key=NUMBERS.index)


def widened(bound: Bound, logical: str) -> Bound:
    if bound.logical == logical:
        return bound
    if (bound.logical, logical) == ("float", "double"):
        return Bound(logical, widened_float(bound.value))
    return Bound(logical, float(bound.value)) if logical in ("float", "double") else Bound(logical, bound.value)


def order_of(bound: Bound) -> tuple[bool, Any]:
    """What bounds of one type are compared by: NaN is the greatest, as in Java and Spark."""
    nan = isinstance(bound.value, float) and math.isnan(bound.value)
    return nan, 0.0 if nan else bound.value


def empty_type(version: int) -> ValueType:
    """Of a range without values (ValueMetadata.getEmptyValueMetadata)."""
    return ValueType(0 if version == 1 else _NULL_TYPE)


def empty_range(column: str, version: int) -> ColumnRange:
    """Of a column in a file without rows (HoodieColumnRangeMetadata.createEmpty)."""
    return ColumnRange(column, None, None, 0, 0, 0, 0, empty_type(version))


def is_unknown(found: ColumnRange) -> bool:
    """Whether a range has values without bounds."""
    return (found.least is None or found.greatest is None) and found.null_count < found.value_count


def merged(ranges: Iterable[ColumnRange]) -> ColumnRange | None:
    """The range of all of them, of one column, in the encoding of the last one that has bounds; None of none. Bounds of
    numbers of different width compare, as a column may have been widened; others that differ in type leave the range
    unknown. Sums of counts and sizes hold also where they count rows twice, as in Hudi.
    """
    found: ColumnRange | None = None
    for item in ranges:
        found = item if found is None else _merge(found, item)
    return found


def contains(wide: ColumnRange, narrow: ColumnRange) -> bool:
    """Whether a filter that keeps no row of `wide` keeps none of `narrow` either; not where that is not known."""
    if narrow.null_count and not wide.null_count:
        return False
    if narrow.least is None or narrow.greatest is None:
        return not is_unknown(narrow) or is_unknown(wide)
    if wide.least is None or wide.greatest is None:
        return is_unknown(wide)
    both = _merge(narrow, wide)
    return (both.least, both.greatest) == (wide.least, wide.greatest)


def is_like(recorded: ColumnRange, new: ColumnRange) -> bool:
    """Whether Hudi's readers merge two ranges as outer_bound does (mergeColumnStatsRecords): of Java's types they
    compare each with itself alone, and texts in the order of UTF-16, in which U+FF21 is behind U+1F600.
    """
    pairs = ((recorded.least, new.least), (recorded.greatest, new.greatest))
    return recorded.type == new.type and all(
        one is None or other is None or (one.logical == other.logical and _in_java_order(one.value, other.value))
        for one, other in pairs
    )


def _in_java_order(one: Any, other: Any) -> bool:
    if not isinstance(one, str) or not isinstance(other, str):
        return True
    java = [text.encode("utf-16-be", "surrogatepass") for text in (one, other)]
    return (one < other) == (java[0] < java[1])


def as_type(found: ColumnRange, arrow_type: pa.DataType, version: int) -> ColumnRange:
    """The range of a column that has the type `arrow_type` now; bounds that do not widen to it become unknown."""
    name, value_type = logical_and_type(arrow_type, version)
    least, greatest = _as_logical(found.least, name), _as_logical(found.greatest, name)
    if least is None or greatest is None:
        least = greatest = None
    return replace(found, least=least, greatest=greatest, type=value_type)


def _as_logical(bound: Bound | None, logical: str) -> Bound | None:
    if bound is None or bound.logical == logical:
        return bound
    is_wider = {bound.logical, logical} <= {*NUMBERS} and wider(bound.logical, logical) == logical
    return widened(bound, logical) if is_wider else None


def outer_bounds(first: ColumnRange, second: ColumnRange) -> tuple[Bound | None, Bound | None]:
    """The least and the greatest bound of two ranges, as they are in these; None where nothing is known."""
    if is_unknown(first) or is_unknown(second):
        return None, None
    least = outer_bound(first.least, second.least, upper=False)
    greatest = outer_bound(first.greatest, second.greatest, upper=True)
    if first.least is not None and second.least is not None and (least is None or greatest is None):
        return None, None
    return least, greatest


def _merge(first: ColumnRange, second: ColumnRange) -> ColumnRange:
    least, greatest = outer_bounds(first, second)
    later = (second.least is not None, second.type.ordinal) >= (first.least is not None, first.type.ordinal)
    return replace(
        second if later else first,
        # The wider type stores what the narrower one holds.
        least=_in_wider_type(least, first.least, second.least),
        greatest=_in_wider_type(greatest, first.greatest, second.greatest),
        null_count=first.null_count + second.null_count,
        value_count=first.value_count + second.value_count,
        total_size=first.total_size + second.total_size,
        total_uncompressed_size=first.total_uncompressed_size + second.total_uncompressed_size,
    )


def _in_wider_type(found: Bound | None, first: Bound | None, second: Bound | None) -> Bound | None:
    return (
        found
        if found is None or first is None or second is None
        else widened(found, wider(first.logical, second.logical))
    )


def merge_statistics(files: Sequence[FileStatistics]) -> FileStatistics:
    """The statistics of files of one partition as those of one file without a name; filters are omitted. A column or an
    expression that one of them does not record has no range: what is unknown of one is unknown of all. Files that bound
    no rows (FileStatistics.bounds_rows) do not count. May be applied again to what it gives.
    """
    place = DataFileRef(files[0].file.partition, "", sum(item.file.size for item in files), is_base=True)
    bounding = [item for item in files if item.bounds_rows]
    by_column: dict[str, list[ColumnRange]] = {}
    for item in bounding:
        for recorded in item.ranges:
            by_column.setdefault(recorded.column, []).append(recorded)
    whole = (merged(ranges) for ranges in by_column.values() if len(ranges) == len(bounding))
    ranges = tuple(found for found in whole if found is not None)
    expressions = {name: found for name in files[0].expressions if (found := _expression(name, files)) is not None}
    # A log file bounds rows even where it has no ranges.
    rows = max(sum(item.rows for item in bounding), 1 if bounding else 0)
    return FileStatistics(place, ranges, rows=rows, expressions=expressions)


def _expression(name: str, files: Sequence[FileStatistics]) -> ColumnRange | None:
    recorded = [item.expressions.get(name) for item in files]
    ranges = [item for item in recorded if isinstance(item, ColumnRange)]
    # Values are counted without the nulls here. Files without rows have no record, so Hudi omits their bytes, too.
    with_rows = [item for item in ranges if item.value_count + item.null_count > 0]
    return None if len(ranges) < len(recorded) else merged(with_rows or ranges[:1])


def may_be_false(found: ColumnRange) -> bool:
    """Whether the range recorded of a file is like one that Hudi makes without knowing any."""
    size, least = found.total_uncompressed_size, found.least
    if found.null_count >= found.value_count:
        return least is None and found.greatest is None and size >= _LONG
    if least is None or least.logical not in _FLOATS:
        return False
    return size > 0 and least.value == 0 and math.copysign(1, least.value) > 0


def may_lack_numbers(least: pa.Array, greatest: pa.Array, sizes: pa.Array) -> pa.Array:
    """Where the ranges of a column in files may lack values beside NaN: those that hold zero, as that of a row group
    with NaN may be in them. Not those from -0.0 on, which have their zero from another row group. `sizes` are before
    compression.
    """
    if not pa.types.is_floating(least.type):
        return pa.repeat(pa.scalar(False), len(least))
    low, high = (bounds.to_numpy(zero_copy_only=False) for bounds in (least, greatest))
    holds_zero = ~((low > 0) | (high < 0)) & ~((low == 0) & np.signbit(low))
    return pa.array(holds_zero & (sizes.to_numpy(zero_copy_only=False) > 0))


def may_hide_texts(least: pa.Array, greatest: pa.Array, sizes: pa.Array) -> pa.Array:
    """Where files that are recorded without bounds, as of nulls alone, may have values."""
    return pc.and_(pc.and_(pc.is_null(least), pc.is_null(greatest)), pc.greater_equal(sizes, _LONG))


def may_lack_values(least: pa.Array, greatest: pa.Array, nulls: pa.Array, sizes: pa.Array) -> pa.Array:
    """Where ranges of whole partitions may be merged with such ones of files; null where there is no bound."""
    if pa.types.is_floating(least.type):
        return pc.invert(pc.or_(pc.greater(least, 0), pc.less(greatest, 0)))
    if pa.types.is_string(least.type) or pa.types.is_large_string(least.type):
        return pc.and_(pc.greater(nulls, 0), pc.greater_equal(sizes, _LONG))
    return pa.repeat(pa.scalar(False), len(least))
