"""The partition type `files`: the listing of the table, whose records are made in records/files.py."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from hudi_core.metadata_table.partition_type import FILES_PARTITION
from hudi_core.metadata_table.partitions.protocol import Data, MergeData, PartitionType
from hudi_core.metadata_table.record import FilesRecord, RecordType, files_datum, files_record
from hudi_core.metadata_table.records.file_statistics import CommitUpdate, FileChanges, FileStatistics, Needs, Record
from hudi_core.metadata_table.records.files import (
    commit_records,
    deletion_records,
    listing_records,
    merge,
    rollback_records,
)
from hudi_core.model.names import LogFileName, parse_data_file


def merge_files(key: str, older: Data, newer: Data, *, path: str) -> Data:
    return files_datum(merge(files_record(key, older, path=path), files_record(key, newer, path=path), path=path))


class FilesPartition(PartitionType):
    """Replaced files stay listed until a clean deletes them."""

    name = FILES_PARTITION
    updated_by_clean = True
    merges: ClassVar[Mapping[int, MergeData]] = {RecordType.PARTITIONS: merge_files, RecordType.FILES: merge_files}
    needs = Needs(older_slices=True)

    def of_commit(self, update: CommitUpdate) -> Iterator[Record]:
        return _items(commit_records(update.stats))

    def of_clean(self, instant: str, changes: FileChanges) -> Iterator[Record]:
        return _items(deletion_records(changes.deleted, changes.dropped_partitions))

    def of_restore(self, instant: str, changes: FileChanges) -> Iterator[Record]:
        """What makes the listing that of the storage (fetchOutofSyncFilesRecordsFromMetadataTable)."""
        dropped = deletion_records({}, changes.dropped_partitions)
        return _items([*rollback_records(changes.written, changes.deleted), *dropped])

    def of_rollback(self, changes: FileChanges) -> Iterator[Record]:
        """The log files that the rollback appended, and of the deleted files the log files alone: the failed instant's
        base files go with its blocks, but a log file may be what an earlier rollback has listed (real Hudi leaves
        such).
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
