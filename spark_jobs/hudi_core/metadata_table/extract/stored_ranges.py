"""Ranges that the metadata table holds, as statistics of files, for `partition_stats` and expression indexes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hudi_core.errors import CorruptFileError
from hudi_core.metadata_table.keys import column_id, column_stats_key, partition_id
from hudi_core.metadata_table.read.partition import MetadataPartition
from hudi_core.metadata_table.record import RecordType
from hudi_core.metadata_table.records.file_statistics import ColumnRange, DataFileRef, FileStatistics
from hudi_core.metadata_table.records.stat_values import ValueType, decode_bound
from hudi_core.metadata_table.records.value_types import is_unknown, merged

_COUNTS = ("nullCount", "valueCount", "totalSize", "totalUncompressedSize")


@dataclass(frozen=True, slots=True)
class StoredRange:
    """One record. `name` is a plain file name, or a partition's path in records of whole partitions
    (`of_partition`).
    """

    name: str
    range: ColumnRange
    is_deleted: bool
    is_tight: bool
    of_partition: bool


class StoredRangeRules:
    """group_reader.RecordRules of the partitions that hold statistics, with all that a record says; else as
    column_stats.ColumnStatsRules.
    """

    keyless = False

    def decode(self, key: str, datum: dict[str, Any], *, path: str) -> StoredRange:
        """The range in a datum; raises CorruptFileError naming `path`."""
        body, kind = datum.get("ColumnStatsMetadata"), datum.get("type")
        if kind not in (RecordType.COLUMN_STATS, RecordType.PARTITION_STATS) or not isinstance(body, dict):
            raise CorruptFileError(f"metadata record {key!r} is of type {kind!r}, not column statistics", path=path)
        name, column, deleted = body.get("fileName"), body.get("columnName"), body.get("isDeleted")
        counts = [body.get(count) for count in _COUNTS]
        if not (
            isinstance(name, str)
            and isinstance(column, str)
            and isinstance(deleted, bool)
            and all(isinstance(count, int) for count in counts)
        ):
            raise CorruptFileError(f"metadata record {key!r} does not say what it is about", path=path)
        type_ = body.get("valueType")
        nulls, values, size, uncompressed = (int(count or 0) for count in counts)
        least, greatest = (decode_bound(body.get(end), type_, path=path) for end in ("minValue", "maxValue"))
        value_type = (
            ValueType(0) if type_ is None else ValueType(int(type_["typeOrdinal"]), type_.get("additionalInfo"))
        )
        found = ColumnRange(column, least, greatest, nulls, values, size, uncompressed, value_type)
        return StoredRange(name, found, deleted, body.get("isTightBound") is True, kind == RecordType.PARTITION_STATS)

    def merge(self, older: StoredRange, newer: StoredRange, *, path: str) -> StoredRange:
        """The newer record alone where either is deleted or the newer one is tight; else the range of both and the
        sums.
        """
        if older.is_deleted or newer.is_deleted or newer.is_tight:
            return newer
        both = merged((older.range, newer.range))
        return newer if both is None else replace(newer, range=both)


def remaining_statistics(
    index: MetadataPartition[StoredRange], partition: str, files: Iterable[DataFileRef], columns: Sequence[str]
) -> tuple[list[FileStatistics], list[DataFileRef]]:
    """Of files of one partition: the statistics that the index has completely, and the files that must be read
    themselves (file_facts).

    Whole are ranges of all `columns` with their bounds: what the index lacks some writer left out, or the column came
    after the file. One prefix lookup per column. Memory: the partition's records.
    """
    requirements = {file.name: file for file in files}
    prefixes = [column_id(column) + partition_id(partition) for column in columns]
    found: dict[str, dict[str, ColumnRange]] = {name: {} for name in requirements}
    for key, stored in index.with_prefixes(prefixes):
        if stored.name in requirements and _is_of_file(key, partition, stored) and not is_unknown(stored.range):
            found[stored.name][stored.range.column] = stored.range
    whole = [
        FileStatistics(file, tuple(found[name][column] for column in columns))
        for name, file in requirements.items()
        if len(found[name]) == len(columns)
    ]
    return whole, [file for name, file in requirements.items() if len(found[name]) < len(columns)]


def remaining_expressions(
    index: MetadataPartition[StoredRange], name: str, partition: str, files: Iterable[DataFileRef], column: str
) -> tuple[list[FileStatistics], list[DataFileRef]]:
    """The same of expression index `name` over `column`: of a file without rows it has no record, so that such files
    are read again.
    """
    requirements = {file.name: file for file in files}
    found: dict[str, FileStatistics] = {}
    for key, stored in index.with_prefixes([column_id(column) + partition_id(partition)]):
        # Its count of values is of those that are not null, so a range without bounds says that there are none.
        unknown = stored.range.least is None and stored.range.value_count > 0
        if stored.name in requirements and _is_of_file(key, partition, stored) and not unknown:
            found[stored.name] = FileStatistics(requirements[stored.name], expressions={name: stored.range})
    return list(found.values()), [file for file in requirements.values() if file.name not in found]


def _is_of_file(key: str, partition: str, stored: StoredRange) -> bool:
    return (
        not stored.of_partition
        and not stored.is_deleted
        and key == column_stats_key(stored.range.column, partition, stored.name)
    )
