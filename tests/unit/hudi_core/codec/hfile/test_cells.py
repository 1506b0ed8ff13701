"""Data blocks as offsets: what NumPy finds equals what the loop over the cells finds."""

from __future__ import annotations

import random
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_core.codec.hfile.block import KEY_TAIL, encode_cell
from hudi_core.codec.hfile.cells import _by_tails, decode_cells
from hudi_core.errors import CorruptFileError

AWKWARD = st.sampled_from(
    [b"", b"\0", KEY_TAIL, KEY_TAIL[:-1], b"\x7f" * 9, b"\0\x01k" + KEY_TAIL, encode_cell(b"k", b"v"), b"a\0"]
)
BYTES = st.one_of(st.binary(max_size=20), AWKWARD)
Cells = list[tuple[bytes, bytes]]


def block_of(cells: Cells) -> bytes:
    return b"".join(encode_cell(*cell) for cell in cells)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(BYTES, BYTES), max_size=80))
def test_cells_are_those_that_were_written(cells: Cells) -> None:
    block = decode_cells(block_of(cells), "f", with_mvcc=True)
    assert list(block.items()) == cells
    assert [(block.row(index), block.value(index)) for index in range(len(block))] == cells
    assert list(block.items(3)) == cells[3:]


@pytest.mark.parametrize("digits", [6, 1])
def test_blocks_as_hudi_writes_them_need_no_loop(digits: int) -> None:
    cells = [(b"key-%0*d" % (digits, number), b"\0" * (number % 50) + b"\x7f\xff") for number in range(2000)]
    block = _by_tails(block_of(cells))
    assert block is not None
    assert list(block.items()) == cells


def test_values_that_look_like_cells_are_left_to_the_loop() -> None:
    cells = [(b"k%03d" % number, encode_cell(b"k%03d" % number, b"v")) for number in range(100)]
    assert _by_tails(block_of(cells)) is None
    assert list(decode_cells(block_of(cells), "f", with_mvcc=True).items()) == cells


def test_rows_of_very_many_lengths_are_left_to_the_loop() -> None:
    cells = [(b"x" * (number % 120), b"") for number in range(1200)]
    assert _by_tails(block_of(cells)) is None
    assert list(decode_cells(block_of(cells), "f", with_mvcc=True).items()) == cells


@pytest.mark.parametrize("tail", [KEY_TAIL, bytes(10)])
def test_the_smallest_cells_take_no_more_than_their_bounds(tail: bytes) -> None:
    """Of each cell four numbers are kept; a list of tuples of them would take 300 bytes a cell."""
    count = 50_000
    data = encode_cell(b"", b"").replace(KEY_TAIL, tail) * count
    tracemalloc.start()
    block = decode_cells(data, "f", with_mvcc=True)
    assert sum(1 for _ in block.items()) == count
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 140 * count


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(BYTES, BYTES), max_size=80), st.sets(BYTES, max_size=90))
def test_selected_cells_are_those_of_the_keys(cells: Cells, others: set[bytes]) -> None:
    cells.sort(key=lambda cell: cell[0])
    block = decode_cells(block_of(cells), "f", with_mvcc=True)
    keys = sorted({key for key, _ in cells[::2]} | others)
    assert list(block.select(keys)) == [cell for cell in cells if cell[0] in set(keys)]
    for key in keys[:5]:
        assert list(block.select([key])) == [cell for cell in cells if cell[0] == key]
        assert block.first_at(key) == sum(row < key for row, _ in cells)


@pytest.mark.parametrize("seed", range(6))
def test_keys_that_differ_behind_the_words_searched_by(seed: int) -> None:
    """Some rows have their first differing eight bytes in common, some repeat, and some keys lie between."""
    source = random.Random(seed)
    heads = [b"same-%08d" % source.randrange(400) for _ in range(300)]
    rows = [head + source.choice([b"", b"", b"\0", b"a", b"tail-%d" % source.randrange(3)]) for head in heads]
    cells = sorted(((row, b"%d" % number) for number, row in enumerate(rows)), key=lambda cell: cell[0])
    block = decode_cells(block_of(cells), "f", with_mvcc=True)
    keys = sorted({*rows[::2], *(row + b"a" for row in rows), *(row[:-1] for row in rows), b"", b"same-", b"zzz"})
    assert list(block.select(keys)) == [cell for cell in cells if cell[0] in set(keys)]


def test_many_keys_are_searched_at_once() -> None:
    cells = [(b"key-%d" % number, b"%d" % number) for number in range(3000)]
    cells.sort()
    block = decode_cells(block_of(cells), "f", with_mvcc=True)
    for keys in ([key for key, _ in cells[::3]], [key + b"x" for key, _ in cells], [b"", b"a", cells[7][0], b"z" * 99]):
        assert list(block.select(sorted(keys))) == [cell for cell in cells if cell[0] in set(keys)]
    repeated = sorted([*cells, *cells[::2]], key=lambda cell: cell[0])
    block = decode_cells(block_of(repeated), "f", with_mvcc=True)
    assert list(block.select([key for key, _ in cells])) == repeated


def test_truncation_at_any_byte_is_corrupt() -> None:
    cells = [(b"key-%02d" % number, b"value") for number in range(40)]
    data = block_of(cells)
    ends = {len(block_of(cells[:count])) for count in range(41)}
    for end in set(range(len(data))) - ends:
        with pytest.raises(CorruptFileError) as caught:
            decode_cells(data[:end], "x.hfile", with_mvcc=True)
        assert caught.value.path == "x.hfile"
