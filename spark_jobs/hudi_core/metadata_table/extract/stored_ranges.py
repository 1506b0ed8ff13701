"""Ranges that the metadata table holds, as statistics of files, for `partition_stats` and expression indexes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hudi_core.metadata_table.keys import column_id, column_stats_key, partition_id
from hudi_core.metadata_table.read.partition import MetadataPartition
from hudi_core.metadata_table.records.column_stats import ColumnStats
from hudi_core.metadata_table.records.file_statistics import ColumnRange, DataFileRef, FileStatistics
from hudi_core.metadata_table.records.value_types import is_unknown


def remaining_statistics(
    index: MetadataPartition[ColumnStats], partition: str, files: Iterable[DataFileRef], columns: Sequence[str]
) -> tuple[list[FileStatistics], list[DataFileRef]]:
    """Of files of one partition: the statistics that the index has completely, and the files that must be read
    themselves.

    Complete are ranges of all `columns` with their bounds: some writer omitted the others, or the column was added
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
    index: MetadataPartition[ColumnStats], name: str, partition: str, files: Iterable[DataFileRef], column: str
) -> tuple[list[FileStatistics], list[DataFileRef]]:
    """The same of expression index `name` over `column`: files without rows, of which it has no record, are read
    again.
    """
    requirements = {file.name: file for file in files}
    found: dict[str, FileStatistics] = {}
    for key, stored in index.with_prefixes([column_id(column) + partition_id(partition)]):
        # Its count of values is of those that are not null, so a range without bounds says that there are none.
        unknown = stored.range.least is None and stored.range.value_count > 0
        if stored.name in requirements and _is_of_file(key, partition, stored) and not unknown:
            found[stored.name] = FileStatistics(requirements[stored.name], expressions={name: stored.range})
    return list(found.values()), [file for file in requirements.values() if file.name not in found]


def _is_of_file(key: str, partition: str, stored: ColumnStats) -> bool:
    return (
        not stored.of_partition
        and not stored.is_deleted
        and key == column_stats_key(stored.range.column, partition, stored.name)
    )
