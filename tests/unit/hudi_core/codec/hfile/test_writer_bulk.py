"""Many cells at once are the bytes that one after the other makes."""

from __future__ import annotations

import io
import random

import pyarrow as pa
import pytest

from hudi_core.codec.hfile.block import Codec, encode_cell
from hudi_core.codec.hfile.cells import CellBlock, decode_cells
from hudi_core.codec.hfile.reader import HFileReader
from hudi_core.codec.hfile.writer import LARGE_CELL, CopiedBlock, HFileWriter, add_cells, is_ascending, write_hfile
from tests.support.hfiles import hfile

SCHEMA = '{"type":"record","name":"r","fields":[]}'


def bulk(items: list[tuple[bytes, bytes]], cuts: list[int], block_size: int) -> bytes:
    out = io.BytesIO()
    writer = HFileWriter(out, codec=Codec.NONE, block_size=block_size)
    for start, end in zip([0, *cuts], [*cuts, len(items)], strict=True):
        # Slices of longer arrays, whose first offset is not zero.
        part = [(b"", b"?"), *items[start:end]]
        keys, values = (pa.array(column, pa.binary()).slice(1) for column in zip(*part, strict=True))
        add_cells(writer, keys, values)
    assert writer.count == len(items)
    writer.finish(SCHEMA, {}, {})
    assert writer.size == len(out.getvalue())
    return out.getvalue()


@pytest.mark.parametrize("block_size", [1, 100, 3000, 1 << 20])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_bytes_are_those_of_single_cells(block_size: int, seed: int) -> None:
    source = random.Random(seed)
    keys = sorted(source.randbytes(source.randrange(3)) + b"k" * source.randrange(30) for _ in range(700))
    items = [(key, source.randbytes(source.randrange(60))) for key in keys]
    cuts = sorted(source.randrange(len(items)) for _ in range(seed))
    assert bulk(items, cuts, block_size) == hfile(items, schema=SCHEMA, codec=Codec.NONE, block_size=block_size)


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_large_cells_have_blocks_to_themselves(seed: int) -> None:
    source = random.Random(seed)
    keys = sorted(b"%03d" % source.randrange(40) for _ in range(60))
    items = [(key, source.randbytes(source.choice([3, 3, LARGE_CELL, LARGE_CELL * 2]))) for key in keys]
    cuts = sorted(source.randrange(len(items)) for _ in range(seed))
    data = bulk(items, cuts, 1 << 20)
    assert data == hfile(items, schema=SCHEMA, codec=Codec.NONE)
    large = {key for key, value in items if len(value) >= LARGE_CELL and keys.count(key) == 1}
    assert large
    for block in HFileReader.of_bytes(data, "f").blocks():
        rows = [row for row, _ in block.items()]
        assert len(set(rows)) == 1 or not large & set(rows)


def test_no_cells_and_cells_without_bytes() -> None:
    assert bulk([], [], 100) == hfile([], schema=SCHEMA, codec=Codec.NONE)
    assert bulk([(b"", b"")], [], 100) == hfile([(b"", b"")], schema=SCHEMA, codec=Codec.NONE, block_size=100)


@pytest.mark.parametrize(("keys", "message"), [([b"b", b"a"], "sorted"), ([b"a" * 40000], "does not fit")])
def test_keys_that_no_hfile_holds_are_refused(keys: list[bytes], message: str) -> None:
    writer = HFileWriter(io.BytesIO())
    with pytest.raises(ValueError, match=message):
        add_cells(writer, pa.array(keys, pa.binary()), pa.array([b""] * len(keys), pa.binary()))


def test_order_holds_from_call_to_call() -> None:
    writer = HFileWriter(io.BytesIO())
    add_cells(writer, pa.array([b"b"]), pa.array([b""]))
    with pytest.raises(ValueError, match="sorted"):
        add_cells(writer, pa.array([b"a"]), pa.array([b""]))


Items = list[tuple[bytes, bytes]]


def items_of(count: int) -> Items:
    rng = random.Random(7)
    return [
        (f"key{number:06d}".encode() + b"x" * rng.randrange(3), b"\0\0" + rng.randbytes(rng.randrange(40)))
        for number in range(count)
    ]


def block_of(items: Items) -> CellBlock:
    return decode_cells(b"".join(encode_cell(row, value) for row, value in items), "block", with_mvcc=True)


@pytest.mark.parametrize("block_size", [64, 1000, 1 << 20])
def test_a_copy_is_what_writing_gives(block_size: int) -> None:
    items = items_of(500)
    source = CopiedBlock(block_of(items), b"\0\0")
    out = io.BytesIO()
    writer = HFileWriter(out, block_size=block_size)
    assert source.copy(writer, 0, 123)
    writer.add(*items[123])
    assert source.copy(writer, 124, 500)
    writer.finish("{}", {}, {})
    assert out.getvalue() == write_hfile(items, schema="{}", block_size=block_size)
    assert list(HFileReader.of_bytes(out.getvalue(), "copy").items()) == items


def test_rows_are_gathered() -> None:
    items = items_of(100)
    source = CopiedBlock(block_of(items), b"")
    assert source.rows([(3, 5), (40, 42)]).to_pylist() == [items[number][0] for number in (3, 4, 40, 41)]


def test_values_that_begin_otherwise_are_not_copied() -> None:
    items = items_of(100)
    items[50] = (items[50][0], b"\0\1other")
    items[60] = (items[60][0], b"\0")
    writer = HFileWriter(io.BytesIO())
    source = CopiedBlock(block_of(items), b"\0\0")
    assert not source.copy(writer, 0, 51)
    assert not source.copy(writer, 60, 61)
    assert not source.copy(writer, 5, 5)
    assert writer.count == 0
    assert source.copy(writer, 0, 50)
    assert source.copy(writer, 51, 60)
    assert source.copy(writer, 61, 100)
    assert writer.count == 98


def test_cells_of_another_form_are_not_copied() -> None:
    """As Hudi 1.1 and later write them: the key ends behind the row, and its type and time are absent."""
    short = b"".join(
        (len(row) + 2).to_bytes(4, "big")
        + len(value).to_bytes(4, "big")
        + len(row).to_bytes(2, "big")
        + row
        + value
        + b"\0"
        for row, value in items_of(3)
    )
    block = block_of(items_of(3))
    other = CellBlock(short, block.rows, block.row_ends, block.row_ends, block.row_ends)
    assert not CopiedBlock(other, b"").copy(HFileWriter(io.BytesIO()), 0, 3)
    mvcc = bytearray(block.data)
    mvcc[int(block.value_ends[1])] = 7
    changed = CellBlock(bytes(mvcc), block.rows, block.row_ends, block.values, block.value_ends)
    assert not CopiedBlock(changed, b"").copy(HFileWriter(io.BytesIO()), 0, 3)


def test_order_is_seen() -> None:
    items = items_of(40)
    assert is_ascending(block_of(items))
    assert not is_ascending(block_of([items[1], items[0]]))
    assert not is_ascending(block_of([items[0], items[0]]))
    # Rows that end with NUL cannot be distinguished by fixed widths.
    assert is_ascending(block_of([(b"a", b""), (b"a\0", b"")]))
    assert not is_ascending(block_of([(b"a\0", b""), (b"a", b"")]))
    writer = HFileWriter(io.BytesIO())
    writer.add(b"z", b"")
    with pytest.raises(ValueError, match="sorted"):
        CopiedBlock(block_of(items), b"").copy(writer, 0, 40)
