"""Statistics of a piece are those of its values, or there are none from its pages' bounds."""

from __future__ import annotations

import io
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.codec.parquet.chunk_statistics import decoded_statistics, page_statistics
from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.codec.parquet.footer import Bounds, Chunk, Column, schema_of
from hudi_core.codec.parquet.page_index import PageBounds
from hudi_core.codec.parquet.splice import RowGroupSource
from hudi_core.codec.parquet.thrift import BINARY, I64, Struct


def by_pages(values: list[Any], kind: pa.DataType, first: int, end: int) -> tuple[Struct | None, Struct]:
    """Of pages of two rows: the statistics of some, and those of all as they are stored."""
    file = io.BytesIO()
    pages = {"write_page_index": True, "max_rows_per_page": 2, "write_batch_size": 2}
    pq.write_table(pa.table({"c": pa.array(values, kind)}), file, store_schema=False, **pages)
    source = RowGroupSource(ParquetBaseFile(file, "f"))
    (chunk,) = source.column_chunks(0)
    stored: Struct = chunk[Chunk.metadata][1][Column.statistics][1]
    bounds = PageBounds.of(source.part(chunk, Chunk.column_index), len(values) // 2)
    return page_statistics(stored, schema_of(source.file.metadata).column(0), bounds, first, end), stored


@pytest.mark.parametrize(
    ("values", "kind", "least", "greatest"),
    [
        ([5, -7, 3, None, -1, 2], pa.int32(), -1, 3),
        ([5, -7, 3, None, -1, 2], pa.int64(), -1, 3),
        ([0.5, 9.0, 2.5, None, -1.5, 1.0], pa.float64(), -1.5, 2.5),
        (["z", "a", "m", None, "b", "é"], pa.string(), "b", "é"),
        ([b"\xff", b"", b"\x80", None, b"\x7f", b"a"], pa.binary(), b"a", b"\x80"),
        ([True, False, True, None, True, True], pa.bool_(), True, True),
        ([Decimal(500), Decimal(-900), Decimal(-3), None, Decimal(-1), Decimal(-2)], pa.decimal128(20, 0), -3, -1),
    ],
)
def test_bounds_of_pages_are_ordered_as_values(values: list[Any], kind: pa.DataType, least: Any, greatest: Any) -> None:
    """The second and the third page."""
    statistics, stored = by_pages(values, kind, 1, 3)
    assert statistics is not None
    assert statistics.keys() == {*stored} - {4, 7, 8}
    assert statistics[Bounds.nulls] == (I64, 1)
    due, _ = by_pages([least, greatest], kind, 0, 1)
    assert due is not None
    assert [statistics[number] for number in (5, 6)] == [due[number] for number in (5, 6)]


def test_long_texts_and_missing_bounds_are_no_values() -> None:
    """parquet-mr cuts the bounds of pages at 64 bytes."""
    assert by_pages(["a" * 64, "b", "c", "d"], pa.string(), 1, 2)[0] is not None
    assert by_pages(["a" * 64, "b", "c", "d"], pa.string(), 0, 2)[0] is None
    assert by_pages(["a" * 63, "b", "c", "d"], pa.string(), 0, 2)[0] is not None
    column = schema_of(ParquetBaseFile(io.BytesIO(one_column()), "f").metadata).column(0)
    assert page_statistics({}, column, None, 0, 1) is None


def one_column() -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({"c": [1]}), file)
    return file.getvalue()


def test_pages_of_nulls_alone_have_no_bounds() -> None:
    statistics, _ = by_pages([1, 2, None, None], pa.int64(), 1, 2)
    assert statistics == {Bounds.nulls: (I64, 2)}


def test_decoded_values_give_the_kinds_of_bounds_that_are_stored() -> None:
    """NaN is the greatest value, as in files of ours."""
    values = pa.table({"a": [1.0, math.nan, None], "b": ["x" * 80, "y", None]})
    both = dict.fromkeys((1, 2, 5, 6), (BINARY, b""))
    numbers = decoded_statistics(values, 0, both)
    assert numbers.keys() == {1, 2, 3, 5, 6}
    assert math.isnan(memoryview(numbers[5][1]).cast("d")[0])
    texts = decoded_statistics(values, 1, {6: (BINARY, b"")})
    assert texts == {3: (I64, 1), 6: (BINARY, b"x" * 80)}
