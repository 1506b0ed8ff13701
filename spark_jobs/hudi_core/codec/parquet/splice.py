"""Gives row groups of a Parquet file to another file without decoding: which may be copied, and their checked bytes.

A column chunk holds no place of its file, so it is copied as it is (page_sink.py). The schemas must say the same of
each column. Readers must believe the statistics of the writer, since the new file names another writer.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_core.codec.gzip import FASTEST
from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.codec.parquet.footer import (
    Chunk,
    Column,
    File,
    Group,
    Location,
    Page,
    empty_file,
    footer_bytes,
    schema_of,
)
from hudi_core.codec.parquet.page_sink import MAGIC, ChunkBytes
from hudi_core.codec.parquet.thrift import INTEGERS, MAX_VALUES, Struct, TooManyValuesError, encode_struct, read_struct
from hudi_core.errors import CorruptFileError
from hudi_core.model.size_limits import Limit

_WRITERS: Final = re.compile(rb"parquet-mr version 1\.(?:[89]|\d\d)\.|parquet-cpp-arrow version \d")
"""created_by of writers whose statistics are right. parquet-mr before 1.8 ordered bytes wrongly (PARQUET-251)."""
_VALUE_BYTES: Final = 2
"""The least bytes of a footer for each of its values: 2.4 in files of Arrow, 4.7 in those of Hudi."""
_DICTIONARY_PAGE: Final = 2


class RowGroupSource:
    """A Parquet file whose row groups are copied. It stays open as long as `file`."""

    def __init__(self, file: ParquetBaseFile) -> None:
        """Reads the tree of the footer. Raises CorruptFileError for a damaged footer, TooManyValuesError."""
        self.path = file.path
        self.file = file
        most = max(MAX_VALUES, len(file.footer_bytes) // _VALUE_BYTES)
        try:
            self._tree, _ = read_struct(file.footer_bytes, most_values=most)
            self._groups: list[Struct] = self._tree[File.row_groups][1].values
        except TooManyValuesError:
            raise
        except (ValueError, IndexError, KeyError, AttributeError) as error:
            raise CorruptFileError(f"the footer of the Parquet file is damaged: {error}", path=self.path) from error
        self._end = file.size - len(file.footer_bytes) - len(MAGIC) - 4
        self._index: tuple[int, bytes] | None = None

    def refusal(self, schema: pa.Schema) -> str | None:
        """Returns why no row group can be copied into a file of `schema` that Arrow writes; None when each can."""
        empty = empty_file(schema)
        target, _ = read_struct(footer_bytes(empty))
        created_by = self._tree.get(File.created_by, (0, b""))[1]
        if not (isinstance(created_by, bytes) and _WRITERS.match(created_by)):
            return f"the statistics of its writer are not believed: {created_by!r}"
        if self.file.hybrid_columns:
            return f"its columns are in the hybrid calendar: {', '.join(self.file.hybrid_columns)}"
        try:
            if not _is_same(schema_of(self.file.metadata), schema_of(pq.read_metadata(io.BytesIO(empty)))):
                return "it has another schema"
            if encode_struct({1: self._tree[File.column_orders]}) != encode_struct({1: target[File.column_orders]}):
                return "its columns are in another order of values"
        except (ValueError, IndexError, KeyError, AttributeError, TypeError) as error:
            return f"its schema is not understood: {error!r}"
        return None

    def codecs(self, number: int) -> list[str]:
        group = self.file.metadata.row_group(number)
        return [group.column(column).compression for column in range(group.num_columns)]

    def group(self, number: int) -> Struct:
        return {field: value for field, value in self._groups[number].items() if field != Group.columns}

    def chunks(self, number: int, replaced: Mapping[str, ChunkBytes]) -> Iterator[ChunkBytes]:
        """Yields the column chunks of a row group in the order of the schema, with one in memory. Columns that
        `replaced` has, by their dotted name, come from there. Raises CorruptFileError for a chunk that is damaged, has
        not the rows of its footer, or has another checksum than its pages say; SizeLimitError; StorageError.
        """
        rows, schema = self.file.metadata.row_group(number).num_rows, schema_of(self.file.metadata)
        for place, chunk in enumerate(self._groups[number][Group.columns][1].values):
            column = schema.column(place)
            try:
                inner = chunk[Chunk.metadata][1]
                if b".".join(inner[Column.path][1].values).decode() != column.path:
                    raise ValueError("it is not that of the schema")
                if column.max_repetition_level == 0 and inner[Column.num_values][1] != rows:
                    raise ValueError(f"it has {inner[Column.num_values][1]} values, and the row group {rows} rows")
                yield replaced[column.path] if column.path in replaced else self._read(chunk)
            except (ValueError, IndexError, KeyError, AttributeError, TypeError) as error:
                raise self._damaged(number, error) from error

    def check_empty(self, number: int) -> None:
        """Raises CorruptFileError when a row group without rows has a column with values, which Arrow would read."""
        group = self.file.metadata.row_group(number)
        for place in range(group.num_columns):
            if values := group.column(place).num_values:
                raise self._damaged(number, f"it has {values} values, and the row group 0 rows")

    def _damaged(self, number: int, what: object) -> CorruptFileError:
        message = f"a column of row group {number} of the Parquet file is damaged: {what}"
        return CorruptFileError(message, path=self.path, remedy="restore it, or roll back the commit that wrote it")

    def _read(self, chunk: Struct) -> ChunkBytes:
        if {Chunk.file_path, Chunk.crypto, Chunk.encrypted} & chunk.keys():
            raise ValueError("it is in another file, or encrypted")
        inner: Struct = chunk[Chunk.metadata][1]
        begin, size = _integer(inner, Column.data_offset), _integer(inner, Column.stored)
        if 0 < inner.get(Column.dictionary_offset, (0, 0))[1] < begin:
            begin = _integer(inner, Column.dictionary_offset)
        if not (len(MAGIC) <= begin and 0 <= size <= self._end - begin):
            raise ValueError(f"it lies outside of the file: {size} bytes at {begin}")
        data = self.file.read_range(begin, size)
        pages = _walk(data, _integer(inner, Column.num_values))
        column_index, offset_index = self._part(chunk, Chunk.column_index), self._part(chunk, Chunk.offset_index)
        if not _fits(offset_index, column_index, begin, pages):
            column_index = offset_index = b""
        return ChunkBytes(chunk, data, begin, column_index, offset_index)

    def _part(self, chunk: Struct, numbers: tuple[int, int]) -> bytes:
        at, size = (chunk.get(number, (0, 0))[1] for number in numbers)
        if not (isinstance(at, int) and isinstance(size, int) and at > 0 and size > 0):
            return b""
        if self._index is None:
            self._index = self._read_index()
        start, data = self._index
        return data[at - start : at - start + size] if at >= start else b""

    def _read_index(self) -> tuple[int, bytes]:
        """Returns the start and bytes of the page index of all chunks, between the last page and the footer."""
        places = [
            chunk[numbers[0]][1]
            for group in self._groups
            for chunk in group[Group.columns][1].values
            for numbers in (Chunk.column_index, Chunk.offset_index)
            if chunk.get(numbers[0], (0, 0))[0] in INTEGERS
        ]
        start = min((place for place in places if 0 < place <= self._end), default=self._end)
        self.file.limits.check(Limit.PARQUET_FOOTER, self._end - start, self.path, what="the page index")
        return start, self.file.read_range(start, self._end - start)


def _is_same(schema: pq.ParquetSchema, other: pq.ParquetSchema) -> bool:
    """Whether two schemas say the same of each column, in types of either form (ConvertedType, LogicalType). Arrow
    compares leaves; their paths and Arrow's own types show what is around them. To Arrow, a type that is encoded
    wrongly is another type.
    """
    leaves = range(len(schema))
    return bool(
        schema.equals(other)
        and all(schema.column(number).path == other.column(number).path for number in leaves)
        and schema.to_arrow_schema().equals(other.to_arrow_schema())
    )


def _integer(fields: Struct, number: int) -> int:
    kind, value = fields[number]
    if kind not in INTEGERS:
        raise ValueError(f"field {number} is no number")
    return int(value)


def _walk(data: bytes, num_values: int) -> list[tuple[int, int]]:
    """Returns place and size of each data page. Raises ValueError when the pages do not fill the chunk or do not have
    its number of values, or differ from their checksums.
    """
    crc32 = FASTEST.crc32
    position, pages, values = 0, [], 0
    while position < len(data):
        start = position
        header, position = read_struct(data, position)
        size = _integer(header, Page.stored)
        if not 0 <= size <= len(data) - position:
            raise ValueError("a page is longer than its column")
        body = memoryview(data)[position : position + size]
        position += size
        if Page.checksum in header and crc32(body) != _integer(header, Page.checksum) & 0xFFFFFFFF:
            raise ValueError(f"the checksum of the page at {start} of its column is not that of its bytes")
        if _integer(header, Page.kind) != _DICTIONARY_PAGE:
            inner = header[Page.v1 if Page.v1 in header else Page.v2][1]
            values += _integer(inner, Page.num_values)
            pages.append((start, position - start))
    if values != num_values:
        raise ValueError(f"its pages have {values} values, and the footer says {num_values}")
    return pages


def _fits(offset_index: bytes, column_index: bytes, begin: int, pages: list[tuple[int, int]]) -> bool:
    """Whether the page index is that of these pages. Any other page index is left out, since readers do without."""
    try:
        places = [
            (page[Location.offset][1], page[Location.size][1]) for page in read_struct(offset_index)[0][1][1].values
        ]
        counted = len(read_struct(column_index)[0][1][1].values) if column_index else len(places)
    except (ValueError, IndexError, KeyError, AttributeError, TypeError):
        return False
    return places == [(begin + start, size) for start, size in pages] and counted == len(places)
