from __future__ import annotations

import datetime as dt
import math
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.index.value_ranges import slice_ranges
from hudi_core.model.names import FileGroupId
from hudi_core.view.file_group import DataFile, FileSlice


def slice_of(base: str | None, *logs: str) -> FileSlice:
    group = FileGroupId("p", base or logs[0])
    files = [DataFile("p", name, 1) for name in logs]
    return FileSlice(group, "001", None if base is None else DataFile("p", base, 1), tuple(files))


def statistics(
    kind: pa.DataType, *, nulls: int = 1, values: int = 3, size: int = 5000, **bounds: tuple[Any, Any]
) -> pa.Table:
    rows = [("p", name, low, high, nulls, values, size) for name, (low, high) in bounds.items()]
    columns = [list(column) for column in zip(*rows, strict=True)]
    schema = [
        ("partition", pa.string()),
        ("file", pa.string()),
        ("min", kind),
        ("max", kind),
        ("null_count", pa.int64()),
        ("value_count", pa.int64()),
        ("uncompressed_size", pa.int64()),
    ]
    return pa.table(columns, schema=pa.schema(schema))


def test_the_range_of_a_slice_is_that_of_all_its_files() -> None:
    slices = [slice_of("a"), slice_of("a", "l"), slice_of(None, "l"), slice_of("a", "absent")]
    found = slice_ranges(slices, statistics(pa.int32(), a=(3, 7), l=(1, 4)), pa.int32())
    assert found is not None
    assert found.minimum.to_pylist() == [3, 1, 1, None]
    assert found.maximum.to_pylist() == [7, 7, 4, None]


def test_counts_are_those_of_base_files_alone() -> None:
    found = slice_ranges([slice_of("a"), slice_of("a", "l")], statistics(pa.int32(), a=(3, 7), l=(1, 4)), pa.int32())
    assert found is not None
    assert found.null_count.to_pylist() == [1, None]
    assert found.value_count.to_pylist() == [3, None]


@pytest.mark.parametrize(
    ("kind", "first", "second", "expected"),
    [
        (pa.bool_(), (False, False), (True, True), (0, 1)),
        (
            pa.timestamp("us", tz="UTC"),
            (dt.datetime(2026, 1, 2, tzinfo=dt.timezone.utc),) * 2,
            (dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc),) * 2,
            tuple(dt.datetime(2026, 1, day, tzinfo=dt.timezone.utc) for day in (1, 2)),
        ),
    ],
)
def test_types_that_arrow_does_not_order(kind: pa.DataType, first: Any, second: Any, expected: Any) -> None:
    found = slice_ranges([slice_of("a", "l")], statistics(kind, a=first, l=second), kind)
    assert found is not None
    assert (found.minimum[0].as_py(), found.maximum[0].as_py()) == expected


def test_nan_is_the_greatest_value() -> None:
    found = slice_ranges([slice_of("a", "l")], statistics(pa.float64(), a=(1.0, math.nan), l=(0.5, 2.0)), pa.float64())
    assert found is not None
    assert found.minimum.to_pylist() == [0.5]
    assert math.isnan(found.maximum[0].as_py())


def test_ranges_of_nan_are_no_bounds() -> None:
    """Hudi's range of a chunk with NaN is 0.0 to 0.0, which it merges with those of other row groups."""
    table = statistics(pa.float64(), a=(0.0, 0.0), b=(-0.0, 5.0), c=(-1.0, 9.0), d=(1.0, 2.0))
    slices = [slice_of("a"), slice_of("b"), slice_of("c"), slice_of("d"), slice_of("d", "a")]
    found = slice_ranges(slices, table, pa.float64())
    assert found is not None
    assert found.minimum.to_pylist() == [None, -0.0, None, 1.0, None]
    assert found.maximum.to_pylist() == [None, 5.0, None, 2.0, None]
    assert found.null_count.to_pylist() == [1, 1, 1, 1, None]
    log = statistics(pa.float64(), size=0, a=(0.0, 0.0))
    found = slice_ranges([slice_of("a")], log, pa.float64())
    assert found is not None
    assert found.maximum.to_pylist() == [0.0]


def test_zeros_of_a_float_stay_known_as_a_double() -> None:
    found = slice_ranges([slice_of("a")], statistics(pa.float32(), a=(-0.0, 1.5)), pa.float64())
    assert found is not None
    assert (found.minimum.to_pylist(), found.maximum.to_pylist()) == ([0.0], [1.5])


@pytest.mark.parametrize(("size", "known"), [(5000, False), (2047, True)])
def test_nulls_alone_are_believed_where_no_long_text_has_room(size: int, known: bool) -> None:
    table = statistics(pa.string(), nulls=3, size=size, a=(None, None))
    found = slice_ranges([slice_of("a")], table, pa.string())
    assert found is not None
    assert found.only_nulls().tolist() == [known]
    assert found.null_count.to_pylist() == [3 if known else None]


def test_nulls_beside_texts_without_a_range_are_counted() -> None:
    found = slice_ranges([slice_of("a")], statistics(pa.string(), nulls=0, a=(None, None)), pa.string())
    assert found is not None
    assert found.null_count.to_pylist() == [0]
