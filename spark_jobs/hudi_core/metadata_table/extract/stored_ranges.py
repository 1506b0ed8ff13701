"""Which ranges of files need not be read from the files again, as the metadata table holds them: those of files that a
commit did not write, for `partition_stats` and the ranges of expression indexes over whole partitions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from hudi_core.metadata_table.keys import column_id, column_stats_key, partition_id
from hudi_core.metadata_table.read.partition import MetadataPartition
from hudi_core.metadata_table.records.column_stats import ColumnStats
from hudi_core.metadata_table.records.false_ranges import may_be_false
from hudi_core.metadata_table.records.file_statistics import ColumnRange, DataFileRef, FileStatistics
from hudi_core.metadata_table.records.range_merge import is_unknown


def remaining_statistics(
    index: MetadataPartition[ColumnStats], partition: str, files: Iterable[DataFileRef], columns: Sequence[str]
) -> tuple[list[FileStatistics], list[DataFileRef]]:
    """Of files of one partition: the statistics that the index has completely, and the files that must be read
    themselves.

    Complete are ranges of all `columns` with their bounds: some writer omitted the others, or the column was added
    after the file. None of them may be false (false_ranges). One prefix lookup per column. Memory: the partition's
    records.
    """
    by_name = {file.name: file for file in files}
    found: dict[str, dict[str, ColumnRange]] = {name: {} for name in by_name}
    for name, stored in _ranges(index, partition, by_name, columns):
        if not (is_unknown(stored) or may_be_false(stored)):
            found[name][stored.column] = stored
    whole = [
        FileStatistics(file, tuple(found[name][column] for column in columns))
        for name, file in by_name.items()
        if len(found[name]) == len(columns)
    ]
    return whole, [file for name, file in by_name.items() if len(found[name]) < len(columns)]


def remaining_expressions(
    index: MetadataPartition[ColumnStats], name: str, partition: str, files: Iterable[DataFileRef], column: str
) -> tuple[list[FileStatistics], list[DataFileRef]]:
    """The same of expression index `name` over `column`: files without rows, of which it has no record, are read
    again.
    """
    by_name = {file.name: file for file in files}
    found = {
        file: FileStatistics(by_name[file], expressions={name: stored})
        for file, stored in _ranges(index, partition, by_name, [column])
        # Values are counted without the nulls here: a range without bounds and values is that of nulls alone.
        if stored.least is not None or not stored.value_count
    }
    return list(found.values()), [file for file in by_name.values() if file.name not in found]


def _ranges(
    index: MetadataPartition[ColumnStats], partition: str, files: Collection[str], columns: Sequence[str]
) -> Iterator[tuple[str, ColumnRange]]:
    """The live records of `files`."""
    for key, stored in index.with_prefixes([column_id(column) + partition_id(partition) for column in columns]):
        if stored.name not in files or stored.of_partition or stored.is_deleted:
            continue
        if key == column_stats_key(stored.range.column, partition, stored.name):
            yield stored.name, stored.range
