"""Block indexes: the root data index, the meta index, and the deeper levels of very large files (HFileBlockIndex)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import pairwise

from hudi_core.codec.binary import Reader, encode_hadoop_vint

_MIN_ENTRY = 13
_ENTRY = struct.Struct(">qi")


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A block: its key, its offset and its size on disk in bytes.

    The key is a cell key in a data index, the block's name in the meta index.
    """

    key: bytes
    offset: int
    disk_size: int


def decode_root_index(data: bytes, count: int, path: str, *, has_mid_key: bool = False) -> list[IndexEntry]:
    """The `count` entries of a root or meta index.

    A root with deeper levels below it has a mid key after them, which is ignored. The count comes from the trailer,
    which no checksum covers: entries and count must use the index up.
    """
    source = Reader(data, path)
    if not 0 <= count <= len(data) // _MIN_ENTRY:
        raise source.fail(f"HFile index of {len(data)} bytes claims {count} entries")
    entries = []
    for _ in range(count):
        offset, disk_size = source.i64(), source.i32()
        entries.append(_checked(IndexEntry(source.bytes(source.hadoop_vint()), offset, disk_size), source))
    if not has_mid_key and not source.at_end():
        raise source.fail(f"HFile index holds more than the {count} entries that the trailer counts, going on")
    return entries


def decode_inner_index(data: bytes, path: str) -> list[IndexEntry]:
    """The entries of a leaf or intermediate index block: count, the entries' offsets and one past the last, entries."""
    source = Reader(data, path)
    count = source.i32()
    if not 0 <= count <= len(data) // (_MIN_ENTRY + 3):
        raise source.fail(f"HFile index of {len(data)} bytes claims {count} entries")
    starts = [source.i32() for _ in range(count + 1)]
    entries = []
    for start, end in pairwise(starts):
        offset, disk_size = source.i64(), source.i32()
        entries.append(_checked(IndexEntry(source.bytes(end - start - _ENTRY.size), offset, disk_size), source))
    return entries


def _checked(entry: IndexEntry, source: Reader) -> IndexEntry:
    if entry.offset < 0 or entry.disk_size <= 0:
        raise source.fail(f"HFile index points to {entry.disk_size} bytes at {entry.offset}")
    return entry


def encode_root_index(entries: list[IndexEntry]) -> bytes:
    """The content of a root or meta index block."""
    return b"".join(
        _ENTRY.pack(entry.offset, entry.disk_size) + encode_hadoop_vint(len(entry.key)) + entry.key for entry in entries
    )
