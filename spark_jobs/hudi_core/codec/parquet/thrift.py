"""Reads and writes Thrift's compact protocol, the form of Parquet's footers, page headers and page indexes.

A struct is read into a dict of its fields by number. It is written again byte for byte, if its writer numbered the
fields in order. No schema is needed, and what a newer format adds is kept. The format has no maps: they are passed
over, as in other readers, and refused where a struct is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
"""Types of a field. The type of a boolean is its value."""
INTEGERS: Final = (I16, I32, I64)
MAX_NESTING: Final = 32
MAX_VALUES: Final = 1 << 20
"""The most values of one tree: some 100 MB of memory."""
_FIXED: Final = {TRUE: 0, FALSE: 0, BYTE: 1, DOUBLE: 8}
_STOP: Final = 0

Struct = dict[int, tuple[int, Any]]
"""Type and value of each field by its number. A value is an int for BYTE and INTEGERS, bytes for BINARY and DOUBLE, a
Struct, a ThriftList for LIST and SET; None for a boolean, whose type is its value.
"""


class ThriftList(NamedTuple):
    """The elements of a list or set, and their type. Booleans are ints there, since each has a byte."""

    kind: int
    values: list[Any]


class TooManyValuesError(ValueError):
    """A tree has more values than are held in memory."""


class CompactReader:
    """Reads the protocol. Raises ValueError or IndexError for other bytes, TooManyValuesError beyond `most_values`."""

    def __init__(self, data: bytes, position: int = 0, most_values: int = MAX_VALUES) -> None:
        self.data = data
        self.position = position
        self._left = self._most = most_values

    def fields(self) -> Iterator[tuple[int, int]]:
        """Yields number and type of each field of a struct. The caller reads or skips the value before the next one."""
        number = 0
        while True:
            head = self.data[self.position]
            self.position += 1
            kind = head & 15
            if kind == _STOP:
                return
            number = number + (head >> 4) if head >> 4 else self.integer()
            yield number, kind

    def structs(self, kind: int) -> Iterator[None]:
        """Yields before each struct of a list of type `kind`; the caller reads or skips the struct."""
        if kind != LIST:
            raise ValueError("a list has another type")
        inner, count = self.list_head()
        if count and inner != STRUCT:
            raise ValueError("a list has elements of another type")
        for _ in range(count):
            yield

    def varint(self) -> int:
        data, position = self.data, self.position
        octet = data[position]
        position += 1
        value, shift = octet & 0x7F, 7
        while octet & 0x80:
            if shift > 63:
                raise ValueError("a number is longer than 64 bits")
            octet = data[position]
            position += 1
            value |= (octet & 0x7F) << shift
            shift += 7
        self.position = position
        return value

    def integer(self) -> int:
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def list_head(self) -> tuple[int, int]:
        head = self.data[self.position]
        self.position += 1
        count = head >> 4
        return head & 15, self._checked(self.varint() if count == 15 else count, "a list")

    def struct(self) -> Struct:
        self._left = self._most
        return self._struct(0)

    def skip(self, kind: int, depth: int = 0, *, element: bool = False) -> None:
        """Passes over a value. A boolean is in the head of its field, but has a byte as an element."""
        self._check_depth(depth)
        if kind in INTEGERS:
            self.varint()
        elif kind == BINARY:
            size = self._checked(self.varint(), "a value")
            self.position += size
        elif kind in _FIXED:
            self.position += 1 if element and kind in (TRUE, FALSE) else _FIXED[kind]
        elif kind == STRUCT:
            for _, inner in self.fields():
                self.skip(inner, depth + 1)
        elif kind in (LIST, SET):
            inner, count = self.list_head()
            for _ in range(count):
                self.skip(inner, depth + 1, element=True)
        elif kind == MAP:
            if count := self._checked(self.varint(), "a map"):
                kinds = self.data[self.position]
                self.position += 1
                for _ in range(count):
                    self.skip(kinds >> 4, depth + 1, element=True)
                    self.skip(kinds & 15, depth + 1, element=True)
        else:
            raise ValueError(f"there is no type {kind}")

    def _struct(self, depth: int) -> Struct:
        fields: Struct = {}
        for number, kind in self.fields():
            if number in fields:
                raise ValueError(f"field {number} is there twice")
            fields[number] = kind, self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int, *, element: bool = False) -> Any:
        self._left -= 1
        if self._left < 0:
            raise TooManyValuesError(f"it has more than {self._most} values")
        if kind in INTEGERS:
            return self.integer()
        if kind == BINARY:
            return self._bytes(self._checked(self.varint(), "a value"))
        if kind == STRUCT:
            self._check_depth(depth)
            return self._struct(depth + 1)
        if kind in (LIST, SET):
            self._check_depth(depth)
            inner, count = self.list_head()
            return ThriftList(inner, [self._value(inner, depth + 1, element=True) for _ in range(count)])
        if kind in (TRUE, FALSE) and not element:
            return None
        if kind in (TRUE, FALSE, BYTE):
            return self._bytes(1)[0]
        if kind == DOUBLE:
            return self._bytes(8)
        raise ValueError(f"there is no type {kind}")

    def _bytes(self, size: int) -> bytes:
        end = self.position + size
        if end > len(self.data):
            raise IndexError("it is cut")
        data = self.data[self.position : end]
        self.position = end
        return data

    def _checked(self, size: int, what: str) -> int:
        if size > len(self.data) - self.position:
            raise ValueError(f"{what} is longer than all that follows")
        return size

    @staticmethod
    def _check_depth(depth: int) -> None:
        if depth > MAX_NESTING:
            raise ValueError("it is nested too deeply")


def read_struct(data: bytes, position: int = 0, most_values: int = MAX_VALUES) -> tuple[Struct, int]:
    """Returns the struct at `position`, and where it ends. Raises the errors of CompactReader."""
    reader = CompactReader(data, position, most_values)
    return reader.struct(), reader.position


def encode_struct(fields: Struct) -> bytes:
    out = bytearray()
    _put_struct(out, fields)
    return bytes(out)


def _put_struct(out: bytearray, fields: Struct) -> None:
    last = 0
    for number, (kind, value) in fields.items():
        if 0 < number - last < 16:
            out.append((number - last) << 4 | kind)
        else:
            out.append(kind)
            _put_integer(out, number)
        last = number
        if kind not in (TRUE, FALSE):
            _put_value(out, kind, value)
    out.append(_STOP)


def _put_value(out: bytearray, kind: int, value: Any) -> None:
    if kind in INTEGERS:
        _put_integer(out, value)
    elif kind == BINARY:
        _put_varint(out, len(value))
        out += value
    elif kind == STRUCT:
        _put_struct(out, value)
    elif kind in (LIST, SET):
        count = len(value.values)
        if count < 15:
            out.append(count << 4 | value.kind)
        else:
            out.append(0xF0 | value.kind)
            _put_varint(out, count)
        for element in value.values:
            _put_value(out, value.kind, element)
    elif kind == DOUBLE:
        out += value
    else:
        out.append(value)


def _put_integer(out: bytearray, value: int) -> None:
    _put_varint(out, ((value << 1) ^ (value >> 63)) & 0xFFFFFFFFFFFFFFFF)


def _put_varint(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
