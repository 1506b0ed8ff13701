"""Many cells at once are the bytes that one after the other makes."""

from __future__ import annotations

import io
import random

import pyarrow as pa
import pytest

from hudi_core.codec.hfile.bulk import add_cells
from hudi_core.codec.hfile.reader import HFileReader
from hudi_core.codec.hfile.writer import LARGE_CELL, HFileWriter, write_hfile

SCHEMA = '{"type":"record","name":"r","fields":[]}'


def bulk(items: list[tuple[bytes, bytes]], cuts: list[int], block_size: int) -> bytes:
    out = io.BytesIO()
    writer = HFileWriter(out, codec="NONE", block_size=block_size)
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
    assert bulk(items, cuts, block_size) == write_hfile(items, schema=SCHEMA, codec="NONE", block_size=block_size)


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_large_cells_have_blocks_to_themselves(seed: int) -> None:
    source = random.Random(seed)
    keys = sorted(b"%03d" % source.randrange(40) for _ in range(60))
    items = [(key, source.randbytes(source.choice([3, 3, LARGE_CELL, LARGE_CELL * 2]))) for key in keys]
    cuts = sorted(source.randrange(len(items)) for _ in range(seed))
    data = bulk(items, cuts, 1 << 20)
    assert data == write_hfile(items, schema=SCHEMA, codec="NONE")
    large = {key for key, value in items if len(value) >= LARGE_CELL and keys.count(key) == 1}
    assert large
    for block in HFileReader.of_bytes(data, "f").blocks():
        rows = [row for row, _ in block.items()]
        assert len(set(rows)) == 1 or not large & set(rows)


def test_no_cells_and_cells_without_bytes() -> None:
    assert bulk([], [], 100) == write_hfile([], schema=SCHEMA, codec="NONE")
    assert bulk([(b"", b"")], [], 100) == write_hfile([(b"", b"")], schema=SCHEMA, codec="NONE", block_size=100)


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
