"""How an instant is undone in the metadata table, by the table's version: FileDeletion and CommandBlocks.

From version 8 on the files that it wrote, which carry it in their names, are deleted (ListingBasedRollbackStrategy of
Hudi 1.x).

In version 6 command blocks cancel its blocks, with the same bytes as Hudi 0.15. In every file group with blocks of the
failed instant T a command block `.log.<N+1>_1-0-1` against T comes behind them, then T's deltacommit is removed. Beyond
Hudi: where T's deltacommit is inflight without its block, its writer may be slow. A command one version further on
awaits the block: the writer chose its log's version at its start, so the block precedes the command in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from hudi_core.codec.log.blocks import ROLLBACK_COMMAND, BlockType, HeaderKey
from hudi_core.codec.log.frames import encode_block
from hudi_core.errors import ConflictError
from hudi_core.metadata_table.instants import OperationSuffix
from hudi_core.metadata_table.partition_type import FILES_PARTITION
from hudi_core.metadata_table.read.file_group import (
    ROOT,
    BlocksOf,
    LatestSlice,
    blocks_of,
    data_files,
    metadata_path,
    partition_folders,
)
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.model.names import ROLLBACK_TOKEN
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.storage.registry import plan_address, status_address
from hudi_core.timeline.actions.commit import decode_commit
from hudi_core.timeline.actions.rollback import RollbackPartition, RollbackRequest
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class FileDeletion:
    """Of metadata tables whose log files carry the instant that writes them."""

    storage: Storage
    metadata_timeline: MetadataTimeline

    def instant_of(self, rollback: str) -> str:
        return rollback

    def find(self, timeline: Timeline, failed: str) -> tuple[list[FileInfo], list[RollbackRequest]]:
        """The files of `failed`, and the requests to delete them: one listing of each partition."""
        files = [info for info, _ in files_written_by(self.storage, frozenset({failed}))]
        addresses = addresses_by_partition(self.storage, files)
        return files, [
            RollbackRequest(partition, files_to_delete=(address,))
            for partition, found in addresses.items()
            for address in found
        ]

    def undo(self, failed: str, rollback: str, files: Sequence[FileInfo]) -> list[RollbackPartition]:
        """Deletes the files. First the instant stops being completed, so that no reader misses one.

        Raises ConflictError where its writer, presumed dead, wrote more meanwhile.
        """
        self.metadata_timeline.active.remove(failed, Action.DELTA_COMMIT, State.COMPLETED)
        for info in files:
            self.storage.delete(info.path)
        self.metadata_timeline.active.undo(failed, Action.DELTA_COMMIT)
        timeline = self.metadata_timeline.active.load()
        late, _ = self.find(timeline, failed)
        if late or timeline.find(failed, Action.DELTA_COMMIT) is not None:
            raise still_written(failed, late[0].path if late else self.metadata_timeline.active.folder)
        deleted = addresses_by_partition(self.storage, files) or {FILES_PARTITION: ()}
        return [RollbackPartition(partition, addresses) for partition, addresses in deleted.items()]


@dataclass(frozen=True, slots=True)
class CommandBlocks:
    """Of metadata tables whose log files carry the base instant of their slice."""

    storage: Storage
    metadata_timeline: MetadataTimeline

    def instant_of(self, rollback: str) -> str:
        return OperationSuffix.ROLLBACK.of(rollback)

    def find(self, timeline: Timeline, failed: str) -> tuple[list[FileInfo], list[RollbackRequest]]:
        """The log files in which blocks of `failed` count, and requests to cancel them: a look at their headers."""
        groups = self._groups(timeline, failed)
        return [info for _, blocks in groups for info in blocks.live], [
            RollbackRequest(
                place.partition, place.file_id, place.base_instant, (), sizes_by_address(self.storage, blocks.live)
            )
            for place, blocks in groups
            if blocks.live
        ]

    def undo(self, failed: str, rollback: str, files: Sequence[FileInfo]) -> list[RollbackPartition]:
        """Writes commands against blocks that count or may still come, then removes the deltacommit.

        Deltacommit R may have joined a group since `files` were found, so the next versions are those of a new look.
        Raises ConflictError where the instant's writer, presumed dead, wrote more meanwhile.
        """
        timeline = self.metadata_timeline.active.load()
        awaited = self._awaited(timeline.find(failed, Action.DELTA_COMMIT))
        for place, blocks in self._groups(timeline, failed):
            if blocks.live:
                append_command(self.storage, place, failed, rollback)
            elif awaited(place) and all(by != rollback for _, by in blocks.commands):
                append_command(self.storage, place, failed, rollback, behind=1)
        self.metadata_timeline.active.undo(failed, Action.DELTA_COMMIT)
        return self._undone(failed, rollback, files)

    def _awaited(self, delta_commit: Instant | None) -> Callable[[LatestSlice], bool]:
        """Whether an incomplete deltacommit's writer may still put a block there: in `files`, or named inflight."""
        if delta_commit is None or delta_commit.is_completed:
            return lambda place: False
        profile = (
            b"" if delta_commit.state is State.REQUESTED else self.metadata_timeline.active.read_details(delta_commit)
        )
        stats = (
            decode_commit(profile, path=self.metadata_timeline.active.path_of(delta_commit)).partition_to_write_stats
            if profile
            else {}
        )
        named = {(partition, stat.file_id) for partition, items in stats.items() for stat in items}
        return lambda place: place.partition == FILES_PARTITION or (place.partition, place.file_id) in named

    def _undone(self, failed: str, rollback: str, files: Sequence[FileInfo]) -> list[RollbackPartition]:
        """The commands of `rollback`, those of an earlier attempt included, and the logs in `files`."""
        commands: dict[str, dict[str, int]] = {}
        for place, blocks in self._groups(self.metadata_timeline.active.load(), failed):
            if blocks.live:
                raise still_written(failed, blocks.live[0].path)
            for info, instant in blocks.commands:
                if instant == rollback:
                    commands.setdefault(place.partition, {})[status_address(self.storage, info.path)] = info.size
        logs = {name: sizes_by_address(self.storage, found) for name, found in by_partition(files).items()}
        names = sorted({*logs, *commands}) or [FILES_PARTITION]
        return [RollbackPartition(name, (), (), commands.get(name, {}), logs.get(name, {})) for name in names]

    def _groups(self, timeline: Timeline, failed: str) -> list[tuple[LatestSlice, BlocksOf]]:
        return [
            (place, blocks_of(self.storage, place.logs, failed))
            for place in self.metadata_timeline.all_slices(timeline)
        ]


def append_command(storage: Storage, place: LatestSlice, target: str, rollback: str, *, behind: int = 0) -> FileInfo:
    """Appends a command block against `target`, as a separate log file, `behind` versions further on than the next."""
    headers = {
        HeaderKey.INSTANT_TIME: rollback,
        HeaderKey.TARGET_INSTANT_TIME: target,
        HeaderKey.COMMAND_BLOCK_TYPE: ROLLBACK_COMMAND,
    }
    block = encode_block(BlockType.COMMAND, headers)
    name = place.next_log(ROLLBACK_TOKEN)
    path = metadata_path(replace(name, version=name.version + behind), place.partition)
    storage.create_exclusive(path, block)
    return FileInfo(path, len(block), 0.0)


def still_written(failed: str, path: str) -> ConflictError:
    """For a writer that writes `path` under the instant that is rolled back."""
    return ConflictError(
        f"something of the failed instant {failed} appeared while it was rolled back: its writer is still alive",
        path=path,
        remedy="stop that writer, then run the instant again",
    )


def files_written_by(storage: Storage, instants: frozenset[str]) -> list[tuple[FileInfo, str]]:
    """The base and log files of all partitions whose names carry one of `instants`, each with that, by path."""
    return [
        (info, name.instant)
        for partition in partition_folders(storage)
        for info, name in data_files(storage.list_files(f"{ROOT}/{partition}"))
        if name.instant in instants
    ]


def by_partition(files: Iterable[FileInfo]) -> dict[str, list[FileInfo]]:
    found: dict[str, list[FileInfo]] = {}
    for info in files:
        found.setdefault(info.path.removeprefix(f"{ROOT}/").rpartition("/")[0], []).append(info)
    return found


def addresses_by_partition(storage: Storage, files: Iterable[FileInfo]) -> dict[str, tuple[str, ...]]:
    """As rollbacks record them."""
    return {
        name: tuple(plan_address(storage, info.path) for info in found) for name, found in by_partition(files).items()
    }


def sizes_by_address(storage: Storage, files: Iterable[FileInfo]) -> dict[str, int]:
    """Of log files whose blocks are cancelled, as rollbacks record them."""
    return {plan_address(storage, info.path): info.size for info in files}
