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
from hudi_core.codec.parquet.thrift import BINARY, I64, LIST, TRUE, Struct, ThriftList


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
    """parquet-mr cuts the bounds of pages at 64 bytes, before a character that ends later."""
    assert by_pages(["a" * 61, "b", "c", "d"], pa.string(), 1, 2)[0] is not None
    assert by_pages(["a" * 61, "b", "c", "d"], pa.string(), 0, 2)[0] is None
    assert by_pages(["a" * 60, "b", "c", "d"], pa.string(), 0, 2)[0] is not None
    assert by_pages([b"a" * 100, b"b" * 100], pa.binary(100), 0, 1)[0] is not None
    column = schema_of(ParquetBaseFile(io.BytesIO(one_column()), "f").metadata).column(0)
    assert page_statistics({}, column, None, 0, 1) is None


def test_bounds_that_are_not_those_of_the_chunk_are_no_values() -> None:
    """parquet.columnindex.truncate.length may be less."""
    _, stored = by_pages(["abc", "b", "c", "d"], pa.string(), 0, 2)
    column = schema_of(ParquetBaseFile(io.BytesIO(one_column("a")), "f").metadata).column(0)
    pages = {2: [b"abc", b"c"], 3: [b"b", b"d"]}
    for number, cut, is_known in ((2, b"abc", True), (2, b"ab", False), (3, b"e", False)):
        changed = {**pages, number: [cut, *pages[number][1:]] if number == 2 else [b"b", cut]}
        fields = {
            1: (LIST, ThriftList(TRUE, [2, 2])),
            **{at: (LIST, ThriftList(BINARY, values)) for at, values in changed.items()},
            5: (LIST, ThriftList(I64, [0, 0])),
        }
        assert (page_statistics(stored, column, PageBounds(fields), 1, 2) is not None) == is_known


def test_a_cut_bound_of_fixed_bytes_is_no_value() -> None:
    column = schema_of(ParquetBaseFile(io.BytesIO(one_column(b"x" * 100, pa.binary(100))), "f").metadata).column(0)
    bound = (LIST, ThriftList(BINARY, [b"x" * 64]))
    fields = {1: (LIST, ThriftList(TRUE, [2])), 2: bound, 3: bound, 5: (LIST, ThriftList(I64, [0]))}
    assert page_statistics({5: (BINARY, b"x" * 100)}, column, PageBounds(fields), 0, 1) is None


def one_column(value: Any = 1, kind: pa.DataType | None = None) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({"c": pa.array([value], kind)}), file)
    return file.getvalue()


def test_pages_of_nulls_alone_have_no_bounds() -> None:
    statistics, _ = by_pages([1, 2, None, None], pa.int64(), 1, 2)
    assert statistics == {Bounds.nulls: (I64, 2)}


@pytest.mark.parametrize("rows", [1, 2, 100])
def test_decoded_values_give_the_kinds_of_bounds_that_are_stored(rows: int) -> None:
    """NaN is the greatest value, as in files of ours. Batches are folded."""
    values = pa.table({"a": [1.0, math.nan, None, -4.0], "b": ["x" * 80, "y", None, "z"], "n": [math.nan] * 4})
    file = io.BytesIO()
    pq.write_table(values, file)
    schema = schema_of(ParquetBaseFile(file, "f").metadata)
    both = dict.fromkeys((1, 2, 5, 6), (BINARY, b""))
    stored = {0: both, 1: {6: (BINARY, b"")}, 2: both}
    found = decoded_statistics(
        values.to_batches(max_chunksize=rows), [schema.column(leaf) for leaf in range(3)], stored
    )
    assert found[0].keys() == {1, 2, 3, 5, 6}
    assert math.isnan(memoryview(found[0][5][1]).cast("d")[0])
    assert memoryview(found[0][6][1]).cast("d")[0] == -4.0
    assert found[1] == {3: (I64, 1), 6: (BINARY, b"x" * 80)}
    assert found[2] == {3: (I64, 0)}


def test_values_whose_bounds_arrow_does_not_write_have_none() -> None:
    values = pa.table({"b": ["x" * 5000, "y"]})
    file = io.BytesIO()
    pq.write_table(values, file)
    column = schema_of(ParquetBaseFile(file, "f").metadata).column(0)
    both = dict.fromkeys((5, 6), (BINARY, b""))
    assert decoded_statistics(values.to_batches(max_chunksize=1), [column], {0: both}) == {0: {3: (I64, 0)}}
