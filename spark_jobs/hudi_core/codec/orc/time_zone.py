"""The time zone of an ORC file's writer, stripe by stripe.

See the ORC specification, "File Tail", "Stripe Footer" and "Compression". ORC stores a timestamp as the local time of
its writer. Arrow gives that local time without the zone, which Java needs to make the moment of it again.
"""

from __future__ import annotations

import zlib
from typing import BinaryIO

import pyarrow as pa

from hudi_core.codec.binary import Reader
from hudi_core.codec.hfile.proto import read_fields
from hudi_core.errors import CorruptFileError, UnsupportedError

_NONE, _ZLIB, _SNAPPY, _LZ4, _ZSTD = 0, 1, 2, 4, 5
_MAX_TAIL = 64 << 20
"""Of a footer or a chunk of one; Hudi's schemas make some kilobytes."""


def writer_zones(file: BinaryIO, path: str) -> list[str]:
    """The zone's name for each stripe; empty where the writer gave none.

    Raises CorruptFileError or UnsupportedError naming `path`.
    """
    size = file.seek(0, 2)
    tail = _read(file, max(0, size - 256), min(size, 256), path)
    length = tail[-1] if tail else 0
    if length + 1 > len(tail):
        raise CorruptFileError(f"an ORC file of {size} bytes has no room for its postscript", path=path)
    postscript = _numbers(tail[-1 - length : -1], path)
    codec, most = postscript.get(2, _NONE), min(postscript.get(3, 256 << 10), _MAX_TAIL)
    start = size - 1 - length - postscript.get(1, 0)
    footer = _plain(_read(file, start, postscript.get(1, 0), path), codec, most, path)
    zones = []
    for number, value in read_fields(Reader(footer, path)):
        if number == 3 and isinstance(value, bytes):
            stripe = _numbers(value, path)
            at = stripe.get(1, 0) + stripe.get(2, 0) + stripe.get(3, 0)
            body = _plain(_read(file, at, stripe.get(4, 0), path), codec, most, path)
            zones.append(_zone(body, path))
    return zones


def _zone(stripe_footer: bytes, path: str) -> str:
    for number, value in read_fields(Reader(stripe_footer, path)):
        if number == 3 and isinstance(value, bytes):
            return Reader(value, path).utf8(len(value))
    return ""


def _numbers(message: bytes, path: str) -> dict[int, int]:
    """The integers of a protobuf message by field number."""
    return {number: value for number, value in read_fields(Reader(message, path)) if isinstance(value, int)}


def _read(file: BinaryIO, start: int, length: int, path: str) -> bytes:
    if start < 0 or not 0 <= length <= _MAX_TAIL:
        raise CorruptFileError(f"the ORC file's tail points to {length} bytes at {start}", path=path)
    file.seek(start)
    data = file.read(length)
    if len(data) != length:
        raise CorruptFileError(
            f"read {len(data)} bytes at byte {start} of the ORC file where {length} should be", path=path
        )
    return data


def _plain(data: bytes, codec: int, most: int, path: str) -> bytes:
    """A section, decompressed: chunks of a three-byte head and their bytes.

    The head has the length and whether the chunk is compressed.
    """
    if codec == _NONE:
        return data
    source, parts = Reader(data, path), []
    while not source.at_end():
        head = int.from_bytes(source.bytes(3), "little")
        chunk = source.bytes(head >> 1)
        parts.append(chunk if head & 1 else _inflate(chunk, codec, most, path))
    return b"".join(parts)


def _inflate(chunk: bytes, codec: int, most: int, path: str) -> bytes:
    try:
        if codec == _ZLIB:
            return zlib.decompressobj(-15).decompress(chunk, most)
        if codec == _ZSTD:
            with pa.input_stream(pa.BufferReader(chunk), compression="zstd") as stream:
                return bytes(stream.read(most))
        if codec == _SNAPPY:
            # The chunk starts with the size that it decompresses to.
            size = min(Reader(chunk, path).varint(), most)
            return bytes(pa.decompress(chunk, decompressed_size=size, codec="snappy", asbytes=True))
        if codec == _LZ4:
            return _lz4(Reader(chunk, path), most)
    except (zlib.error, pa.ArrowException, OSError) as error:
        raise CorruptFileError(f"a part of the ORC file's tail does not decompress: {error}", path=path) from error
    raise UnsupportedError(f"ORC compression of kind {codec}", path=path)


def _lz4(source: Reader, most: int) -> bytes:
    """An LZ4 block, which Arrow decompresses only to a size known beforehand.

    A footer has some kilobytes at most, so bytes are read one by one.
    """
    out = bytearray()
    while not source.at_end():
        token = source.u8()
        out += source.bytes(_lz4_length(source, token >> 4))
        if source.at_end():
            break
        back = int.from_bytes(source.bytes(2), "little")
        count = _lz4_length(source, token & 15) + 4
        if not 0 < back <= len(out) or len(out) + count > most:
            raise source.fail("an LZ4 block refers to bytes that it does not have")
        for _ in range(count):
            out.append(out[-back])
    return bytes(out)


def _lz4_length(source: Reader, length: int) -> int:
    if length == 15:
        while True:
            more = source.u8()
            length += more
            if more != 255:
                break
    return length
