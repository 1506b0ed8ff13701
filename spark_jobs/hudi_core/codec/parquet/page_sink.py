"""Passes the pages of a Parquet file on into it: compresses them as they arrive, and adds row groups of other files.

Arrow writes an uncompressed file into a PageSink, page by page. Each page is compressed, gets a checksum, and is passed
on. Between two of Arrow's row groups, whole row groups of other files may be added (splice.py). Page index and footer
are held, and rewritten for the new places of the pages.
"""

from __future__ import annotations

import io
import math
import struct
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, BinaryIO, Final, NamedTuple, Protocol

from hudi_core.codec.parquet import thrift
from hudi_core.codec.parquet.footer import (
    TAIL,
    TYPES,
    Bounds,
    Chunk,
    Column,
    File,
    Group,
    Location,
    Page,
    footer_of,
    shifted,
    with_number,
)
from hudi_core.frozen import dataclass

GZIP: Final = 2
MAGIC: Final = b"PAR1"
_MAX_HEADER: Final = 1 << 20
"""The most bytes of a page's header, with the bounds of its values."""
_MAX_ORDINAL: Final = (1 << 15) - 1


class _Place(NamedTuple):
    """Where a page begins: in the file, and in a file with the same headers and uncompressed pages."""

    stored: int
    plain: int


@dataclass(frozen=True, slots=True)
class ChunkBytes:
    """A column chunk apart from its file: `data` began at `start`. Its page index is empty when it has none."""

    fields: thrift.Struct
    data: bytes
    start: int
    column_index: bytes = b""
    offset_index: bytes = b""

    @property
    def num_values(self) -> int:
        return int(self.fields[Chunk.metadata][1][Column.num_values][1])


class CopiedRows(Protocol):
    """Rows of another file that are copied as a row group: a row group, or a piece of one."""

    @property
    def num_rows(self) -> int: ...

    def group(self) -> thrift.Struct:
        """Returns the fields of the row group, without its columns."""

    def chunks(self, replaced: Mapping[str, ChunkBytes]) -> Iterator[ChunkBytes]:
        """Yields the column chunks in the order of the schema. Those of `replaced`, by dotted name, come from there."""


class _Placed(NamedTuple):
    fields: thrift.Struct
    column_index: bytes
    offset_index: bytes


class PageSink(io.RawIOBase):
    """The file that a ParquetWriter writes into. Closing it leaves `inner` open. `compress` makes the stored form of a
    page's body for the codec numbered `codec`. Call `end_pages` before the writer is closed, and `finish` after it.
    Memory: a page and its compressed form, or a copied column chunk; footer and page index. Raises ValueError for bytes
    that no ParquetWriter writes.
    """

    def __init__(
        self,
        inner: BinaryIO,
        codec: int = 0,
        compress: Callable[[bytes], bytes] | None = None,
        checksum: Callable[[bytes], int] = zlib.crc32,
    ) -> None:
        super().__init__()
        self._inner = inner
        self._codec = codec
        self._compress = compress
        self._checksum = checksum
        self._seen = 0
        self._held = b""
        self._header: thrift.Struct | None = None
        self._tail: list[bytes] | None = None
        self._last = _Place(len(MAGIC), len(MAGIC))
        self._begins = {len(MAGIC): self._last}
        self._ends: dict[int, _Place] = {}
        self._copied: list[tuple[int, thrift.Struct, list[_Placed]]] = []

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._seen

    def write(self, data: Any, /) -> int:
        if self._tail is not None:
            self._tail.append(data)
        elif self._seen:
            self._held = self._held + data if self._held else data
        elif data != MAGIC:
            raise ValueError("this is not how a Parquet file begins")
        elif not self._copied:
            self._inner.write(MAGIC)
        self._seen += len(data)
        while (self._held or self._header) and self._take_header() and self._take_body():
            pass
        return len(data)

    def copy_group(self, group: thrift.Struct, chunks: Iterable[ChunkBytes], *, behind: int) -> None:
        """Writes a row group of another file, with `chunks` in the order of the schema. Arrow has written `behind` row
        groups before, and is inside none.
        """
        self._check_whole()
        if not self._seen and not self._copied:
            self._inner.write(MAGIC)
        start, columns = self._last.stored, []
        for chunk in chunks:
            by = self._last.stored - chunk.start
            self._inner.write(chunk.data)
            self._last = _Place(self._last.stored + len(chunk.data), self._last.plain)
            offset_index = _moved(chunk.offset_index, partial(_further, by))
            columns.append(_Placed(shifted(chunk.fields, by), chunk.column_index, offset_index))
        self._begins[self._seen or len(MAGIC)] = self._last
        copied: thrift.Struct = {**group, Group.offset: (thrift.I64, start)}
        _set_totals(copied, columns)
        self._copied.append((behind, dict(sorted(copied.items())), columns))

    def abandon(self) -> None:
        self._held, self._header, self._tail = b"", None, []

    def end_pages(self) -> None:
        self._check_whole()
        self._tail = []

    def finish(self, with_nan: Sequence[Collection[int]] = ()) -> None:
        """Writes the page index and the footer. `with_nan` has the columns with NaN of each row group of Arrow."""
        tail = b"".join(self._tail or [])
        length, footer = footer_of(tail)
        if footer is None:
            raise ValueError("there is no footer")
        # Each value takes a byte, so this is no bound: Arrow made this footer of what this process gave it.
        metadata, _ = thrift.read_struct(footer, most_values=len(footer))
        written, start = metadata[File.row_groups][1].values, self._seen - len(tail)
        for group, numbers in zip(written, with_nan, strict=False):
            for number in numbers:
                _count_nan(group[Group.columns][1].values[number])
        groups = self._groups(written, tail[: -TAIL - length], start)
        metadata[File.row_groups][1].values[:] = [group for group, _ in groups]
        with_number(metadata, File.num_rows, sum(group[Group.num_rows][1] for group, _ in groups))
        index = self._place_index([column for _, columns in groups for column in columns])
        moved = thrift.encode_struct(metadata)
        self._inner.write(index + moved + len(moved).to_bytes(4, "little") + MAGIC)

    def _check_whole(self) -> None:
        if self._header is not None or self._held:
            raise ValueError("the last page is not whole")

    def _take_header(self) -> bool:
        if self._header is not None:
            return True
        try:
            self._header, end = thrift.read_struct(self._held)
        except (IndexError, ValueError):
            if len(self._held) > _MAX_HEADER:
                raise
            return False
        self._held = self._held[end:]
        return True

    def _take_body(self) -> bool:
        header = self._header or {}
        size = header[Page.stored][1]
        if len(self._held) < size:
            return False
        body, self._held = self._held[:size], self._held[size:]
        stored = body if self._compress is None else _compressed(header, body, self._compress)
        header[Page.stored] = thrift.I32, len(stored)
        header[Page.checksum] = thrift.I32, struct.unpack("<i", struct.pack("<I", self._checksum(stored)))[0]
        head = thrift.encode_struct(dict(sorted(header.items())))
        self._inner.write(head)
        self._inner.write(stored)
        last, plain = self._last, header[Page.plain][1]
        self._last = _Place(last.stored + len(head) + len(stored), last.plain + len(head) + plain)
        at = self._seen - len(self._held)
        self._ends[at] = self._begins[at] = self._last
        self._header = None
        return True

    def _groups(
        self, written: list[thrift.Struct], index: bytes, start: int
    ) -> list[tuple[thrift.Struct, list[_Placed]]]:
        """Returns all row groups in order and numbered, with columns. `index` lay at `start` in Arrow's file."""
        places = sorted(
            [(number, 1, group, self._placed(group, index, start)) for number, group in enumerate(written)]
            + [(behind, 0, group, columns) for behind, group, columns in self._copied],
            key=lambda item: item[:2],
        )
        for number, (_, _, group, _) in enumerate(places):
            group.pop(Group.ordinal, None)
            if number <= _MAX_ORDINAL:
                group[Group.ordinal] = thrift.I16, number
        return [(group, columns) for _, _, group, columns in places]

    def _placed(self, group: thrift.Struct, index: bytes, start: int) -> list[_Placed]:
        """Changes the tree of a row group of Arrow to the new places, and returns its columns."""
        columns = []
        for chunk in group[Group.columns][1].values:
            self._move_chunk(chunk)
            column_index, offset_index = (
                index[chunk[at][1] - start : chunk[at][1] - start + chunk[size][1]] if at in chunk else b""
                for at, size in (Chunk.column_index, Chunk.offset_index)
            )
            columns.append(_Placed(chunk, column_index, _moved(offset_index, self._moved_page)))
        _set_totals(group, columns)
        self._move_offset(group, Group.offset)
        return columns

    def _move_chunk(self, chunk: thrift.Struct) -> None:
        inner: thrift.Struct = chunk[Chunk.metadata][1]
        begin = inner.get(Column.dictionary_offset, inner[Column.data_offset])[1]
        if inner[Column.stored][1]:
            first, end = self._begins[begin], self._ends[begin + inner[Column.stored][1]]
            with_number(inner, Column.plain, end.plain - first.plain)
            with_number(inner, Column.stored, end.stored - first.stored)
        if self._compress is not None:
            with_number(inner, Column.codec, self._codec)
        self._move_offset(inner, Column.data_offset)
        self._move_offset(inner, Column.dictionary_offset)
        self._move_offset(chunk, Chunk.offset)

    def _move_offset(self, fields: thrift.Struct, number: int) -> None:
        if number in fields and fields[number][1]:
            with_number(fields, number, self._begins[fields[number][1]].stored)

    def _moved_page(self, begin: int, size: int) -> tuple[int, int]:
        first, end = self._begins[begin], self._ends[begin + size]
        return first.stored, end.stored - first.stored

    def _place_index(self, columns: list[_Placed]) -> bytes:
        """Returns the page index, which follows the last page, and sets its places in the chunks."""
        placed = bytearray()
        for numbers, part in ((Chunk.column_index, 0), (Chunk.offset_index, 1)):
            for column in columns:
                if data := (column.column_index, column.offset_index)[part]:
                    column.fields[numbers[0]] = thrift.I64, self._last.stored + len(placed)
                    column.fields[numbers[1]] = thrift.I32, len(data)
                    placed += data
        for column in columns:
            in_order = sorted(column.fields.items())
            column.fields.clear()
            column.fields.update(in_order)
        return bytes(placed)


def _compressed(header: thrift.Struct, body: bytes, compress: Callable[[bytes], bytes]) -> bytes:
    """Returns the compressed body. The body of a page of version 2 begins with its levels, which stay as they are."""
    if Page.v2 not in header:
        return compress(body)
    inner: thrift.Struct = header[Page.v2][1]
    levels = inner[Page.definition_size][1] + inner[Page.repetition_size][1]
    inner[Page.is_compressed] = thrift.TRUE if levels < len(body) else thrift.FALSE, None
    return body if levels >= len(body) else body[:levels] + compress(body[levels:])


def _count_nan(chunk: thrift.Struct) -> None:
    """Writes NaN as the greatest value of a column chunk, and removes its page index. parquet-mr writes such chunks so
    (DoubleStatistics, DoubleColumnIndexBuilder), and its readers then use no range. Arrow leaves NaN out, and such a
    reader would pass over rows that Spark takes for greater than every number. The other statistics stay: Hudi takes a
    chunk without a count of nulls for a chunk of nulls (ParquetUtils.readColumnStatsFromMetadata).
    """
    inner: thrift.Struct = chunk[Chunk.metadata][1]
    nan = struct.pack("<f" if inner[Column.kind][1] == TYPES.index("FLOAT") else "<d", math.nan)
    statistics: thrift.Struct = inner[Column.statistics][1]
    for number in Bounds.greatest:
        # For nothing but NaN, Arrow writes no range; readers then use none either.
        if number in statistics:
            statistics[number] = thrift.BINARY, nan
    for number in Chunk.column_index:
        chunk.pop(number, None)


def _set_totals(group: thrift.Struct, columns: list[_Placed]) -> None:
    inner = [column.fields[Chunk.metadata][1] for column in columns]
    group[Group.columns] = thrift.LIST, thrift.ThriftList(thrift.STRUCT, [column.fields for column in columns])
    group[Group.plain] = thrift.I64, sum(column[Column.plain][1] for column in inner)
    group[Group.stored] = thrift.I64, sum(column[Column.stored][1] for column in inner)


def _moved(offset_index: bytes, place: Callable[[int, int], tuple[int, int]]) -> bytes:
    """Returns an OffsetIndex with moved pages. `place` returns the new begin and size of a page from the old ones."""
    if not offset_index:
        return b""
    index, _ = thrift.read_struct(offset_index)
    for page in index[1][1].values:
        begin, size = place(page[Location.offset][1], page[Location.size][1])
        with_number(page, Location.offset, begin)
        with_number(page, Location.size, size)
    return thrift.encode_struct(index)


def _further(by: int, begin: int, size: int) -> tuple[int, int]:
    return begin + by, size
