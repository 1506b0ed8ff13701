"""Checks a Parquet footer for what Arrow does not survive. pages.py checks how large pages may be.

Arrow's Python binding gives out the metadata of a column chunk by C++ that throws on some damaged footers. Nothing
catches that, and the process aborts. The faults are (ColumnChunkMetaDataImpl, SizeStatistics::Validate, MakeColumnStats
of Arrow): another type than the schema's, a codec that does not exist, encrypted metadata, level histograms of another
length, byte counts of columns without variable lengths, bounds shorter than a value. Arrow also reads a list's elements
as the format has them, whatever type the list says; here they would be read as other bytes.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_core.codec.parquet.thrift import BINARY, I32, I64, INTEGERS, LIST, STRUCT, CompactReader, Struct
from hudi_core.errors import CorruptFileError, UnsupportedError
from hudi_core.frozen import dataclass

TYPES: Final = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
"""Physical types by their number in the format."""
_WIDTHS: Final = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
_CODECS: Final = 8
"""How many codecs the format has, numbered from 0."""
_ELEMENTS: Final = {2: I32, 3: BINARY, 8: STRUCT, 13: STRUCT}
"""Types of the elements of ColumnMetaData's lists, by the number of the field."""
_LEVELS: Final = {2: I64, 3: I64}
_SHAPES: Final = {2: I32}
TAIL: Final = 8
"""Bytes after the footer: its length and the magic."""
_KEPT: Final = 4096
_passed: dict[bytes, None] = {}
"""Hashes of the last footers that were sound: a run opens a file up to three times."""


@dataclass(frozen=True, slots=True)
class _Column:
    kind: int
    width: int
    repetition: int
    definition: int


def schema_of(metadata: pq.FileMetaData) -> pq.ParquetSchema:
    """Returns the schema. `metadata.schema` would keep the footer in memory until the cyclic collector runs."""
    return pq.ParquetSchema(metadata)


def is_by_parquet_mr(metadata: pq.FileMetaData) -> bool:
    """Whether parquet-mr wrote the file. False for a writer whose name is damaged."""
    try:
        return str(metadata.created_by or "").startswith("parquet-mr")
    except UnicodeDecodeError:
        return False


def check_footer(footer: bytes, schema: pq.ParquetSchema, path: str) -> None:
    """Raises CorruptFileError naming `path` for a footer whose column chunks Arrow's binding could not give out, and
    UnsupportedError for encrypted ones. `footer` is the FileMetaData; `schema` is what Arrow reads in it.
    """
    digest = sha256(footer).digest()
    if digest in _passed:
        return
    columns = [_column(schema.column(number)) for number in range(len(schema))]
    try:
        for number, chunk in _chunks(CompactReader(footer)):
            if number < len(columns):
                _check_chunk(chunk, columns[number])
    except _EncryptedError as error:
        raise UnsupportedError("the columns of this Parquet file are encrypted", path=path) from error
    except (ValueError, IndexError) as error:
        raise CorruptFileError(f"the footer of the Parquet file is damaged: {error}", path=path) from error
    if len(_passed) >= _KEPT:
        _passed.clear()
    _passed[digest] = None


def footer_of(tail: bytes) -> tuple[int, bytes | None]:
    """Returns the footer's length and the footer, or None when `tail`, the file's last bytes, lacks some of it."""
    length = int.from_bytes(tail[-TAIL : -TAIL + 4], "little")
    return length, tail[-TAIL - length : -TAIL] if 0 < length <= len(tail) - TAIL else None


def empty_file(schema: pa.Schema) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(schema.empty_table(), buffer, store_schema=False)
    return buffer.getvalue()


def footer_bytes(file: bytes) -> bytes:
    """Returns the footer of a whole file. Raises ValueError for bytes without one."""
    footer = footer_of(file)[1]
    if footer is None:
        raise ValueError("the file has no footer")
    return footer


class _EncryptedError(Exception):
    """The metadata of a column is encrypted."""


def _column(column: pq.ColumnSchema) -> _Column:
    kind = column.physical_type
    width = _WIDTHS.get(kind, column.length if kind == "FIXED_LEN_BYTE_ARRAY" else 0)
    return _Column(TYPES.index(kind), width, column.max_repetition_level, column.max_definition_level)


def _chunks(reader: CompactReader) -> Iterator[tuple[int, Struct]]:
    """Yields the column's number and the column chunk, one at a time, since a footer may be large."""
    for number, kind in reader.fields():
        if number != File.row_groups:
            _pass_over(reader, kind, number in (2, 5, 7))
            continue
        for _ in reader.structs(kind):
            for inner, inner_kind in reader.fields():
                if inner != Group.columns:
                    _pass_over(reader, inner_kind, inner == 4)
                    continue
                for column, _ in enumerate(reader.structs(inner_kind)):
                    yield column, reader.struct()


def _pass_over(reader: CompactReader, kind: int, is_structs: bool) -> None:
    """Passes over a value. With `is_structs`, the value is a list of structs in the format."""
    if is_structs and kind == LIST:
        for _ in reader.structs(kind):
            reader.skip(STRUCT)
    else:
        reader.skip(kind)


def _check_chunk(chunk: Struct, column: _Column) -> None:
    if Chunk.crypto in chunk:
        raise _EncryptedError
    metadata = _of(chunk, Chunk.metadata, STRUCT)
    if metadata is None:
        return
    kind = _of(metadata, Column.kind, *INTEGERS)
    if kind is not None and kind != column.kind:
        raise ValueError(f"a column chunk has the type {kind}, and its column {column.kind}")
    codec = _of(metadata, Column.codec, *INTEGERS)
    if codec is not None and not 0 <= codec < _CODECS:
        raise ValueError(f"there is no codec {codec}")
    _check_elements(metadata, _ELEMENTS)
    _check_elements(_of(metadata, 16, STRUCT) or {}, _LEVELS)
    _check_elements(_of(metadata, 17, STRUCT) or {}, _SHAPES)
    _check_statistics(_of(metadata, Column.statistics, STRUCT) or {}, column)
    _check_sizes(_of(metadata, 16, STRUCT) or {}, column)


def _of(fields: Struct, number: int, *kinds: int) -> Any:
    """Returns the value of a field; None when it is missing or has another type: Arrow passes over both."""
    kind, value = fields.get(number, (0, None))
    return value if kind in kinds else None


def _check_elements(fields: Struct, kinds: Mapping[int, int]) -> None:
    for number, kind in kinds.items():
        elements = _of(fields, number, LIST)
        if elements is not None and elements.values and elements.kind != kind:
            raise ValueError(f"the list in field {number} has elements of type {elements.kind}, not {kind}")


def _check_statistics(statistics: Struct, column: _Column) -> None:
    for number in (1, 2, 5, 6):
        bound = _of(statistics, number, BINARY)
        if bound is not None and len(bound) < column.width:
            raise ValueError(f"a bound of {len(bound)} bytes is shorter than a value of {column.width}")


def _check_sizes(sizes: Struct, column: _Column) -> None:
    if 1 in sizes and column.kind != TYPES.index("BYTE_ARRAY"):
        raise ValueError("a column chunk counts bytes of values that have no length of their own")
    for number, levels in ((2, column.repetition), (3, column.definition)):
        histogram = _of(sizes, number, LIST)
        if histogram is not None and len(histogram.values) not in (0, levels + 1):
            raise ValueError(f"a histogram of {len(histogram.values)} levels is of a column with {levels + 1}")


class File:
    schema: Final = 2
    num_rows: Final = 3
    row_groups: Final = 4
    key_values: Final = 5
    created_by: Final = 6
    column_orders: Final = 7


class Group:
    columns: Final = 1
    plain: Final = 2
    num_rows: Final = 3
    offset: Final = 5
    stored: Final = 6
    ordinal: Final = 7


class Chunk:
    """Fields of ColumnChunk. A part of the page index has an offset and a length."""

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
    page_counts: Final = 13
    bloom_offset: Final = 14
    bloom_length: Final = 15
    sizes: Final = 16
    places: Final = 17


class Bounds:
    """Fields of Statistics. Bounds are in a deprecated field and in a field for the column's order."""

    greatest: Final = (1, 5)
    least: Final = (2, 6)
    nulls: Final = 3


class Page:
    """Fields of PageHeader, and of the header in it for the page's type."""

    kind: Final = 1
    plain: Final = 2
    stored: Final = 3
    checksum: Final = 4
    v1: Final = 5
    dictionary: Final = 7
    v2: Final = 8
    num_values: Final = 1
    encoding: Final = 2
    num_rows: Final = 3
    encoding_v2: Final = 4
    definition_size: Final = 5
    repetition_size: Final = 6
    is_compressed: Final = 7


class Location:
    """Fields of PageLocation."""

    offset: Final = 1
    size: Final = 2
    first_row: Final = 3


def with_number(fields: Struct, number: int, value: int) -> None:
    """Replaces a number and keeps its type."""
    fields[number] = fields[number][0], value


def shifted(chunk: Struct, by: int) -> Struct:
    """Returns a ColumnChunk whose bytes lie `by` further on, without bloom filter and page index."""
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
