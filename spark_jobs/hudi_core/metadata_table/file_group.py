"""Where the metadata table's `files` partition takes its next log file, and which blocks of an instant count in it: table version 6.

The partition has one file group, `files-0000-0` (MetadataPartitionType.FILES). A log file's name carries the base instant of its slice,
and a pending compaction starts the next slice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hudi_core.codec.log.blocks import BlockType, CorruptBlock
from hudi_core.codec.log.frames import walk
from hudi_core.config.versions import V6
from hudi_core.errors import CorruptFileError, StorageNotFoundError, UnsupportedError
from hudi_core.metadata_table.slices import merged_slices
from hudi_core.model.ids import WriteToken
from hudi_core.model.names import LogFileName, parse_base_file, parse_data_file
from hudi_core.model.partition import join
from hudi_core.storage.base import ByteRange, FileInfo, Storage
from hudi_core.timeline.query import Timeline

ROOT = ".hoodie/metadata"
"""The metadata table's base path, below the data table's."""
FILES_PARTITION = "files"
FOLDER = f"{ROOT}/{FILES_PARTITION}"

_WHOLE_FILE = 1 << 20
"""Log files up to this many bytes are read with one request: the metadata table's are some ten kilobytes."""


@dataclass(frozen=True, slots=True)
class LatestSlice:
    """The slice that new log files join. `logs` are those of the merged latest slice, in scan order: from the newest base file on."""

    file_id: str
    base_instant: str
    base_file: FileInfo | None
    logs: tuple[FileInfo, ...]

    def next_log(self, token: WriteToken) -> LogFileName:
        """The name of the next log file: one version above every log file of this base instant (HoodieLogFormat.WriterBuilder)."""
        versions = [name.version for name in map(_log_name, self.logs) if name.instant == self.base_instant]
        return LogFileName(self.file_id, self.base_instant, max(versions, default=0) + 1, token)


def latest_slice(storage: Storage, timeline: Timeline) -> LatestSlice:
    """The `files` file group's latest slice, by one listing and the metadata table's own timeline.

    Raises StorageNotFoundError when the partition holds no file group, UnsupportedError when it holds several.
    """
    slices = merged_slices(FOLDER, storage.list_files(FOLDER), timeline, V6.layout)
    if not slices:
        raise StorageNotFoundError(
            "hoodie.properties lists the metadata partition `files`, but it holds no file group",
            path=FOLDER,
            remedy="let Hudi's next write rebuild the metadata table, or take the key out of hoodie.properties",
        )
    if len(slices) > 1:
        raise UnsupportedError(f"the metadata partition `files` has {len(slices)} file groups, expected one", path=FOLDER)
    found = slices[0]
    start = "" if found.base_file is None else parse_base_file(found.base_file.name).instant
    pending = [instant.requested_time for instant in timeline.pending_compactions()]
    base_instant = max([start, *pending, *(_log_name(info).instant for info in found.logs)])
    return LatestSlice(found.file_id, base_instant, found.base_file, found.logs)


@dataclass(frozen=True, slots=True)
class BlocksOf:
    """What a scan finds of one instant: log files with blocks that count, and the (file, instant) of rollback commands against it."""

    live: tuple[FileInfo, ...]
    commands: tuple[tuple[FileInfo, str], ...]


def blocks_of(storage: Storage, logs: Iterable[FileInfo], instant: str) -> BlocksOf:
    """The blocks of `instant` that no later rollback command in the scan takes back (scan rules of facts 5.6, V1).

    A block counts for readers as soon as its instant completes on the data timeline, whoever wrote it, so an attempt may only publish when
    nothing of its instant is live. Raises CorruptFileError for a damaged log file: nobody may guess here.
    """
    live: list[FileInfo] = []
    commands: list[tuple[FileInfo, str]] = []
    for info in logs:
        for block in walk(_reader(storage, info), info.size, info.path):
            if isinstance(block, CorruptBlock):
                raise CorruptFileError(
                    f"the metadata table's log file has a damaged block: {block.reason}",
                    path=info.path,
                    remedy="drop the metadata table and let Hudi's writer rebuild it",
                )
            if block.is_rollback and block.target_instant_time == instant:
                live.clear()
                commands.append((info, block.instant_time or ""))
            elif block.type is not BlockType.COMMAND and block.instant_time == instant and info not in live:
                live.append(info)
    return BlocksOf(tuple(live), tuple(commands))


def metadata_path(name: LogFileName) -> str:
    """The path of a log file of the partition, relative to the data table's base path."""
    return join(FOLDER, str(name))


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
