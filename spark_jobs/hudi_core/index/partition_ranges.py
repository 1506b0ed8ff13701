"""What a partition's path shows of the values in its rows (HoodieFileIndex.listMatchingPartitionPaths).

A path that is read for the column's value gives it exactly. Where rows hold the value themselves, the path has it as
the writer wrote it: escaped or not, behind `column=` or not, and null and the empty text alike as
`__HIVE_DEFAULT_PARTITION__`. All of them count as possible. What a timestamp key generator formats is no value of the
column, and is not used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.errors import UnsupportedError
from hudi_core.expr.bind import Bound
from hudi_core.expr.ranges import ColumnRange
from hudi_core.expr.tree import Column, Operand
from hudi_core.filegroup.read.partition_columns import (
    DEFAULT_PARTITION,
    PartitionColumns,
    not_in_path,
    path_values,
    unescaped,
)
from hudi_core.model.names import PARTITION_PATH

if TYPE_CHECKING:
    from hudi_core.config.table_config import TableConfig

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
            ranges[Column((name,))] = _read_from_path(partitions, name, kind, config)
        elif name not in unrecorded and kind in _PATH_TYPES:
            ranges[Column((name,))] = _in_path(partitions, name, kind, config)
    if PARTITION_PATH in used and config.populate_meta_fields:
        paths = pa.array(partitions, pa.string())
        ranges[Column((PARTITION_PATH,))] = ColumnRange(paths, paths)
    return ranges


def _read_from_path(partitions: Sequence[str], name: str, kind: pa.DataType, config: TableConfig) -> ColumnRange:
    values: list[pa.Scalar | None] = []
    for partition in partitions:
        try:
            values.append(path_values(partition, config.partition_fields, [pa.field(name, kind)]).get(name))
        except UnsupportedError:
            values.append(None)  # reading the partition will raise the error
    return _constants(
        [None if value is None else value.as_py() for value in values], [value is not None for value in values], kind
    )


def _constants(values: list[Any], known: list[bool], kind: pa.DataType) -> ColumnRange:
    bounds = pa.array(values, kind)
    nulls = pa.array(
        [None if not sure else int(value is None) for value, sure in zip(values, known, strict=True)], pa.int64()
    )
    return ColumnRange(
        bounds, bounds, nulls, pc.if_else(pc.is_valid(nulls), pa.scalar(1, pa.int64()), pa.scalar(None, pa.int64()))
    )


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
    fields = config.partition_fields
    parts = [partition] if len(fields) == 1 else partition.split("/")
    if not partition or len(parts) != len(fields):
        return {None}
    part = parts[fields.index(name)]
    prefix = f"{name}="
    plain = {part, part[len(prefix) :]} if part.startswith(prefix) else {part}
    return {*plain, *(unescaped(text) for text in plain)}


def _typed(text: str, kind: pa.DataType) -> Any:
    try:
        return pa.scalar(text).cast(kind).as_py()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
