"""Cells of a data block, and the cell key around a record key (org.apache.hadoop.hbase.KeyValue).

A cell is `i32 key length | i32 value length | key | value | mvcc vlong`. Its key wraps the row, which is the record key
in UTF-8: `i16 row length | row | u8 family length 0 | i64 timestamp max | u8 type Put`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from hudi_core.codec.binary import Reader

_LENGTHS = struct.Struct(">iih")
KEY_TAIL = bytes.fromhex("007fffffffffffffff04")
"""What follows the row in every cell key that Hudi writes."""
_KEY_OVERHEAD = 2 + len(KEY_TAIL)
MAX_ROW = 0x7FFF
"""The longest record key that a cell holds, in bytes."""
_NO_MVCC = b"\0"


def cell_key(row: bytes) -> bytes:
    """The whole cell key of a record key; raises ValueError when it is longer than 32767 bytes."""
    if len(row) > MAX_ROW:
        raise ValueError(f"a key of {len(row)} bytes does not fit an HFile cell (at most {MAX_ROW})")
    return len(row).to_bytes(2, "big") + row + KEY_TAIL


def row_of_key(key: bytes, source: Reader) -> bytes:
    """The row of a cell key, or of the native writer's short form that ends after the row.

    `source` names the file in errors.
    """
    length = int.from_bytes(key[:2], "big")
    if len(key) < 2 or length > MAX_ROW or len(key) < 2 + length:
        raise source.fail(f"HFile key of {len(key)} bytes claims a row of {length}")
    return key[2 : 2 + length]


def encode_cell(row: bytes, value: bytes) -> bytes:
    """One cell."""
    key = cell_key(row)
    return b"".join((struct.pack(">ii", len(key), len(value)), key, value, _NO_MVCC))


def cell_bounds(data: bytes, path: str, *, with_mvcc: bool) -> Iterator[tuple[int, int, int, int]]:
    """Where each cell of a decompressed data block has its row and its value: start and end of both.

    Raises CorruptFileError. One Python step per cell; codec.hfile.cells needs none where the cells have the form that
    Hudi writes.
    """
    source = Reader(data, path)
    size = len(data)
    position = 0
    while position < size:
        if size - position < _LENGTHS.size:
            raise source.fail(f"HFile data block ends inside a cell ({size - position} bytes left)")
        key_length, value_length, row_length = _LENGTHS.unpack_from(data, position)
        start = position + 8
        value_start = start + key_length
        end = value_start + value_length
        if (
            key_length < _KEY_OVERHEAD
            or value_length < 0
            or not 0 <= row_length <= key_length - _KEY_OVERHEAD
            or end > size
        ):
            raise source.fail(
                f"HFile cell claims impossible lengths (key {key_length}, value {value_length}, row {row_length})"
            )
        yield start + 2, start + 2 + row_length, value_start, end
        position = end
        if with_mvcc:
            position = _skip_mvcc(data, position, path)


def _skip_mvcc(data: bytes, position: int, path: str) -> int:
    if data[position : position + 1] == _NO_MVCC:
        return position + 1
    tail = Reader(memoryview(data)[position:], path)
    tail.hadoop_vint()
    return position + tail.position
