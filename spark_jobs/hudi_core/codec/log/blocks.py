"""Reads and writes log files: block types and headers (HoodieLogBlock), reading (HoodieLogFileReader), writing
(HoodieLogFormatWriter). filegroup/read/torn_tails.py says whether a corrupt block lost rows.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from enum import IntEnum

from hudi_core.codec.binary import Reader
from hudi_core.errors import CorruptFileError, FormatError, UnsupportedError
from hudi_core.frozen import dataclass

MAGIC = b"#HUDI#"
FORMAT_VERSION = 1
"""The only framing written since Hudi 0.5 (HoodieLogFormat.CURRENT_VERSION)."""


class BlockType(IntEnum):
    """Ordinals of HoodieLogBlockType. CORRUPT is never written; a reader uses it for bytes that are no block."""

    COMMAND = 0
    DELETE = 1
    CORRUPT = 2
    AVRO_DATA = 3
    HFILE_DATA = 4
    PARQUET_DATA = 5
    CDC_DATA = 6


class HeaderKey(IntEnum):
    """Ordinals of HeaderMetadataType. Hudi 0.15 (table version 6) knows 0 to 6 only."""

    INSTANT_TIME = 0
    TARGET_INSTANT_TIME = 1
    SCHEMA = 2
    COMMAND_BLOCK_TYPE = 3
    COMPACTED_BLOCK_TIMES = 4
    RECORD_POSITIONS = 5
    BLOCK_IDENTIFIER = 6
    IS_PARTIAL = 7
    BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS = 8


LAST_V6_HEADER = HeaderKey.BLOCK_IDENTIFIER
ROLLBACK_COMMAND = "0"
"""COMMAND_BLOCK_TYPE of ROLLBACK_BLOCK, the only command."""


@dataclass(frozen=True, slots=True)
class LogBlock:
    """A block's frame without its content. Offsets and lengths are bytes of the file, magic included."""

    type: BlockType
    headers: dict[HeaderKey, str]
    content_offset: int
    content_length: int
    path: str
    offset: int
    length: int
    read_at: ReadAt = field(repr=False, compare=False)

    @property
    def instant_time(self) -> str | None:
        """The instant that wrote the block; None in blocks of the archived timeline."""
        return self.headers.get(HeaderKey.INSTANT_TIME)

    @property
    def target_instant_time(self) -> str | None:
        """In a rollback command, the instant whose blocks no longer count."""
        return self.headers.get(HeaderKey.TARGET_INSTANT_TIME)

    @property
    def schema(self) -> str | None:
        return self.headers.get(HeaderKey.SCHEMA)

    @property
    def is_partial(self) -> bool:
        """Whether the records have only the columns of `schema` (HoodieDataBlock.containsPartialUpdates)."""
        return self.headers.get(HeaderKey.IS_PARTIAL, "false").lower() == "true"

    @property
    def record_positions(self) -> str | None:
        """The rows of a base file of which the records are newer versions, encoded (codec.log.positions)."""
        return self.headers.get(HeaderKey.RECORD_POSITIONS)

    @property
    def positions_instant(self) -> str | None:
        return self.headers.get(HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS)

    @property
    def is_rollback(self) -> bool:
        return self.type is BlockType.COMMAND and self.headers.get(HeaderKey.COMMAND_BLOCK_TYPE) == ROLLBACK_COMMAND


@dataclass(frozen=True, slots=True)
class CorruptBlock:
    """Bytes that are no block: `length` bytes whose magic starts at `offset`. `reason` names what did not fit."""

    path: str
    offset: int
    length: int
    reason: str

    def describe(self) -> str:
        return (
            f"{self.path}: corrupt log block of {self.length} bytes at byte {self.offset} is skipped, rows may be "
            f"missing: {self.reason}"
        )

    @property
    def type(self) -> BlockType:
        return BlockType.CORRUPT


ReadAt = Callable[[int, int], bytes]
"""`read_at(offset, length)` returns bytes of the file, fewer only at its end."""

_WINDOW = 64 << 10
"""Bytes of one read, for the end of a block and the next block's header with a schema of usual size."""
_SCAN = 1 << 20
_MAX_HEADER = 64 << 20
_MAX_CORRUPT = 10_000
"""The most corrupt blocks of one file that are passed over. A failed write leaves one or two."""
_SMALLEST = 4 + 4 + 4 + 8 + 4 + 8
"""The least blockSize: version, type, header count, content length, footer count, reverse pointer."""
_REMEDY = "restore the file from a copy, or roll back the instant that wrote it"


def walk(read_at: ReadAt, size: int, path: str) -> Iterator[LogBlock | CorruptBlock]:
    """Yields the blocks of a log file of `size` bytes in file order, without their content. Fewer bytes than a magic at
    the end count as the end of the file, as in Hudi.

    Bytes that start with a magic and do not frame a block are one CorruptBlock, up to the next magic. Hudi skips that
    check on storage whose writes are all or nothing (s3, s3a, gs). Raises CorruptFileError naming `path` when the file
    does not start with the magic, for a broken header, and for more than _MAX_CORRUPT corrupt blocks; UnsupportedError
    for a framing or header that a newer Hudi may write.
    """
    window = _Window(read_at, size, path)
    position = corrupt = 0
    while size - position >= len(MAGIC):
        if window.get(position, len(MAGIC)) != MAGIC:
            what = "a log file" if position == 0 else "a log block"
            message = f"byte {position} does not start {what}: the magic #HUDI# is missing"
            raise CorruptFileError(message, path=path, remedy=_REMEDY)
        fault = _frame_fault(window, position)
        if fault:
            corrupt += 1
            if corrupt > _MAX_CORRUPT:
                message = f"more than {_MAX_CORRUPT} corrupt blocks, the last at byte {position}: {fault}"
                raise CorruptFileError(message, path=path, remedy=_REMEDY)
            end = window.find(MAGIC, position + len(MAGIC))
            yield CorruptBlock(path, position, end - position, fault)
            position = end
            continue
        block = _read_frame(window, position)
        yield block
        position += block.length


class _Window:
    """The two parts of the file that were read last: a block's start and its end. Other reads fetch a new part."""

    def __init__(self, read_at: ReadAt, size: int, path: str) -> None:
        self.size = size
        self.path = path
        self.read_at = read_at
        self._parts: list[tuple[int, bytes]] = []

    def get(self, offset: int, length: int) -> bytes:
        """Returns exactly `length` bytes. The caller has compared them with the file's size."""
        start, data = self._part(offset, length, _WINDOW)
        return data[offset - start : offset - start + length]

    def find(self, text: bytes, start: int) -> int:
        """Returns where `text` starts next, at or after `start`, or the end of the file. Reads no held part again."""
        position = start
        while self.size - position >= len(text):
            begin, data = self._part(position, len(text), _SCAN)
            place = data.find(text, position - begin)
            if place >= 0:
                return begin + place
            position = begin + len(data) - len(text) + 1
        return self.size

    def _part(self, offset: int, length: int, room: int) -> tuple[int, bytes]:
        """Returns where a part of `length` bytes at `offset` starts, and the part, read with `room` bytes if needed."""
        for start, data in self._parts:
            if start <= offset <= offset + length <= start + len(data):
                return start, data
        data = self.read_at(offset, min(max(length, room), self.size - offset))
        if len(data) < length:
            message = f"read {len(data)} bytes at byte {offset} where {length} were listed; the file changed or is cut"
            raise CorruptFileError(message, path=self.path)
        self._parts = [*self._parts[-1:], (offset, data)]
        return offset, data


def _frame_fault(window: _Window, position: int) -> str:
    """Returns why the block at `position` is corrupt, or an empty text (HoodieLogFileReader.isBlockCorrupted)."""
    start = position + len(MAGIC)
    if window.size - start < 8:
        return "the file ends within the block's size"
    length = int.from_bytes(window.get(start, 8), "big", signed=True)
    body = start + 8
    if length < _SMALLEST:
        return f"size {length} is less than any block's"
    if length > window.size - body:
        return f"size {length} reaches {length - (window.size - body)} bytes past the end of the file"
    end = body + length
    # The read starts at the footer, which is always empty, so that it serves the frame too.
    tail = window.get(end - 12, min(12 + len(MAGIC), window.size - end + 12))[4:]
    pointer = int.from_bytes(tail[:8], "big", signed=True)
    if pointer - len(MAGIC) != length:
        return f"size {length} does not agree with the reverse pointer {pointer}"
    # Fewer bytes than a magic are a write that was cut at its start; Hudi takes them for the end of the file.
    if len(tail) == 8 + len(MAGIC) and tail[8:] != MAGIC:
        return "what follows the block is neither another block nor the end of the file"
    return ""


def _read_frame(window: _Window, position: int) -> LogBlock:
    """Returns the block at `position`. Its size and reverse pointer are known to agree."""
    body = position + len(MAGIC) + 8
    length = int.from_bytes(window.get(body - 8, 8), "big", signed=True)
    # The length of the header map is known only entry by entry, so more is read until it is covered.
    taken, most = min(length, 4 << 10), min(length, _MAX_HEADER)
    while True:
        reader = Reader(window.get(body, taken), window.path, base=body)
        try:
            kind, headers, content_length = _read_head(reader)
            break
        except CorruptFileError:
            if taken == most:
                raise
            taken = min(most, taken * 8)
    content = reader.position
    footer_room = length - content - content_length - 8
    if content_length < 0 or footer_room < 4:
        message = f"log block at byte {position}: content of {content_length} bytes does not fit a block of {length}"
        raise CorruptFileError(message, path=window.path)
    tail = Reader(
        window.get(body + content + content_length, footer_room), window.path, base=body + content + content_length
    )
    _read_map(tail)
    if not tail.at_end():
        message = f"log block at byte {position}: {tail.remaining} bytes between footer and reverse pointer"
        raise CorruptFileError(message, path=window.path)
    whole = len(MAGIC) + 8 + length
    return LogBlock(kind, headers, body + content, content_length, window.path, position, whole, window.read_at)


def _read_head(reader: Reader) -> tuple[BlockType, dict[HeaderKey, str], int]:
    version = reader.i32()
    if version != FORMAT_VERSION:
        raise UnsupportedError(f"log format version {version}; only {FORMAT_VERSION} is supported", path=reader.path)
    ordinal = reader.i32()
    if ordinal not in _WRITTEN:
        raise CorruptFileError(f"unknown log block type {ordinal} at byte {reader.position}", path=reader.path)
    headers = _read_map(reader)
    return BlockType(ordinal), headers, reader.i64()


_WRITTEN = frozenset(kind for kind in BlockType if kind is not BlockType.CORRUPT)
_KEYS = frozenset(HeaderKey)


def _read_map(reader: Reader) -> dict[HeaderKey, str]:
    count = reader.i32()
    if count < 0:
        raise reader.fail(f"header map of {count} entries")
    entries: dict[HeaderKey, str] = {}
    for _ in range(count):
        ordinal, length = reader.i32(), reader.i32()
        if ordinal not in _KEYS:
            message = f"log block header of unknown kind {ordinal}; a newer Hudi may have written the file"
            raise UnsupportedError(message, path=reader.path)
        entries[HeaderKey(ordinal)] = reader.utf8(length)
    return entries


_HEAD = struct.Struct(">qii")
_I32 = struct.Struct(">i")
_ENTRY = struct.Struct(">ii")
_I64 = struct.Struct(">q")
_MAX_CONTENT = (1 << 31) - 1
"""The most bytes of a block's content: Java holds it in one byte array."""


def encode_block(
    kind: BlockType, headers: Mapping[HeaderKey, str], content: bytes = b"", *, hudi_1_headers: bool = False
) -> bytes:
    """Returns the whole block with its magic, an empty footer and the reverse pointer. `hudi_1_headers` says that
    readers know the headers that Hudi 1.x added; Hudi 0.15 fails on an ordinal above 6. Raises FormatError for a type
    that is never written, for a header that readers may not know, and for content that Java cannot hold.
    """
    if kind is BlockType.CORRUPT:
        raise FormatError("a CORRUPT block exists only in a reader's view of a damaged file")
    if not hudi_1_headers and any(key > LAST_V6_HEADER for key in headers):
        raise FormatError(f"log header {max(headers).name} is not known to readers before Hudi 1.0")
    if len(content) > _MAX_CONTENT:
        raise FormatError(f"log block content of {len(content)} bytes is above the {_MAX_CONTENT} that Hudi can read")
    entries = [(key, headers[key].encode()) for key in sorted(headers)]
    header = _I32.pack(len(entries)) + b"".join(_ENTRY.pack(key, len(text)) + text for key, text in entries)
    footer = _I32.pack(0)
    # The size counts everything after itself, the reverse pointer included; the pointer counts everything before
    # itself.
    size = 4 + 4 + len(header) + 8 + len(content) + len(footer) + 8
    head = MAGIC + _HEAD.pack(size, FORMAT_VERSION, kind)
    return b"".join((head, header, _I64.pack(len(content)), content, footer, _I64.pack(size + len(MAGIC))))
