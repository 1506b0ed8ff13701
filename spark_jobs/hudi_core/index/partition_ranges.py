"""What a partition's path shows of the values in its rows, by which skipping.py excludes partitions
(HoodieFileIndex.listMatchingPartitionPaths).

A path that is read for the column's value gives it exactly. Where rows hold the value themselves, the path has it as
the writer wrote it: escaped or not, behind `column=` or not, and null and the empty text alike as
`__HIVE_DEFAULT_PARTITION__`. All of them count as possible. What a timestamp key generator formats is no value of the
column, and is not used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
from hudi_core.index.slice_ranges import indexed_in_order_of
from hudi_core.metadata_table.partition_type import COLUMN_STATS
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.metadata_table.records.range_merge import may_lack_values
from hudi_core.model.names import PARTITION_PATH, RECORD_KEY

_PATH_TYPES: Final = (pa.string(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.date32(), pa.bool_())
"""Types whose text in a path is read back as the value, for every writer."""


def partition_ranges(
    partitions: Sequence[str], bound: Bound, config: TableConfig, rule: PartitionColumns
) -> dict[Operand, ColumnRange]:
    """The ranges of the predicate's partition columns and of `_hoodie_partition_path` in each of `partitions`."""
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
    """The ranges of columns in each of `partitions`, as the metadata table has them. Bounds only: counts of whole
    partitions add up what merging took away. No bounds that may be merged with false ones
    (metadata_table.records.range_merge), and none of fewer values than there are of `key`, a column of every row:
    files from before a change in the case of the column's name have theirs under the older name.
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
    """Those of the columns that the statistics are defined to have: those of a dropped column may be old."""
    definition = metadata.index_definitions().get(COLUMN_STATS)
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
    """The texts that the column may have had when this path was made of it; None among them if the depth differs."""
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
