"""Rolls a failed instant back in the metadata table, as part of the data table's rollback
(HoodieBackedTableMetadataWriter.update(HoodieRollbackMetadata)).

Let R be the data table's rollback of a failed instant T. Where the metadata table has something of T, it gets a
rollback, `R` from version 8 on and `<R>006` in version 6, and T's deltacommit is removed from its timeline. In version
6 deltacommit R comes first, with the log files that the data table's rollback wrote, or without files. Rollback R may
complete on the data timeline only after that, because then readers count every block of T that is left
(HoodieTableMetadataUtil.getValidInstantTimestamps).

From version 8 on the files that T wrote, with T in their names, are deleted (ListingBasedRollbackStrategy of Hudi 1.x).
In version 6 command blocks roll back T's blocks, with the same bytes as Hudi 0.15: in every file group with blocks of T
a command block `.log.<N+1>_1-0-1` follows them; then T's deltacommit is removed. One step is not in Hudi: where T's
deltacommit is inflight without its block, its writer may be slow. Then the command takes one version more, and awaits
the block: the writer chose the version of its log file at its start, so the block precedes the command in any case.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConflictError, TimelineError
from hudi_core.filegroup.write.rollback_files import rollback_command
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.indexed_table import StoredTable
from hudi_core.metadata_table.instants import OperationSuffix
from hudi_core.metadata_table.partition_type import FILES_PARTITION
from hudi_core.metadata_table.partitions.registry import rollback_updates
from hudi_core.metadata_table.read.file_group import (
    ROOT,
    BlocksOf,
    LatestSlice,
    blocks_of,
    data_files,
    metadata_path,
    partition_folders,
)
from hudi_core.metadata_table.records.file_statistics import FileChanges
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.delta_writer import DeltaWriter
from hudi_core.model.names import ROLLBACK_TOKEN, WriteToken
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.storage.registry import plan_address, status_address
from hudi_core.timeline.actions.commit import decode_commit
from hudi_core.timeline.actions.rollback import (
    RollbackMetadata,
    RollbackPartition,
    RollbackStep,
    encode_rollback_metadata,
    encode_rollback_plan,
)
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.pending_plans import pending_rollback_of
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.instant_generator import InstantClock

log = logging.getLogger(__name__)

_REBUILD = (
    "drop it with `hudictl metadata drop TABLE`, roll the instant back again, then rebuild it: `hudictl metadata "
    "create TABLE --partition …`, or let Hudi's next write do so"
)


@dataclass(frozen=True, slots=True)
class FileDeletion:
    """The rollback by deleted files, for metadata tables whose log files have the instant that writes them."""

    metadata_timeline: MetadataTimeline

    def find(self, timeline: Timeline, failed: str) -> tuple[list[FileInfo], list[RollbackStep]]:
        storage = self.metadata_timeline.storage
        files = [info for info, _ in files_written_by(storage, frozenset({failed}))]
        return files, [RollbackStep(_partition_of(info), delete=(plan_address(storage, info.path),)) for info in files]

    def roll_back(self, failed: str, rollback: str, files: Sequence[FileInfo]) -> list[RollbackPartition]:
        """Deletes the files of `failed`. Before that, the instant stops being completed, so that no reader misses a
        file. Raises ConflictError where its writer, presumed dead, wrote more meanwhile.
        """
        active = self.metadata_timeline.active
        active.remove(failed, Action.DELTA_COMMIT, State.COMPLETED)
        for info in files:
            self.metadata_timeline.storage.delete(info.path)
        active.delete_instant(failed, Action.DELTA_COMMIT)
        timeline = active.load()
        late, _ = self.find(timeline, failed)
        if late or timeline.find(failed, Action.DELTA_COMMIT) is not None:
            raise _still_written(failed, late[0].path if late else active.folder)
        return rolled_back_partitions(self.metadata_timeline.storage, files, (), ())


@dataclass(frozen=True, slots=True)
class CommandBlocks:
    """The rollback by command blocks, for metadata tables whose log files have the base instant of their file slice."""

    metadata_timeline: MetadataTimeline

    @property
    def _storage(self) -> Storage:
        return self.metadata_timeline.storage

    def find(self, timeline: Timeline, failed: str) -> tuple[list[FileInfo], list[RollbackStep]]:
        """Returns the log files in which blocks of `failed` count, and the steps of a rollback. Reads block headers."""
        groups = self._groups(timeline, failed)
        return [info for _, blocks in groups for info in blocks.live], [
            RollbackStep(
                place.partition, place.file_id, place.base_instant, (), _sizes_by_address(self._storage, blocks.live)
            )
            for place, blocks in groups
            if blocks.live
        ]

    def roll_back(self, failed: str, rollback: str, files: Sequence[FileInfo]) -> list[RollbackPartition]:
        """Writes commands against blocks that count or may still come, then removes the deltacommit. Deltacommit R may
        have written to a file group since `files` were found, so a new look gives the next log versions. Raises
        ConflictError where the instant's writer, presumed dead, wrote more meanwhile.
        """
        timeline = self.metadata_timeline.active.load()
        awaited = self._awaited(timeline.find(failed, Action.DELTA_COMMIT))
        for place, blocks in self._groups(timeline, failed):
            if blocks.live:
                append_command(self._storage, place, failed, rollback)
            elif awaited(place) and all(by != rollback for _, by in blocks.commands):
                append_command(self._storage, place, failed, rollback, behind=1)
        self.metadata_timeline.active.delete_instant(failed, Action.DELTA_COMMIT)
        commands: list[FileInfo] = []  # also those of an earlier attempt
        for _, blocks in self._groups(self.metadata_timeline.active.load(), failed):
            if blocks.live:
                raise _still_written(failed, blocks.live[0].path)
            commands.extend(info for info, instant in blocks.commands if instant == rollback)
        return rolled_back_partitions(self._storage, (), commands, files)

    def _awaited(self, delta_commit: Instant | None) -> Callable[[LatestSlice], bool]:
        """Returns the function that says whether the writer of an incomplete deltacommit may still write a block to a
        file slice: in `files`, and in file groups that the inflight file names.
        """
        if delta_commit is None or delta_commit.is_completed:
            return lambda place: False
        active, named = self.metadata_timeline.active, set[tuple[str, str]]()
        profile = b"" if delta_commit.state is State.REQUESTED else active.read_details(delta_commit)
        if profile:
            stats = decode_commit(profile, path=active.path_of(delta_commit)).partition_to_write_stats
            named = {(partition, stat.file_id) for partition, items in stats.items() for stat in items}
        return lambda place: place.partition == FILES_PARTITION or (place.partition, place.file_id) in named

    def _groups(self, timeline: Timeline, failed: str) -> list[tuple[LatestSlice, BlocksOf]]:
        return [
            (place, blocks_of(self._storage, place.logs, failed))
            for place in self.metadata_timeline.all_slices(timeline)
        ]


def append_command(storage: Storage, place: LatestSlice, target: str, rollback: str, *, behind: int = 0) -> FileInfo:
    """Writes a command block against `target` as a new log file, `behind` versions above the next version."""
    block = rollback_command(rollback, target)
    name = place.next_log(ROLLBACK_TOKEN)
    path = metadata_path(replace(name, version=name.version + behind), place.partition)
    storage.create_exclusive(path, block)
    return FileInfo(path, len(block), 0.0)


def _still_written(failed: str, path: str) -> ConflictError:
    """Returns the error for a writer that writes `path` under the instant that is rolled back."""
    message = f"something of the failed instant {failed} appeared while it was rolled back: its writer is still alive"
    remedy = "stop that writer, then run the instant again"
    return ConflictError(message, path=path, remedy=remedy)


def files_written_by(storage: Storage, instants: frozenset[str]) -> list[tuple[FileInfo, str]]:
    """Returns the base and log files of all partitions with one of `instants` in their names, each with its instant."""
    return [
        (info, name.instant)
        for partition in partition_folders(storage)
        for info, name in data_files(storage.list_files(f"{ROOT}/{partition}"))
        if name.instant in instants
    ]


def rolled_back_partitions(
    storage: Storage, deleted: Sequence[FileInfo], commands: Sequence[FileInfo], failed_logs: Sequence[FileInfo]
) -> list[RollbackPartition]:
    """Returns each partition's deleted files, log files of command blocks, and log files that these roll back."""

    def of(partition: str, files: Sequence[FileInfo]) -> list[FileInfo]:
        return [info for info in files if _partition_of(info) == partition]

    return [
        RollbackPartition(
            partition,
            tuple(plan_address(storage, info.path) for info in of(partition, deleted)),
            rollback_log_files={status_address(storage, info.path): info.size for info in of(partition, commands)},
            failed_commit_log_files=_sizes_by_address(storage, of(partition, failed_logs)),
        )
        for partition in sorted({_partition_of(info) for info in (*deleted, *commands, *failed_logs)})
    ]


def _partition_of(info: FileInfo) -> str:
    return info.path.removeprefix(f"{ROOT}/").rpartition("/")[0]


def _sizes_by_address(storage: Storage, files: Iterable[FileInfo]) -> dict[str, int]:
    return {plan_address(storage, info.path): info.size for info in files}


@dataclass(frozen=True, slots=True)
class Footprint:
    """The traces of an instant in the metadata table at `timeline`: its deltacommit, an unfinished rollback, the files
    with blocks that count, and the steps that roll these blocks back. True while something is left to roll back.
    """

    timeline: Timeline
    delta_commit: Instant | None
    pending_rollback: str | None
    live: list[FileInfo]
    requests: list[RollbackStep]

    def __bool__(self) -> bool:
        return self.delta_commit is not None or self.pending_rollback is not None or bool(self.live)


class MetadataRollback:
    """Rolls instants back on the metadata table. The caller holds the table lock while it calls `run`."""

    def __init__(
        self, storage: Storage, config: TableConfig, token: WriteToken, clock: InstantClock | None = None
    ) -> None:
        """Takes the `token` of the log file in `files` that lists the files of the data table's rollback."""
        self._storage = storage
        self._config = config
        self._metadata_timeline = MetadataTimeline(storage, config, clock)
        self._token = token

    @property
    def _deletes(self) -> bool:
        return self._metadata_timeline.features.rollback_deletes_logs

    @cached_property
    def _strategy(self) -> FileDeletion | CommandBlocks:
        return (FileDeletion if self._deletes else CommandBlocks)(self._metadata_timeline)

    def footprint(self, failed: str) -> Footprint:
        """Returns the traces of `failed`, by one look at the timeline and one at every partition."""
        timeline = self._metadata_timeline.active.load()
        live, requests = self._strategy.find(timeline, failed)
        pending = pending_rollback_of(self._metadata_timeline.active, timeline, failed)
        return Footprint(timeline, timeline.find(failed, Action.DELTA_COMMIT), pending, live, requests)

    def check(self, failed: str) -> Footprint:
        """Returns footprint. Raises TimelineError when a compaction has merged the instant: only a rebuild helps."""
        footprint = self.footprint(failed)
        if footprint:
            self._check_not_merged(footprint, failed)
        return footprint

    def run(self, failed: str, rollback: str, changes: FileChanges | None = None) -> None:
        """Rolls `failed` back as part of the data table's rollback `rollback`; continues an earlier attempt. `changes`
        as in MetadataPublisher.roll_back. Blocks that a writer presumed dead wrote after the completed rollback are
        removed under that rollback: they would count when the failed instant has left the data timeline. Before it
        writes anything, it raises TimelineError like check. Raises ConflictError when such a writer was active.
        """
        started = time.monotonic()
        active = self._metadata_timeline.active
        footprint = self.check(failed)
        self._publish(rollback, changes or FileChanges())
        if not footprint:
            return
        new = rollback if self._deletes else OperationSuffix.ROLLBACK.of(rollback)
        instant = footprint.pending_rollback or new
        done = footprint.timeline.find(instant, Action.ROLLBACK)
        if done is not None and done.is_completed:
            log.warning(
                "blocks of %s were written into the metadata table after rollback %s of it had completed: removed",
                failed,
                instant,
            )
            self._strategy.roll_back(failed, instant, footprint.live)
            return
        if footprint.pending_rollback is None:
            plan = encode_rollback_plan(failed, Action.DELTA_COMMIT, footprint.requests)
            active.create_requested(instant, Action.ROLLBACK, plan)
        active.to_inflight(instant, Action.ROLLBACK)
        partitions = self._strategy.roll_back(failed, instant, footprint.live)
        took = int((time.monotonic() - started) * 1000)
        rolled_back = tuple(partitions) or (RollbackPartition(FILES_PARTITION),)
        metadata = RollbackMetadata(instant, took, failed, Action.DELTA_COMMIT, rolled_back)
        self._metadata_timeline.complete(instant, Action.ROLLBACK, encode_rollback_metadata(metadata))

    def _publish(self, rollback: str, changes: FileChanges) -> None:
        if self._deletes:
            return
        table = StoredTable(self._storage, self._config, {})
        records = rollback_updates(changes, self._config.metadata_partitions, table)
        DeltaWriter(self._metadata_timeline, self._token).write(rollback, records)

    def _check_not_merged(self, footprint: Footprint, failed: str) -> None:
        """Raises TimelineError when a compaction merges the instant (HoodieBackedTableMetadataWriter.validateRollback).
        In layout 1 requested times decide; in layout 2 a compaction merges what completed before its request. Hudi does
        not look at pending compactions, but a pending one whose plan names the instant's log files would fail.
        """
        written = failed
        if self._metadata_timeline.features.completion_time_in_name:
            delta_commit = footprint.delta_commit
            if delta_commit is None or not delta_commit.is_completed:
                return
            written = delta_commit.completed_at
        for other in reversed(footprint.timeline.instants):
            merges = other.pending_action in (Action.COMPACTION, Action.LOG_COMPACTION) or other.action == Action.COMMIT
            if merges and other.requested_time >= written:
                verb = "was compacted" if other.is_completed else "is about to be compacted"
                message = (
                    f"the metadata table {verb} at {other.requested_time}, after instant {failed}: it cannot be "
                    "taken out any more"
                )
                raise TimelineError(message, path=self._metadata_timeline.active.path_of(other), remedy=_REBUILD)
