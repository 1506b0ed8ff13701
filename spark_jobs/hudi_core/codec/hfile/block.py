"""HFile blocks (HFileBlock of HBase), the index over them, and the keys of their cells (KeyValue).

A block is `header | data | checksums`. The header's first size counts data and checksums, its last one header and data.
Every 16 KiB of header and data have a 4-byte checksum, also where the type is NULL. A cell is `i32 key length | i32
value length | key | value | mvcc vlong`. Its key is `i16 row length | row | u8 family length 0 | i64 timestamp max | u8
type Put`; the row is the record key in UTF-8.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from enum import Enum
from itertools import pairwise

from hudi_core.codec.binary import Reader, encode_hadoop_vint
from hudi_core.codec.gzip import FASTEST, GZIP_WINDOW
from hudi_core.codec.hashing import CHECKSUMS, crc32c
from hudi_core.errors import CorruptFileError, UnsupportedError
from hudi_core.frozen import dataclass
from hudi_core.model.size_limits import NO_OPTIONS, Limit, SizeLimits

_LEVEL, _FAST_LEVEL = 6, 1
"""Java's level of zlib, and ISA-L's level, which takes a tenth of the time."""


def inflate(member: bytes | memoryview, size: int) -> bytes:
    """Returns the `size` bytes of a gzip member; makes at most one byte more. Raises ValueError with the reason."""
    inflater = FASTEST.decompressobj(GZIP_WINDOW)
    try:
        data: bytes = inflater.decompress(member, size + 1)
    except FASTEST.error as error:
        raise ValueError(f"HFile block does not decompress ({error})") from error
    if len(data) != size or not inflater.eof:
        raise ValueError(f"HFile block decompresses to another size than the {size} bytes it claims")
    return data


HEADER_SIZE = 33
BYTES_PER_CHECKSUM = 16384

_HEADER = struct.Struct(">8siiqBii")
_CRC32C_TYPE = 2
# Deflate cannot expand more than 1032-fold; a header that claims more is wrong, and is refused before memory is taken.
_MAX_EXPANSION = 1040
_WHAT = "a block of the HFile, decompressed,"
_GZIP_HEADER = bytes.fromhex("1f8b08000000000000ff")


class Magic(Enum):
    DATA = b"DATABLK*"
    ROOT_INDEX = b"IDXROOT2"
    LEAF_INDEX = b"IDXLEAF2"
    INTERMEDIATE_INDEX = b"IDXINTE2"
    META = b"METABLKc"
    FILE_INFO = b"FILEINF2"


class Codec(Enum):
    """Compression, by HBase's number in the trailer (Compression.Algorithm)."""

    LZO = 0
    GZ = 1
    NONE = 2
    SNAPPY = 3
    LZ4 = 4
    BZIP2 = 5
    ZSTD = 6

    @staticmethod
    def of(number: int, path: str) -> Codec:
        """Returns the codec. Raises CorruptFileError for an unknown number, UnsupportedError for a codec that Hudi does
        not write.
        """
        try:
            codec = Codec(number)
        except ValueError as error:
            raise CorruptFileError(f"unknown HFile compression codec number {number}", path=path) from error
        if codec not in (Codec.GZ, Codec.NONE):
            remedy = "Hudi writes GZ or NONE; rebuild the metadata table"
            raise UnsupportedError(f"HFile compression codec {codec.name} is not supported", path=path, remedy=remedy)
        return codec


def read_block(source: Reader, codec: Codec, *expected: Magic, limits: SizeLimits = NO_OPTIONS) -> bytes:
    """Reads the block at the cursor, leaves the cursor behind it, and returns the uncompressed data. Raises
    CorruptFileError when the block is cut, has none of the `expected` magics, or fails a checksum; SizeLimitError,
    before it is decompressed, when it claims more bytes than allowed.
    """
    head = source.view(HEADER_SIZE)
    raw_magic, disk_size, data_size, _, checksum_type, per_checksum, data_end = _HEADER.unpack(head)
    try:
        magic = Magic(raw_magic)
    except ValueError as error:
        raise source.fail(f"no HFile block magic but {raw_magic!r}") from error
    if magic not in expected:
        raise source.fail(f"HFile block is {magic.name}, not {' or '.join(sorted(kind.name for kind in expected))}")
    compressed_size = data_end - HEADER_SIZE
    if compressed_size < 0 or data_size < 0 or per_checksum <= 0:
        message = f"HFile block header holds impossible sizes ({disk_size}, {data_size}, {per_checksum}, {data_end})"
        raise source.fail(message)
    checksum_count = -(-data_end // per_checksum)
    if disk_size != compressed_size + 4 * checksum_count:
        message = f"HFile block sizes disagree ({disk_size} is not {compressed_size} and {checksum_count} checksums)"
        raise source.fail(message)
    body = source.view(disk_size)
    compressed = body[:compressed_size]
    _verify(source, checksum_type, per_checksum, b"".join((head, compressed)), body[compressed_size:])
    return _decompress(source, codec, compressed, data_size, limits)


def _verify(source: Reader, checksum_type: int, per_checksum: int, data: bytes, words: memoryview) -> None:
    if checksum_type not in CHECKSUMS:
        raise source.fail(f"unknown HFile checksum type {checksum_type}")
    function = CHECKSUMS[checksum_type]
    if function is None:
        return
    view = memoryview(data)
    for index, (stored,) in enumerate(struct.iter_unpack(">I", words)):
        if function(view[index * per_checksum : (index + 1) * per_checksum]) != stored:
            raise source.fail(f"HFile block fails the checksum of its chunk {index} and ends")


def _decompress(source: Reader, codec: Codec, compressed: memoryview, size: int, limits: SizeLimits) -> bytes:
    if codec is Codec.NONE:
        if len(compressed) != size:
            raise source.fail(f"uncompressed HFile block of {len(compressed)} bytes claims {size}")
        return bytes(compressed)
    if size > _MAX_EXPANSION * (len(compressed) + 1):
        raise source.fail(f"HFile block of {len(compressed)} compressed bytes claims {size} uncompressed ones")
    limits.check(Limit.HFILE_BLOCK, size, source.path, what=_WHAT)
    try:
        return inflate(compressed, size)
    except ValueError as error:
        raise source.fail(f"{error} and ends") from error


def encode_block(magic: Magic, data: bytes, codec: Codec, previous_offset: int) -> bytes:
    """Returns a block with CRC32C checksums. `previous_offset` is the start of this type's previous block, or -1."""
    compressed = data if codec is Codec.NONE else _gzip(data)
    data_end = HEADER_SIZE + len(compressed)
    checksum_count = -(-data_end // BYTES_PER_CHECKSUM)
    sizes = len(compressed) + 4 * checksum_count, len(data)
    head = _HEADER.pack(magic.value, *sizes, previous_offset, _CRC32C_TYPE, BYTES_PER_CHECKSUM, data_end)
    whole = head + compressed
    words = (crc32c(whole[start : start + BYTES_PER_CHECKSUM]) for start in range(0, data_end, BYTES_PER_CHECKSUM))
    return whole + b"".join(word.to_bytes(4, "big") for word in words)


def _gzip(data: bytes) -> bytes:
    """Returns a gzip member with HBase's header, without time and system: equal data give equal bytes."""
    deflater = FASTEST.compressobj(_LEVEL if FASTEST is zlib else _FAST_LEVEL, zlib.DEFLATED, -15)
    tail = struct.pack("<II", FASTEST.crc32(data), len(data) & 0xFFFFFFFF)
    return b"".join((_GZIP_HEADER, deflater.compress(data), deflater.flush(), tail))


_MIN_ENTRY = 13
_ENTRY = struct.Struct(">qi")


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A block's cell key, or its name in the meta index; its offset and its size on disk in bytes."""

    key: bytes
    offset: int
    disk_size: int


def decode_root_index(
    data: bytes, count: int, path: str, *, most: int | None = None, has_mid_key: bool = False
) -> list[IndexEntry]:
    """Returns the `count` entries of a root or meta index, over at most `most` blocks. A root with deeper levels has a
    mid key after them. No checksum covers the trailer's count: the entries must use the index up.
    """
    source = Reader(data, path)
    if not 0 <= count <= _most_entries(data, _MIN_ENTRY, most):
        raise source.fail(f"HFile index of {len(data)} bytes claims {count} entries")
    entries = [_entry(source) for _ in range(count)]
    if not has_mid_key and not source.at_end():
        raise source.fail(f"HFile index holds more than the {count} entries that the trailer counts, going on")
    return entries


def decode_inner_index(data: bytes, path: str, *, most: int | None = None) -> list[IndexEntry]:
    """Returns the entries of an inner index block: count, the entries' offsets and one past the last, entries."""
    source = Reader(data, path)
    count = source.i32()
    if not 0 <= count <= _most_entries(data, _MIN_ENTRY + 3, most):
        raise source.fail(f"HFile index of {len(data)} bytes claims {count} entries")
    starts = [source.i32() for _ in range(count + 1)]
    return [_entry(source, end - start - _ENTRY.size) for start, end in pairwise(starts)]


def _most_entries(data: bytes, size: int, most: int | None) -> int:
    """Returns the most entries of at least `size` bytes in an index. A compressed one may have very many per byte."""
    room = len(data) // size
    return room if most is None else min(room, most)


def _entry(source: Reader, key_size: int | None = None) -> IndexEntry:
    offset, disk_size = source.i64(), source.i32()
    key = source.bytes(source.hadoop_vint() if key_size is None else key_size)
    if offset < 0 or disk_size <= 0:
        raise source.fail(f"HFile index points to {disk_size} bytes at {offset}")
    return IndexEntry(key, offset, disk_size)


def encode_root_index(entries: list[IndexEntry]) -> bytes:
    return b"".join(
        _ENTRY.pack(entry.offset, entry.disk_size) + encode_hadoop_vint(len(entry.key)) + entry.key for entry in entries
    )


_LENGTHS = struct.Struct(">iih")
KEY_TAIL = bytes.fromhex("007fffffffffffffff04")
"""The bytes after the row in every cell key that Hudi writes."""
_KEY_OVERHEAD = 2 + len(KEY_TAIL)
MAX_ROW = 0x7FFF
"""The most bytes of a row."""
_NO_MVCC = b"\0"


def cell_key(row: bytes) -> bytes:
    """Returns the whole cell key of a record key. Raises ValueError when the record key is longer than 32767 bytes."""
    if len(row) > MAX_ROW:
        raise ValueError(f"a key of {len(row)} bytes does not fit an HFile cell (at most {MAX_ROW})")
    return len(row).to_bytes(2, "big") + row + KEY_TAIL


def row_of_key(key: bytes, source: Reader) -> bytes:
    """Returns the row of a cell key, or of the native writer's short form that ends after the row."""
    length = int.from_bytes(key[:2], "big")
    if len(key) < 2 or length > MAX_ROW or len(key) < 2 + length:
        raise source.fail(f"HFile key of {len(key)} bytes claims a row of {length}")
    return key[2 : 2 + length]


def encode_cell(row: bytes, value: bytes) -> bytes:
    key = cell_key(row)
    return b"".join((struct.pack(">ii", len(key), len(value)), key, value, _NO_MVCC))


def cell_bounds(data: bytes, path: str, *, with_mvcc: bool) -> Iterator[tuple[int, int, int, int]]:
    """Yields start and end of the row, and of the value, of each cell of a data block. Raises CorruptFileError."""
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
        # A row must have no negative length, and room in the key.
        if value_length < 0 or not 0 <= row_length <= key_length - _KEY_OVERHEAD or end > size:
            message = f"HFile cell claims impossible lengths (key {key_length}, value {value_length}, row {row_length})"
            raise source.fail(message)
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
