"""File groups of a partition of the metadata table: the file slices that readers merge and that new log files join, and
the log blocks that count (AbstractHoodieLogRecordReader). filegroup/read/log_scan.py is for other tables.

File slices are the same as in any table of the layout (view.slicing). In layout 1 a log file's name has the base
instant of its file slice, and a pending compaction starts the next file slice. In layout 2 it has the writing instant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Final

from hudi_core.codec.log.blocks import BlockType, CorruptBlock, LogBlock, ReadAt, walk
from hudi_core.config.table_config import TableConfig
from hudi_core.config.versions import V6
from hudi_core.errors import ConfigError, CorruptFileError, MetadataUnavailableError, StorageNotFoundError
from hudi_core.filegroup.read.log_scan import scan_blocks
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.partition_type import FILES_PARTITION
from hudi_core.model.names import (
    BaseFileName,
    FileGroupId,
    LogFileName,
    WriteToken,
    parse_base_file,
    parse_data_file,
    parse_log_file,
)
from hudi_core.model.partition import join
from hudi_core.storage.base import ByteRange, FileInfo, Storage
from hudi_core.storage.one_look import content_of
from hudi_core.storage.overlapped import each_ahead
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import DataFile, FileGroup
from hudi_core.view.slicing import build_file_groups, slicing_for

ROOT = ".hoodie/metadata"
"""The metadata table's base path, relative to the data table's."""
FOLDER = f"{ROOT}/{FILES_PARTITION}"
_TYPES: Final = frozenset({BlockType.HFILE_DATA, BlockType.DELETE})
UNREADABLE: Final = "read the table without its metadata table; drop it and let Hudi's writer rebuild it"
_WHOLE_FILE: Final = 1 << 20
"""A log file of at most so many bytes is read with one request; the metadata table's have some ten kilobytes."""


@dataclass(frozen=True, slots=True)
class MergedSlice:
    """The newest committed base file of a file group, if any, and the log files on top of it in scan order."""

    file_id: str
    base_file: FileInfo | None
    logs: tuple[FileInfo, ...]

    @property
    def files(self) -> tuple[FileInfo, ...]:
        return self.logs if self.base_file is None else (self.base_file, *self.logs)

    @property
    def base_instant(self) -> str:
        return "" if self.base_file is None else parse_base_file(self.base_file.name).instant


def merged_slices(folder: str, files: Iterable[FileInfo], timeline: Timeline, layout: int) -> list[MergedSlice]:
    """Returns the merged file slices of a partition's file groups, sorted by file id: a key's hash gives the position
    in this list (HoodieTableMetadataUtil.mapRecordKeyToFileGroupIndex). `files` is the listing of `folder`, `timeline`
    the metadata timeline. The file slice that a pending compaction has started and the slice before are merged into
    one (getPartitionLatestMergedFileSlices). This function does not decide whether a log block counts.
    """
    return [_merged(group) for group in file_groups(folder, files, timeline, layout)]


def file_groups(
    folder: str,
    files: Iterable[FileInfo],
    timeline: Timeline,
    layout: int,
    compactions: Iterable[tuple[FileGroupId, str]] = (),
) -> list[FileGroup]:
    """Returns a partition's file groups with all slices (see merged_slices); `compactions` as in build_file_groups."""
    # An archived instant has no completion time here: its log files belong to the newest file slice, and the scan
    # ignores their blocks as not valid (HoodieTableMetadataUtil.getValidInstantTimestamps).
    completions = {instant.requested_time: instant.completed_at for instant in timeline.commits()}
    return build_file_groups(folder, files, slicing_for(layout, timeline, completions.get), compactions=compactions)


def _merged(group: FileGroup) -> MergedSlice:
    base: DataFile | None = None
    logs: list[DataFile] = []
    for item in group.slices:
        logs = [*item.log_files, *logs]
        base = item.base_file
        if base is not None:
            break
    return MergedSlice(group.id.file_id, None if base is None else _info(base), tuple(map(_info, logs)))


def _info(file: DataFile) -> FileInfo:
    return FileInfo(file.path, file.size, 0.0)


@dataclass(frozen=True, slots=True)
class LatestSlice:
    """The file slice that new log files join. `logs` are the log files from the newest base file on, in scan order."""

    file_id: str
    base_instant: str
    base_file: FileInfo | None
    logs: tuple[FileInfo, ...]
    partition: str

    def next_log(self, token: WriteToken, instant: str | None = None) -> LogFileName:
        """Returns the next log file's name, a version above all of `instant` or the base instant (HoodieLogFormat)."""
        owner = self.base_instant if instant is None else instant
        names = (parse_log_file(info.name) for info in self.logs)
        versions = [name.version for name in names if name.instant == owner]
        return LogFileName(self.file_id, owner, max(versions, default=0) + 1, token)


def latest_slices(
    storage: Storage,
    timeline: Timeline,
    partition: str,
    *,
    layout: int,
    pending: Mapping[FileGroupId, str] | None = None,
) -> list[LatestSlice]:
    """Returns the latest file slices of all file groups of a partition, in the order of merged_slices. `pending` is the
    result of pending_bases, for layout 1. Raises StorageNotFoundError when the partition has no file group.
    """
    folder = f"{ROOT}/{partition}"
    files = storage.list_files(folder)
    slices = merged_slices(folder, files, timeline, layout)
    if not slices:
        message = f"hoodie.properties lists the metadata partition `{partition}`, but it holds no file group"
        remedy = "take it off the list with `hudictl metadata drop TABLE --partition …`, then create it again"
        raise StorageNotFoundError(message, path=folder, remedy=remedy)
    planned = pending or {}
    found = []
    for item in slices:
        instants = (parse_log_file(info.name).instant for info in item.logs)
        if layout == V6.layout:
            start = max([item.base_instant, planned.get(FileGroupId(partition, item.file_id), ""), *instants])
        else:
            start = item.base_instant or min(instants, default="")
        place = LatestSlice(item.file_id, start, item.base_file, item.logs, partition)
        found.append(place if start else _unfinished(place, files))
    return found


def pending_bases(active: ActiveTimeline, timeline: Timeline) -> dict[FileGroupId, str]:
    """Returns, by file group, its pending compaction: in layout 1 the next log files join the slice that it starts."""
    plans = active.read_plans(timeline)
    return {
        FileGroupId(item.partition, item.file_id): instant
        for instant, plan in sorted(plans.items())
        for item in plan.operations
    }


def _unfinished(item: LatestSlice, files: Iterable[FileInfo]) -> LatestSlice:
    """Returns the first file slice of a file group while its partition is built, with the log files of commits."""
    named = [(info, name) for info, name in data_files(files) if name.file_id == item.file_id]
    logs = [(name.scan_order, info) for info, name in named if isinstance(name, LogFileName)]
    ordered = tuple(info for _, info in sorted(logs, key=lambda log: log[0]))
    return replace(item, base_instant=min(name.instant for _, name in named), logs=ordered)


def log_reader(storage: Storage, info: FileInfo) -> ReadAt:
    """Returns a function that reads (start, length) of a log file, and returns fewer bytes only at the end of it."""
    if info.size > _WHOLE_FILE:
        return lambda start, length: storage.read_range(info.path, ByteRange(start, length))
    data = content_of(storage, info, lambda: storage.read(info.path)) if info.size else b""
    return lambda start, length: data[start : start + length]


def _readers(storage: Storage, logs: Iterable[FileInfo]) -> Iterator[tuple[FileInfo, ReadAt]]:
    return each_ahead(storage, logs, partial(log_reader, storage))


@dataclass(frozen=True, slots=True)
class BlockFilter:
    """The log blocks that count, by instant. `stop_at_newer`: a block after `latest` ends the scan (1.x: skipped)."""

    instants: frozenset[str]
    latest: str
    stop_at_newer: bool = True


def live_blocks(storage: Storage, logs: Iterable[FileInfo], blocks: BlockFilter) -> list[LogBlock]:
    """Returns the blocks that count, in merge order (filegroup.read.log_scan), without contents. Raises
    CorruptFileError for a damaged block that no command rolls back: its records would be missing (Hudi skips it).
    """
    scan = scan_blocks(
        chain.from_iterable(walk(read_at, info.size, info.path) for info, read_at in _readers(storage, logs)),
        blocks.instants.__contains__,
        latest_instant=blocks.latest,
        stop_at_newer=blocks.stop_at_newer,
        types=_TYPES,
        remedy=UNREADABLE,
    )
    if scan.corrupt:
        first = scan.corrupt[0]
        raise CorruptFileError(
            f"damaged block at byte {first.offset}: {first.reason}", path=first.path, remedy=UNREADABLE
        )
    return list(scan.blocks)


def read_content(block: LogBlock, offset: int, length: int) -> bytes:
    """Returns `length` bytes of the block's content from `offset`; fewer only at its end."""
    return block.read_at(block.content_offset + offset, max(0, min(length, block.content_length - offset)))


@dataclass(frozen=True, slots=True)
class BlocksOf:
    """The blocks of one instant: the log files with counting blocks, and the (file, instant) of commands against it."""

    live: tuple[FileInfo, ...] = ()
    commands: tuple[tuple[FileInfo, str], ...] = ()


def blocks_of(storage: Storage, logs: Iterable[FileInfo], instant: str) -> BlocksOf:
    """Returns the blocks of `instant` that no later command rolls back (AbstractHoodieLogRecordReader.scanInternalV1).
    A block of any writer counts for readers as soon as its instant completes on the data timeline. So an attempt may
    publish only when no block of its instant is live. Raises CorruptFileError for a damaged log file.
    """
    return blocks_by_instant(storage, logs).get(instant, BlocksOf())


def blocks_by_instant(storage: Storage, logs: Iterable[FileInfo]) -> dict[str, BlocksOf]:
    """Returns the blocks of every instant that wrote a block or was a command's target. Reads each log file once."""
    live: dict[str, dict[str, FileInfo]] = {}
    commands: dict[str, list[tuple[FileInfo, str]]] = {}
    for info, read_at in _readers(storage, logs):
        for block in walk(read_at, info.size, info.path):
            if isinstance(block, CorruptBlock):
                message = f"the metadata table's log file has a damaged block: {block.reason}"
                remedy = "drop the metadata table and let Hudi's writer rebuild it"
                raise CorruptFileError(message, path=info.path, remedy=remedy)
            target = block.target_instant_time
            if block.is_rollback and target is not None:
                live.pop(target, None)
                commands.setdefault(target, []).append((info, block.instant_time or ""))
            elif block.type is not BlockType.COMMAND and block.instant_time is not None:
                live.setdefault(block.instant_time, {})[info.path] = info
    return {
        instant: BlocksOf(tuple(live.get(instant, {}).values()), tuple(commands.get(instant, ())))
        for instant in {*live, *commands}
    }


def metadata_path(name: LogFileName, partition: str) -> str:
    return join(f"{ROOT}/{partition}", str(name))


def load_metadata_config(storage: Storage) -> TableConfig:
    """Reads the metadata table's own properties. Raises MetadataUnavailableError when they cannot be read."""
    try:
        return TableConfig.load(storage, base=ROOT)
    except ConfigError as error:
        message = f"the table's metadata table cannot be read: {error.message}"
        raise MetadataUnavailableError(message, path=error.path) from error


def data_files(files: Iterable[FileInfo]) -> Iterator[tuple[FileInfo, BaseFileName | LogFileName]]:
    for info in files:
        name = parse_data_file(info.name)
        if name is not None:
            yield info, name


def partition_folders(storage: Storage) -> list[str]:
    """Returns the partitions with a folder, sorted; also indexes that are being built, or whose build crashed."""
    names = (folder.rpartition("/")[2] for folder in storage.list_folders(ROOT))
    return sorted(name for name in names if name != ".hoodie")
