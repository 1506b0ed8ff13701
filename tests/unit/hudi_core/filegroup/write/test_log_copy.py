"""Records and delete entries are copied byte by byte, whatever the size of blocks and pieces."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_core.codec.log.blocks import BlockType, HeaderKey, LogBlock, encode_block
from hudi_core.codec.log.content import OrderingValue, avro_block_records, decode_delete_block
from hudi_core.errors import CorruptFileError
from hudi_core.filegroup.read.log_scan import log_blocks
from hudi_core.filegroup.write import log_copy
from hudi_core.filegroup.write.log_copy import LogCopy
from hudi_core.view.file_group import DataFile
from tests.support.log_files import FULL, data, deletes, put
from tests.support.memory_storage import MemoryStorage

HEADERS = {HeaderKey.INSTANT_TIME: "009"}
OUT = "p/.f-0_001.log.9_0-1-9"


def blocks(storage: MemoryStorage, file: DataFile) -> list[LogBlock]:
    return [block for block in log_blocks(storage, [file]) if isinstance(block, LogBlock)]


def content(storage: MemoryStorage, block: LogBlock) -> bytes:
    return storage.read(block.path)[block.content_offset : block.content_offset + block.content_length]


def record_data(storage: MemoryStorage, block: LogBlock) -> list[bytes]:
    """The data of a block's records, one by one."""
    count, left = avro_block_records(content(storage, block), path=block.path)
    found, rest = [], bytes(left)
    for _ in range(count):
        length = struct.unpack(">i", rest[:4])[0]
        found.append(rest[4 : 4 + length])
        rest = rest[4 + length :]
    assert rest == b""
    return found


def written(storage: MemoryStorage) -> list[LogBlock]:
    return blocks(storage, DataFile("p", OUT.removeprefix("p/"), storage.stat(OUT).size))


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 40), st.sets(st.integers(0, 39)), st.sampled_from([64, 300, 1 << 20]), st.sampled_from([1, 500]))
def test_any_choice_of_records(rows: int, chosen: set[int], piece: int, block_bytes: int) -> None:
    storage, kept = MemoryStorage(), sorted(number for number in chosen if number < rows)
    (block,) = blocks(storage, put(storage, 1, data("002", [(f"k{n}", n, "x" * n) for n in range(rows)])))
    with pytest.MonkeyPatch.context() as patch, LogCopy(storage, OUT, HEADERS) as copy:
        patch.setattr(log_copy, "BLOCK_BYTES", block_bytes)
        assert copy.copy_records(block, np.array(kept, dtype=np.int64), piece_bytes=piece) == rows
        size = copy.close()
    made = written(storage)
    assert size == storage.stat(OUT).size
    assert copy.records == len(kept)
    everything = record_data(storage, block)
    assert [datum for item in made for datum in record_data(storage, item)] == [everything[number] for number in kept]
    assert all(
        (item.type, item.schema, item.instant_time) == (BlockType.AVRO_DATA, block.schema, "009") for item in made
    )
    if block_bytes == 1 << 20:
        assert len(made) <= 1


def test_records_of_another_schema_are_a_block_of_their_own() -> None:
    storage = MemoryStorage()
    other = {**FULL, "doc": "another"}
    first = put(storage, 1, data("002", [("a", 1, "x")]), data("003", [("b", 1, "x")]))
    second = put(storage, 2, data("004", [("c", 1, "x")], {HeaderKey.SCHEMA: json.dumps(other)}))
    with LogCopy(storage, OUT, HEADERS) as copy:
        for block in (*blocks(storage, first), *blocks(storage, second)):
            copy.copy_records(block, np.array([0]), piece_bytes=1 << 20)
        copy.close()
    assert [(block.schema, len(record_data(storage, block))) for block in written(storage)] == [
        (json.dumps(FULL), 2),
        (json.dumps(other), 1),
    ]


def test_delete_entries_of_several_blocks_are_one_block_at_the_end() -> None:
    storage = MemoryStorage()
    typed = [
        ("a", OrderingValue("long", 3)),
        ("b", OrderingValue("string", "z")),
        ("c", OrderingValue("decimal", b"\1")),
    ]
    one, two = blocks(storage, put(storage, 1, deletes("002", typed), deletes("003", [("d", None)])))
    (row,) = blocks(storage, put(storage, 2, data("004", [("e", 1, "x")])))
    with LogCopy(storage, OUT, HEADERS) as copy:
        copy.copy_deletes(one, np.array([0, 2]))
        copy.copy_deletes(two, np.array([0]))
        copy.copy_records(row, np.array([0]), piece_bytes=1 << 20)
        copy.close()
    assert (copy.records, copy.deletes) == (1, 3)
    kept, removed = written(storage)
    assert (kept.type, removed.type) == (BlockType.AVRO_DATA, BlockType.DELETE)
    entries = decode_delete_block(content(storage, removed), path=OUT)
    of_one, of_two = (decode_delete_block(content(storage, block), path=OUT) for block in (one, two))
    assert entries == [of_one[0], of_one[2], of_two[0]]


@pytest.mark.parametrize(
    "damage", [b"\0\0\0\3\0\0\0\2\0\0\0\1A", b"\0\0\0\3\0\0\0\1\0\0\0\1AB", b"\0\0\0\3\0\0\0\1\xff\xff\xff\xffA"]
)
def test_a_broken_block_is_named_and_no_file_stays(damage: bytes) -> None:
    storage = MemoryStorage()
    headers = {HeaderKey.INSTANT_TIME: "002", HeaderKey.SCHEMA: "{}"}
    (block,) = blocks(storage, put(storage, 1, encode_block(BlockType.AVRO_DATA, headers, damage)))
    with pytest.raises(CorruptFileError) as caught, LogCopy(storage, OUT, HEADERS) as copy:
        copy.copy_records(block, np.array([0]), piece_bytes=1 << 20)
    assert caught.value.path == block.path
    assert not storage.exists(OUT)
