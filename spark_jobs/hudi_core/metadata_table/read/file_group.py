"""Where a partition of the metadata table takes its next log files, and which blocks of an instant count in its log
files.

In layout 1 a log file's name carries the base instant of its slice, and a pending compaction starts the next slice. In
layout 2 it carries the instant that writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from hudi_core.codec.log.blocks import BlockType, CorruptBlock
from hudi_core.codec.log.frames import walk
from hudi_core.config.versions import V6
from hudi_core.errors import CorruptFileError, StorageNotFoundError, UnsupportedError
from hudi_core.metadata_table.partition_type import FILES_PARTITION
from hudi_core.metadata_table.read.slices import MergedSlice, merged_slices
from hudi_core.model.names import FileGroupId, LogFileName, WriteToken, parse_base_file, parse_data_file
from hudi_core.model.partition import join
from hudi_core.storage.base import ByteRange, FileInfo, Storage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.timeline import Timeline

ROOT = ".hoodie/metadata"
"""The metadata table's base path, below the data table's."""
FOLDER = f"{ROOT}/{FILES_PARTITION}"

_WHOLE_FILE = 1 << 20
"""Log files up to this many bytes are read with one request: the metadata table's are some ten kilobytes."""


@dataclass(frozen=True, slots=True)
class LatestSlice:
    """The slice that new log files join. `logs` are those of the merged latest slice, in scan order: from the newest
    base file on.
    """

    file_id: str
    base_instant: str
    base_file: FileInfo | None
    logs: tuple[FileInfo, ...]
    partition: str = FILES_PARTITION

    def next_log(self, token: WriteToken, instant: str | None = None) -> LogFileName:
        """The name of the next log file (HoodieLogFormat.WriterBuilder): one version above every log file of this base
        instant.

        In layout 2 `instant` is the one that writes it; it takes the base instant's place.
        """
        owner = self.base_instant if instant is None else instant
        versions = [name.version for name in map(_log_name, self.logs) if name.instant == owner]
        return LogFileName(self.file_id, owner, max(versions, default=0) + 1, token)


def latest_slice(storage: Storage, timeline: Timeline) -> LatestSlice:
    """The `files` file group's latest slice in layout 1, by one listing and the metadata timeline.

    Raises StorageNotFoundError when the partition holds no file group, UnsupportedError when it holds several.
    """
    slices = merged_slices(FOLDER, storage.list_files(FOLDER), timeline, V6.layout)
    if not slices:
        raise _no_file_group(FILES_PARTITION)
    if len(slices) > 1:
        raise UnsupportedError(
            f"the metadata partition `files` has {len(slices)} file groups, expected one", path=FOLDER
        )
    pending = [instant.requested_time for instant in timeline.pending_compactions()]
    return _of_base_instant(slices[0], FILES_PARTITION, max(pending, default=""))


def latest_slices(
    storage: Storage,
    timeline: Timeline,
    partition: str,
    *,
    layout: int,
    pending: Mapping[FileGroupId, str] | None = None,
) -> list[LatestSlice]:
    """The latest slices of all file groups of a partition, sorted by file id: a key's hash gives the position
    (HoodieTableMetadataUtil.mapRecordKeyToFileGroupIndex).

    `pending` is the result of pending_bases; only layout 1 needs it. Raises StorageNotFoundError when the partition
    holds no file group.
    """
    folder = f"{ROOT}/{partition}"
    files = storage.list_files(folder)
    slices = merged_slices(folder, files, timeline, layout)
    if not slices:
        raise _no_file_group(partition)
    if layout != V6.layout:
        found = [LatestSlice(item.file_id, _start(item), item.base_file, item.logs, partition) for item in slices]
        return [item if item.base_instant else _unfinished(item, files) for item in found]
    planned = pending or {}
    found = [
        _of_base_instant(item, partition, planned.get(FileGroupId(partition, item.file_id), "")) for item in slices
    ]
    return [item if item.base_instant else _unfinished(item, files) for item in found]


def pending_bases(active: ActiveTimeline, timeline: Timeline) -> dict[FileGroupId, str]:
    """By file group, the pending compaction of the metadata table that merges it: in layout 1 its next logs go on top
    of that.
    """
    plans = active.read_plans(timeline)
    return {
        FileGroupId(item.partition, item.file_id): instant
        for instant, plan in sorted(plans.items())
        for item in plan.operations
    }


def _of_base_instant(item: MergedSlice, partition: str, pending: str) -> LatestSlice:
    start = "" if item.base_file is None else parse_base_file(item.base_file.name).instant
    base_instant = max([start, pending, *(_log_name(info).instant for info in item.logs)])
    return LatestSlice(item.file_id, base_instant, item.base_file, item.logs, partition)


def _start(item: MergedSlice) -> str:
    """The base instant of a slice in layout 2: that of its base file, else of its first log file; empty where neither
    shows.
    """
    if item.base_file is not None:
        return parse_base_file(item.base_file.name).instant
    return min((_log_name(info).instant for info in item.logs), default="")


def _unfinished(item: LatestSlice, files: Iterable[FileInfo]) -> LatestSlice:
    """The first slice of a group while its partition is built, which is not visible yet, with the logs that commits
    added to it.
    """
    names = [
        (name, info)
        for info in files
        for name in [parse_data_file(info.name)]
        if name is not None and name.file_id == item.file_id
    ]
    logs = sorted(
        ((name.scan_order, info) for name, info in names if isinstance(name, LogFileName)), key=lambda item: item[0]
    )
    return replace(item, base_instant=min(name.instant for name, _ in names), logs=tuple(info for _, info in logs))


def _no_file_group(partition: str) -> StorageNotFoundError:
    return StorageNotFoundError(
        f"hoodie.properties lists the metadata partition `{partition}`, but it holds no file group",
        path=f"{ROOT}/{partition}",
        remedy="let Hudi's next write rebuild the metadata table, or take the key out of hoodie.properties",
    )


@dataclass(frozen=True, slots=True)
class BlocksOf:
    """What a scan finds of one instant: log files with blocks that count, and the (file, instant) of rollback commands
    against it.
    """

    live: tuple[FileInfo, ...]
    commands: tuple[tuple[FileInfo, str], ...]


def blocks_of(storage: Storage, logs: Iterable[FileInfo], instant: str) -> BlocksOf:
    """The blocks of `instant` that no later rollback command in the scan cancels
    (AbstractHoodieLogRecordReader.scanInternalV1).

    A block counts for readers as soon as its instant completes on the data timeline, regardless of its writer, so an
    attempt may only publish when no block of its instant is live. Raises CorruptFileError for a damaged log file.
    """
    return blocks_by_instant(storage, logs).get(instant, BlocksOf((), ()))


def blocks_by_instant(storage: Storage, logs: Iterable[FileInfo]) -> dict[str, BlocksOf]:
    """As blocks_of, for every instant that wrote a block or was the target of a command; each log file is read once."""
    live: dict[str, list[FileInfo]] = {}
    commands: dict[str, list[tuple[FileInfo, str]]] = {}
    for info in logs:
        for block in walk(_reader(storage, info), info.size, info.path):
            if isinstance(block, CorruptBlock):
                raise CorruptFileError(
                    f"the metadata table's log file has a damaged block: {block.reason}",
                    path=info.path,
                    remedy="drop the metadata table and let Hudi's writer rebuild it",
                )
            target = block.target_instant_time
            if block.is_rollback and target is not None:
                live.pop(target, None)
                commands.setdefault(target, []).append((info, block.instant_time or ""))
            elif block.type is not BlockType.COMMAND and block.instant_time is not None:
                found = live.setdefault(block.instant_time, [])
                if info not in found:
                    found.append(info)
    return {
        instant: BlocksOf(tuple(live.get(instant, ())), tuple(commands.get(instant, ())))
        for instant in {*live, *commands}
    }


def metadata_path(name: LogFileName, partition: str = FILES_PARTITION) -> str:
    """The path of a log file of a partition, relative to the data table's base path."""
    return join(f"{ROOT}/{partition}", str(name))


def partition_folders(storage: Storage) -> list[str]:
    """The names of the metadata table's partitions that have a folder, listed in hoodie.properties or not, sorted.

    An index that is being built has one, and so has what a crash left of an index that was dropped.
    """
    names = (folder.rpartition("/")[2] for folder in storage.list_folders(ROOT))
    return sorted(name for name in names if name != ".hoodie")


def _log_name(info: FileInfo) -> LogFileName:
    name = parse_data_file(info.name)
    if not isinstance(name, LogFileName):
        raise CorruptFileError("not the name of a log file", path=info.path)
    return name


def _reader(storage: Storage, info: FileInfo) -> Callable[[int, int], bytes]:
    if info.size > _WHOLE_FILE:
        return lambda start, length: storage.read_range(info.path, ByteRange(start, length))
    data = storage.read(info.path) if info.size else b""
    return lambda start, length: data[start : start + length]
