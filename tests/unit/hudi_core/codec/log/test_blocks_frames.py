from __future__ import annotations

import contextlib
import itertools
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_core.codec.avro.schema import parse_schema
from hudi_core.codec.log.blocks import (
    MAGIC,
    ROLLBACK_COMMAND,
    BlockType,
    CorruptBlock,
    HeaderKey,
    LogBlock,
    encode_block,
    walk,
)
from hudi_core.codec.log.content import avro_block_records, decode_delete_block
from hudi_core.errors import CorruptFileError, FormatError, UnsupportedError
from tests.support.delete_records import encode_delete_block
from tests.support.golden_data import GoldenCase, golden_cases

HEADERS = {HeaderKey.INSTANT_TIME: "20260101000000000", HeaderKey.SCHEMA: '{"type":"record"}'}
BLOCK = encode_block(BlockType.AVRO_DATA, HEADERS, b"content")
OTHER = encode_block(BlockType.DELETE, HEADERS, b"deletes, more of them")


class File:
    """A file in memory that notes what was read of it."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.reads: list[tuple[int, int]] = []

    def read_at(self, offset: int, length: int) -> bytes:
        self.reads.append((offset, length))
        return self.data[offset : offset + length]

    def walk(self) -> list[LogBlock | CorruptBlock]:
        return list(walk(self.read_at, len(self.data), "log.1"))


def frames(data: bytes) -> list[tuple[str, int, int]]:
    return [(block.type.name, block.offset, block.length) for block in File(data).walk()]


def test_blocks_follow_each_other() -> None:
    first, second = File(BLOCK + OTHER).walk()
    assert isinstance(first, LogBlock)
    assert isinstance(second, LogBlock)
    assert (first.headers, first.instant_time, first.schema) == (
        HEADERS,
        "20260101000000000",
        '{"type":"record"}',
    )
    assert (BLOCK + OTHER)[
        second.content_offset : second.content_offset + second.content_length
    ] == b"deletes, more of them"
    assert (first.offset + first.length, second.offset + second.length) == (len(BLOCK), len(BLOCK + OTHER))


def test_an_empty_file_has_no_blocks() -> None:
    assert frames(b"") == []


def test_content_is_not_read_and_a_block_costs_one_request() -> None:
    large = encode_block(BlockType.AVRO_DATA, HEADERS, bytes(1 << 20))
    file = File(large * 3)
    assert len(file.walk()) == 3
    assert len(file.reads) == 4
    assert sum(length for _, length in file.reads) <= 4 * (64 << 10)


def test_a_header_larger_than_the_window_is_read_whole() -> None:
    schema = "x" * (300 << 10)
    block = encode_block(BlockType.AVRO_DATA, {**HEADERS, HeaderKey.SCHEMA: schema}, b"c")
    found = File(block + BLOCK).walk()
    assert isinstance(found[0], LogBlock)
    assert found[0].schema == schema
    assert len(found) == 2


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (BLOCK + BLOCK[:20], [("AVRO_DATA", 0, len(BLOCK)), ("CORRUPT", len(BLOCK), 20)]),
        (BLOCK + BLOCK[:9], [("AVRO_DATA", 0, len(BLOCK)), ("CORRUPT", len(BLOCK), 9)]),
        (BLOCK + MAGIC, [("AVRO_DATA", 0, len(BLOCK)), ("CORRUPT", len(BLOCK), 6)]),
        (BLOCK + MAGIC[:5], [("AVRO_DATA", 0, len(BLOCK))]),
        (BLOCK + b"torn!", [("AVRO_DATA", 0, len(BLOCK))]),
        (BLOCK[:30] + OTHER, [("CORRUPT", 0, 30), ("DELETE", 30, len(OTHER))]),
        (BLOCK + b"garbage", [("CORRUPT", 0, len(BLOCK) + 7)]),
        (BLOCK + b"garbage" + OTHER, [("CORRUPT", 0, len(BLOCK) + 7), ("DELETE", len(BLOCK) + 7, len(OTHER))]),
        (MAGIC + (-1).to_bytes(8, "big", signed=True) + OTHER, [("CORRUPT", 0, 14), ("DELETE", 14, len(OTHER))]),
        (MAGIC + (3).to_bytes(8, "big") + OTHER, [("CORRUPT", 0, 14), ("DELETE", 14, len(OTHER))]),
        (MAGIC + (1 << 62).to_bytes(8, "big") + OTHER, [("CORRUPT", 0, 14), ("DELETE", 14, len(OTHER))]),
        (BLOCK[:-1] + b"\x00" + OTHER, [("CORRUPT", 0, len(BLOCK)), ("DELETE", len(BLOCK), len(OTHER))]),
        (b"#HU", []),
    ],
    ids=[
        "torn",
        "torn-size",
        "magic",
        "part-magic",
        "few-bytes",
        "torn-first",
        "garbage",
        "between",
        "negative",
        "small",
        "huge",
        "pointer",
        "tiny",
    ],
)
def test_what_is_no_block_is_one_corrupt_block_up_to_the_next_magic(
    data: bytes, expected: list[tuple[str, int, int]]
) -> None:
    assert frames(data) == expected


def test_the_next_magic_is_found_across_read_buffers() -> None:
    for edge, shift in itertools.product((64 << 10, (64 << 10) - 5 + (1 << 20)), range(-8, 3)):
        head = MAGIC + (1 << 50).to_bytes(8, "big")
        filler = bytes(edge - len(head) + shift)
        assert frames(head + filler + OTHER) == [
            ("CORRUPT", 0, len(head + filler)),
            ("DELETE", len(head + filler), len(OTHER)),
        ]


def test_corrupt_blocks_side_by_side_are_read_once() -> None:
    file = File(MAGIC * 5000 + bytes(2 << 20) + OTHER)
    assert Counter(block.type.name for block in file.walk()) == {"CORRUPT": 5000, "DELETE": 1}
    assert sum(length for _, length in file.reads) < 2 * len(file.data)


def test_a_file_of_magics_alone_is_an_error_soon() -> None:
    file = File(MAGIC * 1_000_000)
    with pytest.raises(CorruptFileError, match=r"log\.1: more than 10000 corrupt blocks") as caught:
        file.walk()
    assert caught.value.remedy
    assert sum(length for _, length in file.reads) < 1 << 20


def test_a_file_that_starts_otherwise_is_an_error_with_a_remedy() -> None:
    with pytest.raises(CorruptFileError, match=r"log\.1: byte 0 does not start a log file") as caught:
        File(b"PAR1PAR1PAR1").walk()
    assert caught.value.remedy


def patched(offset: int, value: bytes) -> bytes:
    return BLOCK[:offset] + value + BLOCK[offset + len(value) :]


@pytest.mark.parametrize(
    ("data", "error", "said"),
    [
        (patched(14, b"\0\0\0\2"), UnsupportedError, "format version 2"),
        (patched(18, b"\0\0\0\7"), CorruptFileError, "block type 7"),
        (patched(18, b"\0\0\0\2"), CorruptFileError, "block type 2"),
        (patched(22, b"\xff\xff\xff\xff"), CorruptFileError, "header map of -1"),
        (patched(22, b"\x7f\xff\xff\xff"), FormatError, "log"),
        (patched(26, b"\0\0\0\x09"), UnsupportedError, "unknown kind 9"),
        (patched(30, b"\x7f\xff\xff\xff"), CorruptFileError, "needs 2147483647 bytes"),
        (patched(30, b"\xff\xff\xff\xff"), CorruptFileError, "negative length"),
        (patched(34, b"\xff"), CorruptFileError, "not UTF-8"),
        (patched(len(BLOCK) - 27, (1 << 60).to_bytes(8, "big")), CorruptFileError, "content of"),
        (patched(len(BLOCK) - 27, (-8 & (1 << 64) - 1).to_bytes(8, "big")), CorruptFileError, "content of -8"),
        (patched(len(BLOCK) - 27, (5).to_bytes(8, "big")), FormatError, "log"),
        (patched(len(BLOCK) - 12, b"\0\0\0\1"), FormatError, "log"),
    ],
)
def test_a_broken_header_in_a_whole_frame_is_an_error(data: bytes, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        File(data).walk()


def test_a_file_that_shrank_since_it_was_listed_is_an_error() -> None:
    file = File(BLOCK)
    with pytest.raises(CorruptFileError, match="the file changed or is cut"):
        list(walk(file.read_at, len(BLOCK) + 100, "log.1"))


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_mutated_files_give_blocks_within_bounds_or_typed_errors(data: st.DataObject) -> None:
    broken = bytearray(BLOCK + OTHER + BLOCK)
    for _ in range(data.draw(st.integers(0, 3))):
        broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    size = data.draw(st.integers(0, len(broken)))
    file = File(bytes(broken[:size]))
    with contextlib.suppress(FormatError):
        end = 0
        for block in file.walk():
            assert block.offset == end
            end += block.length
        assert size - len(MAGIC) < end <= size


def log_files(case: GoldenCase) -> list[tuple[str, bytes]]:
    found = [
        path for path in sorted(case.table.rglob("*.log.*")) if path.name.startswith(".") and path.suffix != ".crc"
    ]
    found += sorted((case.table / ".hoodie" / "archived").glob(".commits_.archive.*"))
    return [(path.name, path.read_bytes()) for path in found if path.suffix != ".crc"]


@pytest.mark.parametrize("name", golden_cases("6"))
def test_golden_log_files_walk_and_encode_again(golden: Any, name: str) -> None:
    """Every log file of table version 6, metadata tables and archives included: blocks fill it, and each encodes to the
    same bytes.
    """
    for path, data in log_files(golden("6", name)):
        end = 0
        for block in File(data).walk():
            assert block.offset == end
            end += block.length
            if isinstance(block, LogBlock):
                check_block(block, data, path)
            else:
                assert name.startswith("log_")
        assert end == len(data)


def check_block(block: LogBlock, data: bytes, path: str) -> None:
    content = data[block.content_offset : block.content_offset + block.content_length]
    again = encode_block(block.type, block.headers, content)
    (read,) = File(again).walk()
    assert isinstance(read, LogBlock)
    # Header entries come in any order from Java, so the frames are compared field by field, and the bytes around the
    # map as they are.
    assert (read.type, read.headers, read.length) == (block.type, block.headers, block.length)
    whole = data[block.offset : block.offset + block.length]
    assert again[:26] == whole[:26]
    assert again[read.content_offset - 8 :] == whole[block.content_offset - 8 - block.offset :]
    if block.schema:
        parse_schema(block.schema, path=path)
    if block.type is BlockType.AVRO_DATA:
        assert avro_block_records(content, path=path)[0] > 0
    if block.type is BlockType.DELETE:
        assert encode_delete_block(decode_delete_block(content, path=path)) == content


@pytest.mark.parametrize(
    ("name", "kinds", "corrupt"),
    [
        ("log_corrupt_middle", ["AVRO_DATA", "CORRUPT", "CORRUPT", "AVRO_DATA"], "size"),
        ("log_corrupt_tail", ["AVRO_DATA", "CORRUPT"], "past the end of the file"),
        ("log_truncated", ["CORRUPT"], "past the end of the file"),
        ("log_garbage_no_magic", ["CORRUPT"], "neither another block nor the end"),
    ],
)
def test_damaged_golden_files_have_the_corrupt_blocks_that_hudi_sees(
    golden: Any, name: str, kinds: list[str], corrupt: str
) -> None:
    seen = 0
    for _, data in log_files(golden("6", name)):
        blocks = File(data).walk()
        broken = [block for block in blocks if isinstance(block, CorruptBlock)]
        if broken:
            counts = Counter(block.type.name for block in blocks)
            assert [block.type.name for block in blocks] == kinds, counts
            assert corrupt in broken[-1].reason
            seen += 1
    assert seen == 3


def test_golden_rollback_commands_name_their_target(golden: Any) -> None:
    commands = [
        block
        for _, data in log_files(golden("6", "rolled_back_mor"))
        for block in File(data).walk()
        if isinstance(block, LogBlock) and block.is_rollback
    ]
    assert commands
    assert all(block.target_instant_time and block.instant_time and block.content_length == 0 for block in commands)


def test_a_rollback_command_is_byte_for_byte_what_hudi_writes() -> None:
    headers = {
        HeaderKey.COMMAND_BLOCK_TYPE: ROLLBACK_COMMAND,
        HeaderKey.INSTANT_TIME: "20261120213502246",
        HeaderKey.TARGET_INSTANT_TIME: "20261120213453318",
    }
    assert encode_block(BlockType.COMMAND, headers) == bytes.fromhex(
        "234855444923 000000000000005b 00000001 00000000 00000003"
        + " 00000000 00000011 "
        + b"20261120213502246".hex()
        + " 00000001 00000011 "
        + b"20261120213453318".hex()
        + " 00000003 00000001 30 0000000000000000 00000000 0000000000000061"
    )


def test_headers_that_hudi_0_15_does_not_know_are_refused_unless_readers_do() -> None:
    headers = {HeaderKey.INSTANT_TIME: "1", HeaderKey.IS_PARTIAL: "true"}
    with pytest.raises(FormatError, match="IS_PARTIAL"):
        encode_block(BlockType.AVRO_DATA, headers)
    assert encode_block(BlockType.AVRO_DATA, headers, hudi_1_headers=True)


def test_corrupt_blocks_are_never_written() -> None:
    with pytest.raises(FormatError, match="CORRUPT"):
        encode_block(BlockType.CORRUPT, {})
