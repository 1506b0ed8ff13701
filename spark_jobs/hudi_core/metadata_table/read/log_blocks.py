"""Which blocks of a metadata-table file group's log files hold records that count (AbstractHoodieLogRecordReader,
HoodieTableMetadataUtil.getValidInstantTimestamps).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from hudi_core.codec.log.blocks import BlockType, CorruptBlock, LogBlock
from hudi_core.codec.log.frames import ReadAt, walk
from hudi_core.errors import CorruptFileError
from hudi_core.filegroup.read.log_scan import scan_blocks
from hudi_core.storage.base import ByteRange, FileInfo, Storage

_TYPES: Final = frozenset({BlockType.HFILE_DATA, BlockType.DELETE})
_REMEDY = "read the table without its metadata table; drop it and let Hudi's writer rebuild it"
_WHOLE_FILE = 1 << 20
"""Log files up to this many bytes are read with one request: the metadata table's are some ten kilobytes."""


def log_reader(storage: Storage, info: FileInfo) -> ReadAt:
    """Reads bytes of a log file: (start, length), fewer bytes only where it ends."""
    if info.size > _WHOLE_FILE:
        return lambda start, length: storage.read_range(info.path, ByteRange(start, length))
    data = storage.read(info.path) if info.size else b""
    return lambda start, length: data[start : start + length]


@dataclass(frozen=True, slots=True)
class BlockFilter:
    """Which data blocks count: those of `instants`, but nothing after `latest`.

    `stop_at_newer`: the first block after `latest` ends the scan, as in Hudi 0.15; else only that block is passed over,
    as in 1.x.
    """

    instants: frozenset[str]
    latest: str
    stop_at_newer: bool = True


@dataclass(frozen=True, slots=True)
class LiveBlock:
    """An HFile or delete block that counts. `read_at` reads its log file."""

    block: LogBlock
    read_at: ReadAt

    @property
    def schema(self) -> str:
        """The Avro schema of the block's records; raises CorruptFileError when the block carries none."""
        text = self.block.schema
        if text is None:
            raise CorruptFileError(
                f"data block at byte {self.block.offset} has no schema", path=self.block.path, remedy=_REMEDY
            )
        return text

    def content(self) -> bytes:
        """The whole content."""
        return self.read_range(0, self.block.content_length)

    def read_range(self, offset: int, length: int) -> bytes:
        """Bytes of the content, fewer only where it ends."""
        return self.read_at(self.block.content_offset + offset, max(0, min(length, self.block.content_length - offset)))


def live_blocks(storage: Storage, logs: Iterable[FileInfo], blocks: BlockFilter) -> list[LiveBlock]:
    """The blocks that count in the order in which they merge, by the scan of any table's log files
    (filegroup.read.log_scan).

    Headers are read, contents are not. Raises CorruptFileError for a damaged block that no later rollback cancels: its
    records are lost, and an answer without them would be silently wrong (Hudi passes over such a block).
    """
    readers: dict[str, ReadAt] = {}

    def walk_all() -> Iterator[LogBlock | CorruptBlock]:
        for info in logs:
            read_at = readers[info.path] = log_reader(storage, info)
            yield from walk(read_at, info.size, info.path)

    scan = scan_blocks(
        walk_all(),
        blocks.instants.__contains__,
        latest_instant=blocks.latest,
        stop_at_newer=blocks.stop_at_newer,
        types=_TYPES,
        remedy=_REMEDY,
    )
    if scan.corrupt:
        first = scan.corrupt[0]
        raise CorruptFileError(f"damaged block at byte {first.offset}: {first.reason}", path=first.path, remedy=_REMEDY)
    return [LiveBlock(block, readers[block.path]) for block in scan.blocks]
