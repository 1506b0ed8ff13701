"""What a log file is made of: blocks, their types and their headers (HoodieLogBlock)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

MAGIC = b"#HUDI#"
FORMAT_VERSION = 1
"""The only framing written since Hudi 0.5 (HoodieLogFormat.CURRENT_VERSION)."""


class BlockType(IntEnum):
    """Ordinals of HoodieLogBlockType. CORRUPT is never written; a reader makes it up for bytes that are no block."""

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
"""COMMAND_BLOCK_TYPE of the only command there is, ROLLBACK_BLOCK."""


@dataclass(frozen=True, slots=True)
class LogBlock:
    """A block's frame; its content is not read yet. Offsets and lengths are bytes within the file: `offset` is where
    the magic starts, `length` the size of the whole block, `content_offset` and `content_length` the range to read.
    """

    type: BlockType
    headers: dict[HeaderKey, str]
    content_offset: int
    content_length: int
    path: str
    offset: int
    length: int

    @property
    def instant_time(self) -> str | None:
        """The instant that wrote the block; absent in blocks of the archived timeline."""
        return self.headers.get(HeaderKey.INSTANT_TIME)

    @property
    def target_instant_time(self) -> str | None:
        """Of a rollback command: the instant whose blocks no longer count."""
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
        """Of which rows of a base file the records are newer versions (codec.log.positions)."""
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
