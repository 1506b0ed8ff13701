"""Rolls a failed instant back in the metadata table of a version 6 table, with the same bytes as Hudi 0.15.

For the data table's rollback R of a failed instant T (HoodieBackedTableMetadataWriter.update(HoodieRollbackMetadata)):
deltacommit R with the log files that the data table's rollback wrote, or without files; then, where files of T exist,
rollback `<R>006`: in every file group a command block `.log.<N+1>_1-0-1` against T behind T's block, T's deltacommit
files removed, `<R>006.rollback` completed. Beyond Hudi: where T's deltacommit is inflight without its block, its writer
may be slow. A command one version further on awaits the block: the writer chose its log's version at its start, so the
block precedes the command in any case. Rollback R may complete on the data timeline only after that, because from then
on readers count every block of T that no command cancels (HoodieTableMetadataUtil.getValidInstantTimestamps).
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace

from hudi_core.codec.log.blocks import ROLLBACK_COMMAND, BlockType, HeaderKey
from hudi_core.codec.log.frames import encode_block
from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConflictError, StorageNotFoundError
from hudi_core.metadata_table.indexed_table import StoredTable
from hudi_core.metadata_table.instants import OperationSuffix
from hudi_core.metadata_table.partition_type import FILES_PARTITION
from hudi_core.metadata_table.partitions.registry import rollback_updates
from hudi_core.metadata_table.read.file_group import (
    LatestSlice,
    blocks_by_instant,
    blocks_of,
    latest_slice,
    latest_slices,
    metadata_path,
    partition_folders,
    pending_bases,
)
from hudi_core.metadata_table.records.file_statistics import FileChanges
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.delta_writer import DeltaWriter
from hudi_core.metadata_table.write.footprint import Footprint, check_not_merged
from hudi_core.model.names import ROLLBACK_TOKEN, WriteToken
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.storage.registry import plan_address, status_address
from hudi_core.timeline.actions.commit import decode_commit
from hudi_core.timeline.actions.rollback import (
    RollbackPartition,
    RollbackRequest,
    encode_rollback_metadata,
    encode_rollback_plan,
)
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.pending_plans import pending_rollback_of
from hudi_core.timeline.timeline import Timeline

log = logging.getLogger(__name__)

_TOKEN = WriteToken(0, 0, 0)


@dataclass(frozen=True, slots=True)
class _Group:
    """A file group and those of its log files in which blocks of the failed instant count; `rollbacks` have a command
    against that there.
    """

    place: LatestSlice
    live: tuple[FileInfo, ...]
    rollbacks: frozenset[str]


class MetadataRollback:
    """Rolls instants back on the metadata table of the data table in `storage`. The caller holds the table lock while
    it calls `run`.
    """

    def __init__(self, storage: Storage, config: TableConfig, token: WriteToken = _TOKEN) -> None:
        """`token` is the write token of the log file in `files` with the files of the data table's rollback."""
        self._storage = storage
        self._config = config
        self._metadata_timeline = MetadataTimeline(storage, config)
        self._token = token

    @property
    def _active(self) -> ActiveTimeline:
        return self._metadata_timeline.active

    def footprint(self, failed: str) -> Footprint:
        """What there is of `failed`; one look at the timeline, and at the headers of the latest slices' logs in every
        partition.
        """
        timeline = self._active.load()
        return self._footprint(timeline, self._groups(timeline, failed), failed)

    def check(self, failed: str) -> None:
        """Raises TimelineError when a compaction of the metadata table has taken the failed instant in: only a rebuild
        helps then.
        """
        if self.footprint(failed):
            check_not_merged(self._metadata_timeline, self._active.load(), failed)

    def run(self, failed: str, rollback: str, changes: FileChanges | None = None) -> None:
        """Rolls `failed` back as part of the data table's rollback `rollback`; continues an earlier attempt.

        `changes.written` are the log files of that rollback's metadata, `changes.deleted` the files that it deleted.
        Blocks that a writer presumed dead wrote after the completed rollback are cancelled under that rollback: readers
        count them, since it names their instant. Raises TimelineError as check, before anything is written;
        ConflictError when such a writer was active meanwhile.
        """
        started = time.monotonic()
        timeline = self._active.load()
        groups = self._groups(timeline, failed)
        footprint = self._footprint(timeline, groups, failed)
        metadata_timeline = footprint.pending_rollback or OperationSuffix.ROLLBACK.of(rollback)
        done = timeline.find(metadata_timeline, Action.ROLLBACK)
        if footprint:
            check_not_merged(self._metadata_timeline, timeline, failed)
        self._tell(rollback, changes or FileChanges())
        if not footprint:
            return
        if done is not None and done.is_completed:
            log.warning(
                "blocks of %s were written into the metadata table after rollback %s of it had completed: taken back",
                failed,
                metadata_timeline,
            )
            self._take_back(failed, metadata_timeline)
            return
        requests = [_request(self._storage, group) for group in groups if group.live]
        if footprint.pending_rollback is None:
            self._active.create_requested(
                metadata_timeline, Action.ROLLBACK, encode_rollback_plan(failed, Action.DELTA_COMMIT, requests)
            )
        self._active.to_inflight(metadata_timeline, Action.ROLLBACK)
        self._take_back(failed, metadata_timeline)
        partitions = self._rolled_back(failed, metadata_timeline, requests)
        took = int((time.monotonic() - started) * 1000)
        self._active.complete(
            metadata_timeline,
            Action.ROLLBACK,
            encode_rollback_metadata(metadata_timeline, took, failed, Action.DELTA_COMMIT, partitions),
        )

    def _take_back(self, failed: str, metadata_timeline: str) -> None:
        """Commands against what is live or may still come, then the deltacommit. Deltacommit R may have joined a group
        since it was looked at, so the next versions are those of a new look.
        """
        timeline, hudi_1 = self._active.load(), self._metadata_timeline.features.hudi_1_log_headers
        awaited = self._awaited(timeline.find(failed, Action.DELTA_COMMIT))
        for group in self._groups(timeline, failed):
            place = group.place
            if group.live:
                append_command(self._storage, place, failed, metadata_timeline, hudi_1_headers=hudi_1)
            elif metadata_timeline not in group.rollbacks and (place.partition, place.file_id) in awaited:
                append_command(self._storage, place, failed, metadata_timeline, hudi_1_headers=hudi_1, behind=1)
        self._active.undo(failed, Action.DELTA_COMMIT)

    def _awaited(self, delta_commit: Instant | None) -> frozenset[tuple[str, str]]:
        """The partitions and file ids into which the writer of a deltacommit that is not completed may still put a
        block: `files`, and those that its inflight file names.
        """
        if delta_commit is None or delta_commit.is_completed:
            return frozenset()
        profile = b"" if delta_commit.state is State.REQUESTED else self._active.read_details(delta_commit)
        stats = (
            decode_commit(profile, path=self._active.path_of(delta_commit)).partition_to_write_stats if profile else {}
        )
        named = {(partition, stat.file_id) for partition, items in stats.items() for stat in items}
        return frozenset({*named, (FILES_PARTITION, latest_slice(self._storage, self._active.load()).file_id)})

    def _tell(self, rollback: str, changes: FileChanges) -> None:
        table = StoredTable(self._storage, self._config, {})
        records = rollback_updates(changes, self._config.metadata_partitions, table)
        DeltaWriter(self._storage, self._metadata_timeline, self._token).write(rollback, records)

    def _footprint(self, timeline: Timeline, groups: list[_Group], failed: str) -> Footprint:
        live = tuple(info for group in groups for info in group.live)
        return Footprint(
            timeline.find(failed, Action.DELTA_COMMIT), pending_rollback_of(self._active, timeline, failed), live
        )

    def _groups(self, timeline: Timeline, failed: str) -> list[_Group]:
        groups = []
        for place in all_slices(self._storage, self._metadata_timeline, timeline):
            blocks = blocks_of(self._storage, place.logs, failed)
            groups.append(_Group(place, blocks.live, frozenset(instant for _, instant in blocks.commands)))
        return groups

    def _rolled_back(
        self, failed: str, metadata_timeline: str, requests: list[RollbackRequest]
    ) -> list[RollbackPartition]:
        """What this rollback did, by partition: the commands that it wrote, in this attempt or an earlier one, by
        address.
        """
        failed_logs: dict[str, dict[str, int]] = {}
        for request in requests:
            failed_logs.setdefault(request.partition, {}).update(request.log_blocks)
        written: dict[str, dict[str, int]] = {}
        for place in all_slices(self._storage, self._metadata_timeline, self._active.load()):
            blocks = blocks_by_instant(self._storage, place.logs).get(failed)
            if blocks is None:
                continue
            if blocks.live:
                raise ConflictError(
                    f"a block of the failed instant {failed} appeared while it was rolled back: its writer "
                    "is still "
                    "alive",
                    path=blocks.live[0].path,
                    remedy="stop that writer, then run the instant again",
                )
            ours = {
                status_address(self._storage, info.path): info.size
                for info, instant in blocks.commands
                if instant == metadata_timeline
            }
            if ours:
                written.setdefault(place.partition, {}).update(ours)
        names = sorted({*failed_logs, *written}) or [FILES_PARTITION]
        return [RollbackPartition(name, (), (), written.get(name, {}), failed_logs.get(name, {})) for name in names]


def all_slices(storage: Storage, metadata_timeline: MetadataTimeline, timeline: Timeline) -> list[LatestSlice]:
    """The latest slices of all file groups of all partitions that have a folder. Raises StorageNotFoundError when
    `files` has none.
    """
    layout, pending = metadata_timeline.features.layout, pending_bases(metadata_timeline.active, timeline)
    places: list[LatestSlice] = []
    for partition in {FILES_PARTITION: None} | dict.fromkeys(partition_folders(storage)):
        try:
            places += latest_slices(storage, timeline, partition, layout=layout, pending=pending)
        except StorageNotFoundError:
            if partition == FILES_PARTITION:
                raise  # else an index whose building died before it had file groups
    return places


def append_command(
    storage: Storage, place: LatestSlice, target: str, metadata_timeline: str, *, hudi_1_headers: bool, behind: int = 0
) -> FileInfo:
    """Appends the rollback's command block against `target` to a file group, as a separate log file, `behind` versions
    further on than the next.
    """
    headers = {
        HeaderKey.INSTANT_TIME: metadata_timeline,
        HeaderKey.TARGET_INSTANT_TIME: target,
        HeaderKey.COMMAND_BLOCK_TYPE: ROLLBACK_COMMAND,
    }
    block = encode_block(BlockType.COMMAND, headers, hudi_1_headers=hudi_1_headers)
    name = place.next_log(ROLLBACK_TOKEN)
    path = metadata_path(replace(name, version=name.version + behind), place.partition)
    storage.create_exclusive(path, block)
    return FileInfo(path, len(block), 0.0)


def _request(storage: Storage, group: _Group) -> RollbackRequest:
    blocks = {plan_address(storage, info.path): info.size for info in group.live}
    return RollbackRequest(group.place.partition, group.place.file_id, group.place.base_instant, (), blocks)
