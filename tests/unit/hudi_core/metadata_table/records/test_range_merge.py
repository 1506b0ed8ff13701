"""How the ranges of one column compare and merge."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from hudi_core.metadata_table.extract.column_ranges import RowRanges
from hudi_core.metadata_table.records.bounds import Bound, ValueType
from hudi_core.metadata_table.records.file_statistics import ColumnRange
from hudi_core.metadata_table.records.range_merge import as_type, empty_range, is_unknown, merged, outer_bound


def ranged(
    least: Bound | None, greatest: Bound | None, nulls: int = 0, values: int = 5, type_: ValueType | None = None
) -> ColumnRange:
    return ColumnRange("c", least, greatest, nulls, values, 10, 20, type_ or ValueType(0))


def ints(low: int, high: int) -> ColumnRange:
    return ranged(Bound("int", low), Bound("int", high))


def test_ranges_merge_to_the_wider_one_and_counts_add_up() -> None:
    assert merged([ints(3, 9), ints(-1, 4)]) == ColumnRange(
        "c", Bound("int", -1), Bound("int", 9), 0, 10, 20, 40, ValueType(0)
    )
    assert merged([]) is None


def test_a_range_without_values_adds_nothing() -> None:
    whole = merged(
        [
            empty_range("c", 2),
            ranged(None, None, 5, 5, ValueType(7)),
            ranged(Bound("string", "a"), Bound("string", "b"), 0, 2, ValueType(7)),
        ]
    )
    assert whole is not None
    assert (whole.least, whole.greatest, whole.type.ordinal) == (Bound("string", "a"), Bound("string", "b"), 7)


def test_an_unknown_range_makes_the_whole_unknown() -> None:
    whole = merged([ints(1, 2), ranged(None, None)])
    assert whole is not None
    assert is_unknown(whole)


def test_a_widened_column_merges_by_its_wider_type() -> None:
    whole = merged([ints(1, 5), ranged(Bound("long", -7), Bound("long", 3))])
    assert whole is not None
    assert (whole.least, whole.greatest) == (Bound("long", -7), Bound("long", 5))


def test_numbers_and_text_do_not_merge() -> None:
    whole = merged([ints(1, 5), ranged(Bound("string", "1"), Bound("string", "5"))])
    assert whole is not None
    assert is_unknown(whole)


def test_a_range_is_given_the_type_that_the_column_has_now() -> None:
    found = as_type(ints(1, 5), pa.int64(), 2)
    assert (found.least, found.greatest, found.type) == (Bound("long", 1), Bound("long", 5), ValueType(4))
    assert is_unknown(as_type(ints(1, 5), pa.string(), 2))


def test_infinity_bounds_rows_with_nan() -> None:
    rows = RowRanges("c", pa.float64(), 2)
    rows.add(pa.array([1.5, float("nan"), None, -2.0]))
    rows.add(pa.array([None, 7.0]))
    found = rows.result()
    assert found.least == Bound("double", -2.0)
    assert found.greatest is not None
    assert found.greatest.value == math.inf
    assert (found.null_count, found.value_count) == (2, 6)
    whole = merged([found, ranged(Bound("double", -9.0), Bound("double", 9.0), type_=ValueType(6))])
    assert whole is not None
    assert whole.greatest is not None
    assert whole.least == Bound("double", -9.0)
    assert whole.greatest.value == math.inf


def test_rows_of_nan_alone() -> None:
    rows = RowRanges("c", pa.float32(), 1)
    rows.add(pa.array([float("nan")], pa.float32()))
    found = rows.result()
    assert found.least is not None
    assert math.isnan(found.least.value)


@pytest.mark.parametrize(
    ("array", "least", "greatest"),
    [
        (pa.array([True, None, True]), Bound("boolean", True), Bound("boolean", True)),
        (pa.array([b"b", b"a"], pa.binary(1)), Bound("bytes", b"a"), Bound("bytes", b"b")),
        (pa.array(["é", "z", "日"]), Bound("string", "z"), Bound("string", "日")),
        (pa.array([5, None, 3], pa.int32()).cast(pa.date32()), Bound("date", 3), Bound("date", 5)),
        (
            pa.array([5, 3], pa.int64()).cast(pa.timestamp("us", tz="UTC")),
            Bound("timestamp_micros", 3),
            Bound("timestamp_micros", 5),
        ),
        (pa.array([5, 3], pa.int64()).cast(pa.time64("us")), Bound("time_micros", 3), Bound("time_micros", 5)),
    ],
)
def test_ranges_of_rows_of_each_type(array: pa.Array, least: Bound, greatest: Bound) -> None:
    rows = RowRanges("c", array.type, 2)
    rows.add(array)
    assert (rows.result().least, rows.result().greatest) == (least, greatest)


def test_the_smaller_and_the_larger_of_two_bounds() -> None:
    one, two = Bound("int", 1), Bound("long", 2)
    assert outer_bound(one, two, upper=False) is outer_bound(two, one, upper=False) is one
    assert outer_bound(one, two, upper=True) is outer_bound(two, one, upper=True) is two
    assert outer_bound(None, two, upper=False) is outer_bound(two, None, upper=True) is two
    assert outer_bound(None, None, upper=False) is None
    assert outer_bound(one, Bound("string", "a"), upper=False) is None


NAN = float("nan")


@pytest.mark.parametrize("kind", ["float", "double"])
@pytest.mark.parametrize("nan_first", [True, False])
def test_nan_is_the_greatest_bound_in_either_order(kind: str, nan_first: bool) -> None:
    pair = (Bound(kind, NAN), Bound(kind, 1.0)) if nan_first else (Bound(kind, 1.0), Bound(kind, NAN))
    assert outer_bound(*pair, upper=False) == Bound(kind, 1.0)
    found = outer_bound(*pair, upper=True)
    assert found is not None
    assert math.isnan(found.value)
