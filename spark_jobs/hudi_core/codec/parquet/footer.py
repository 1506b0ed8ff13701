"""Checks a Parquet footer for what Arrow does not survive.

Arrow's Python binding gives out the metadata of a column chunk by C++ that throws on some damaged footers, and does not
catch it: the process aborts. Those are (ColumnChunkMetaDataImpl, SizeStatistics::Validate, MakeColumnStats of Arrow):
another type than the schema's, a codec that does not exist, encrypted column metadata, level histograms of another
length than the levels of the column, byte counts of columns without variable lengths, and bounds shorter than a value.
Where Arrow reads pages it catches its own errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow.parquet as pq

from hudi_core.errors import CorruptFileError, UnsupportedError

_TYPES: Final = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
"""By their number in the format."""
_WIDTHS: Final = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
"""Bytes of a plain value."""
_CODECS: Final = 8
"""Of the format, numbered from 0."""
_MAX_NESTING: Final = 32
_TAIL: Final = 8
"""Bytes behind the footer: its length, and the magic."""
_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 0, 1, 2, 3, 7, 8, 9, 10, 11, 12
_INTEGERS: Final = (4, 5, 6)
_FIXED: Final = {_TRUE: 0, _FALSE: 0, _BYTE: 1, _DOUBLE: 8}
"""Bytes of a field's value in Thrift's compact protocol."""


@dataclass(frozen=True, slots=True)
class _Column:
    """What the schema says of a leaf column."""

    kind: int
    width: int
    repetition: int
    definition: int


def check_footer(footer: bytes, schema: pq.ParquetSchema, path: str) -> None:
    """Raises CorruptFileError, naming `path`, for a footer whose column chunks Arrow's binding could not give out;
    UnsupportedError for encrypted ones. `footer` is the FileMetaData of the file, `schema` as Arrow read it.
    """
    columns = [_column(schema.column(number)) for number in range(len(schema))]
    try:
        for number, position in _chunks(_Compact(footer)):
            if number < len(columns):
                _check_chunk(_Compact(footer, position), columns[number])
    except _EncryptedError as error:
        raise UnsupportedError("the columns of this Parquet file are encrypted", path=path) from error
    except (ValueError, IndexError) as error:
        raise CorruptFileError(f"the footer of the Parquet file is damaged: {error}", path=path) from error


def footer_of(tail: bytes) -> tuple[int, bytes | None]:
    """The length of the footer in front of the last bytes of a file, and the footer where `tail` has all of it."""
    length = int.from_bytes(tail[-_TAIL : -_TAIL + 4], "little")
    return length, tail[-_TAIL - length : -_TAIL] if 0 < length <= len(tail) - _TAIL else None


class _EncryptedError(Exception):
    """The metadata of a column is encrypted."""


class _Compact:
    """Reads a struct in Thrift's compact protocol from `position` on. Raises ValueError or IndexError for anything
    else.
    """

    def __init__(self, data: bytes, position: int = 0) -> None:
        self.data = data
        self.position = position

    def fields(self) -> Iterator[tuple[int, int]]:
        """The number and type of each field; the caller reads or skips its value before it goes on."""
        number = 0
        while True:
            head = self.data[self.position]
            self.position += 1
            kind = head & 15
            if kind == _STOP:
                return
            number = number + (head >> 4) if head >> 4 else self.integer()
            yield number, kind

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
        """A number with a sign."""
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def size(self) -> int:
        """The length of bytes that follow."""
        length = self.varint()
        if length > len(self.data) - self.position:
            raise ValueError("a value is longer than the footer")
        return length

    def list_of(self) -> tuple[int, int]:
        """Type and number of the elements of a list."""
        head = self.data[self.position]
        self.position += 1
        count = head >> 4
        if count == 15:
            count = self.varint()
        if count > len(self.data) - self.position:
            raise ValueError("a list is longer than the footer")
        return head & 15, count

    def skip(self, kind: int, depth: int = 0, *, element: bool = False) -> None:
        """Passes over a value; a boolean is in the head of its field, but has a byte as an element."""
        if depth > _MAX_NESTING:
            raise ValueError("it is nested too deeply")
        if kind in _INTEGERS:
            self.varint()
        elif kind == _BINARY:
            length = self.size()
            self.position += length
        elif kind in _FIXED:
            self.position += 1 if element and kind in (_TRUE, _FALSE) else _FIXED[kind]
        elif kind == _STRUCT:
            for _, inner in self.fields():
                self.skip(inner, depth + 1)
        elif kind in (_LIST, _SET):
            inner, count = self.list_of()
            for _ in range(count):
                self.skip(inner, depth + 1, element=True)
        elif kind == _MAP:
            self._skip_map(depth)
        else:
            raise ValueError(f"there is no type {kind}")

    def _skip_map(self, depth: int) -> None:
        count = self.varint()
        if count > len(self.data) - self.position:
            raise ValueError("a map is longer than the footer")
        if count:
            kinds = self.data[self.position]
            self.position += 1
            for _ in range(count):
                self.skip(kinds >> 4, depth + 1, element=True)
                self.skip(kinds & 15, depth + 1, element=True)


def _column(column: pq.ColumnSchema) -> _Column:
    kind = column.physical_type
    width = _WIDTHS.get(kind, column.length if kind == "FIXED_LEN_BYTE_ARRAY" else 0)
    return _Column(_TYPES.index(kind), width, column.max_repetition_level, column.max_definition_level)


def _structs(reader: _Compact, kind: int) -> Iterator[None]:
    """Stands before each struct of a list; the caller reads or skips it."""
    if kind != _LIST:
        raise ValueError("a list has another type")
    inner, count = reader.list_of()
    if count and inner != _STRUCT:
        raise ValueError("a list has elements of another type")
    for _ in range(count):
        yield


def _chunks(reader: _Compact) -> Iterator[tuple[int, int]]:
    """The number of its column and the position of each column chunk."""
    for number, kind in reader.fields():
        if number != 4:
            reader.skip(kind)
            continue
        for _ in _structs(reader, kind):
            for inner, inner_kind in reader.fields():
                if inner != 1:
                    reader.skip(inner_kind)
                    continue
                for column, _ in enumerate(_structs(reader, inner_kind)):
                    yield column, reader.position
                    reader.skip(_STRUCT)


def _check_chunk(reader: _Compact, column: _Column) -> None:
    for number, kind in reader.fields():
        if number == 8:
            raise _EncryptedError
        if number == 3 and kind == _STRUCT:
            _check_metadata(reader, column)
        else:
            reader.skip(kind)


def _check_metadata(reader: _Compact, column: _Column) -> None:
    checks: dict[int, Callable[[_Compact, _Column], None]] = {12: _check_statistics, 16: _check_sizes}
    for number, kind in reader.fields():
        if number == 1 and kind in _INTEGERS:
            found = reader.integer()
            if found != column.kind:
                raise ValueError(f"a column chunk has the type {found}, and its column {column.kind}")
        elif number == 4 and kind in _INTEGERS:
            codec = reader.integer()
            if not 0 <= codec < _CODECS:
                raise ValueError(f"there is no codec {codec}")
        elif number in checks and kind == _STRUCT:
            checks[number](reader, column)
        else:
            reader.skip(kind)


def _check_statistics(reader: _Compact, column: _Column) -> None:
    for number, kind in reader.fields():
        if number in (1, 2, 5, 6) and kind == _BINARY:
            length = reader.size()
            reader.position += length
            if length < column.width:
                raise ValueError(f"a bound of {length} bytes is shorter than a value of {column.width}")
        else:
            reader.skip(kind)


def _check_sizes(reader: _Compact, column: _Column) -> None:
    levels = {2: column.repetition, 3: column.definition}
    for number, kind in reader.fields():
        if number == 1 and column.kind != _TYPES.index("BYTE_ARRAY"):
            raise ValueError("a column chunk counts bytes of values that have no length of their own")
        if number in levels and kind == _LIST:
            inner, count = reader.list_of()
            if count not in (0, levels[number] + 1):
                raise ValueError(f"a histogram of {count} levels is of a column with {levels[number] + 1}")
            for _ in range(count):
                reader.skip(inner, element=True)
        else:
            reader.skip(kind)
