"""Gives row groups of a Parquet file to another file without decoding: which may be copied, and their checked bytes.

A column chunk holds no place of its file, so it is copied as it is (page_sink.py). The schemas must say the same of
each column. Readers must believe the statistics of the writer, since the new file names another writer.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.codec.parquet.footer import (
    Chunk,
    Column,
    File,
    Group,
    empty_file,
    footer_bytes,
    schema_of,
)
from hudi_core.codec.parquet.page_index import fits, integer, stored_pages
from hudi_core.codec.parquet.page_sink import MAGIC, ChunkBytes
from hudi_core.codec.parquet.thrift import (
    I64,
    INTEGERS,
    LIST,
    MAX_VALUES,
    STRUCT,
    Struct,
    ThriftList,
    TooManyValuesError,
    encode_struct,
    read_struct,
)
from hudi_core.errors import CorruptFileError
from hudi_core.frozen import dataclass
from hudi_core.model.size_limits import Limit

_WRITERS: Final = re.compile(rb"parquet-mr version 1\.(?:[89]|\d\d)\.|parquet-cpp-arrow version \d")
"""created_by of writers whose statistics are right. parquet-mr before 1.8 ordered bytes wrongly (PARQUET-251)."""
_VALUE_BYTES: Final = 2
"""The least bytes of a footer for each of its values: 2.4 in files of Arrow, 4.7 in those of Hudi."""


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
        if not self.is_believed:
            return f"the statistics of its writer are not believed: {self._created_by!r}"
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

    @property
    def is_believed(self) -> bool:
        """Whether readers believe the statistics of the file's writer."""
        return isinstance(self._created_by, bytes) and _WRITERS.match(self._created_by) is not None

    @property
    def _created_by(self) -> object:
        return self._tree.get(File.created_by, (0, b""))[1]

    def codecs(self, number: int) -> list[str]:
        group = self.file.metadata.row_group(number)
        return [group.column(column).compression for column in range(group.num_columns)]

    def num_rows(self, number: int) -> int:
        return int(self.file.metadata.row_group(number).num_rows)

    def group(self, number: int) -> Struct:
        return {field: value for field, value in self._groups[number].items() if field != Group.columns}

    def column_chunks(self, number: int) -> list[Struct]:
        with self.naming(number):
            chunks: list[Struct] = self._groups[number][Group.columns][1].values
            return chunks

    def footer_with(self, group: Struct, rows: int) -> Struct:
        """Returns the footer of a file that has `group` alone, without key-value metadata."""
        kept = {field: value for field, value in self._tree.items() if field != File.key_values}
        alone = File.row_groups, (LIST, ThriftList(STRUCT, [group]))
        return dict(sorted({**kept, File.num_rows: (I64, rows), alone[0]: alone[1]}.items()))

    @contextmanager
    def naming(self, number: int) -> Iterator[None]:
        """Turns what a damaged column of a row group raises into CorruptFileError."""
        try:
            yield
        except (ValueError, IndexError, KeyError, AttributeError, TypeError) as error:
            raise self.damaged(number, error) from error

    def metadata_of(self, chunk: Struct, path: str) -> Struct:
        """Returns the ColumnMetaData of the column `path`. Raises ValueError for another column's."""
        if {Chunk.file_path, Chunk.crypto, Chunk.encrypted} & chunk.keys():
            raise ValueError("it is in another file, or encrypted")
        return _named(chunk, path)

    def check_values(self, number: int, column: pq.ColumnSchema, chunk: Struct) -> None:
        """Raises ValueError for a chunk of another column, or without a value for each row: Arrow would read no such
        row group whole. Also of a column that is replaced.
        """
        inner, rows = _named(chunk, column.path), self.num_rows(number)
        if column.max_repetition_level == 0 and inner[Column.num_values][1] != rows:
            raise ValueError(f"it has {inner[Column.num_values][1]} values, and the row group {rows} rows")

    def extent(self, inner: Struct) -> tuple[int, int]:
        """Returns where a column chunk begins in the file, and its bytes. Raises ValueError outside of the file."""
        begin, size = integer(inner, Column.data_offset), integer(inner, Column.stored)
        if 0 < inner.get(Column.dictionary_offset, (0, 0))[1] < begin:
            begin = integer(inner, Column.dictionary_offset)
        if not (len(MAGIC) <= begin and 0 <= size <= self._end - begin):
            raise ValueError(f"it lies outside of the file: {size} bytes at {begin}")
        return begin, size

    def part(self, chunk: Struct, numbers: tuple[int, int]) -> bytes:
        """Returns a part of a chunk's page index, by the fields that name it; nothing where it is missing."""
        at, size = (chunk.get(number, (0, 0))[1] for number in numbers)
        if not (isinstance(at, int) and isinstance(size, int) and at > 0 and size > 0):
            return b""
        if self._index is None:
            self._index = self._read_index()
        start, data = self._index
        return data[at - start : at - start + size] if at >= start else b""

    def damaged(self, number: int, what: object) -> CorruptFileError:
        message = f"a column of row group {number} of the Parquet file is damaged: {what}"
        return CorruptFileError(message, path=self.path, remedy="restore it, or roll back the commit that wrote it")

    def _read_index(self) -> tuple[int, bytes]:
        """Returns the start and bytes of the page index of all chunks. It lies between the last page and the footer."""
        parts = [
            (chunk[at][1], chunk[size][1])
            for group in self._groups
            for chunk in group[Group.columns][1].values
            for at, size in (Chunk.column_index, Chunk.offset_index)
            if chunk.get(at, (0, 0))[0] in INTEGERS and chunk.get(size, (0, 0))[0] in INTEGERS
        ]
        inside = [(at, at + size) for at, size in parts if 0 < at <= at + size <= self._end]
        start = min((at for at, _ in inside), default=self._end)
        end = max((end for _, end in inside), default=self._end)
        self.file.limits.check(Limit.PARQUET_FOOTER, end - start, self.path, what="the page index")
        return start, self.file.read_range(start, end - start)


def _named(chunk: Struct, path: str) -> Struct:
    inner: Struct = chunk[Chunk.metadata][1]
    if b".".join(inner[Column.path][1].values).decode() != path:
        raise ValueError("it is not that of the schema")
    return inner


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


@dataclass(frozen=True, slots=True)
class WholeRowGroup:
    """The row group `number` of `source`, all of it."""

    source: RowGroupSource
    number: int

    @property
    def num_rows(self) -> int:
        return self.source.num_rows(self.number)

    def group(self) -> Struct:
        return self.source.group(self.number)

    def chunks(self, replaced: Mapping[str, ChunkBytes]) -> Iterator[ChunkBytes]:
        """Yields the column chunks in the order of the schema, with one in memory; none without rows. Columns that
        `replaced` has, by their dotted name, come from there. Raises CorruptFileError for a chunk that is damaged, has
        not the rows of its footer, or has another checksum than its pages say; SizeLimitError; StorageError.
        """
        schema = schema_of(self.source.file.metadata)
        for place, chunk in enumerate(self.source.column_chunks(self.number)):
            column = schema.column(place)
            with self.source.naming(self.number):
                if self.num_rows:
                    self.source.check_values(self.number, column, chunk)
                    yield replaced[column.path] if column.path in replaced else self._read(chunk, column)
                elif values := chunk[Chunk.metadata][1][Column.num_values][1]:
                    raise ValueError(f"it has {values} values, and the row group 0 rows")

    def _read(self, chunk: Struct, column: pq.ColumnSchema) -> ChunkBytes:
        source, inner = self.source, self.source.metadata_of(chunk, column.path)
        num_values = integer(inner, Column.num_values)
        begin, size = source.extent(inner)
        data = source.file.read_range(begin, size)
        pages = [page for page in stored_pages(data) if not page.is_dictionary]
        if (values := sum(page.values for page in pages)) != num_values:
            raise ValueError(f"its pages have {values} values, and the footer says {num_values}")
        column_index, offset_index = source.part(chunk, Chunk.column_index), source.part(chunk, Chunk.offset_index)
        if not fits(offset_index, column_index, begin, pages):
            column_index = offset_index = b""
        return ChunkBytes(chunk, data, begin, column_index, offset_index)
