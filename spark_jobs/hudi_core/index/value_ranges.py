"""Ranges of values per file slice, from statistics per file; and per partition, from its path
(HoodieFileIndex.listMatchingPartitionPaths) and its statistics. skipping.py excludes by them.

A merged row takes each of its values from one of the slice's files, but not all of them from the same file: an update
may have only some columns. So the range of a column in a slice is that of all its files, and the predicate is evaluated
on these ranges. This is never narrower than evaluating it on each file alone, as Hudi does. Hudi's way loses rows that
match only after two files are merged.

A path that is read for the column's value gives it exactly. Where rows hold the value themselves, the path has it as
the writer wrote it: escaped or not, behind `column=` or not, and null and the empty text alike as
`__HIVE_DEFAULT_PARTITION__`. All of these count as possible. What a timestamp key generator formats is not used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import UnsupportedError
from hudi_core.expr.bound import Bound
from hudi_core.expr.ranges import ColumnRange
from hudi_core.expr.tree import Column, Operand
from hudi_core.filegroup.read.partition_values import (
    DEFAULT_PARTITION,
    PartitionColumns,
    has_slashed_dates,
    not_in_path,
    path_parts,
    path_values,
    unescaped,
    with_dashes,
)
from hudi_core.index.row_group_skipping import in_order_of
from hudi_core.metadata_table.partition_type import COLUMN_STATS
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.metadata_table.records.range_merge import may_hide_texts, may_lack_numbers, may_lack_values
from hudi_core.model.names import PARTITION_PATH, RECORD_KEY
from hudi_core.view.file_group import DataFile, FileSlice

_BEYOND_JAVA = "[\ue000-\U0010ffff]"
"""Characters that UTF-16 (the order of Java's strings) and UTF-8 (that of Spark's) put in different places."""


def slice_ranges(slices: Sequence[FileSlice], statistics: pa.Table, kind: pa.DataType) -> ColumnRange | None:
    """Returns the ranges of an operand of type `kind` in each slice; None when its statistics order differently.

    `statistics` has `partition`, `file`, `min`, `max`, `null_count`, `value_count` and `uncompressed_size` per file
    (metadata_table.read.metadata_table). A slice has no bounds where one of its files has no row there, or no bounds,
    or false ones (metadata_table.records.range_merge). Only slices that are one base file have counts.
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
    """Returns the column as one array. Booleans, which Arrow does not order, become 0 and 1."""
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
    """Returns the bound over all files of each slice, null if one is unknown. Folds first files, then second ones."""
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


def indexed_in_order_of(bounds: pa.Array, kind: pa.DataType) -> pa.Array | None:
    """Returns bounds of the metadata table as in in_order_of. Writers took some by Java's order. So a text with a
    character that not all orders place alike is no bound, and bytes, which Java takes as signed, are none either.
    """
    if any(pa.types.is_binary(have) or pa.types.is_large_binary(have) for have in (bounds.type, kind)):
        return None
    ordered = in_order_of(bounds, kind)
    if ordered is None or not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return ordered
    return pc.if_else(pc.match_substring_regex(ordered, _BEYOND_JAVA), pa.scalar(None, kind), ordered)


_PATH_TYPES: Final = (pa.string(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.date32(), pa.bool_())
"""Types whose text in a path is read back as the value, for every writer."""


def partition_ranges(
    partitions: Sequence[str], bound: Bound, config: TableConfig, rule: PartitionColumns
) -> dict[Operand, ColumnRange]:
    """Returns the ranges of the predicate's partition columns and `_hoodie_partition_path` in each partition."""
    used = set(bound.columns)
    unrecorded = not_in_path(config)
    ranges: dict[Operand, ColumnRange] = {}
    for name in config.partition_fields:
        if name not in used:
            continue
        kind = bound.schema.field(name).type
        if name in rule.from_path:
            ranges[Column((name,))] = _read_from_path(partitions, pa.field(name, kind), config, bound.zone)
        elif name not in unrecorded and kind in _PATH_TYPES:
            ranges[Column((name,))] = _in_path(partitions, name, kind, config)
    if PARTITION_PATH in used and config.populate_meta_fields:
        paths = pa.array(partitions, pa.string())
        ranges[Column((PARTITION_PATH,))] = ColumnRange(paths, paths)
    return ranges


def partition_statistics(
    partitions: Sequence[str], metadata: MetadataTable, columns: Mapping[Column, pa.DataType], key: str = RECORD_KEY
) -> dict[Operand, ColumnRange]:
    """Returns the ranges of columns in each of `partitions`, as the metadata table has them. They have bounds only:
    counts of whole partitions add up what merging removed. Bounds that may be merged with false ones
    (metadata_table.records.range_merge) are left out. So are bounds of fewer values than there are of `key`, a column
    of every row: files from before a change in the case of the column's name have theirs under the older name.
    """
    ranges: dict[Operand, ColumnRange] = {}
    names = {".".join(column.path): column for column in columns}
    requested = indexed_columns(metadata, names)
    tables = metadata.partition_stats(list(dict.fromkeys([*requested, key]))) if requested else {}
    rows_of = {name: _rows_of(table) for name, table in tables.items()}
    keys = rows_of.get(key, {})
    for name in requested:
        table, rows = tables[name], rows_of[name]
        at = pa.array(
            [
                rows[item][0] if item in rows and item in keys and rows[item][1] >= keys[item][1] else None
                for item in partitions
            ],
            pa.int64(),
        )
        lower, upper = (
            indexed_in_order_of(table.column(end).combine_chunks(), columns[names[name]]) for end in ("min", "max")
        )
        if lower is None or upper is None:
            continue
        nulls, sizes = (table.column(count).combine_chunks() for count in ("null_count", "uncompressed_size"))
        whole = pc.invert(may_lack_values(lower, upper, nulls, sizes))
        unknown = pa.scalar(None, lower.type)
        lower, upper = (pc.if_else(whole, bounds, unknown) for bounds in (lower, upper))
        ranges[names[name]] = ColumnRange(lower, upper).take(at)
    return ranges


def _rows_of(table: pa.Table) -> dict[str, tuple[int, int]]:
    pairs = zip(table.column("partition").to_pylist(), table.column("value_count").to_pylist(), strict=True)
    return {partition: (row, count) for row, (partition, count) in enumerate(pairs)}


def indexed_columns(metadata: MetadataTable, names: Iterable[str]) -> list[str]:
    """Returns the columns that the statistics are defined to have. Those of a dropped column may be old."""
    definition = metadata.definitions.get(COLUMN_STATS)
    return [name for name in names if definition is None or name in definition.source_fields]


def _read_from_path(partitions: Sequence[str], column: pa.Field, config: TableConfig, zone: str) -> ColumnRange:
    values: list[pa.Scalar | None] = []
    for partition in partitions:
        try:
            values.append(path_values(partition, config, [column], zone=zone).get(column.name))
        except UnsupportedError:
            values.append(None)  # reading the partition will raise the error
    nulls = [None if value is None else int(not value.is_valid) for value in values]
    counts = [None if value is None else 1 for value in values]
    bounds = pa.array(values, column.type)
    return ColumnRange(bounds, bounds, pa.array(nulls, pa.int64()), pa.array(counts, pa.int64()))


def _in_path(partitions: Sequence[str], name: str, kind: pa.DataType, config: TableConfig) -> ColumnRange:
    lower: list[Any] = []
    upper: list[Any] = []
    nulls: list[int | None] = []
    for partition in partitions:
        texts = _spellings(partition, name, config)
        values = [] if None in texts else [_typed(text, kind) for text in texts if text is not None]
        maybe_null = None in texts or "" in texts or DEFAULT_PARTITION in texts
        sure = bool(values) and not maybe_null and all(value is not None for value in values)
        lower.append(min(values) if sure else None)
        upper.append(max(values) if sure else None)
        nulls.append(0 if sure else None)
    return ColumnRange(pa.array(lower, kind), pa.array(upper, kind), pa.array(nulls, pa.int64()))


def _spellings(partition: str, name: str, config: TableConfig) -> set[str | None]:
    """Returns the texts of the column that may have made this path; also None if the depth differs."""
    part = path_parts(partition, config.partition_fields).get(name)
    if part is None:
        return {None}
    plain = {part, part.removeprefix(f"{name}=")}
    if has_slashed_dates(config):
        plain |= set(map(with_dashes, plain))  # the column may have held slashes itself
    return {*plain, *map(unescaped, plain)}


def _typed(text: str, kind: pa.DataType) -> Any:
    try:
        return pa.scalar(text).cast(kind).as_py()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
