"""Cuts row groups of a Parquet file where all columns begin a page, so that a piece is copied or decoded alone.

parquet-mr and Arrow begin a page in each column every 20,000 rows, unless a column's page is full before
(parquet.page.row.count.limit, max_rows_per_page). A piece of a row group is a row group of its own: each column has the
dictionary, if its pages need it, and a run of data pages, byte for byte. Sizes, values, statistics and page index are
those of the piece. Bounds come from the page index where they are values; else the column is decoded.
"""

from __future__ import annotations

import io
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hudi_core.codec.columns import leaf_types
from hudi_core.codec.parquet.chunk_statistics import decoded_statistics, page_statistics
from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.codec.parquet.footer import Chunk, Column, Group, schema_of, with_number
from hudi_core.codec.parquet.page_index import (
    PageBounds,
    PagePlaces,
    StoredPage,
    offset_index_of,
    places_from_headers,
    places_of,
    stored_pages,
)
from hudi_core.codec.parquet.page_sink import MAGIC, ChunkBytes
from hudi_core.codec.parquet.splice import RowGroupSource
from hudi_core.codec.parquet.thrift import I32, I64, LIST, STRUCT, Struct, ThriftList, encode_struct

_BY_DICTIONARY: Final = frozenset({2, 8})
"""Encodings of pages that hold codes: PLAIN_DICTIONARY, RLE_DICTIONARY."""
_WHOLE: Final = 32 << 20
"""At most so many bytes of a row group are read before they are needed."""
_GAP: Final = 1 << 20
"""Parts of a file with fewer bytes between them are read by one request: it takes as long as so many bytes."""


@dataclass(frozen=True, slots=True)
class _Cut:
    """A column chunk of a piece, with the numbers of its first page and of the page after its last."""

    fields: Struct
    data: bytes
    pages: list[StoredPage]
    first: int
    end: int


class RowGroupCuts:
    """The row group `number` of `source`, which can be cut at `rows`: ascending, from 0 to the row group's rows, where
    each of the leaf columns `columns` begins a page. Others are not cut. `all_read` says that the caller will read all
    rows: then a row group of few bytes is read at once, and pages without an index are looked for. Memory: the stored
    bytes of a row group that has few, else of a piece. Raises CorruptFileError for chunks that are damaged,
    SizeLimitError, StorageError.
    """

    def __init__(self, source: RowGroupSource, number: int, columns: Sequence[int], *, all_read: bool) -> None:
        self.source = source
        self.number = number
        self.columns = columns
        self.num_rows = source.num_rows(number)
        self._schema = schema_of(source.file.metadata)
        self._tops = [field.name for field in source.file.schema for _ in leaf_types(field.type)]
        self._chunks = source.column_chunks(number)
        self._all_read = all_read
        self._read: list[tuple[int, bytes]] | None = None
        with source.naming(number):
            self._places = {place: self._places_of(place) for place in columns}

    @property
    def is_known(self) -> bool:
        """Whether the pages of all columns are known."""
        return None not in self._places.values()

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        return self._rows_of(self.columns)

    def cover(self, columns: Sequence[int], first: int, end: int) -> tuple[int, int]:
        """Returns the least piece with these rows (first, after the last) at whose ends `columns` can be cut."""
        rows = self._rows_of(columns)
        begin, stop = np.searchsorted(rows, first, side="right") - 1, np.searchsorted(rows, end)
        return int(rows[begin]), int(rows[stop])

    def _rows_of(self, columns: Sequence[int]) -> NDArray[np.int64]:
        ends, places = np.array([0, self.num_rows], np.int64), [self._places[column] for column in columns]
        known = [item.first_rows for item in places if item is not None]
        return np.union1d(reduce(np.intersect1d, known), ends) if known and len(known) == len(places) else ends

    def stored_bytes(self, first: int, end: int) -> tuple[int, int]:
        """Returns the bytes of the pages of a piece, and those of the dictionaries, which each piece has."""
        pages = dictionaries = 0
        for place, places in self._places.items():
            assert places is not None
            low, high = places.run(first, end)
            pages += int(places.sizes[low:high].sum())
            dictionaries += int(places.offsets[0]) - self._begin(place)
        return pages, dictionaries

    def group(self, first: int, end: int) -> Struct:
        """Returns the fields of a piece's row group, without its columns."""
        return {**self.source.group(self.number), Group.num_rows: (I64, end - first)}

    def chunks(self, first: int, end: int, replaced: Mapping[str, ChunkBytes]) -> Iterator[ChunkBytes]:
        """Yields the column chunks of a piece in the order of the schema; those of `replaced` come from there. Raises
        CorruptFileError also where the pages of a nested column do not have the rows of the piece.
        """
        self._check_nested(first, end)
        for place in range(len(self._chunks)):
            path = self._schema.column(place).path
            if path in replaced:
                yield replaced[path]
                continue
            with self.source.naming(self.number):
                yield self._with_statistics(place, self._cut(place, first, end), first, end)

    def file(self, first: int, end: int, columns: Sequence[int] | None = None) -> ParquetBaseFile:
        """Returns a file in memory that has a piece alone, as its only row group, without statistics. It has the pages
        of the leaf columns that can be cut, or only of `columns` among them: no other column may be read from it.
        """
        chosen = self.columns if columns is None else columns
        data, chunks = io.BytesIO(MAGIC), list(self._chunks)
        data.seek(0, io.SEEK_END)
        with self.source.naming(self.number):
            if not self._all_read:
                self._load([extent for place in chosen for extent in self._extents(place, first, end)])
            for place in chosen:
                cut = self._cut(place, first, end)
                chunks[place] = _placed(cut.fields, data.tell())
                data.write(cut.data)
        group = {**self.group(first, end), Group.columns: (LIST, ThriftList(STRUCT, chunks))}
        footer = encode_struct(self.source.footer_with(dict(sorted(group.items())), end - first))
        data.write(footer + len(footer).to_bytes(4, "little") + MAGIC)
        return ParquetBaseFile(data, self.source.path, self.source.file.limits)

    def _inner(self, place: int) -> Struct:
        return self.source.metadata_of(self._chunks[place], self._schema.column(place).path)

    def _begin(self, place: int) -> int:
        return self.source.extent(self._inner(place))[0]

    def _places_of(self, place: int) -> PagePlaces | None:
        chunk, is_flat = self._chunks[place], self._schema.column(place).max_repetition_level == 0
        begin, size = self.source.extent(self._inner(place))
        offset_index = self.source.part(chunk, Chunk.offset_index)
        places = places_of(offset_index, begin, begin + size, self.num_rows)
        if places is None and self._all_read:
            pages = stored_pages(self._bytes(begin, begin + size))
            places = places_from_headers(pages, begin, self.num_rows, is_flat=is_flat)
        return places

    def _extents(self, place: int, first: int, end: int) -> Iterator[tuple[int, int]]:
        """Yields where the dictionary of a column and its pages of a piece lie, and their bytes."""
        places, begin = self._places[place], self._begin(place)
        assert places is not None
        low, high = places.run(first, end)
        yield begin, int(places.offsets[0]) - begin
        yield int(places.offsets[low]), int(places.sizes[low:high].sum())

    def _load(self, extents: Sequence[tuple[int, int]]) -> None:
        """Reads parts of the file at once where little lies between them, and together at most _WHOLE bytes."""
        runs: list[list[int]] = []
        for begin, size in sorted(extents):
            if runs and begin - runs[-1][1] <= _GAP and begin + size - runs[-1][0] <= _WHOLE:
                runs[-1][1] = max(runs[-1][1], begin + size)
            else:
                runs.append([begin, begin + size])
        few = sum(end - begin for begin, end in runs) <= _WHOLE
        self._read = [(begin, self.source.file.read_range(begin, end - begin)) for begin, end in runs if few]

    def _bytes(self, begin: int, end: int) -> bytes:
        if self._read is None and self._all_read:
            self._load([self.source.extent(self._inner(place)) for place in self.columns])
        for start, data in self._read or ():
            if start <= begin and end <= start + len(data):
                return data[begin - start : end - start]
        return self.source.file.read_range(begin, end - begin)

    def _cut(self, place: int, first: int, end: int) -> _Cut:
        """Returns the chunk of a piece, with its places in its own bytes, without statistics. Raises ValueError for
        pages that do not have the rows of the piece.
        """
        places = self._places[place]
        assert places is not None
        low, high = places.run(first, end)
        begin = int(places.offsets[low])
        data = self._bytes(begin, int(places.offsets[high - 1] + places.sizes[high - 1]))
        pages = stored_pages(data)
        self._check(place, places, low, high, pages)
        needed = any(page.encoding in _BY_DICTIONARY for page in pages)
        dictionary = self._bytes(self._begin(place), int(places.offsets[0])) if needed else b""
        head = stored_pages(dictionary)
        if needed != bool(head) or not all(page.is_dictionary for page in head):
            raise ValueError("its pages have no dictionary")
        inner: Struct = dict(self._chunks[place][Chunk.metadata][1])
        with_number(inner, Column.num_values, sum(page.values for page in pages))
        with_number(inner, Column.plain, sum(page.plain for page in (*head, *pages)))
        with_number(inner, Column.stored, len(dictionary) + len(data))
        for number in (
            *(Column.index_offset, Column.statistics, Column.bloom_offset, Column.bloom_length),
            *(Column.sizes, Column.places, Column.dictionary_offset),
        ):
            inner.pop(number, None)
        if head:
            inner[Column.dictionary_offset] = I64, 0
        with_number(inner, Column.data_offset, len(dictionary))
        if Column.page_counts in inner:
            inner[Column.page_counts] = _page_counts([*head, *pages])
        fields = {Chunk.offset: (I64, 0), Chunk.metadata: (STRUCT, dict(sorted(inner.items())))}
        return _Cut(fields, dictionary + data, pages, low, high)

    def _check(self, place: int, places: PagePlaces, low: int, high: int, pages: list[StoredPage]) -> None:
        rows = np.diff(places.first_rows, append=self.num_rows)[low:high].tolist()
        is_flat = self._schema.column(place).max_repetition_level == 0
        if [page.stored for page in pages] != places.sizes[low:high].tolist():
            raise ValueError("its pages are not where its page index says")
        if any(page.is_dictionary for page in pages):
            raise ValueError("it has a dictionary among its pages")
        for page, due in zip(pages, rows, strict=True):
            found = page.values if is_flat else due if page.rows is None else page.rows
            if found != due:
                raise ValueError(f"a page has {found} rows, and its page index says {due}")

    def _check_nested(self, first: int, end: int) -> None:
        """Decodes columns with lists whose pages do not say their rows. Where all pieces have so many rows at least,
        each has as many.
        """
        for top, leaves in self._by_top().items():
            with self.source.naming(self.number):
                unknown = any(page.rows is None for leaf in leaves for page in self._cut(leaf, first, end).pages)
            if unknown:
                with self.file(first, end, leaves) as file:
                    rows = sum(batch.num_rows for batch in file.batches([top]))
                if rows != end - first:
                    raise self.source.damaged(self.number, f"{top} has {rows} of {end - first} rows in its pages")

    def _by_top(self) -> dict[str, list[int]]:
        """Returns the leaf columns of each top-level column with lists."""
        tops: dict[str, list[int]] = defaultdict(list)
        for leaf in self.columns:
            if self._schema.column(leaf).max_repetition_level:
                tops[self._tops[leaf]].append(leaf)
        return tops

    def _with_statistics(self, place: int, cut: _Cut, first: int, end: int) -> ChunkBytes:
        places = self._places[place]
        assert places is not None
        column, old = self._schema.column(place), self._chunks[place]
        bounds = PageBounds.of(self.source.part(old, Chunk.column_index), len(places.offsets))
        inner: Struct = dict(cut.fields[Chunk.metadata][1])
        stored: Struct = old[Chunk.metadata][1].get(Column.statistics, (STRUCT, {}))[1]
        if stored:
            statistics = page_statistics(stored, column, bounds, cut.first, cut.end)
            inner[Column.statistics] = STRUCT, statistics or self._decoded(place, first, end, stored)
        fields = _placed({**cut.fields, Chunk.metadata: (STRUCT, dict(sorted(inner.items())))}, len(MAGIC))
        begin = len(MAGIC) + len(cut.data) - sum(page.stored for page in cut.pages)
        column_index = b"" if bounds is None else bounds.sliced(cut.first, cut.end)
        return ChunkBytes(
            fields, cut.data, len(MAGIC), column_index, offset_index_of(places, cut.first, cut.end, begin)
        )

    def _decoded(self, place: int, first: int, end: int, stored: Struct) -> Struct:
        """Returns the statistics of a column of a piece, by its values."""
        top = self._tops[place]
        leaves = [leaf for leaf in self.columns if self._tops[leaf] == top]
        with self.file(first, end, leaves) as file:
            values = pa.Table.from_batches(list(file.batches([top])))
        return decoded_statistics(values, leaves.index(place), stored)


def _placed(fields: Struct, at: int) -> Struct:
    """Returns the fields of a chunk that lies at `at`; its own places begin at 0."""
    inner: Struct = dict(fields[Chunk.metadata][1])
    for number in (Column.data_offset, Column.dictionary_offset):
        if number in inner:
            with_number(inner, number, inner[number][1] + at)
    return {**fields, Chunk.metadata: (STRUCT, inner)}


def _page_counts(pages: list[StoredPage]) -> tuple[int, ThriftList]:
    """Returns PageEncodingStats: how many pages there are of each type and encoding."""
    counts = Counter((page.kind, page.encoding) for page in pages)
    values = [{1: (I32, kind), 2: (I32, encoding), 3: (I32, count)} for (kind, encoding), count in counts.items()]
    return LIST, ThriftList(STRUCT, values)


@dataclass(frozen=True, slots=True)
class Piece:
    """The rows of a row group from `first` up to `end`, at both of which it can be cut."""

    cuts: RowGroupCuts
    first: int
    end: int

    @property
    def num_rows(self) -> int:
        return self.end - self.first

    def group(self) -> Struct:
        return self.cuts.group(self.first, self.end)

    def chunks(self, replaced: Mapping[str, ChunkBytes]) -> Iterator[ChunkBytes]:
        return self.cuts.chunks(self.first, self.end, replaced)

    def file(self) -> ParquetBaseFile:
        """Returns a file in memory that has these rows alone."""
        return self.cuts.file(self.first, self.end)
