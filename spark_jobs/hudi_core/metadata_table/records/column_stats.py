"""The records of `column_stats`, `partition_stats` and `expr_index_*`: how they are decoded, encoded, merged by key,
and made into Arrow tables (HoodieMetadataColumnStats; HoodieTableMetadataUtil.mergeColumnStatsRecords).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import pyarrow as pa

from hudi_core.errors import CorruptFileError, FormatError
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.keys import (
    PARTITION_STATISTICS,
    column_id,
    column_stats_key,
    partition_id,
    partition_stats_key,
)
from hudi_core.metadata_table.record import RecordRules, RecordType
from hudi_core.metadata_table.records.bounds import Bound, ValueType, decode_bound, encode_bound, natural_type, to_arrow
from hudi_core.metadata_table.records.file_statistics import ColumnRange, DataFileRef, Record
from hudi_core.metadata_table.records.range_merge import (
    NUMBERS,
    empty_type,
    is_unknown,
    merged,
    outer_bounds,
    widened,
    wider,
)
from hudi_core.model.partition import NON_PARTITIONED

STATISTICS_TYPES = frozenset({RecordType.COLUMN_STATS, RecordType.PARTITION_STATS})
_BODY: Final = "ColumnStatsMetadata"
_COUNTS: Final = ("nullCount", "valueCount", "totalSize", "totalUncompressedSize")
_ENDS: Final[Mapping[str, tuple[float, float]]] = {
    "int": (-(1 << 31), (1 << 31) - 1),
    "long": (-(1 << 63), (1 << 63) - 1),
    "float": (-math.inf, math.nan),
}
"""The least and the greatest value of each type; NaN is the greatest float."""
_UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class ColumnStats:
    """One record; `name` is a file's name or a partition's path. Unless it `is_tight`, the range may be too wide."""

    name: str
    range: ColumnRange
    is_deleted: bool
    is_tight: bool
    of_partition: bool


class ColumnStatsRules(RecordRules[ColumnStats]):
    def __init__(self, *, counted: bool = False) -> None:
        """Takes `counted`: whether a record that lacks a count is refused; else the count is 0."""
        self._counted = counted

    def decode(self, key: str, datum: dict[str, Any], *, path: str) -> ColumnStats:
        body, number = datum.get(_BODY), datum.get("type")
        if number not in STATISTICS_TYPES or not isinstance(body, dict):
            raise CorruptFileError(f"metadata record {key!r} is of type {number!r}, not column statistics", path=path)
        name, column, deleted = body.get("fileName"), body.get("columnName"), body.get("isDeleted")
        counts = [count if isinstance(count, int) else None for count in map(body.get, _COUNTS)]
        is_named = isinstance(name, str) and isinstance(column, str)
        if not is_named or not isinstance(deleted, bool) or (self._counted and None in counts):
            raise CorruptFileError(
                f"metadata record {key!r} does not say which column of which file it is about", path=path
            )
        type_ = body.get("valueType")
        least, greatest = (decode_bound(body.get(end), type_, path=path) for end in ("minValue", "maxValue"))
        typed = type_ if isinstance(type_, dict) else {}
        value_type = ValueType(typed.get("typeOrdinal") or 0, typed.get("additionalInfo"))
        nulls, values, size, uncompressed = (count or 0 for count in counts)
        return ColumnStats(
            "" if name == NON_PARTITIONED else str(name),
            ColumnRange(str(column), least, greatest, nulls, values, size, uncompressed, value_type),
            deleted,
            body.get("isTightBound") is True,
            number == RecordType.PARTITION_STATS,
        )

    def merge(self, older: ColumnStats, newer: ColumnStats, *, path: str) -> ColumnStats:
        """Returns the newer record, widened, with summed counts; unchanged if either is deleted or newer is tight."""
        both = None if replaces(older, newer) else merged((older.range, newer.range))
        return newer if both is None else replace(newer, range=both)


def replaces(older: ColumnStats, newer: ColumnStats) -> bool:
    return older.is_deleted or newer.is_deleted or newer.is_tight


def merge_stored(key: str, older: Mapping[str, Any], newer: Mapping[str, Any], *, path: str) -> Mapping[str, Any]:
    """Merges stored data by the rule of ColumnStatsRules.merge, in the form of `newer` (protocol.MergeData)."""
    rules = ColumnStatsRules()
    first, second = rules.decode(key, dict(older), path=path), rules.decode(key, dict(newer), path=path)
    if replaces(first, second):
        return newer
    before, after = older[_BODY], newer[_BODY]
    stored = partial(_stored_bound, same_form=before.get("valueType") == after.get("valueType"))
    least, greatest = outer_bounds(first.range, second.range)
    one, other = (first.range.least, before.get("minValue")), (second.range.least, after.get("minValue"))
    bounds = {"minValue": stored(least, one, other, upper=False)}
    one, other = (first.range.greatest, before.get("maxValue")), (second.range.greatest, after.get("maxValue"))
    bounds["maxValue"] = stored(greatest, one, other, upper=True)
    sums = {name: (before.get(name) or 0) + (after.get(name) or 0) for name in _COUNTS}
    return {**newer, _BODY: {**after, **sums, **bounds}}


def _stored_bound(
    outer: Bound | None,
    older: tuple[Bound | None, Any],
    newer: tuple[Bound | None, Any],
    *,
    same_form: bool,
    upper: bool,
) -> Any:
    """Returns the stored form of a merged bound: the form in the record that the bound comes from. Where the newer
    record's type cannot store the bound, it returns the least or greatest value of that type: readers of 0.15 take an
    absent bound for a bound that no row meets. None (nothing is known) where the types have no common order.
    """
    if outer is None:
        return None
    if outer is newer[0]:
        return newer[1]
    bound, wrapped = older
    if same_form and (newer[1] is None or wrapped[0] == newer[1][0]):
        return wrapped
    if newer[0] is None or bound is None:
        return None
    logical = newer[0].logical
    are_numbers = {bound.logical, logical} <= {*NUMBERS}
    # In the other direction a bound would be cut, and the range too narrow.
    if are_numbers and bound.logical != logical == wider(bound.logical, logical):
        return newer[1][0], {"value": widened(bound, logical).value}
    ends = _ENDS.get(logical) if bound.logical in NUMBERS else None
    return None if ends is None else (newer[1][0], {"value": ends[upper]})


def statistics_table(
    rows: Sequence[tuple[str, ColumnStats]],
    arrow_type: pa.DataType | None,
    *,
    long_unit: str = "us",
    with_files: bool = True,
) -> pa.Table:
    """Returns a table with one row per (partition, statistics). Columns: `partition`, `file` (only `with_files`),
    `min`, `max`, `null_count`, `value_count`, `uncompressed_size`, `is_tight`. `min` and `max` have the type
    `arrow_type`, or with None the bounds' own type; they are null where the range is unknown or all values are null
    (`null_count == value_count`). Counts are the writer's: for a log file they are not the counts of its rows. Sizes
    are before compression, 0 for a log file.
    """
    stats = [item for _, item in rows]
    ranges = [item.range for item in stats]
    lower, upper = [item.least for item in ranges], [item.greatest for item in ranges]
    type_ = natural_type([*lower, *upper]) if arrow_type is None else arrow_type
    known = not pa.types.is_null(type_)
    columns: dict[str, pa.Array] = {"partition": pa.array([partition for partition, _ in rows], pa.string())}
    if with_files:
        columns["file"] = pa.array([item.name for item in stats], pa.string())
    columns["min"] = to_arrow(lower, type_, long_unit=long_unit) if known else pa.nulls(len(rows))
    columns["max"] = to_arrow(upper, type_, long_unit=long_unit, upper=True) if known else pa.nulls(len(rows))
    columns["null_count"] = pa.array([item.null_count for item in ranges], pa.int64())
    columns["value_count"] = pa.array([item.value_count for item in ranges], pa.int64())
    columns["uncompressed_size"] = pa.array([item.total_uncompressed_size for item in ranges], pa.int64())
    columns["is_tight"] = pa.array([item.is_tight for item in stats], pa.bool_())
    return pa.table(columns)


def live(records: Iterable[tuple[str, ColumnStats]]) -> list[tuple[str, ColumnStats]]:
    return [(key, stats) for key, stats in records if not stats.is_deleted]


def file_record(file: DataFileRef, found: ColumnRange) -> Record | None:
    """Returns the record of a file's range; None if unknown or impossible to store: then there must be no record."""
    body = _body(file.name, found)
    key = column_stats_key(found.column, file.partition, file.name)
    return None if body is None else (key, _datum(RecordType.COLUMN_STATS, body))


def partition_record(
    partition: str, found: ColumnRange, *, of_expression: bool = False, widens: bool = False
) -> Record | None:
    """Returns the record of a partition's range, which replaces or `widens` the older one; None like file_record."""
    body = _body(partition, found)
    if body is None:
        return None
    body["isTightBound"] = not widens
    return whole_key(found.column, partition, of_expression=of_expression), _datum(RecordType.PARTITION_STATS, body)


def partition_deletion(partition: str, column: str, version: int) -> Record:
    return whole_key(column, partition), deletion(RecordType.PARTITION_STATS, "", column, version)


def deletion(record_type: RecordType, name: str, column: str, version: int) -> dict[str, object]:
    """Returns the datum of a deleted range: a range of which nothing is known (HoodieColumnRangeMetadata.stub)."""
    unknown = ColumnRange(column, None, None, _UNKNOWN, _UNKNOWN, _UNKNOWN, _UNKNOWN, empty_type(version))
    is_tight = record_type is RecordType.PARTITION_STATS
    return _datum(record_type, {**(_body(name, unknown) or {}), "isDeleted": True, "isTightBound": is_tight})


def whole_key(column: str, partition: str, *, of_expression: bool = False) -> str:
    """Returns the key of a whole partition's range in `partition_stats`, or in an expression index."""
    if of_expression:
        return column_id(column) + partition_id(PARTITION_STATISTICS) + partition_id(partition)
    return partition_stats_key(column, partition)


def _datum(record_type: RecordType, body: dict[str, object]) -> dict[str, object]:
    return {"type": int(record_type), _BODY: body}


def _body(name: str, found: ColumnRange) -> dict[str, object] | None:
    if is_unknown(found):
        return None
    try:
        least, greatest = encode_bound(found.least, found.type), encode_bound(found.greatest, found.type)
    except FormatError:
        # A decimal has more digits than decimal(30, 15): the column is indexed only where values fit.
        return None
    return {
        "fileName": name,
        "columnName": found.column,
        "minValue": least,
        "maxValue": greatest,
        "valueCount": found.value_count,
        "nullCount": found.null_count,
        "totalSize": found.total_size,
        "totalUncompressedSize": found.total_uncompressed_size,
        "isDeleted": False,
        "isTightBound": False,
        "valueType": {"typeOrdinal": found.type.ordinal, "additionalInfo": found.type.info}
        if found.type.ordinal
        else None,
    }
