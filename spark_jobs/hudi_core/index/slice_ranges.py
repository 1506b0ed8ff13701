"""Ranges of values per file slice, from statistics per file.

A merged row takes each of its values from one of the slice's files, not all of them from the same one: an update may
have some columns only. So the range of a column in a slice is that of all its files, and the predicate is evaluated on
these ranges. That is never narrower than evaluating it on each file alone, as Hudi does, which loses rows that only two
merged files make match.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.expr.ranges import ColumnRange
from hudi_core.metadata_table.records.range_merge import may_hide_texts, may_lack_numbers
from hudi_core.view.file_group import DataFile, FileSlice

_BEYOND_JAVA = "[\ue000-\U0010ffff]"
"""Characters that UTF-16, the order of Java's strings, and UTF-8, that of Spark's, put in different places."""
_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_UNITS = ("s", "ms", "us", "ns")


def slice_ranges(slices: Sequence[FileSlice], statistics: pa.Table, kind: pa.DataType) -> ColumnRange | None:
    """The ranges of an operand of type `kind` in each slice; None when its statistics do not order as its values do.
    `statistics` has `partition`, `file`, `min`, `max`, `null_count`, `value_count` and `uncompressed_size` per file
    (metadata_table.read.metadata_table). A slice with a file that has no row there, or no bounds, or false ones
    (metadata_table.records.range_merge), has no bounds. Counts are of slices that are one base file: those of log
    files are not of its rows.
    """
    number = pa.int8() if pa.types.is_boolean(kind) else kind
    least, greatest, sizes = (_ordered(statistics.column(name)) for name in ("min", "max", "uncompressed_size"))
    lower, upper = indexed_in_order_of(least, number), indexed_in_order_of(greatest, number)
    if lower is None or upper is None:
        return None
    ranged = pc.invert(may_lack_numbers(least, greatest, sizes))
    lower, upper = _where(ranged, lower), _where(ranged, upper)
    names = zip(statistics.column("partition").to_pylist(), statistics.column("file").to_pylist(), strict=True)
    rows = {place: row for row, place in enumerate(names)}
    files = [item.data_files for item in slices]
    minimum, maximum = _folded(lower, files, rows, _least), _folded(upper, files, rows, _greatest)
    alone = [None if item.log_files else item.base_file for item in slices]
    base_rows = pa.array(
        [None if base is None else rows.get((base.partition, base.name)) for base in alone], pa.int64()
    )
    nulls, values = (_ordered(statistics.column(name)).take(base_rows) for name in ("null_count", "value_count"))
    counted = pc.and_(pc.greater(values, 0), pc.and_(pc.greater_equal(nulls, 0), pc.less_equal(nulls, values)))
    hidden = pc.and_(may_hide_texts(least, greatest, sizes).take(base_rows), pc.equal(nulls, values))
    counted = pc.and_(counted, pc.invert(hidden))
    return ColumnRange(minimum, maximum, _where(counted, nulls), _where(counted, values))


def _where(mask: pa.Array, values: pa.Array) -> pa.Array:
    return pc.if_else(mask, values, pa.scalar(None, values.type))


def _ordered(column: pa.ChunkedArray) -> pa.Array:
    """As one array; booleans, which Arrow does not order, as 0 and 1."""
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    return array.cast(pa.int8()) if pa.types.is_boolean(array.type) else array


def _folded(
    bounds: pa.Array,
    files: Sequence[tuple[DataFile, ...]],
    rows: Mapping[tuple[str, str], int],
    fold: Callable[[pa.Array, pa.Array], pa.Array],
) -> pa.Array:
    """The bound over all files of each slice, null when one is not known: first files first, then second ones."""
    if pa.types.is_timestamp(bounds.type):
        # Arrow takes the lesser of two timestamps only without a zone.
        return _folded(bounds.cast(pa.int64()), files, rows, fold).cast(bounds.type)
    result = pa.nulls(len(files), bounds.type)
    for turn in range(max((len(item) for item in files), default=0)):
        there = [len(item) > turn for item in files]
        at = [rows.get((item[turn].partition, item[turn].name)) if len(item) > turn else None for item in files]
        turn_bounds = bounds.take(pa.array(at, pa.int64()))
        result = turn_bounds if turn == 0 else pc.if_else(pa.array(there), fold(result, turn_bounds), result)
    return result


def _least(first: pa.Array, second: pa.Array) -> pa.Array:
    return pc.min_element_wise(first, second, skip_nulls=False)


def _greatest(first: pa.Array, second: pa.Array) -> pa.Array:
    result = pc.max_element_wise(first, second, skip_nulls=False)
    if not pa.types.is_floating(first.type):
        return result
    # Arrow passes over NaN, which is the greatest value here.
    nan = pc.or_(pc.is_nan(first), pc.is_nan(second))
    return pc.if_else(nan, pa.scalar(float("nan"), first.type), result)


def in_order_of(bounds: pa.Array, kind: pa.DataType) -> pa.Array | None:
    """The bounds as type `kind`; None unless values of `kind` made from such values have the same order. Those of a
    column that was widened (int to long to double, decimals, finer timestamps) do; those of one that became text do
    not.
    """
    have = bounds.type
    if have == kind:
        return bounds
    if not _keeps_order(have, kind):
        return None
    if pa.types.is_float32(have):
        # Rows are read by the float's text (codec.avro.arrow_conform): 1.1, not 1.10000002384.
        return pc.cast(pc.cast(bounds, pa.string()), kind)
    return pc.cast(bounds, kind, safe=not pa.types.is_floating(kind))


def indexed_in_order_of(bounds: pa.Array, kind: pa.DataType) -> pa.Array | None:
    """As in_order_of, of bounds that the metadata table holds, of which writers took some by Java's order of values. A
    text with a character beyond those that all orders agree on is no bound, and nor are bytes, which Java takes for
    signed.
    """
    if any(pa.types.is_binary(have) or pa.types.is_large_binary(have) for have in (bounds.type, kind)):
        return None
    ordered = in_order_of(bounds, kind)
    if ordered is None or not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return ordered
    return pc.if_else(pc.match_substring_regex(ordered, _BEYOND_JAVA), pa.scalar(None, kind), ordered)


def _keeps_order(have: pa.DataType, kind: pa.DataType) -> bool:
    if have in _INTEGERS:
        return pa.types.is_floating(kind) or (kind in _INTEGERS and _INTEGERS.index(have) < _INTEGERS.index(kind))
    if pa.types.is_float32(have):
        return bool(pa.types.is_float64(kind))
    if pa.types.is_decimal(have) and pa.types.is_decimal(kind):
        return bool(kind.scale >= have.scale and kind.precision - kind.scale >= have.precision - have.scale)
    if pa.types.is_timestamp(have) and pa.types.is_timestamp(kind):
        # A column without a zone is read as UTC (codec.avro.arrow_conform).
        zones = have.tz == kind.tz or (have.tz is None and kind.tz == "UTC")
        return zones and _UNITS.index(have.unit) <= _UNITS.index(kind.unit) and kind.unit != "ns"
    texts = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
    return have in texts and kind in texts
