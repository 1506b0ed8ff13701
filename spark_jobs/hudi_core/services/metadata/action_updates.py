"""Updates the metadata table by one completed action of the data table, some time after it completed.

The records are those that the action's writer would have written. Files that a later clean or rollback has deleted are
left out, and so are records that an index already has from its initialization.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

from hudi_core.errors import CorruptFileError
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.indexed_table import IndexedTable, StoredTable
from hudi_core.metadata_table.initialize.exchange import files_of_all_slices, read_statistics
from hudi_core.metadata_table.instants import rolled_back_by
from hudi_core.metadata_table.partition_type import FILES_PARTITION, is_row_level, moves_rows
from hudi_core.metadata_table.read.snapshot import MetadataTableSnapshot
from hudi_core.metadata_table.record import Datum, FileDatum, RecordRules, RecordType, files_datum
from hudi_core.metadata_table.records.file_statistics import FileChanges, Record
from hudi_core.metadata_table.records.files import rollback_records
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.commit_updates import CommitPartitions, overtakes, widen_ranges
from hudi_core.metadata_table.write.delta_writer import DeltaWriter
from hudi_core.metadata_table.write.publish import MetadataPublisher
from hudi_core.metadata_table.write.staged_logs import Workers, forget_staged
from hudi_core.model.names import parse_data_file
from hudi_core.model.partition import check_partition
from hudi_core.services.context import TableContext
from hudi_core.services.metadata.initialization import indexed_table
from hudi_core.services.metadata.row_changes import RowChanges
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.actions.content import texts
from hudi_core.timeline.actions.rollback import decode_restore_plan, metadata_of
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action, Instant
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.listing import StorageListing, refuse_cut_stat

_OF_FILES: Final = frozenset({int(RecordType.COLUMN_STATS), int(RecordType.BLOOM_FILTER)})


@dataclass(frozen=True)
class ActionUpdates:
    """Updates one table's metadata table. Reads timeline and files on first use. The caller holds the table lock."""

    context: TableContext
    workers: Workers
    metadata_timeline: MetadataTimeline

    def apply(self, item: Instant) -> None:
        """Writes an action's deltacommit. Raises RowsUnknownError; CorruptFileError for an unexplained missing file."""
        if item.action in COMMIT_ACTIONS:
            self._apply_commit(item)
        elif item.action == Action.CLEAN:
            changes = clean_changes(self.context.active.read_of(item), path=self.context.active.path_of(item))
            dropped = frozenset(name for name in changes.dropped_partitions if not self.listing.files(name))
            self._publisher().publish_deletes(item.requested_time, replace(changes, dropped_partitions=dropped))
        elif item.action == Action.RESTORE:
            self._publisher().restore(self.restore_target(item), item.requested_time)
        else:
            self._apply_rollback(item)

    def commit(self, item: Instant) -> CommitMetadata:
        metadata = self.context.active.read_commit(item)
        metadata.check_paths(source=self.context.active.path_of(item))
        return metadata

    @property
    def partition_types(self) -> CommitPartitions:
        context = self.context
        return CommitPartitions(context.storage, StoredTable(context.storage, context.config, context.options))

    def restore_target(self, restore: Instant) -> str:
        """The instant that a restore went back to; "" where its plan names none."""
        active = self.context.active
        plan = active.read_requested(restore.requested_time, restore.action)
        return decode_restore_plan(plan, path=active.path_of(restore)).target

    def changed_row_indexes(self, metadata: CommitMetadata) -> Collection[str]:
        has_files = metadata.partition_to_write_stats or metadata.replaced_file_ids
        return self.row_indexes if has_files and moves_rows(metadata.operation_type) else ()

    def has_overtaken(self, commit: Instant) -> bool:
        return overtakes(self.context.config, self.timeline, commit.requested_time)

    @cached_property
    def row_indexes(self) -> frozenset[str]:
        return frozenset(filter(is_row_level, self.context.config.metadata_partitions))

    @cached_property
    def timeline(self) -> Timeline:
        return self.context.active.load()

    @cached_property
    def listing(self) -> StorageListing:
        return StorageListing(self.context.storage)

    @cached_property
    def table(self) -> IndexedTable:
        return indexed_table(self.context, self.timeline)

    def widen_ranges(self, partitions: Collection[str], names: Collection[str]) -> tuple[str, ...]:
        """Widens ranges as commit_updates.widen_ranges, by files in the storage. `names` are metadata partitions."""
        return widen_ranges(self.writer(), self.table, names, self.timeline, partitions, listing=self.listing)

    def writer(self) -> DeltaWriter:
        return DeltaWriter(self.metadata_timeline, self.workers.token)

    def _apply_commit(self, item: Instant) -> None:
        metadata, instant = self._remaining_commit(item), item.requested_time
        partition_types = self.partition_types
        requested = partition_types.requirements()
        files: dict[str, dict[str, int]] = {}
        for partition, stats in metadata.partition_to_write_stats.items():
            sizes = {info.name: info.size for info in self.listing.files(partition)}
            files[partition] = {name: sizes[name] for name in (stat.name for stat in stats)}
        references = files_of_all_slices(files)
        written = list(read_statistics(self.workers, references, requested))
        recorded = partition_types.records(instant, metadata, written, requested, self.listing)
        records = {name: self._new(name, recorded[name], whole=not self.has_overtaken(item)) for name in recorded}
        forget_staged(self.context.storage, instant)
        rows = RowChanges(self.context, self.table, self.metadata_timeline, self.listing, self.workers)
        staged = rows.stage(self.changed_row_indexes(metadata), item, metadata)
        self.writer().write(instant, records, staged)
        forget_staged(self.context.storage, instant)

    def _apply_rollback(self, item: Instant) -> None:
        active, instant = self.context.active, item.requested_time
        details = active.read_of(item)
        changes = rollback_changes(details, path=active.path_of(item)) if details else FileChanges()
        written: dict[str, dict[str, int]] = {}
        for partition, sizes in changes.written.items():
            there = {info.name for info in self.listing.files(partition)}
            if found := {name: size for name, size in sizes.items() if name in there}:
                written[partition] = found
        failed = rolled_back_by(active, item)
        if any(self.timeline.contains(time) for time in failed):
            # The instant was run again, and its new files are valid: only the log files of the commands are new.
            records = [(record.key, files_datum(record)) for record in rollback_records(written)]
            self.writer().write(instant, {FILES_PARTITION: records} if records else {})
            return
        for time in failed:
            self._publisher().roll_back(time, instant, FileChanges(written, changes.deleted))

    def _remaining_commit(self, item: Instant) -> CommitMetadata:
        """Returns the commit without deleted files. Raises CorruptFileError for lost files, CutFileError for cut."""
        metadata, path = self.commit(item), self.context.active.path_of(item)
        explained = any(
            other.action in (Action.CLEAN, Action.ROLLBACK, Action.RESTORE)
            for other in self.timeline.completed()
            if other.completed_at > item.completed_at
        )
        stats: dict[str, tuple[WriteStat, ...]] = {}
        for partition, found in metadata.partition_to_write_stats.items():
            there = {info.name: info for info in self.listing.files(partition)}
            for stat in found:
                if stat.name in there:
                    refuse_cut_stat(stat, item.requested_time, there[stat.name])
            remaining = tuple(_without_gone(stat, there) for stat in found if stat.name in there)
            if len(remaining) < len(found) and not explained:
                gone = next(stat.path for stat in found if stat.name not in there)
                raise CorruptFileError(
                    f"{path} wrote this file, but it is not there", path=gone, remedy="restore it from a copy"
                )
            if remaining or not found or there:
                stats[partition] = remaining
        return replace(metadata, partition_to_write_stats=stats)

    def _new(self, name: str, records: Iterable[Record], *, whole: bool) -> Iterable[Record]:
        """Returns the records that an index lacks. Records of files that it has from its initialization are left out:
        the ranges of one file would merge. Without `whole`, ranges of partitions are left out, too.
        """
        if name == FILES_PARTITION:
            return records
        kept = [record for record in records if whole or _type_of(record[1]) != RecordType.PARTITION_STATS]
        keys = [key for key, datum in kept if _type_of(datum) in _OF_FILES]
        if not keys:
            return kept
        snapshot = MetadataTableSnapshot(self.context.storage, self.context.config, self.timeline)
        known = snapshot.partition(name, _Presence()).lookup(keys)
        return [record for record in kept if not known.get(record[0])]

    def _publisher(self) -> MetadataPublisher:
        context = self.context
        return MetadataPublisher(context.storage, context.config, self.workers.token, context.clock(), context.options)


class _Presence(RecordRules[bool]):
    """Decodes a record of a file to whether the file is there: the record is no deletion."""

    def decode(self, key: str, datum: dict[str, Any], *, path: str) -> bool:
        body = datum.get("ColumnStatsMetadata") or datum.get("BloomFilterMetadata") or {}
        return body.get("isDeleted") is False


def _type_of(datum: Datum | None) -> int | None:
    found = datum.template if isinstance(datum, FileDatum) else datum
    return None if found is None else found.get("type")


def _without_gone(stat: WriteStat, there: Collection[str]) -> WriteStat:
    return replace(stat, cdc_stats=tuple(item for item in stat.cdc_stats if item[0].rpartition("/")[2] in there))


def clean_changes(details: dict[str, Any], *, path: str) -> FileChanges:
    """Returns a clean's changes: all planned files. Raises CorruptFileError, FormatError for an unsafe partition."""
    parts = details.get("partitionMetadata")
    if not isinstance(parts, dict) or not all(isinstance(part, dict) for part in parts.values()):
        raise CorruptFileError("the clean's metadata does not say what it deleted", path=path)
    deleted: dict[str, frozenset[str]] = {}
    for partition, part in parts.items():
        deleted[check_partition(partition, source=path)] = _names(texts(part, "deletePathPatterns", path=path), path)
    return FileChanges(
        deleted=deleted,
        dropped_partitions=frozenset(name for name, part in parts.items() if part.get("isPartitionDeleted") is True),
    )


def rollback_changes(details: dict[str, Any], *, path: str) -> FileChanges:
    """Returns the file changes of a rollback: deleted files, log files of its command blocks, and log files whose
    blocks these roll back. Raises CorruptFileError for a name that is no data file's.
    """
    written: dict[str, dict[str, int]] = {}
    deleted: dict[str, frozenset[str]] = {}
    for part in metadata_of(details, path=path).partitions:
        if part.rollback_log_files:
            sizes = {**part.failed_commit_log_files, **part.rollback_log_files}
            written[part.partition] = {name: sizes[file] for file in sizes for name in _names([file], path)}
        if part.deleted:
            deleted[part.partition] = _names(list(part.deleted), path)
    return FileChanges(written, deleted)


def _names(paths: list[str], path: str) -> frozenset[str]:
    names = frozenset(item.rpartition("/")[2] for item in paths)
    wrong = sorted(name for name in names if parse_data_file(name) is None)
    if wrong:
        raise CorruptFileError(f"{wrong[0]!r} is the name of no data file", path=path)
    return names
