"""Statistics of columns, per file, per partition or of an expression: records, how they merge, and Arrow tables of
them.

Records of `column_stats`, `partition_stats` and `expr_index_*` (HoodieMetadataColumnStats;
HoodieTableMetadataUtil.mergeColumnStatsRecords).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from hudi_core.errors import CorruptFileError, FormatError
from hudi_core.metadata_table.keys import (
    PARTITION_STATISTICS,
    column_id,
    column_stats_key,
    partition_id,
    partition_stats_key,
)
from hudi_core.metadata_table.record import RecordType
from hudi_core.metadata_table.records.file_statistics import ColumnRange, DataFileRef, Record
from hudi_core.metadata_table.records.stat_values import (
    Bound,
    decode_bound,
    encode_bound,
    greatest,
    least,
    natural_type,
    to_arrow,
)
from hudi_core.metadata_table.records.value_types import empty_type, is_unknown
from hudi_core.model.partition import NON_PARTITIONED

STATISTICS_TYPES = frozenset({RecordType.COLUMN_STATS, RecordType.PARTITION_STATS})
"""The types of records that hold statistics."""


@dataclass(frozen=True, slots=True)
class ColumnStats:
    """What one record says of a column. `name` is a plain file name, of partition statistics the partition's path
    (`""`: no partitions).

    A bound is None when every value is null, or the writer gave none. `is_tight`: the range is that of the rows as they
    are now; else it may be wider (log files, merged records).
    """

    name: str
    column: str
    least: Bound | None
    greatest: Bound | None
    null_count: int
    value_count: int
    is_deleted: bool
    is_tight: bool


class ColumnStatsRules:
    """group_reader.RecordRules of the partitions that hold statistics."""

    keyless = False

    def decode(self, key: str, datum: dict[str, Any], *, path: str) -> ColumnStats:
        """The statistics of a datum; raises CorruptFileError naming `path`."""
        body = datum.get("ColumnStatsMetadata")
        if datum.get("type") not in STATISTICS_TYPES or not isinstance(body, dict):
            raise CorruptFileError(
                f"metadata record {key!r} is of type {datum.get('type')!r}, not column statistics", path=path
            )
        name, column = body.get("fileName"), body.get("columnName")
        nulls, values, deleted = body.get("nullCount"), body.get("valueCount"), body.get("isDeleted")
        if not (isinstance(name, str) and isinstance(column, str) and isinstance(deleted, bool)):
            raise CorruptFileError(
                f"metadata record {key!r} does not say which column of which file it is about", path=path
            )
        value_type = body.get("valueType")
        return ColumnStats(
            "" if name == NON_PARTITIONED else name,
            column,
            decode_bound(body.get("minValue"), value_type, path=path),
            decode_bound(body.get("maxValue"), value_type, path=path),
            nulls if isinstance(nulls, int) else 0,
            values if isinstance(values, int) else 0,
            deleted,
            body.get("isTightBound") is True,
        )

    def merge(self, older: ColumnStats, newer: ColumnStats, *, path: str) -> ColumnStats:
        """The wider range and the sums; the newer record alone when either is deleted, or the newer range is tight."""
        if older.is_deleted or newer.is_deleted or newer.is_tight:
            return newer
        return replace(
            newer,
            least=_merged(older, newer, least(older.least, newer.least)),
            greatest=_merged(older, newer, greatest(older.greatest, newer.greatest)),
            null_count=older.null_count + newer.null_count,
            value_count=older.value_count + newer.value_count,
        )


def _merged(older: ColumnStats, newer: ColumnStats, bound: Bound | None) -> Bound | None:
    """`bound`, unless one of the two has values and no range: then nothing is known of both together."""
    for stats in (older, newer):
        if stats.least is None and stats.null_count < stats.value_count:
            return None
    return bound


def statistics_table(
    rows: Sequence[tuple[str, ColumnStats]], kind: pa.DataType | None, *, long_unit: str = "us", with_files: bool = True
) -> pa.Table:
    """One row per (partition, statistics): `partition`, `file` (unless not `with_files`), `min`, `max`, `null_count`,
    `value_count`, `is_tight`.

    `min` and `max` have the type `kind`, or with None the bounds' own; null where the range is unknown or all values
    are null, which `null_count == value_count` tells apart. Counts are as the writer gave them: of a log file, they are
    not those of its rows.
    """
    stats = [item for _, item in rows]
    lower, upper = [item.least for item in stats], [item.greatest for item in stats]
    type_ = natural_type([*lower, *upper]) if kind is None else kind
    known = not pa.types.is_null(type_)
    columns: dict[str, Any] = {"partition": pa.array([partition for partition, _ in rows], pa.string())}
    if with_files:
        columns["file"] = pa.array([item.name for item in stats], pa.string())
    columns["min"] = to_arrow(lower, type_, long_unit=long_unit) if known else pa.nulls(len(rows))
    columns["max"] = to_arrow(upper, type_, long_unit=long_unit, upper=True) if known else pa.nulls(len(rows))
    columns["null_count"] = pa.array([item.null_count for item in stats], pa.int64())
    columns["value_count"] = pa.array([item.value_count for item in stats], pa.int64())
    columns["is_tight"] = pa.array([item.is_tight for item in stats], pa.bool_())
    return pa.table(columns)


def live(records: Iterable[tuple[str, ColumnStats]]) -> list[tuple[str, ColumnStats]]:
    """The (key, statistics) pairs that no deletion took away."""
    return [(key, stats) for key, stats in records if not stats.is_deleted]


_UNKNOWN = -1


def file_record(file: DataFileRef, found: ColumnRange) -> Record | None:
    """The record of a file's range; None of a range that is not known, or that the encoding does not hold: then nothing
    must be said.
    """
    if is_unknown(found):
        return None
    body = _body(file.name, found)
    return (
        None
        if body is None
        else (column_stats_key(found.column, file.partition, file.name), _datum(RecordType.COLUMN_STATS, body))
    )


def partition_record(
    partition: str, found: ColumnRange, *, of_expression: bool = False, widens: bool = False
) -> Record | None:
    """The record of a whole partition's range, which replaces the older one, or `widens` it; None as file_record.

    `of_expression`: it stands among an expression index's own records.
    """
    body = None if is_unknown(found) else _body(partition, found)
    if body is None:
        return None
    body["isTightBound"] = not widens
    return whole_key(found.column, partition, of_expression=of_expression), _datum(RecordType.PARTITION_STATS, body)


def partition_deletion(partition: str, column: str, version: int) -> Record:
    """The deletion of a partition's range (HoodieColumnRangeMetadata.stub); it names no file, as in Hudi."""
    found = ColumnRange(column, None, None, _UNKNOWN, _UNKNOWN, _UNKNOWN, _UNKNOWN, empty_type(version))
    body = _body("", found) or {}
    body.update(isDeleted=True, isTightBound=True)
    return whole_key(column, partition), _datum(RecordType.PARTITION_STATS, body)


def whole_key(column: str, partition: str, *, of_expression: bool = False) -> str:
    """The key of a whole partition's range in `partition_stats`, or in an expression index."""
    if of_expression:
        return column_id(column) + partition_id(PARTITION_STATISTICS) + partition_id(partition)
    return partition_stats_key(column, partition)


def _datum(kind: RecordType, body: dict[str, object]) -> dict[str, object]:
    return {"type": int(kind), "ColumnStatsMetadata": body}


def _body(name: str, found: ColumnRange) -> dict[str, object] | None:
    try:
        least, greatest = encode_bound(found.least, found.type), encode_bound(found.greatest, found.type)
    except FormatError:
        # A decimal of more digits than decimal(30, 15) holds: the column is indexed for the values that fit.
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
