"""Ranges of a footer are those of the rows."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.codec.columns import column_of
from hudi_core.errors import UnsupportedError
from hudi_core.metadata_table.extract.column_ranges import FooterRanges, RowRanges
from hudi_core.metadata_table.indexed_table import indexed_types
from hudi_core.metadata_table.records.bounds import ValueType
from hudi_core.metadata_table.records.file_statistics import ColumnRange
from tests.support.golden_data import GoldenCase
from tests.support.golden_metadata_cells import GoldenCells

Golden = Callable[[str, str], GoldenCase]


TYPES = [
    ("6", "types_cow"),
    ("8", "types_mor"),
    ("9", "types_mor"),
    ("9", "types_timestamp_millis"),
    ("9", "types_timestamp_ntz"),
    ("8", "types_3level_lists_cow"),
]


@pytest.mark.parametrize(("version", "case"), TYPES)
def test_ranges_in_footers_of_real_files_are_those_of_their_rows(golden: Golden, version: str, case: str) -> None:
    table = GoldenCells(golden(version, case).table)
    index_version = table.table.version_of("column_stats")
    recorded = 0
    for file in table.files():
        if not file.is_base:
            continue
        parquet = pq.ParquetFile(table.storage.uri.removeprefix("file://") + f"/{file.partition}/{file.name}")
        rows = parquet.read().combine_chunks().to_batches()[0]
        for name, kind in indexed_types(table.table).items():
            found = FooterRanges(parquet.metadata).range(name, kind, index_version)
            array = column_of(rows, name)
            if found is None or array is None:
                continue
            expected = RowRanges(name, kind, index_version)
            expected.add(array)
            assert (found.least, found.greatest, found.null_count, found.value_count) == (
                expected.result().least,
                expected.result().greatest,
                expected.result().null_count,
                expected.result().value_count,
            ), name
            recorded += found.least is not None
    assert recorded > 10


NAN = float("nan")


def bounds(found: ColumnRange) -> tuple[Any, Any]:
    return (
        None if found.least is None else found.least.value,
        None if found.greatest is None else found.greatest.value,
    )


def row_range(kind: pa.DataType, *batches: list[Any], version: int = 2) -> ColumnRange:
    ranges = RowRanges("c", kind, version)
    for batch in batches:
        ranges.add(pa.array(batch, kind))
    return ranges.result(7, 9)


@pytest.mark.parametrize(
    ("kind", "batches", "expected"),
    [
        (pa.int32(), [[5, None], [], [None, -1, 9]], (-1, 9)),
        (pa.string(), [["b", "a"], ["ü", None]], ("a", "ü")),
        (pa.bool_(), [[True, None], [True]], (True, True)),
        (pa.bool_(), [[True], [None, False]], (False, True)),
        (pa.binary(2), [[b"bb", None], [b"ab"]], (b"ab", b"bb")),
        (pa.date32(), [[3, 1], [2]], (1, 3)),
        (pa.int64(), [[None], [None, None]], (None, None)),
    ],
)
def test_ranges_of_rows_batch_by_batch(kind: pa.DataType, batches: list[list[Any]], expected: tuple[Any, Any]) -> None:
    found = row_range(kind, *batches)
    values = [value for batch in batches for value in batch]
    assert bounds(found) == expected
    assert (found.value_count, found.null_count) == (len(values), values.count(None))
    assert (found.total_size, found.total_uncompressed_size) == (7, 9)


@pytest.mark.parametrize("batches", [[[NAN, 1.0], [2.0]], [[1.0, 2.0], [None, NAN]]])
def test_the_upper_bound_of_values_with_nan_is_infinity(batches: list[list[Any]]) -> None:
    """By a bound of NaN real Hudi 1.2 skips files with rows that match; readers here take infinity for NaN."""
    assert bounds(row_range(pa.float64(), *batches)) == (1.0, math.inf)
    least, greatest = bounds(row_range(pa.float32(), [NAN, None]))
    assert math.isnan(least)
    assert greatest == math.inf


def test_texts_that_are_not_utf8_have_bounds() -> None:
    """Spark stores them: CAST(X'80' AS STRING)."""
    ranges = RowRanges("c", pa.string(), 2)
    raw = pa.array([b"b\x80", b"bc", b"z\xc3"], pa.binary())
    ranges.add(pa.Array.from_buffers(pa.string(), 3, raw.buffers()))
    assert bounds(ranges.result()) == ("bc", "z\U0010ffff")
    ranges = RowRanges("c", pa.string(), 2)
    ranges.add(pa.Array.from_buffers(pa.string(), 1, pa.array([b"b\x80"], pa.binary()).buffers()))
    assert bounds(ranges.result()) == ("b", "b\U0010ffff")


@pytest.mark.parametrize("values", [[0.0, 5.0], [5.0, -0.0, 0.0], [0.0, NAN]])
def test_the_least_zero_is_negative_as_parquet_mr_has_it(values: list[float]) -> None:
    """A least 0.0 of a Parquet file is taken for Hudi's range of a chunk with NaN (false_ranges)."""
    least, _ = bounds(row_range(pa.float64(), values))
    assert str(least) == "-0.0"


def test_a_column_without_an_order_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="has no bounds"):
        RowRanges("c", pa.list_(pa.int32()), 2)


def footer_of(values: pa.Array, **options: Any) -> FooterRanges:
    sink = io.BytesIO()
    pq.write_table(pa.table({"c": values}), sink, **options)
    return FooterRanges(pq.ParquetFile(sink).metadata)


def test_a_footer_adds_row_groups_up() -> None:
    footer = footer_of(pa.array([5, 1, None, 9], pa.int32()), row_group_size=2)
    found = footer.range("c", pa.int32(), 2)
    assert found is not None
    assert (bounds(found), found.null_count, found.value_count, found.type.ordinal) == ((1, 9), 1, 4, 3)
    assert (found.total_size, found.total_uncompressed_size) == footer.sizes("c")
    assert footer.sizes("absent") == (0, 0)


@pytest.mark.parametrize(
    ("values", "options"),
    [
        (pa.array([1, 2], pa.int32()), {"write_statistics": False}),
        (pa.array([1.0, 2.0], pa.float64()), {}),
        (pa.array([], pa.int32()), {"row_group_size": 1}),
    ],
)
def test_a_footer_without_exact_bounds_has_no_range(values: pa.Array, options: dict[str, Any]) -> None:
    """Other writers than parquet-mr give bounds of floats that ignore NaN."""
    assert footer_of(values, **options).range("c", values.type, 2) in (None, EMPTY)


EMPTY = ColumnRange("c", None, None, 0, 0, 0, 0, ValueType(3))


def test_a_chunk_of_nulls_alone_has_a_range_without_bounds() -> None:
    found = footer_of(pa.array([None, None], pa.string())).range("c", pa.string(), 2)
    assert found is not None
    assert (bounds(found), found.null_count, found.value_count) == ((None, None), 2, 2)


def test_a_column_that_the_file_lacks_has_no_range() -> None:
    assert footer_of(pa.array([1])).range("other", pa.int64(), 2) is None
