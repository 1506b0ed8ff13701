from __future__ import annotations

import datetime as dt
import io
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.codec.parquet.statistics import ChunkRanges, chunk_ranges, leaf_columns
from tests.support.golden_data import GoldenCase

UTC = dt.timezone.utc
TABLE = pa.table(
    {
        "i": pa.array([3, 1, None, 7, None, None], pa.int32()),
        "l": pa.array([-(2**63), 2**63 - 1, 0, 1, 2, None]),
        "d": pa.array([1.5, -0.0, 2.0, math.nan, 1.0, None]),
        "s": pa.array(["b", "ä", None, "", "𝄞", None]),
        "y": pa.array([b"\xff", b"", None, b"a", b"b", None]),
        "n": pa.array([Decimal("-1.10"), Decimal("2.20"), None, Decimal("0.01"), None, None], pa.decimal128(20, 2)),
        "b": pa.array([True, False, None, True, True, None]),
        "day": pa.array([dt.date(2024, 1, 1), dt.date(1969, 1, 1), None, dt.date(2024, 1, 2), None, None]),
        "at": pa.array(
            [dt.datetime(2024, 1, 1, 1, 2, 3, 4, UTC), None, None, dt.datetime(1960, 1, 1, tzinfo=UTC), None, None]
        ),
        "u": pa.array([{"x": 1}, None, {"x": None}, {"x": 5}, {"x": 4}, None]),
        "dotted.name": pa.array([1, 2, 3, 4, 5, 6]),
        "tags": pa.array([["a"], None, [], ["b", None], None, None]),
    }
)


def written(table: pa.Table, **options: Any) -> pq.FileMetaData:
    file = io.BytesIO()
    pq.write_table(table, file, row_group_size=3, store_schema=False, **options)
    with ParquetBaseFile(file, "f.parquet") as opened:
        return opened.metadata


def ranges_of(metadata: pq.FileMetaData, *path: str) -> ChunkRanges | None:
    kind = metadata.schema.to_arrow_schema().field(path[0]).type
    for name in path[1:]:
        kind = kind.field(name).type
    return chunk_ranges(metadata, leaf_columns(metadata)[path], kind)


@pytest.mark.parametrize("name", ["i", "l", "s", "y", "n", "b", "day", "at", "dotted.name"])
def test_ranges_are_those_of_the_rows(name: str) -> None:
    found = ranges_of(written(TABLE), name)
    assert found is not None
    for group in range(2):
        rows = TABLE.column(name).slice(group * 3, 3)
        present = sorted(
            (value for value in rows.to_pylist() if value is not None),
            key=lambda value: value.encode() if isinstance(value, str) else value,
        )
        assert (found.minimum[group].as_py(), found.maximum[group].as_py()) == (present[0], present[-1])
        assert (found.null_count[group].as_py(), found.value_count[group].as_py()) == (rows.null_count, 3)


def test_a_field_of_a_struct_counts_the_nulls_of_the_struct() -> None:
    found = ranges_of(written(TABLE), "u", "x")
    assert found is not None
    assert (found.minimum.to_pylist(), found.maximum.to_pylist()) == ([1, 4], [1, 5])
    assert found.null_count.to_pylist() == [2, 1]


def test_lists_have_no_value_per_row() -> None:
    assert ("tags",) not in {path[:1] for path in leaf_columns(written(TABLE))}
    assert ("dotted.name",) in leaf_columns(written(TABLE))


def test_a_writer_that_passes_over_nan_tells_no_upper_bound() -> None:
    found = ranges_of(written(TABLE), "d")
    assert found is not None
    assert found.maximum.to_pylist() == [None, None]
    assert found.minimum.to_pylist() == [0.0, 1.0]


def test_only_nulls_and_no_statistics_differ() -> None:
    table = pa.table({"a": pa.nulls(3, pa.int64())})
    found, silent = ranges_of(written(table), "a"), ranges_of(written(table, write_statistics=False), "a")
    assert found is not None
    assert silent is not None
    assert (found.minimum.to_pylist(), found.null_count.to_pylist(), found.value_count.to_pylist()) == (
        [None],
        [3],
        [3],
    )
    assert (silent.minimum.to_pylist(), silent.null_count.to_pylist()) == ([None], [None])


def test_types_whose_raw_order_is_another_are_not_read() -> None:
    moments = pa.table({"a": pa.array([0, 1], pa.timestamp("ns"))})
    assert ranges_of(written(moments, use_deprecated_int96_timestamps=True), "a") is None
    assert ranges_of(written(pa.table({"a": pa.array([1, 2**63], pa.uint64())})), "a") is None
    assert ranges_of(written(pa.table({"a": pa.array([b"ab"], pa.binary(2))})), "a") is None


@pytest.mark.parametrize("case", ["types_cow", "mdt_all_cow", "int_key"])
def test_footers_of_real_hudi(golden: Any, case: str) -> None:
    opened: GoldenCase = golden("6", case)
    checked = 0
    for path in sorted(opened.table.rglob("*.parquet")):
        if ".hoodie" in path.parts:
            continue
        with path.open("rb") as stream, ParquetBaseFile(stream, path.name) as file:
            table = pa.Table.from_batches(file.batches(), schema=file.schema)
            for leaf, number in leaf_columns(file.metadata).items():
                column = table.column(leaf[0])
                found = (
                    chunk_ranges(file.metadata, number, file.metadata.schema.to_arrow_schema().field(leaf[0]).type)
                    if len(leaf) == 1
                    else None
                )
                if found is None or file.metadata.num_row_groups != 1 or not found.minimum[0].is_valid:
                    continue
                lower, upper = pc.cast(found.minimum, column.type)[0], pc.cast(found.maximum, column.type)[0]
                values = sorted(value.as_py() for value in column if value.is_valid)
                assert (lower.as_py(), upper.as_py()) == (values[0], values[-1]), leaf
                assert found.null_count[0].as_py() == column.null_count
                checked += 1
    assert checked > 10


def test_a_writer_whose_name_is_damaged_may_have_passed_over_nan() -> None:
    file = io.BytesIO()
    pq.write_table(pa.table({"d": [1.5, 2.5]}), file, store_schema=False)
    metadata = pq.read_metadata(io.BytesIO(file.getvalue().replace(b"parquet-cpp-arrow", b"parquet-mr\xc2pp-arr")))
    ranges = chunk_ranges(metadata, 0, pa.float64())
    assert ranges is not None
    assert (ranges.minimum.to_pylist(), ranges.maximum.to_pylist()) == ([1.5], [None])
