"""Restores the metadata table to an earlier instant, with the data table. restore_reach says what is dropped instead.

It works like HoodieBackedTableMetadataWriter.update(HoodieRestoreMetadata). A restore of the metadata table, at a new
instant, rolls back the instants after the target. Then a later deltacommit gives `files` the content of the storage,
since the cleans were rolled back, too. In layout 1 command blocks roll back the blocks of deltacommits, and the file
slices of compactions are deleted; in layout 2 all files are deleted.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import CorruptFileError, TimelineError
from hudi_core.frozen import dataclass
from hudi_core.history.archived import load_history
from hudi_core.metadata_table.indexed_table import StoredTable
from hudi_core.metadata_table.instants import OperationSuffix
from hudi_core.metadata_table.partitions.registry import restore_updates
from hudi_core.metadata_table.read.file_group import blocks_by_instant
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.metadata_table.records.file_statistics import FileChanges
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.delta_writer import DeltaWriter
from hudi_core.metadata_table.write.restore_reach import completed_at, instants_after
from hudi_core.metadata_table.write.rollback import append_command, files_written_by, rolled_back_partitions
from hudi_core.model.names import LogFileName, WriteToken, parse_data_file
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.timeline.actions.rollback import (
    RestoredInstant,
    RestoreMetadata,
    RestorePlan,
    RollbackMetadata,
    decode_restore_plan,
    encode_restore_metadata,
    encode_restore_plan,
)
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.listing import CommittedSizes, StorageListing

_COMPACTING = frozenset({Action.COMMIT, Action.COMPACTION})


@dataclass(frozen=True, slots=True)
class _RolledBack:
    """One instant's rollback: deleted files, log files of command blocks, and those whose blocks they roll back."""

    deleted: list[FileInfo] = field(default_factory=list)
    commands: list[FileInfo] = field(default_factory=list)
    failed_logs: list[FileInfo] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class MetadataRestore:
    storage: Storage
    config: TableConfig
    metadata_timeline: MetadataTimeline
    token: WriteToken

    def run(self, target: str, restore: str) -> None:
        """Restores the metadata table to `target` as part of the data table's pending restore `restore`; continues an
        earlier attempt. Under the table lock; `target` is in reach, and the data table's files are already restored.
        """
        found = self._of_restore(self.metadata_timeline.active.load(), Action.RESTORE, restore)
        if found is None or not found.is_completed:
            self._roll_back_to(target, restore, found)
        self._sync(restore)

    def _of_restore(self, timeline: Timeline, action: str, after: str) -> Instant | None:
        """Returns the metadata table's instant of the pending restore, which no other writer creates meanwhile."""
        data = ActiveTimeline(self.storage, self.config).load()
        return (
            timeline.of_actions(action)
            .filter(lambda item: item.requested_time > after and not data.contains(item.requested_time))
            .first()
        )

    def _roll_back_to(self, target: str, restore: str, found: Instant | None) -> None:
        started = time.monotonic()
        instant = self._request(target, restore) if found is None else found.requested_time
        active = self.metadata_timeline.active
        try:
            path = active.path(instant, Action.RESTORE, State.REQUESTED)
            planned = decode_restore_plan(active.read_requested(instant, Action.RESTORE), path=path).instants
        except CorruptFileError as error:
            error.remedy = "drop the metadata table: Hudi's next write rebuilds it"
            raise
        active.to_inflight(instant, Action.RESTORE)
        done = self._roll_back(planned, instant)
        rollbacks: dict[str, RollbackMetadata] = {}
        for restored in planned:
            removed = done[restored.time]
            partitions = rolled_back_partitions(self.storage, removed.deleted, removed.commands, removed.failed_logs)
            rollbacks[restored.time] = RollbackMetadata(instant, 0, restored.time, restored.action, tuple(partitions))
        took = int((time.monotonic() - started) * 1000)
        metadata = encode_restore_metadata(RestoreMetadata(instant, took, planned, rollbacks))
        self.metadata_timeline.complete(instant, Action.RESTORE, metadata)
        # The rollbacks of instants that are gone (BaseRestoreActionExecutor.finishRestore).
        for item in active.load().of_actions(Action.ROLLBACK):
            if target < item.requested_time < instant:
                active.delete_instant(item.requested_time, Action.ROLLBACK)

    def _request(self, target: str, restore: str) -> str:
        active = self.metadata_timeline.active
        timeline = active.load()
        until = completed_at(self.metadata_timeline, timeline, target)
        if until is None:
            message = f"the metadata table's timeline does not hold {target}"
            raise TimelineError(message, path=active.folder, remedy="drop the metadata table")
        later = instants_after(self.metadata_timeline, timeline, target, until)
        plan = RestorePlan(target, tuple(RestoredInstant(item.requested_time, item.action) for item in later))
        instant = self.metadata_timeline.clock.next(timeline, minimum=restore)
        active.create_requested(instant, Action.RESTORE, encode_restore_plan(plan))
        return instant

    def _roll_back(self, planned: Sequence[RestoredInstant], restore: str) -> Mapping[str, _RolledBack]:
        """Deletes the files of the instants, rolls back their blocks in other files, then deletes the instants: newest
        first. An instant stops being completed before its files are deleted, so that no reader misses a file. A
        compaction is removed completely before an older one is changed: Hudi cannot read a table with two pending
        compactions of a file group (CompactionUtils.getAllPendingCompactionOperations). The compaction stays pending
        until its base files are deleted, since Hudi counts log files to the file slice of an existing base file. In
        layout 1 compactions go before any command is written, since new log files join the file slice that one starts.
        """
        done = {item.time: _RolledBack() for item in planned}
        for info, instant in files_written_by(self.storage, frozenset(done)):
            done[instant].deleted.append(info)
        for item in planned:
            self._remove(item, completed_only=True)
            if item.action in _COMPACTING:
                self._delete(done[item.time].deleted)
                self._remove(item)
        self._delete(info for item in planned if item.action not in _COMPACTING for info in done[item.time].deleted)
        if not self.metadata_timeline.features.rollback_deletes_logs:
            self._roll_back_blocks(done, restore)
        for item in planned:
            self._remove(item)
        return done

    def _delete(self, files: Iterable[FileInfo]) -> None:
        for info in files:
            self.storage.delete(info.path)

    def _remove(self, item: RestoredInstant, *, completed_only: bool = False) -> None:
        active = self.metadata_timeline.active
        found = active.load().find(item.time, item.action)
        if found is not None and completed_only:
            active.remove(item.time, found.pending_action, State.COMPLETED)
        elif found is not None:
            active.delete_instant(item.time, found.pending_action)

    def _roll_back_blocks(self, done: Mapping[str, _RolledBack], restore: str) -> None:
        for place in self.metadata_timeline.all_slices(self.metadata_timeline.active.load()):
            blocks, logs = blocks_by_instant(self.storage, place.logs), place.logs
            for instant, rolled_back in done.items():
                live = blocks[instant].live if instant in blocks else ()
                if live:
                    written = append_command(self.storage, replace(place, logs=logs), instant, restore)
                    logs = (*logs, written)
                    rolled_back.commands.append(written)
                    rolled_back.failed_logs.extend(live)

    def _sync(self, restore: str) -> None:
        timeline = self.metadata_timeline.active.load()
        done = self._of_restore(timeline, Action.RESTORE, restore)
        after = restore if done is None else done.requested_time
        found = self._of_restore(timeline, Action.DELTA_COMMIT, after)
        if found is not None and found.is_completed:
            return
        if found is not None:
            instant = found.requested_time
        else:
            instant = self.metadata_timeline.clock.next(timeline, minimum=after)
            if self.metadata_timeline.features.metadata_suffixes:
                instant = OperationSuffix.RESTORE.of(instant)
        changes = sync_changes(self.storage, self.config, ActiveTimeline(self.storage, self.config).load(), restore)
        table = StoredTable(self.storage, self.config, {})
        records = restore_updates(instant, changes, self.config.metadata_partitions, table)
        DeltaWriter(self.metadata_timeline, self.token).write(instant, records)


def sync_changes(storage: Storage, config: TableConfig, data_timeline: Timeline, restore: str) -> FileChanges:
    """Returns the differences between the storage and `files` (fetchOutofSyncFilesRecordsFromMetadataTable): files of
    listed partitions that are not listed, listed files that are gone, and partitions that are gone. A data file counts
    when its instant is not pending and at most `restore`, the data table's pending restore: other files are not the
    table's (DirectoryInfo). In layout 1 a log file with the instant of a pending compaction counts, too: it has the
    later writes. Makes one listing, and reads the commits. Raises CutFileError for a file that lost bytes.
    """
    listing = StorageListing(storage)
    existing = frozenset(listing.partitions())
    sizes = CommittedSizes(
        data_timeline, ActiveTimeline(storage, config).read_commit, lambda: load_history(storage, config)
    )
    pending = data_timeline.pending_changes().requested_times
    compacting = data_timeline.pending_compactions().requested_times

    def counts(info: FileInfo) -> bool:
        name = parse_data_file(info.name)
        if name is None or name.instant > restore:
            return False
        return name.instant not in pending or (isinstance(name, LogFileName) and name.instant in compacting)

    metadata = MetadataTable(storage, config, data_timeline)
    written: dict[str, dict[str, int]] = {}
    deleted: dict[str, frozenset[str]] = {}
    for partition in metadata.partitions():
        listed = metadata.list_files(partition)
        files = [*filter(counts, listing.files(partition) if partition in existing else ())]
        found = {info.name: info.size for info in files}
        for info in files:
            if info.name not in listed:
                sizes.refuse_cut(info)
        written[partition] = {name: size for name, size in found.items() if name not in listed and size > 0}
        deleted[partition] = frozenset(listed.keys() - found.keys())
    return FileChanges(
        {partition: files for partition, files in written.items() if files},
        {partition: names for partition, names in deleted.items() if names},
        frozenset(deleted.keys() - existing),
    )
