"""Records of ranges: of a file's columns, and of whole partitions (HoodieMetadataPayload.createColumnStatsRecords,
createPartitionStatsRecords).
"""

from __future__ import annotations

from hudi_core.errors import FormatError
from hudi_core.metadata_table.keys import (
    PARTITION_STATISTICS,
    column_id,
    column_stats_key,
    partition_id,
    partition_stats_key,
)
from hudi_core.metadata_table.record import RecordType
from hudi_core.metadata_table.records.file_statistics import ColumnRange, DataFileRef, Record
from hudi_core.metadata_table.records.stat_values import encode_bound
from hudi_core.metadata_table.records.value_types import empty_type, is_unknown

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
