"""Cells copied from block to block are those that were there; what is not of our form is left to the caller."""

from __future__ import annotations

import io
import random
from itertools import pairwise

import pytest

from hudi_core.codec.hfile.cells import CellBlock, decode_cells
from hudi_core.codec.hfile.copy import CopiedBlock, is_ascending
from hudi_core.codec.hfile.keyvalue import encode_cell
from hudi_core.codec.hfile.reader import HFileReader
from hudi_core.codec.hfile.writer import HFileWriter, write_hfile

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
    offsets, data = source.rows([(3, 5), (40, 42)])
    expected = [items[number][0] for number in (3, 4, 40, 41)]
    assert [bytes(data[start:end]) for start, end in pairwise(offsets)] == expected


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
    """As Hudi 1.1 and later write them: the key ends behind the row, and its type and time are left out."""
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
    # Rows that end with NUL cannot be told by fixed widths.
    assert is_ascending(block_of([(b"a", b""), (b"a\0", b"")]))
    assert not is_ascending(block_of([(b"a\0", b""), (b"a", b"")]))
    writer = HFileWriter(io.BytesIO())
    writer.add(b"z", b"")
    with pytest.raises(ValueError, match="sorted"):
        CopiedBlock(block_of(items), b"").copy(writer, 0, 40)
