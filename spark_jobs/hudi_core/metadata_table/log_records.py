"""The merged records of the `files` partition's log files (HoodieMetadataLogRecordReader over AbstractHoodieLogRecordReader, Hudi 0.15)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from hudi_core.codec.hfile.reader import HFileReader
from hudi_core.codec.log.blocks import BlockType, CorruptBlock, LogBlock
from hudi_core.codec.log.content import decode_delete_block
from hudi_core.codec.log.frames import ReadAt, walk
from hudi_core.errors import CorruptFileError, UnsupportedError
from hudi_core.metadata_table.files import merge
from hudi_core.metadata_table.record import FilesRecord, RecordCodec
from hudi_core.storage.base import FileInfo

OpenLog = Callable[[FileInfo], ReadAt]
"""How the bytes of a log file are read by ranges."""

_REMEDY = "read the table without its metadata table; drop it and let Hudi's writer rebuild it"


@dataclass(frozen=True, slots=True)
class BlockFilter:
    """Which data blocks count: instants that are `committed` on the metadata table's own timeline and in `valid`; nothing after `latest`."""

    committed: Callable[[str], bool]
    valid: frozenset[str]
    latest: str

    def accepts(self, instant: str) -> bool:
        """Whether a block of this instant counts."""
        return instant in self.valid and self.committed(instant)


def merged_records(logs: Iterable[FileInfo], open_log: OpenLog, blocks: BlockFilter) -> dict[str, FilesRecord]:
    """The records of the log files, in scan order, merged by key.

    Raises CorruptFileError for a damaged block that no later rollback takes away: its records are lost, and a listing without them would be
    silently wrong (Hudi passes over such a block).
    """
    records: dict[str, FilesRecord] = {}
    codecs: dict[str, RecordCodec] = {}
    for block, read_at in _live_blocks(logs, open_log, blocks):
        content = read_at(block.content_offset, block.content_length)
        if block.type is BlockType.DELETE:
            if decode_delete_block(content, path=block.path):
                raise UnsupportedError("the metadata partition `files` holds deletes of whole records, which Hudi does not write", path=block.path)
            continue
        for key, value in HFileReader.of_bytes(content, block.path).items():
            record = _codec(codecs, block).decode(key, value)
            older = records.get(record.key)
            records[record.key] = record if older is None else merge(older, record, path=block.path)
    return records


def _codec(codecs: dict[str, RecordCodec], block: LogBlock) -> RecordCodec:
    schema = block.schema
    if schema is None:
        raise CorruptFileError(f"data block at byte {block.offset} has no schema", path=block.path, remedy=_REMEDY)
    if schema not in codecs:
        codecs[schema] = RecordCodec(schema, path=block.path)
    return codecs[schema]


def _live_blocks(logs: Iterable[FileInfo], open_log: OpenLog, blocks: BlockFilter) -> list[tuple[LogBlock, ReadAt]]:
    """The blocks that count, oldest first: rollback commands take the blocks of their target away, and damaged ones."""
    live: list[tuple[LogBlock, ReadAt]] = []
    damaged: list[CorruptBlock] = []
    for block, read_at in _walk_all(logs, open_log):
        if isinstance(block, CorruptBlock):
            damaged.append(block)
            continue
        instant = _instant(block)
        if instant > blocks.latest:
            break
        if block.is_rollback:
            target = block.target_instant_time
            live = [entry for entry in live if entry[0].instant_time != target]
            damaged = []
        elif block.type not in (BlockType.HFILE_DATA, BlockType.DELETE):
            raise UnsupportedError(f"a {block.type.name} block does not belong in the metadata table", path=block.path, remedy=_REMEDY)
        elif blocks.accepts(instant):
            live.append((block, read_at))
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
