"""Reads the headers of a column chunk's pages, and its page index (OffsetIndex, ColumnIndex of parquet.thrift)."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hudi_core.codec.gzip import FASTEST
from hudi_core.codec.parquet.footer import Location, Page
from hudi_core.codec.parquet.thrift import (
    BINARY,
    I32,
    I64,
    INTEGERS,
    LIST,
    STRUCT,
    TRUE,
    Struct,
    ThriftList,
    encode_struct,
    read_struct,
)
from hudi_core.frozen import dataclass

DICTIONARY_PAGE: Final = 2
"""PageType.DICTIONARY_PAGE."""


class StoredPage(NamedTuple):
    """A page of a chunk: where its header begins in the chunk, and its bytes with the header, stored and plain. `rows`
    are those of a page of version 2; None of version 1. A dictionary has the values of its header, too.
    """

    start: int
    stored: int
    plain: int
    kind: int
    values: int
    encoding: int
    rows: int | None

    @property
    def is_dictionary(self) -> bool:
        return self.kind == DICTIONARY_PAGE


def integer(fields: Struct, number: int) -> int:
    """Returns a number. Raises ValueError for another type, KeyError for a missing one."""
    kind, value = fields[number]
    if kind not in INTEGERS:
        raise ValueError(f"field {number} is no number")
    return int(value)


def stored_pages(data: bytes, *, checked: bool = True) -> list[StoredPage]:
    """Returns the pages of a chunk, or of a run of its pages. Raises ValueError or IndexError if the pages do not fill
    the bytes, and (`checked`) if they differ from their checksums.
    """
    crc32 = FASTEST.crc32
    position, pages = 0, []
    while position < len(data):
        start = position
        header, position = read_struct(data, position)
        size = integer(header, Page.stored)
        if not 0 <= size <= len(data) - position:
            raise ValueError("a page is longer than its column")
        body = memoryview(data)[position : position + size]
        head = position - start
        position += size
        if checked and Page.checksum in header and crc32(body) != integer(header, Page.checksum) & 0xFFFFFFFF:
            raise ValueError(f"the checksum of the page at {start} of its column is not that of its bytes")
        pages.append(_page(header, start, head))
    return pages


def _page(header: Struct, start: int, head: int) -> StoredPage:
    kind = integer(header, Page.kind)
    number = Page.dictionary if kind == DICTIONARY_PAGE else Page.v1 if Page.v1 in header else Page.v2
    inner: Struct = header[number][1]
    is_v2 = number == Page.v2
    return StoredPage(
        start,
        head + integer(header, Page.stored),
        head + integer(header, Page.plain),
        kind,
        integer(inner, Page.num_values),
        integer(inner, Page.encoding_v2 if is_v2 else Page.encoding),
        integer(inner, Page.num_rows) if is_v2 else None,
    )


@dataclass(frozen=True, slots=True)
class PagePlaces:
    """Where the data pages of a chunk are: offsets in the file, bytes with headers, and the first row of each in its
    row group. The pages follow one another.
    """

    offsets: NDArray[np.int64]
    sizes: NDArray[np.int64]
    first_rows: NDArray[np.int64]

    def run(self, first: int, end: int) -> tuple[int, int]:
        """Returns the numbers of the pages (first, one after the last) that hold the rows from `first` up to `end`,
        which begin pages.
        """
        return int(np.searchsorted(self.first_rows, first)), int(np.searchsorted(self.first_rows, end))


def places_of(offset_index: bytes, begin: int, end: int, rows: int) -> PagePlaces | None:
    """Returns the places that an OffsetIndex names. None if they are not those of one run of pages that ends at `end`
    and begins at `begin` or later, or if their rows do not ascend from 0 to `rows`.
    """
    try:
        locations = read_struct(offset_index)[0][1][1].values
        offsets, sizes, first_rows = (
            np.array([integer(location, number) for location in locations], np.int64)
            for number in (Location.offset, Location.size, Location.first_row)
        )
    except (ValueError, IndexError, KeyError, AttributeError, TypeError, OverflowError):
        return None
    if not len(offsets) or offsets[0] < begin or (sizes <= 0).any() or first_rows[0] != 0:
        return None
    ends = offsets + sizes
    fits = ends[-1] == end and (ends[:-1] == offsets[1:]).all()
    return PagePlaces(offsets, sizes, first_rows) if fits and (np.diff(first_rows, append=rows) > 0).all() else None


def places_from_headers(pages: list[StoredPage], begin: int, rows: int, *, is_flat: bool) -> PagePlaces | None:
    """Returns the places by the headers of a whole chunk that lies at `begin`. None where pages do not say their rows:
    those of version 1 of a nested column.
    """
    data = [page for page in pages if not page.is_dictionary]
    counts = [page.values if is_flat else page.rows for page in data]
    if not data or None in counts or 0 in counts or sum(filter(None, counts)) != rows:
        return None
    first_rows = np.cumsum(np.array([0, *counts[:-1]], np.int64))
    offsets = np.array([begin + page.start for page in data], np.int64)
    return PagePlaces(offsets, np.array([page.stored for page in data], np.int64), first_rows)


def fits(offset_index: bytes, column_index: bytes, begin: int, pages: list[StoredPage]) -> bool:
    """Whether the page index is that of these data pages of a chunk at `begin`."""
    try:
        places = [
            (page[Location.offset][1], page[Location.size][1]) for page in read_struct(offset_index)[0][1][1].values
        ]
        counted = len(read_struct(column_index)[0][1][1].values) if column_index else len(places)
    except (ValueError, IndexError, KeyError, AttributeError, TypeError):
        return False
    return places == [(begin + page.start, page.stored) for page in pages] and counted == len(places)


class PageBounds:
    """The bounds and counts of nulls of a chunk's pages, by its ColumnIndex."""

    _PER_PAGE: Final = (1, 2, 3, 5)
    _HISTOGRAMS: Final = (6, 7)

    def __init__(self, fields: Struct) -> None:
        self._fields = fields
        self.is_null: list[bool] = [value == TRUE for value in fields[1][1].values]
        self.least: list[bytes] = fields[2][1].values
        self.greatest: list[bytes] = fields[3][1].values
        self.nulls: list[int] | None = fields[5][1].values if 5 in fields else None

    @staticmethod
    def of(column_index: bytes, pages: int) -> PageBounds | None:
        """Returns the bounds; None for bytes that are no ColumnIndex of so many pages."""
        if not column_index:
            return None
        try:
            fields, _ = read_struct(column_index)
            bounds = PageBounds(fields)
            kinds = [(2, BINARY), (3, BINARY), *([(5, I64)] if bounds.nulls is not None else [])]
            is_right = all(fields[number][1].kind == kind for number, kind in kinds) and all(
                len(fields[number][1].values) == pages for number in PageBounds._PER_PAGE if number in fields
            )
        except (ValueError, IndexError, KeyError, AttributeError, TypeError):
            return None
        return bounds if is_right else None

    def sliced(self, first: int, end: int) -> bytes:
        """Returns the ColumnIndex of some of the pages, without histograms of levels."""
        fields = {number: value for number, value in self._fields.items() if number not in self._HISTOGRAMS}
        for number in self._PER_PAGE:
            if number in fields:
                kind, values = fields[number][1]
                fields[number] = LIST, ThriftList(kind, values[first:end])
        return encode_struct(fields)


def offset_index_of(places: PagePlaces, first: int, end: int, begin: int) -> bytes:
    """Returns the OffsetIndex of some of the pages, of which the first lies at `begin` and has the first row."""
    by, rows = begin - int(places.offsets[first]), int(places.first_rows[first])
    locations = [
        {
            Location.offset: (I64, offset + by),
            Location.size: (I32, size),
            Location.first_row: (I64, first_row - rows),
        }
        for offset, size, first_row in zip(
            places.offsets[first:end].tolist(),
            places.sizes[first:end].tolist(),
            places.first_rows[first:end].tolist(),
            strict=True,
        )
    ]
    return encode_struct({1: (LIST, ThriftList(STRUCT, locations))})
