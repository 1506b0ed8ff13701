"""Cells and cell keys."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.codec.binary import Reader
from hudi_core.codec.hfile.block import cell_bounds, cell_key, encode_cell, row_of_key
from hudi_core.errors import CorruptFileError


def read_cells(data: bytes, path: str, *, with_mvcc: bool) -> list[tuple[bytes, bytes]]:
    return [
        (data[row:row_end], data[value:value_end])
        for row, row_end, value, value_end in cell_bounds(data, path, with_mvcc=with_mvcc)
    ]


def test_the_documented_first_cell() -> None:
    cell = encode_cell(b"__all_partitions__", b"v" * 55)
    assert cell.hex().startswith("0000001e0000003700125f5f616c6c5f706172746974696f6e735f5f007fffffffffffffff04")
    assert cell.endswith(b"v\0")


@given(st.lists(st.tuples(st.binary(max_size=30), st.binary(max_size=30))))
def test_cells_round_trip(cells: list[tuple[bytes, bytes]]) -> None:
    assert read_cells(b"".join(encode_cell(*cell) for cell in cells), "f", with_mvcc=True) == cells


def test_the_mvcc_number_is_skipped_or_absent() -> None:
    cell = encode_cell(b"k", b"v")
    assert read_cells((cell[:-1] + b"\x8f\x80") * 2, "f", with_mvcc=True) == [(b"k", b"v")] * 2
    assert read_cells(cell[:-1] * 2, "f", with_mvcc=False) == [(b"k", b"v")] * 2


def test_truncation_at_any_byte_is_corrupt() -> None:
    data = encode_cell(b"key-1", b"value") + encode_cell(b"key-2", b"")
    whole = len(encode_cell(b"key-1", b"value"))
    for end in set(range(1, len(data))) - {whole}:
        with pytest.raises(CorruptFileError):
            read_cells(data[:end], "f", with_mvcc=True)


def test_rows_of_keys_in_both_forms() -> None:
    source = Reader(b"", "f")
    assert row_of_key(cell_key(b"row"), source) == b"row"
    assert row_of_key(b"\0\x03row", source) == b"row"
    for key in (b"", b"\0", b"\0\x04row", b"\xff\xff" + b"r" * 70000):
        with pytest.raises(CorruptFileError):
            row_of_key(key, source)


def test_a_key_too_long_for_a_cell_is_refused() -> None:
    with pytest.raises(ValueError, match="32767"):
        cell_key(b"k" * 32768)
