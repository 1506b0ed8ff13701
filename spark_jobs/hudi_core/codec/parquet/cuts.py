"""Cuts row groups of a Parquet file where all columns begin a page: pieces (pieces.py) are copied or read alone.

parquet-mr since 1.11 and Arrow begin a page in each column every 20,000 rows, unless a column's page is full before
(parquet.page.row.count.limit, max_rows_per_page). A piece of a row group is a row group of its own: each column has the
dictionary, if its pages need it, and a run of data pages, byte for byte.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property, reduce
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hudi_core.codec.columns import leaf_types
from hudi_core.codec.parquet.footer import Chunk, Column, is_by_parquet_mr, schema_of, with_number
from hudi_core.codec.parquet.page_index import (
    PageBounds,
    PagePlaces,
    StoredPage,
    places_from_headers,
    places_of,
    stored_pages,
)
from hudi_core.codec.parquet.splice import RowGroupSource
from hudi_core.codec.parquet.thrift import I32, I64, LIST, STRUCT, Struct, ThriftList
from hudi_core.frozen import dataclass

_BY_DICTIONARY: Final = frozenset({2, 8})
"""Encodings of pages that hold codes: PLAIN_DICTIONARY, RLE_DICTIONARY."""
_WHOLE: Final = 32 << 20
"""At most so many bytes of a row group are read before they are needed."""
_GAP: Final = 1 << 20
"""Parts of a file with fewer bytes between them are read by one request: it takes as long as so many bytes."""


@dataclass(frozen=True, slots=True)
class CutChunk:
    """A column chunk of a piece, with its places in its own bytes and without statistics; the numbers of its first page
    and of the page after its last.
    """

    fields: Struct
    data: bytes
    pages: list[StoredPage]
    first: int
    end: int

    def placed(self, at: int, statistics: Struct | None = None) -> Struct:
        """Returns the fields of the chunk where it lies at `at`, with statistics."""
        inner: Struct = dict(self.fields[Chunk.metadata][1])
        for number in (Column.data_offset, Column.dictionary_offset):
            if number in inner:
                with_number(inner, number, inner[number][1] + at)
        if statistics is not None:
            inner[Column.statistics] = STRUCT, statistics
        return {**self.fields, Chunk.metadata: (STRUCT, dict(sorted(inner.items())))}


class RowGroupCuts:
    """The row group `number` of `source`, which can be cut at `rows`: ascending, from 0 to the row group's rows, where
    each of the leaf columns `columns` begins a page. Others are not cut. `all_read` says that the caller will read all
    rows: then a row group of few bytes is read at once, and pages without an index are looked for, but not those of
    parquet-mr. Memory: the stored bytes of a row group that has few, else of a piece. Raises CorruptFileError for
    chunks that are damaged, SizeLimitError, StorageError.
    """

    def __init__(self, source: RowGroupSource, number: int, columns: Sequence[int], *, all_read: bool) -> None:
        self.source = source
        self.number = number
        self.columns = columns
        self.num_rows = source.num_rows(number)
        self.schema = schema_of(source.file.metadata)
        self.tops = [field.name for field in source.file.schema for _ in leaf_types(field.type)]
        self.chunks = source.column_chunks(number)
        self._all_read = all_read
        # parquet-mr writes a page index since it limits the rows of a page: without one, columns have no cut in common.
        self._by_headers = all_read and not is_by_parquet_mr(source.file.metadata)
        self._read: list[tuple[int, bytes]] = []
        self._bounds: dict[int, PageBounds | None] = {}
        """Read once for all pieces."""
        with source.naming(number):
            self._places = {place: self._places_of(place) for place in columns}

    def places(self, place: int) -> PagePlaces:
        """Returns the places of a column's pages, which must be known."""
        places = self._places[place]
        assert places is not None
        return places

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
        for place in self.columns:
            places = self.places(place)
            low, high = places.run(first, end)
            pages += int(places.sizes[low:high].sum())
            dictionaries += int(places.offsets[0]) - self._begin(place)
        return pages, dictionaries

    def inner(self, place: int) -> Struct:
        """Returns the ColumnMetaData of a leaf column."""
        return self.source.metadata_of(self.chunks[place], self.schema.column(place).path)

    def _begin(self, place: int) -> int:
        return self.source.extent(self.inner(place))[0]

    def _places_of(self, place: int) -> PagePlaces | None:
        chunk, is_flat = self.chunks[place], self.schema.column(place).max_repetition_level == 0
        begin, size = self.source.extent(self.inner(place))
        offset_index = self.source.part(chunk, Chunk.offset_index)
        places = places_of(offset_index, begin, begin + size, self.num_rows)
        if places is None and self._by_headers:
            pages = stored_pages(self._bytes(begin, begin + size))
            places = places_from_headers(pages, begin, self.num_rows, is_flat=is_flat)
        return places

    def _extents(self, place: int, first: int, end: int) -> Iterator[tuple[int, int]]:
        """Yields where the dictionary of a column and its pages of a piece lie, and their bytes."""
        places, begin = self.places(place), self._begin(place)
        low, high = places.run(first, end)
        if begin < places.offsets[0]:
            yield begin, int(places.offsets[0]) - begin
        yield int(places.offsets[low]), int(places.sizes[low:high].sum())

    def prepare(self, first: int, end: int, columns: Sequence[int]) -> None:
        """Reads the bytes of a piece by few requests: with those of the whole row group, if all is read and fits."""
        with self.source.naming(self.number):
            if self._all_read:
                whole = [self.source.extent(self.inner(place)) for place in self.columns]
                if sum(size for _, size in whole) <= _WHOLE:
                    self._load(whole)
                    return
            self._load([extent for place in columns for extent in self._extents(place, first, end)])

    def _load(self, extents: Sequence[tuple[int, int]]) -> None:
        """Reads parts of the file, at once where little lies between them. Reads none that are known, and none if they
        have more than _WHOLE bytes together.
        """
        if all(self._known(begin, begin + size) is not None for begin, size in extents):
            return
        runs: list[list[int]] = []
        for begin, size in sorted(extents):
            if runs and begin - runs[-1][1] <= _GAP:
                runs[-1][1] = max(runs[-1][1], begin + size)
            else:
                runs.append([begin, begin + size])
        few = sum(end - begin for begin, end in runs) <= _WHOLE
        self._read = [(begin, self.source.file.read_range(begin, end - begin)) for begin, end in runs if few]

    def _known(self, begin: int, end: int) -> bytes | None:
        for start, data in self._read:
            if start <= begin and end <= start + len(data):
                return data[begin - start : end - start]
        return None

    def _bytes(self, begin: int, end: int) -> bytes:
        known = self._known(begin, end)
        return self.source.file.read_range(begin, end - begin) if known is None else known

    def cut(self, place: int, first: int, end: int) -> CutChunk:
        """Returns the chunk of a piece. Raises ValueError for pages that do not have the rows of the piece."""
        places = self.places(place)
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
        inner: Struct = dict(self.chunks[place][Chunk.metadata][1])
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
        return CutChunk(fields, dictionary + data, pages, low, high)

    def _check(self, place: int, places: PagePlaces, low: int, high: int, pages: list[StoredPage]) -> None:
        rows = np.diff(places.first_rows, append=self.num_rows)[low:high].tolist()
        is_flat = self.schema.column(place).max_repetition_level == 0
        if [page.stored for page in pages] != places.sizes[low:high].tolist():
            raise ValueError("its pages are not where its page index says")
        if any(page.is_dictionary for page in pages):
            raise ValueError("it has a dictionary among its pages")
        for page, due in zip(pages, rows, strict=True):
            rows_there = page.values if is_flat else due if page.rows is None else page.rows
            if rows_there != due:
                raise ValueError(f"a page has {rows_there} rows, and its page index says {due}")

    def bounds(self, place: int) -> PageBounds | None:
        """Returns the bounds of a column's pages, if they are known."""
        if place not in self._bounds:
            column_index = self.source.part(self.chunks[place], Chunk.column_index)
            self._bounds[place] = PageBounds.of(column_index, len(self.places(place).offsets))
        return self._bounds[place]


def _page_counts(pages: list[StoredPage]) -> tuple[int, ThriftList]:
    """Returns PageEncodingStats: how many pages there are of each type and encoding."""
    counts = Counter((page.kind, page.encoding) for page in pages)
    values = [{1: (I32, kind), 2: (I32, encoding), 3: (I32, count)} for (kind, encoding), count in counts.items()]
    return LIST, ThriftList(STRUCT, values)
