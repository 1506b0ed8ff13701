"""Brings the metadata table back to an earlier instant, as part of a restore of the data table.

As HoodieBackedTableMetadataWriter.update(HoodieRestoreMetadata): a restore of the metadata table, at a new instant,
rolls back its instants after the target; then a deltacommit behind it makes `files` what the storage holds, since the
cleans were rolled back with the rest. In layout 1 the blocks of deltacommits are cancelled by command blocks and the
slices of compactions deleted; in layout 2 all files are deleted.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import CorruptFileError, TimelineError
from hudi_core.metadata_table.indexed_table import StoredTable
from hudi_core.metadata_table.instants import OperationSuffix
from hudi_core.metadata_table.partitions.registry import restore_updates
from hudi_core.metadata_table.read.file_group import LatestSlice, blocks_by_instant
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.delta_writer import DeltaWriter
from hudi_core.metadata_table.write.restore_reach import completed_at, instants_after
from hudi_core.metadata_table.write.restore_sync import sync_changes
from hudi_core.metadata_table.write.rollback import all_slices, append_command
from hudi_core.metadata_table.write.rollback_deletion import files_written_by, partition_of
from hudi_core.model.names import WriteToken
from hudi_core.storage.base import Storage
from hudi_core.storage.registry import plan_address, status_address
from hudi_core.timeline.actions.container import encode_datum
from hudi_core.timeline.actions.plan_fields import records, text
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.timeline import Timeline

_PLAN_VERSION = 2
_DROP = "drop the metadata table: Hudi's next write builds it anew"
_COMPACTING = frozenset({Action.COMMIT, Action.COMPACTION})


@dataclass(frozen=True, slots=True)
class _Planned:
    """One instant of a restore plan."""

    time: str
    action: str


@dataclass(slots=True)
class _Undone:
    """What the rollback of one instant did: addresses, and sizes in bytes, by metadata partition."""

    deleted: dict[str, list[str]] = field(default_factory=dict)
    commands: dict[str, dict[str, int]] = field(default_factory=dict)
    logs: dict[str, dict[str, int]] = field(default_factory=dict)

    def partitions(self) -> list[str]:
        """The partitions in which something was done."""
        return sorted({*self.deleted, *self.commands, *self.logs})


class MetadataRestore:
    """Restores the metadata table of the data table in `storage`. The caller holds the table lock."""

    def __init__(
        self, storage: Storage, config: TableConfig, metadata_timeline: MetadataTimeline, token: WriteToken
    ) -> None:
        self._storage = storage
        self._config = config
        self._metadata_timeline = metadata_timeline
        self._active = metadata_timeline.active
        self._token = token

    def run(self, target: str, restore: str) -> None:
        """Goes back to `target` as part of the data table's pending restore `restore`; goes on where an earlier attempt
        stopped.

        The metadata table can go back there (restore_reach), and the data table's files are as the restore leaves them.
        """
        timeline = self._active.load()
        found = self._of_restore(timeline, Action.RESTORE, restore)
        if found is None or not found.is_completed:
            self._go_back(timeline, target, restore, found)
        self._sync(restore)

    def _of_restore(self, timeline: Timeline, action: str, after: str) -> Instant | None:
        """The metadata table's instant of the pending restore: no other writer creates one while that is pending."""
        data = ActiveTimeline(self._storage, self._config).load()
        for item in timeline.of_actions(action):
            if item.requested_time > after and not data.contains(item.requested_time):
                return item
        return None

    def _go_back(self, timeline: Timeline, target: str, restore: str, found: Instant | None) -> None:
        started = time.monotonic()
        if found is None:
            metadata_timeline = self._metadata_timeline.clock.next(timeline, minimum=restore)
            until = completed_at(self._metadata_timeline, timeline, target)
            if until is None:
                raise TimelineError(
                    f"the metadata table's timeline does not hold {target}",
                    path=self._active.folder,
                    remedy="drop the metadata table",
                )
            planned = [
                _Planned(item.requested_time, item.action)
                for item in instants_after(self._metadata_timeline, timeline, target, until)
            ]
            self._active.create_requested(metadata_timeline, Action.RESTORE, _encode_plan(planned, target))
        else:
            metadata_timeline = found.requested_time
            planned = self._read_plan(metadata_timeline)
        self._active.to_inflight(metadata_timeline, Action.RESTORE)
        undone = self._undo(planned, metadata_timeline)
        took = int((time.monotonic() - started) * 1000)
        self._active.complete(
            metadata_timeline,
            Action.RESTORE,
            _encode_metadata(metadata_timeline, took, planned, undone),
            self._metadata_timeline.completion_time(metadata_timeline),
        )
        self._forget_rollbacks(target, metadata_timeline)

    def _undo(self, planned: list[_Planned], metadata_timeline: str) -> dict[str, _Undone]:
        """Deletes the files of the instants, cancels their blocks in other files, then deletes the instants: newest
        first.

        They stop being completed before any file goes, so that no reader misses one. A compaction is removed completely
        before an older one is changed: Hudi reads no table with two pending ones of a file group
        (CompactionUtils.getAllPendingCompactionOperations). It stays pending until its base files are gone, as Hudi
        counts log files to the slice of a base file that is there. In layout 1 compactions go before any command is
        written, since new log files join the slice that a pending one starts.
        """
        undone = {item.time: _Undone() for item in planned}
        written: dict[str, list[str]] = {}
        for info, instant in files_written_by(self._storage, frozenset(undone)):
            written.setdefault(instant, []).append(info.path)
        for item in planned:
            self._take_back(item, State.COMPLETED)
            if item.action in _COMPACTING:
                self._delete(written.pop(item.time, []), undone[item.time])
                self._take_back(item)
        for instant, paths in written.items():
            self._delete(paths, undone[instant])
        if not self._metadata_timeline.features.rollback_deletes_logs:
            self._command(planned, metadata_timeline, undone)
        for item in planned:
            self._take_back(item)
        return undone

    def _delete(self, paths: list[str], undone: _Undone) -> None:
        for path in paths:
            self._storage.delete(path)
            undone.deleted.setdefault(partition_of(path), []).append(plan_address(self._storage, path))

    def _take_back(self, item: _Planned, *states: State) -> None:
        """Removes the given states of an instant, all of them by default, as far as it is still there."""
        found = self._active.load().find(item.time, item.action)
        if found is None:
            return
        if states:
            for state in states:
                self._active.remove(item.time, found.pending_action, state)
        else:
            self._active.undo(item.time, found.pending_action)

    def _command(self, planned: list[_Planned], metadata_timeline: str, undone: dict[str, _Undone]) -> None:
        for place in all_slices(self._storage, self._metadata_timeline, self._active.load()):
            current = place
            blocks = blocks_by_instant(self._storage, place.logs)
            for item in planned:
                live = blocks[item.time].live if item.time in blocks else ()
                if not live:
                    continue
                written = append_command(
                    self._storage,
                    current,
                    item.time,
                    metadata_timeline,
                    hudi_1_headers=self._metadata_timeline.features.hudi_1_log_headers,
                )
                current = LatestSlice(
                    place.file_id, place.base_instant, place.base_file, (*current.logs, written), place.partition
                )
                parts = undone[item.time]
                parts.commands.setdefault(place.partition, {})[status_address(self._storage, written.path)] = (
                    written.size
                )
                parts.logs.setdefault(place.partition, {}).update(
                    {plan_address(self._storage, info.path): info.size for info in live}
                )

    def _forget_rollbacks(self, target: str, metadata_timeline: str) -> None:
        """Rollbacks of instants that are gone say nothing any more (BaseRestoreActionExecutor.finishRestore)."""
        for item in self._active.load().of_actions(Action.ROLLBACK):
            if target < item.requested_time < metadata_timeline:
                self._active.undo(item.requested_time, Action.ROLLBACK)

    def _read_plan(self, metadata_timeline: str) -> list[_Planned]:
        path = self._active.path(metadata_timeline, Action.RESTORE, State.REQUESTED)
        raw = self._active.read_any(metadata_timeline, Action.RESTORE, State.REQUESTED)
        planned = [
            _Planned(text(item, "commitTime", path=path), text(item, "action", path=path))
            for item in records(raw, "instantsToRollback", path=path)
        ]
        if not all(item.time and item.action for item in planned):
            raise CorruptFileError("the restore plan does not say what to roll back", path=path, remedy=_DROP)
        return planned

    def _sync(self, restore: str) -> None:
        timeline = self._active.load()
        done = self._of_restore(timeline, Action.RESTORE, restore)
        after = restore if done is None else done.requested_time
        found = self._of_restore(timeline, Action.DELTA_COMMIT, after)
        if found is not None and found.is_completed:
            return
        if found is not None:
            instant = found.requested_time
        else:
            instant = self._metadata_timeline.clock.next(timeline, minimum=after)
            if self._metadata_timeline.features.metadata_suffixes:
                instant = OperationSuffix.RESTORE.of(instant)
        data = ActiveTimeline(self._storage, self._config).load()
        changes = sync_changes(self._storage, self._config, data, restore)
        table = StoredTable(self._storage, self._config, {})
        recorded = restore_updates(instant, changes, self._config.metadata_partitions, table)
        DeltaWriter(self._storage, self._metadata_timeline, self._token).write(instant, recorded)


def _encode_plan(planned: list[_Planned], target: str) -> bytes:
    instants = [{"commitTime": item.time, "action": item.action} for item in planned]
    return encode_datum(
        "HoodieRestorePlan",
        {"instantsToRollback": instants, "version": _PLAN_VERSION, "savepointToRestoreTimestamp": target},
    )


def _encode_metadata(
    metadata_timeline: str, took_ms: int, planned: list[_Planned], undone: dict[str, _Undone]
) -> bytes:
    infos = [{"commitTime": item.time, "action": item.action} for item in planned]
    return encode_datum(
        "HoodieRestoreMetadata",
        {
            "startRestoreTime": metadata_timeline,
            "timeTakenInMillis": took_ms,
            "instantsToRollback": [item.time for item in planned],
            "hoodieRestoreMetadata": {
                item.time: [_rollback(metadata_timeline, item, undone[item.time])] for item in planned
            },
            "version": 1,
            "restoreInstantInfo": infos,
        },
    )


def _rollback(metadata_timeline: str, item: _Planned, done: _Undone) -> dict[str, Any]:
    partitions = {
        name: {
            "partitionPath": name,
            "successDeleteFiles": done.deleted.get(name, []),
            "failedDeleteFiles": [],
            "rollbackLogFiles": done.commands.get(name, {}),
            "logFilesFromFailedCommit": done.logs.get(name, {}),
        }
        for name in done.partitions()
    }
    return {
        "startRollbackTime": metadata_timeline,
        "timeTakenInMillis": 0,
        "totalFilesDeleted": sum(map(len, done.deleted.values())),
        "commitsRollback": [item.time],
        "partitionMetadata": partitions,
        "version": 1,
        "instantsRollback": [{"commitTime": item.time, "action": item.action}],
    }
