"""Which page indexes are used, and what the headers of pages say."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.codec.parquet.footer import Chunk, Location
from hudi_core.codec.parquet.page_index import (
    PageBounds,
    fits,
    offset_index_of,
    places_from_headers,
    places_of,
    stored_pages,
)
from hudi_core.codec.parquet.splice import RowGroupSource
from hudi_core.codec.parquet.thrift import I64, encode_struct, read_struct

ROWS = 25


def column(values: pa.Array, **options: Any) -> tuple[bytes, int, bytes, bytes]:
    """The chunk, where it begins, its OffsetIndex and ColumnIndex: pages of ten rows."""
    file = io.BytesIO()
    pages = {"write_page_index": True, "max_rows_per_page": 10, "write_batch_size": 10, "write_page_checksum": True}
    pq.write_table(pa.table({"c": values}), file, store_schema=False, **{**pages, **options})
    source = RowGroupSource(ParquetBaseFile(file, "f"))
    (chunk,) = source.column_chunks(0)
    begin, size = source.extent(source.metadata_of(chunk, ".".join(["c", "list", "element"][: 1 + 2 * nested(values)])))
    indexes = (source.part(chunk, part) for part in (Chunk.offset_index, Chunk.column_index))
    return source.file.read_range(begin, size), begin, *indexes


def nested(values: pa.Array) -> bool:
    return pa.types.is_nested(values.type)


NUMBERS = pa.array([None, *range(1, ROWS)], pa.int64())


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_headers_and_index_say_the_same(version: str) -> None:
    data, begin, offset_index, column_index = column(NUMBERS, data_page_version=version)
    pages = stored_pages(data)
    assert [page.is_dictionary for page in pages] == [True, False, False, False]
    assert [page.rows for page in pages[1:]] == ([None] * 3 if version == "1.0" else [10, 10, 5])
    by_index = places_of(offset_index, begin, begin + len(data), ROWS)
    by_headers = places_from_headers(pages, begin, ROWS, is_flat=True)
    assert by_index is not None
    assert by_headers is not None
    for places in (by_index, by_headers):
        assert places.first_rows.tolist() == [0, 10, 20]
        assert places.offsets.tolist() == [begin + page.start for page in pages[1:]]
        assert places.run(10, 25) == (1, 3)
    assert fits(offset_index, column_index, begin, pages[1:])
    assert not fits(offset_index, column_index, begin, pages)
    assert not fits(b"\xff", b"", begin, pages[1:])
    assert offset_index_of(by_index, 0, 3, begin + pages[1].start) == offset_index


def test_pages_of_lists_say_their_rows_in_version_2_alone() -> None:
    lists = pa.array([[1] * (row % 3) for row in range(ROWS)], pa.list_(pa.int32()))
    for version, known in (("1.0", False), ("2.0", True)):
        data, begin, _, _ = column(lists, data_page_version=version)
        places = places_from_headers(stored_pages(data), begin, ROWS, is_flat=False)
        assert (places is not None) == known


def test_an_index_that_is_not_of_one_run_of_pages_is_not_used() -> None:
    data, begin, offset_index, _ = column(NUMBERS)
    end = begin + len(data)
    assert places_of(offset_index, begin, end, ROWS) is not None
    assert places_of(offset_index, begin, end + 1, ROWS) is None
    assert places_of(offset_index, end, end, ROWS) is None
    assert places_of(offset_index, begin, end, 20) is None
    assert places_of(b"", begin, end, ROWS) is None
    for place, number, value in ((1, Location.offset, begin), (0, Location.first_row, 1), (1, Location.first_row, 30)):
        fields, _ = read_struct(offset_index)
        fields[1][1].values[place][number] = (I64, value)
        assert places_of(encode_struct(fields), begin, end, ROWS) is None
    assert places_from_headers(stored_pages(data), begin, ROWS + 1, is_flat=True) is None


def test_a_page_of_another_checksum_or_length_is_refused() -> None:
    data, *_ = column(NUMBERS)
    with pytest.raises(ValueError, match="checksum"):
        stored_pages(data[:-1] + bytes([data[-1] ^ 1]))
    assert stored_pages(data[:-1] + bytes([data[-1] ^ 1]), checked=False)
    with pytest.raises(ValueError, match="longer than its column"):
        stored_pages(data[:-1])


def test_bounds_of_pages() -> None:
    _, _, _, column_index = column(NUMBERS)
    bounds = PageBounds.of(column_index, 3)
    assert bounds is not None
    assert (bounds.is_null, bounds.nulls) == ([False] * 3, [1, 0, 0])
    assert [int.from_bytes(raw, "little") for raw in bounds.least] == [1, 10, 20]
    part = PageBounds.of(bounds.sliced(1, 3), 2)
    assert part is not None
    assert part.greatest == bounds.greatest[1:]
    assert PageBounds.of(column_index, 2) is None
    assert PageBounds.of(b"", 3) is None
    assert PageBounds.of(b"\x19", 3) is None
    fields, _ = read_struct(column_index)
    fields[5] = fields[2]
    assert PageBounds.of(encode_struct(fields), 3) is None
