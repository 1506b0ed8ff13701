"""HFiles for these tests: those of the golden tables, and one with the deeper index that only HBase writes."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate

from hudi_core.codec.binary import Reader
from hudi_core.codec.hfile.block import (
    Codec,
    IndexEntry,
    Magic,
    cell_key,
    decode_root_index,
    encode_block,
    encode_cell,
    encode_root_index,
    read_block,
)
from hudi_core.codec.hfile.reader import HFileReader
from hudi_core.codec.hfile.trailer import TRAILER_SIZE, Trailer, decode_trailer, encode_file_info, encode_trailer
from hudi_core.codec.hfile.writer import HFileWriter
from hudi_core.codec.log.blocks import BlockType, LogBlock, walk
from tests.support.golden_data import golden_root


def golden_members(case: str) -> Iterator[tuple[str, bytes]]:
    """Every file of a golden table of version 6 by its path in the archive, Hadoop's side files excluded."""
    with zipfile.ZipFile(golden_root() / "6" / f"{case}.zip") as archive:
        for name in archive.namelist():
            if not name.endswith(("/", ".crc")):
                yield name, archive.read(name)


def base_hfiles(case: str) -> Iterator[tuple[str, bytes]]:
    """The base HFiles of a golden table's metadata table."""
    return ((name, data) for name, data in golden_members(case) if name.endswith(".hfile"))


def log_hfiles(case: str) -> Iterator[tuple[str, bytes, LogBlock]]:
    """The content of every HFILE_DATA block of a golden table, data logs included."""
    for name, data in golden_members(case):
        if ".log." in name.rsplit("/", 1)[-1] and data.startswith(b"#HUDI#"):
            for block in walk(lambda start, length, data=data: data[start : start + length], len(data), name):  # type: ignore[misc]
                if isinstance(block, LogBlock) and block.type is BlockType.HFILE_DATA:
                    yield name, data[block.content_offset : block.content_offset + block.content_length], block


def hfile(
    items: Iterable[tuple[bytes, bytes]],
    *,
    codec: Codec = Codec.GZ,
    block_size: int = 1 << 20,
    schema: str = "{}",
    extra_info: Mapping[str, bytes] | None = None,
    meta_blocks: Mapping[str, bytes] | None = None,
) -> bytes:
    """An HFile of sorted items, with the settings that write_hfile does not have."""
    out = io.BytesIO()
    writer = HFileWriter(out, codec=codec, block_size=block_size)
    for key, value in items:
        writer.add(key, value)
    writer.finish(schema, extra_info or {}, meta_blocks or {})
    return out.getvalue()


def lookup(reader: HFileReader, key: bytes) -> bytes | None:
    """The value of a key, or None."""
    return dict(reader.lookup_many([key])).get(key)


def meta_block(data: bytes, name: str) -> bytes | None:
    """The content of a named meta block such as `bloomFilter`, or None."""
    trailer = decode_trailer(data[-TRAILER_SIZE:], len(data), "f")
    section = Reader(data[trailer.load_on_open_offset :], "f")
    indexes = [read_block(section, trailer.codec, Magic.ROOT_INDEX) for _ in range(2)]
    for entry in decode_root_index(indexes[1], trailer.meta_index_count, "f"):
        if entry.key == name.encode():
            block = Reader(data[entry.offset : entry.offset + entry.disk_size], "f")
            return read_block(block, trailer.codec, Magic.META)
    return None


def two_level_hfile(groups: list[list[list[tuple[bytes, bytes]]]]) -> bytes:
    """An HFile with leaf index blocks: groups of data blocks of cells."""
    out = bytearray()
    root = []

    def append(magic: Magic, data: bytes) -> IndexEntry:
        block = encode_block(magic, data, Codec.GZ, -1)
        out.extend(block)
        return IndexEntry(b"", len(out) - len(block), len(block))

    count = 0
    for group in groups:
        leaves = []
        for cells in group:
            entry = append(Magic.DATA, b"".join(encode_cell(*cell) for cell in cells))
            leaves.append(IndexEntry(cell_key(cells[0][0]), entry.offset, entry.disk_size))
            count += len(cells)
        entry = append(Magic.LEAF_INDEX, inner_index(leaves))
        root.append(IndexEntry(leaves[0].key, entry.offset, entry.disk_size))
    load_on_open = append(Magic.ROOT_INDEX, encode_root_index(root) + bytes(12)).offset
    append(Magic.ROOT_INDEX, b"")
    info = append(Magic.FILE_INFO, encode_file_info({"KEY_VALUE_VERSION": b"\0\0\0\1"})).offset
    return bytes(out) + encode_trailer(Trailer(Codec.GZ, info, load_on_open, 0, 0, len(root), 0, count, 2, 0, 0))


def with_root_index(before: bytes, root: bytes, count: int, *, levels: int = 1, info: bytes | None = None) -> bytes:
    """An HFile of the blocks `before`, with a root index of `count` entries and a file info, of content as given."""
    if info is None:
        info = encode_file_info({"KEY_VALUE_VERSION": b"\0\0\0\1"})
    index = encode_block(Magic.ROOT_INDEX, root, Codec.GZ, -1)
    at = len(before)
    trailer = Trailer(Codec.GZ, at + len(index), at, 0, 0, count, 0, 0, levels, 0, 0)
    return before + index + encode_block(Magic.FILE_INFO, info, Codec.GZ, -1) + encode_trailer(trailer)


def inner_index(entries: list[IndexEntry]) -> bytes:
    """The content of a leaf or intermediate index block."""
    bodies = [struct.pack(">qi", entry.offset, entry.disk_size) + entry.key for entry in entries]
    starts = [0, *accumulate(map(len, bodies))]
    return struct.pack(f">{len(starts) + 1}i", len(entries), *starts) + b"".join(bodies)
