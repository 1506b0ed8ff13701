"""The numbers of the fields of Parquet's structs (parquet.thrift) that are read or changed here."""

from __future__ import annotations

from typing import Final

from hudi_core.codec.parquet.thrift import Struct


class File:
    schema: Final = 2
    num_rows: Final = 3
    row_groups: Final = 4
    created_by: Final = 6
    column_orders: Final = 7


class Element:
    kind: Final = 1
    length: Final = 2
    repetition: Final = 3
    name: Final = 4
    children: Final = 5
    converted: Final = 6
    scale: Final = 7
    precision: Final = 8
    logical: Final = 10


class Group:
    columns: Final = 1
    plain: Final = 2
    num_rows: Final = 3
    offset: Final = 5
    stored: Final = 6
    ordinal: Final = 7


class Chunk:
    """ColumnChunk; a part of the page index has an offset and a length."""

    file_path: Final = 1
    offset: Final = 2
    metadata: Final = 3
    offset_index: Final = (4, 5)
    column_index: Final = (6, 7)
    crypto: Final = 8
    encrypted: Final = 9


class Column:
    kind: Final = 1
    path: Final = 3
    codec: Final = 4
    num_values: Final = 5
    plain: Final = 6
    stored: Final = 7
    data_offset: Final = 9
    index_offset: Final = 10
    dictionary_offset: Final = 11
    statistics: Final = 12
    bloom_offset: Final = 14
    bloom_length: Final = 15


class Bounds:
    """Statistics: the greatest value, in the deprecated field and in that of the column's order."""

    greatest: Final = (1, 5)


class Page:
    """PageHeader, and DataPageHeaderV2 in it."""

    kind: Final = 1
    plain: Final = 2
    stored: Final = 3
    checksum: Final = 4
    v1: Final = 5
    v2: Final = 8
    num_values: Final = 1
    definition_size: Final = 5
    repetition_size: Final = 6
    is_compressed: Final = 7


class Location:
    offset: Final = 1
    size: Final = 2


def with_number(fields: Struct, number: int, value: int) -> None:
    """Replaces a number, which keeps its type."""
    fields[number] = fields[number][0], value


def shifted(chunk: Struct, by: int) -> Struct:
    """A ColumnChunk whose bytes lie `by` further on, without bloom filter and place of the page index."""
    kind, metadata = chunk[Chunk.metadata]
    inner: Struct = dict(metadata)
    moved: Struct = {**chunk, Chunk.metadata: (kind, inner)}
    for number in (Column.data_offset, Column.dictionary_offset):
        if number in inner and inner[number][1]:
            with_number(inner, number, inner[number][1] + by)
    for number in (Column.index_offset, Column.bloom_offset, Column.bloom_length):
        inner.pop(number, None)
    if moved.get(Chunk.offset, (0, 0))[1]:
        with_number(moved, Chunk.offset, moved[Chunk.offset][1] + by)
    for number in (*Chunk.offset_index, *Chunk.column_index):
        moved.pop(number, None)
    return moved
