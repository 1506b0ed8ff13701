"""Places of a column chunk that moves with its bytes, and those that are left behind."""

from __future__ import annotations

from copy import deepcopy

from hudi_core.codec.parquet.footer import Chunk, Column, shifted, with_number
from hudi_core.codec.parquet.thrift import BINARY, I32, I64, STRUCT, Struct


def chunk(**inner: int) -> Struct:
    numbers = {getattr(Column, name): (I64, value) for name, value in inner.items()}
    return {Chunk.offset: (I64, 40), Chunk.metadata: (STRUCT, {Column.num_values: (I64, 3), **numbers})}


def test_a_number_keeps_its_type() -> None:
    fields: Struct = {1: (I32, 5), 2: (BINARY, b"x")}
    with_number(fields, 1, 6)
    assert fields == {1: (I32, 6), 2: (BINARY, b"x")}


def test_places_of_pages_move() -> None:
    before = chunk(data_offset=50, dictionary_offset=40)
    kept = deepcopy(before)
    after = shifted(before, 1000)
    assert before == kept
    assert after[Chunk.offset] == (I64, 1040)
    assert after[Chunk.metadata][1] == {5: (I64, 3), 9: (I64, 1050), 11: (I64, 1040)}


def test_a_place_of_0_is_none() -> None:
    before = {**chunk(data_offset=50, dictionary_offset=0), Chunk.offset: (I64, 0)}
    after = shifted(before, 7)
    assert after[Chunk.offset] == (I64, 0)
    assert after[Chunk.metadata][1][Column.dictionary_offset] == (I64, 0)
    assert Column.dictionary_offset not in shifted(chunk(data_offset=50), 7)[Chunk.metadata][1]


def test_what_is_not_copied_is_left_out() -> None:
    before = chunk(data_offset=50, index_offset=60, bloom_offset=70, bloom_length=80)
    before |= dict.fromkeys((*Chunk.offset_index, *Chunk.column_index), (I64, 90))
    after = shifted(before, -10)
    assert sorted(after) == [Chunk.offset, Chunk.metadata]
    assert sorted(after[Chunk.metadata][1]) == [Column.num_values, Column.data_offset]
