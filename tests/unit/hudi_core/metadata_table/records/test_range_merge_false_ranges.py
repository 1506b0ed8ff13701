"""Records of Parquet files that real Hudi makes without knowing a range, and true ones beside them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from hudi_core.metadata_table.records.bounds import Bound, ValueType
from hudi_core.metadata_table.records.file_statistics import ColumnRange
from hudi_core.metadata_table.records.range_merge import (
    may_be_false,
    may_hide_texts,
    may_lack_numbers,
    may_lack_values,
)

NAN = float("nan")


def recorded(logical: str, low: Any, high: Any, nulls: int = 0, values: int = 9, size: int = 5000) -> ColumnRange:
    least, greatest = (None if value is None else Bound(logical, value) for value in (low, high))
    return ColumnRange("c", least, greatest, nulls, values, size, size, ValueType(0))


@pytest.mark.parametrize(
    ("found", "doubtful"),
    [
        (recorded("double", 0.0, 0.0), True),
        (recorded("float", 0.0, 0.0), True),
        (recorded("double", 0.0, 7.5), True),  # of two row groups, one of them with NaN
        (recorded("double", -0.0, 0.0), False),
        (recorded("double", -0.0, 7.5), False),
        (recorded("double", -1.0, 7.5), False),
        (recorded("double", 1.0, NAN), False),
        (recorded("double", 0.0, 0.0, nulls=9), False),  # of nulls alone
        (recorded("double", 0.0, 7.5, size=0), False),  # of rows in a log file
        (recorded("long", 0, 0), False),
        (recorded("string", None, None, nulls=9), True),
        (recorded("string", None, None, nulls=9, size=2048), True),
        (recorded("string", None, None, nulls=9, size=2047), False),
        (recorded("string", "a", "b", nulls=3), False),
        (recorded("int", 0, 0, nulls=9), False),
    ],
)
def test_what_may_be_false_of_a_file(found: ColumnRange, doubtful: bool) -> None:
    assert may_be_false(found) is doubtful


@pytest.mark.parametrize("data_type", [pa.float32(), pa.float64()])
def test_ranges_of_floats_that_hold_zero_may_lack_numbers_but_those_from_a_true_zero_on(data_type: pa.DataType) -> None:
    rows = [
        (0.0, 0.0, 9, True),
        (0.0, 5.0, 9, True),
        (-1.0, 5.0, 9, True),
        (-1.0, 0.0, 9, True),
        (-0.0, 0.0, 9, False),
        (-0.0, 5.0, 9, False),
        (1.0, 5.0, 9, False),
        (-5.0, -1.0, 9, False),
        (1.0, NAN, 9, False),
        (-1.0, 5.0, 0, False),  # of rows in a log file
    ]
    low, high, sizes, doubtful = (list(column) for column in zip(*rows, strict=True))
    found = may_lack_numbers(pa.array(low, data_type), pa.array(high, data_type), pa.array(sizes, pa.int64()))
    assert found.to_pylist() == doubtful
    whole = pa.array([0, 0], pa.int64())
    assert may_lack_numbers(whole, whole, pa.array([9, 9])).to_pylist() == [False, False]


def test_a_file_without_bounds_hides_texts_only_where_there_is_room_for_a_long_one() -> None:
    least, greatest = pa.array([None, None, "a", None], pa.string()), pa.array([None, None, "b", "b"], pa.string())
    sizes = pa.array([2048, 2047, 9000, 9000], pa.int64())
    assert may_hide_texts(least, greatest, sizes).to_pylist() == [True, False, False, False]


def test_which_ranges_of_partitions_may_lack_values() -> None:
    low, high = pa.array([0.0, -2.0, 1.0, -2.0, 1.0, None, NAN]), pa.array([0.0, 3.0, 2.0, -1.0, NAN, None, NAN])
    counts = pa.array([0] * 7, pa.int64())
    assert may_lack_values(low, high, counts, counts).to_pylist() == [True, True, False, False, False, None, True]
    texts = pa.array(["a"] * 3)
    nulls, sizes = pa.array([0, 1, 1], pa.int64()), pa.array([5000, 5000, 2047], pa.int64())
    assert may_lack_values(texts, texts, nulls, sizes).to_pylist() == [False, True, False]
    numbers = pa.array([0, 0, 0], pa.int64())
    assert may_lack_values(numbers, numbers, nulls, sizes).to_pylist() == [False, False, False]
