"""How ranges of one column compare and merge, also after it was widened (HoodieColumnRangeMetadata,
HoodieTableMetadataUtil.mergeColumnStatsRecords), and which ranges recorded by Hudi may be false.

For a Parquet file Hudi records parquet-mr's statistics of a chunk, also where parquet-mr knows nothing
(ParquetUtils.readColumnStatsFromMetadata of 0.15 to 1.2):

- For a chunk with NaN parquet-mr has no range, and its fields are 0.0 and 0.0 (Statistics.DoubleBuilder). Hudi records
  these zeros (apache/hudi#18754). parquet-mr makes a true minimum of zero -0.0, so the sign distinguishes the two.
- A chunk whose least and greatest value together have 4096 bytes or more has no statistics at all
  (ParquetMetadataConverter.MAX_STATS_SIZE). Hudi records no bounds, and as many nulls as values (apache/hudi#18755).

When such a range is merged with others, a zero counts as a bound, an absent bound does not count, and the nulls add up.
Ranges of rows, as of log files, are right: NaN is the greatest value (ConvertingGenericData.compare), nulls are
counted, and sizes are 0.
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
"""The types that compare with each other, each wider than those before it: a column may have been widened."""

_FLOATS: Final = frozenset({"float", "double"})
_LONG: Final = 2048
"""The least bytes, before compression, of a chunk without statistics: it stores the longer of two values of together
4096 bytes.
"""


def outer_bound(first: Bound | None, second: Bound | None, *, upper: bool) -> Bound | None:
    """Returns the smaller (`upper`: larger) of two bounds, or the only one; None (unknown) if types do not compare."""
    if first is None or second is None:
        return first or second
    if first.logical != second.logical and not {first.logical, second.logical} <= {*NUMBERS}:
        return None
    logical = wider(first.logical, second.logical)
    one, other = order_of(widened(first, logical)), order_of(widened(second, logical))
    return first if one == other or (one > other) == upper else second


def wider(first: str, second: str) -> str:
    """Returns the wider of two number types, or the type that both are."""
    return first if first == second else max(first, second, key=NUMBERS.index)


def widened(bound: Bound, logical: str) -> Bound:
    if bound.logical == logical:
        return bound
    if (bound.logical, logical) == ("float", "double"):
        return Bound(logical, widened_float(bound.value))
    return Bound(logical, float(bound.value)) if logical in ("float", "double") else Bound(logical, bound.value)


def order_of(bound: Bound) -> tuple[bool, Any]:
    """Returns the sort key of bounds of one type. NaN is the greatest, as in Java and Spark."""
    nan = isinstance(bound.value, float) and math.isnan(bound.value)
    return nan, 0.0 if nan else bound.value


def empty_type(version: int) -> ValueType:
    """Returns the type of a range without values (ValueMetadata.getEmptyValueMetadata)."""
    return ValueType(0 if version == 1 else _NULL_TYPE)


def empty_range(column: str, version: int) -> ColumnRange:
    """Returns the range of a column in a file without rows (HoodieColumnRangeMetadata.createEmpty)."""
    return ColumnRange(column, None, None, 0, 0, 0, 0, empty_type(version))


def is_unknown(found: ColumnRange) -> bool:
    """Returns whether a range has values but no bounds."""
    return (found.least is None or found.greatest is None) and found.null_count < found.value_count


def merged(ranges: Iterable[ColumnRange]) -> ColumnRange | None:
    """Returns the range of all `ranges` of one column, in the encoding of the last range that has bounds; None for no
    ranges. Bounds of numbers of different width compare, since a column may have been widened; other bounds of
    different types leave the range unknown. Counts and sizes are added, also where they count rows twice, as in Hudi.
    """
    found: ColumnRange | None = None
    for item in ranges:
        found = item if found is None else _merge(found, item)
    return found


def contains(wide: ColumnRange, narrow: ColumnRange) -> bool:
    """Returns whether a filter that keeps no row of `wide` also keeps none of `narrow`; False where that is unknown."""
    if narrow.null_count and not wide.null_count:
        return False
    if narrow.least is None or narrow.greatest is None:
        return not is_unknown(narrow) or is_unknown(wide)
    if wide.least is None or wide.greatest is None:
        return is_unknown(wide)
    both = _merge(narrow, wide)
    return (both.least, both.greatest) == (wide.least, wide.greatest)


def is_like(recorded: ColumnRange, new: ColumnRange) -> bool:
    """Returns whether Hudi's readers merge two ranges like outer_bound (mergeColumnStatsRecords). They compare only
    values of the same Java type, and compare texts in the order of UTF-16, in which U+FF21 comes after U+1F600.
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
    """Returns the range of a column in its present type `arrow_type`. Bounds that do not widen to it become unknown."""
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
    """Returns the least and the greatest bound of two ranges, not widened; None where nothing is known."""
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
        # The wider type can store a bound of the narrower type.
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
    """Merges the statistics of files of one partition into those of one file without a name; filters are omitted. A
    column or an expression that one file does not record has no range: a range unknown for one is unknown for all.
    Files that bound no rows (FileStatistics.bounds_rows) do not count. The results may be merged again.
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
    # A log file bounds rows also where it has no ranges.
    rows = max(sum(item.rows for item in bounding), 1 if bounding else 0)
    return FileStatistics(place, ranges, rows=rows, expressions=expressions)


def _expression(name: str, files: Sequence[FileStatistics]) -> ColumnRange | None:
    recorded = [item.expressions.get(name) for item in files]
    ranges = [item for item in recorded if isinstance(item, ColumnRange)]
    # `value_count` is without nulls here. Files without rows have no record, so Hudi omits their bytes, too.
    with_rows = [item for item in ranges if item.value_count + item.null_count > 0]
    return None if len(ranges) < len(recorded) else merged(with_rows or ranges[:1])


def may_be_false(found: ColumnRange) -> bool:
    """Returns whether a file's recorded range looks like one that Hudi makes where it knows none."""
    size, least = found.total_uncompressed_size, found.least
    if found.null_count >= found.value_count:
        return least is None and found.greatest is None and size >= _LONG
    if least is None or least.logical not in _FLOATS:
        return False
    return size > 0 and least.value == 0 and math.copysign(1, least.value) > 0


def may_lack_numbers(least: pa.Array, greatest: pa.Array, sizes: pa.Array) -> pa.Array:
    """Returns where the ranges of a column in files may lack values other than NaN: where zero, perhaps of a row group
    with NaN, is in them. A range from -0.0 is not among them: its zero is true. `sizes` are before compression.
    """
    if not pa.types.is_floating(least.type):
        return pa.repeat(pa.scalar(False), len(least))
    low, high = (bounds.to_numpy(zero_copy_only=False) for bounds in (least, greatest))
    holds_zero = ~((low > 0) | (high < 0)) & ~((low == 0) & np.signbit(low))
    return pa.array(holds_zero & (sizes.to_numpy(zero_copy_only=False) > 0))


def may_hide_texts(least: pa.Array, greatest: pa.Array, sizes: pa.Array) -> pa.Array:
    """Returns where files recorded without bounds, like files of nulls only, may have values."""
    return pc.and_(pc.and_(pc.is_null(least), pc.is_null(greatest)), pc.greater_equal(sizes, _LONG))


def may_lack_values(least: pa.Array, greatest: pa.Array, nulls: pa.Array, sizes: pa.Array) -> pa.Array:
    """Returns where ranges of whole partitions may be merged from such ranges; null where a bound is absent."""
    if pa.types.is_floating(least.type):
        return pc.invert(pc.or_(pc.greater(least, 0), pc.less(greatest, 0)))
    if pa.types.is_string(least.type) or pa.types.is_large_string(least.type):
        return pc.and_(pc.greater(nulls, 0), pc.greater_equal(sizes, _LONG))
    return pa.repeat(pa.scalar(False), len(least))
