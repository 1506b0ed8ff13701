"""A bounds-checked cursor over untrusted bytes, and the integer encodings that Hudi's formats share.

Hudi's own framing is big-endian; Avro uses zigzag varints, protobuf plain varints, HBase's block index Hadoop vints.
Every read past the end raises CorruptFileError, which names the file, before anything is allocated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hudi_core.errors import CorruptFileError

_MAX_VARINT_BYTES = 10
_U64 = 1 << 64


class Reader:
    """Reads forward through `data`. `path` names the file in errors; `base` is where `data` starts in the file."""

    __slots__ = ("_base", "_data", "_position", "path")

    def __init__(self, data: bytes | bytearray | memoryview, path: str, *, base: int = 0) -> None:
        self._data = memoryview(data).cast("B") if not isinstance(data, bytes) else memoryview(data)
        self._position = 0
        self._base = base
        self.path = path

    @property
    def position(self) -> int:
        return self._position

    @property
    def remaining(self) -> int:
        return len(self._data) - self._position

    def at_end(self) -> bool:
        return self._position >= len(self._data)

    def fail(self, message: str) -> CorruptFileError:
        """Returns a CorruptFileError of this file that names the current offset; the caller raises it."""
        return CorruptFileError(f"{message} at byte {self._base + self._position}", path=self.path)

    def view(self, count: int) -> memoryview:
        """Returns the next `count` bytes without copying them."""
        if count < 0:
            raise self.fail(f"negative length {count}")
        start = self._position
        if count > len(self._data) - start:
            raise self.fail(f"needs {count} bytes, has {len(self._data) - start}")
        self._position = start + count
        return self._data[start : self._position]

    def bytes(self, count: int) -> bytes:
        return bytes(self.view(count))

    def skip(self, count: int) -> None:
        self.view(count)

    def u8(self) -> int:
        return self.view(1)[0]

    def i8(self) -> int:
        return int.from_bytes(self.view(1), "big", signed=True)

    def i32(self) -> int:
        """Reads a signed big-endian integer of four bytes; i64 reads one of eight."""
        return int.from_bytes(self.view(4), "big", signed=True)

    def i64(self) -> int:
        return int.from_bytes(self.view(8), "big", signed=True)

    def utf8(self, count: int) -> str:
        data = self.bytes(count)
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise self.fail(f"text is not UTF-8 ({error.reason})") from error

    def varint(self) -> int:
        """Reads a protobuf varint: unsigned, at most 64 bits."""
        value = 0
        for index in range(_MAX_VARINT_BYTES):
            byte = self.u8()
            value |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                if value >= _U64:
                    break
                return value
        raise self.fail("varint is longer than 64 bits")

    def zigzag(self) -> int:
        """Reads an Avro int or long: a zigzag varint, signed 64 bits."""
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def hadoop_vint(self) -> int:
        """Reads a Hadoop variable-length long (WritableUtils.readVLong): a byte for -112..127, or a count and bytes."""
        first = self.i8()
        if first >= -112:
            return first
        negative = first < -120
        count = -120 - first if negative else -112 - first
        value = int.from_bytes(self.view(count), "big")
        value = ~value if negative else value
        if not -(1 << 63) <= value < 1 << 63:
            raise self.fail("Hadoop vint does not fit 64 bits")
        return value


def encode_varint(value: int) -> bytes:
    """Returns the protobuf varint of a non-negative integer below 2^64. Raises ValueError for any other."""
    if not 0 <= value < _U64:
        raise ValueError(f"{value} is not an unsigned 64-bit integer")
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_zigzag(value: int) -> bytes:
    """Returns an Avro int or long. Raises ValueError beyond 64 bits."""
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"{value} is not a signed 64-bit integer")
    return encode_varint((value << 1) ^ (value >> 63))


def encode_hadoop_vint(value: int) -> bytes:
    """Returns a Hadoop variable-length long (WritableUtils.writeVLong). Raises ValueError beyond 64 bits."""
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"{value} is not a signed 64-bit integer")
    if -112 <= value <= 127:
        return value.to_bytes(1, "big", signed=True)
    magnitude = ~value if value < 0 else value
    body = magnitude.to_bytes((magnitude.bit_length() + 7) // 8, "big")
    return ((-120 if value < 0 else -112) - len(body)).to_bytes(1, "big", signed=True) + body


_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

Field = tuple[int, int | bytes]
"""A field's number and its value: the integer of a varint field, or the bytes of a length-delimited field."""


def read_fields(source: Reader) -> Iterator[Field]:
    """Yields every varint and length-delimited field up to the end. Skips fixed-width fields and refuses groups."""
    while not source.at_end():
        tag = source.varint()
        number, kind = tag >> 3, tag & 7
        if number == 0:
            raise source.fail("protobuf field number 0")
        if kind == _VARINT:
            yield number, source.varint()
        elif kind == _BYTES:
            yield number, source.bytes(source.varint())
        elif kind in (_FIXED64, _FIXED32):
            source.skip(8 if kind == _FIXED64 else 4)
        else:
            raise source.fail(f"protobuf wire type {kind} is not read")


def read_delimited(source: Reader) -> Reader:
    return Reader(source.view(source.varint()), source.path)


def encode_fields(fields: Iterable[Field]) -> bytes:
    out = bytearray()
    for number, value in fields:
        if isinstance(value, int):
            out += encode_varint(number << 3 | _VARINT) + encode_varint(value)
        else:
            out += encode_varint(number << 3 | _BYTES) + encode_varint(len(value)) + value
    return bytes(out)


def encode_delimited(message: bytes) -> bytes:
    return encode_varint(len(message)) + message
