"""Which blocks of a metadata-table file group's log files hold records that count (AbstractHoodieLogRecordReader; facts 5.6, 8.8)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from hudi_core.codec.log.blocks import BlockType, CorruptBlock, LogBlock
from hudi_core.codec.log.frames import ReadAt, walk
from hudi_core.errors import CorruptFileError, UnsupportedError
from hudi_core.storage.base import FileInfo

OpenLog = Callable[[FileInfo], ReadAt]
"""How the bytes of a log file are read by ranges."""

_REMEDY = "read the table without its metadata table; drop it and let Hudi's writer rebuild it"


@dataclass(frozen=True, slots=True)
class BlockFilter:
    """Which data blocks count: instants that are `committed` on the metadata table's own timeline and in `valid`; nothing after `latest`.

    `stops_at_newer`: the first block after `latest` ends the scan, as in Hudi 0.15; else only that block is passed over, as in 1.x.
    """

    committed: Callable[[str], bool]
    valid: frozenset[str]
    latest: str
    stops_at_newer: bool = True

    def accepts(self, instant: str) -> bool:
        """Whether a block of this instant counts."""
        return instant <= self.latest and instant in self.valid and self.committed(instant)


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
            raise CorruptFileError(f"data block at byte {self.block.offset} has no schema", path=self.block.path, remedy=_REMEDY)
        return text

    def content(self) -> bytes:
        """The whole content."""
        return self.read_range(0, self.block.content_length)

    def read_range(self, offset: int, length: int) -> bytes:
        """Bytes of the content, fewer only where it ends."""
        return self.read_at(self.block.content_offset + offset, max(0, min(length, self.block.content_length - offset)))


def live_blocks(logs: Iterable[FileInfo], open_log: OpenLog, blocks: BlockFilter) -> list[LiveBlock]:
    """The blocks that count, oldest first: rollback commands take the blocks of their target away, and damaged ones.

    Headers are read, contents are not. Raises CorruptFileError for a damaged block that no later rollback takes away: its records are lost,
    and an answer without them would be silently wrong (Hudi passes over such a block).
    """
    live: list[LiveBlock] = []
    damaged: list[CorruptBlock] = []
    for block, read_at in _walk_all(logs, open_log):
        if isinstance(block, CorruptBlock):
            damaged.append(block)
            continue
        instant = _instant(block)
        if instant > blocks.latest and blocks.stops_at_newer:
            break
        if block.is_rollback:
            target = block.target_instant_time
            live = [entry for entry in live if entry.block.instant_time != target]
            damaged = []
        elif block.type not in (BlockType.HFILE_DATA, BlockType.DELETE):
            raise UnsupportedError(f"a {block.type.name} block does not belong in the metadata table", path=block.path, remedy=_REMEDY)
        elif blocks.accepts(instant):
            live.append(LiveBlock(block, read_at))
    if damaged:
        raise CorruptFileError(f"damaged block at byte {damaged[0].offset}: {damaged[0].reason}", path=damaged[0].path, remedy=_REMEDY)
    return live


def _walk_all(logs: Iterable[FileInfo], open_log: OpenLog) -> Iterator[tuple[LogBlock | CorruptBlock, ReadAt]]:
    for info in logs:
        read_at = open_log(info)
        for block in walk(read_at, info.size, info.path):
            yield block, read_at


def _instant(block: LogBlock) -> str:
    instant = block.instant_time
    if instant is None:
        raise CorruptFileError(f"block at byte {block.offset} does not say which instant wrote it", path=block.path, remedy=_REMEDY)
    return instant
