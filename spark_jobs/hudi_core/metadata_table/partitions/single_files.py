"""The partition types whose records follow from one file each. `files` is the listing of the table (records/files.py
makes its records). `column_stats` has the range of each indexed column (indexed_table) in each base and log file.
`bloom_filters` has the filter over record keys in each base file's footer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import ClassVar

from hudi_core.config.metadata_config import BLOOM_FILTER_GROUPS, COLUMN_STATS_GROUPS
from hudi_core.metadata_table.indexed_table import IndexDefinition, indexed_types
from hudi_core.metadata_table.keys import bloom_filter_key, column_id, file_id, partition_id
from hudi_core.metadata_table.partition_type import BLOOM_FILTERS, COLUMN_STATS, FILES_PARTITION
from hudi_core.metadata_table.partitions.protocol import Data, MergeData, PartitionType, numbered_file_ids
from hudi_core.metadata_table.record import FILE_NAME, FileDatum, FilesRecord, RecordType, files_datum, files_record
from hudi_core.metadata_table.records.column_stats import deletion, file_record, merge_stored
from hudi_core.metadata_table.records.file_statistics import (
    MAX_DELETIONS,
    CommitUpdate,
    DataFileRef,
    Expression,
    FileChanges,
    FileStatistics,
    FilterText,
    Needs,
    Record,
)
from hudi_core.metadata_table.records.files import (
    commit_records,
    deletion_records,
    listing_records,
    merge,
    rollback_records,
)
from hudi_core.model.names import META_FIELDS, BaseFileName, LogFileName, parse_data_file


def merge_files(key: str, older: Data, newer: Data, *, path: str) -> Data:
    return files_datum(merge(files_record(key, older, path=path), files_record(key, newer, path=path), path=path))


class FilesPartition(PartitionType):
    """The partition type `files`. Replaced files stay listed until a clean deletes them."""

    name = FILES_PARTITION
    updated_by_clean = True
    merges: ClassVar[Mapping[int, MergeData]] = {RecordType.PARTITIONS: merge_files, RecordType.FILES: merge_files}
    needs = Needs(older_slices=True)

    def of_commit(self, update: CommitUpdate) -> Iterator[Record]:
        return _items(commit_records(update.stats))

    def of_clean(self, instant: str, changes: FileChanges) -> Iterator[Record]:
        return _items(deletion_records(changes.deleted, changes.dropped_partitions))

    def of_restore(self, instant: str, changes: FileChanges) -> Iterator[Record]:
        """Returns records that make the listing the storage's (fetchOutofSyncFilesRecordsFromMetadataTable)."""
        dropped = deletion_records({}, changes.dropped_partitions)
        return _items([*rollback_records(changes.written, changes.deleted), *dropped])

    def of_rollback(self, changes: FileChanges) -> Iterator[Record]:
        """Returns records of the log files that the rollback appended or deleted. The failed instant's base files are
        unlisted with its blocks, but an earlier rollback may have listed a log file.
        """
        logs = {
            partition: found
            for partition, names in changes.deleted.items()
            if (found := [name for name in names if isinstance(parse_data_file(name), LogFileName)])
        }
        return _items(rollback_records(changes.written, logs))

    def initial(self, instant: str, files: Iterable[FileStatistics]) -> Iterator[Record]:
        sizes: dict[str, dict[str, int]] = {}
        for statistics in files:
            sizes.setdefault(statistics.file.partition, {})[statistics.file.name] = statistics.file.size
        return initial_listing(sizes)


def initial_listing(files: Mapping[str, Mapping[str, int]]) -> Iterator[Record]:
    return _items(listing_records(files))


def _items(records: Iterable[FilesRecord]) -> Iterator[Record]:
    return ((record.key, files_datum(record)) for record in records)


class ColumnStatsPartition(PartitionType):
    """The type `column_stats`. Replaced files' records stay until a clean: readers use only files in file slices."""

    name = COLUMN_STATS
    by_file = updated_by_clean = True
    merges: ClassVar[Mapping[int, MergeData]] = {RecordType.COLUMN_STATS: merge_stored}
    groups = COLUMN_STATS_GROUPS
    needs = Needs(ranges=True, older_slices=True)

    @classmethod
    def of_files(cls, instant: str, files: Iterable[FileStatistics], expression: Expression | None) -> Iterator[Record]:
        """Yields the ranges of files, without the columns that the partial rows of a log file lack."""
        for statistics in files:
            for found in statistics.ranges:
                record = None if statistics.partial and not found.value_count else file_record(statistics.file, found)
                if record is not None:
                    yield record

    def of_clean(self, instant: str, changes: FileChanges) -> Iterator[Record]:
        definition = self.table.definitions.get(self.partition)
        if definition is not None and definition.source_fields:
            return deleted_ranges(changes, definition.source_fields, definition.version)
        columns = dict.fromkeys([*META_FIELDS, *(field["name"] for field in self.table.schema["fields"])])
        return deleted_ranges(changes, list(columns), 1 if definition is None else definition.version)

    def definition(self) -> IndexDefinition | None:
        """Returns the definition, which readers of 1.x need to skip files, also in version 6
        (SparkBaseIndexSupport.getCandidateFiles).
        """
        if not self.table.config.is_of_hudi_1:
            return None
        columns = tuple(indexed_types(self.table))
        return IndexDefinition(
            self.partition, COLUMN_STATS, COLUMN_STATS, columns, {}, self.table.version_of(COLUMN_STATS)
        )

    def file_ids(self, count: int) -> list[str]:
        return numbered_file_ids("col-stats-", count)


def deleted_ranges(changes: FileChanges, columns: Sequence[str], version: int) -> Iterator[Record]:
    """Yields the deletions of deleted files' ranges, at most MAX_DELETIONS; either all of a file or none."""
    stubs = {column_id(column): deletion(RecordType.COLUMN_STATS, FILE_NAME, column, version) for column in columns}
    written = 0
    for partition, names in sorted(changes.deleted.items()):
        place = partition_id(partition)
        for name in sorted(names):
            written += len(stubs)
            if written > MAX_DELETIONS:
                return
            file = file_id(name)
            for column, stub in stubs.items():
                yield column + place + file, FileDatum(stub, name)


class BloomFiltersPartition(PartitionType):
    """The type `bloom_filters`. A base file without a filter in its footer gets no record: any key may be in it."""

    name = BLOOM_FILTERS
    by_file = updated_by_clean = True
    groups = BLOOM_FILTER_GROUPS
    needs = Needs(bloom=True, older_slices=True)

    @classmethod
    def of_files(cls, instant: str, files: Iterable[FileStatistics], expression: Expression | None) -> Iterator[Record]:
        return (
            filter_record(instant, statistics.file, statistics.bloom)
            for statistics in files
            if statistics.bloom is not None and statistics.file.is_base
        )

    def of_clean(self, instant: str, changes: FileChanges) -> Iterator[Record]:
        return deleted_filters(instant, changes)


def filter_record(instant: str, file: DataFileRef, found: FilterText) -> Record:
    """Returns the record of a file's filter (HoodieMetadataPayload.createBloomFilterMetadataRecord)."""
    body = {
        "type": found.type_code,
        "timestamp": instant,
        "bloomFilter": found.text.encode("ascii"),
        "isDeleted": False,
    }
    return bloom_filter_key(file.partition, file.name), {
        "type": int(RecordType.BLOOM_FILTER),
        "BloomFilterMetadata": body,
    }


def deleted_filters(instant: str, changes: FileChanges) -> Iterator[Record]:
    body = {"type": "", "timestamp": instant, "bloomFilter": b"", "isDeleted": True}
    datum = {"type": int(RecordType.BLOOM_FILTER), "BloomFilterMetadata": body}
    bases = (
        (partition, name)
        for partition, names in sorted(changes.deleted.items())
        for name in sorted(names)
        if isinstance(parse_data_file(name), BaseFileName)
    )
    for partition, name in islice(bases, MAX_DELETIONS):
        yield bloom_filter_key(partition, name), datum
