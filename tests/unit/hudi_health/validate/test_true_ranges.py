"""True ranges, and what contradicts a statistic: every type, NaN, nulls, and bounds that bound nothing."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.expr.tree import Column
from hudi_health.validate.true_ranges import (
    Counts,
    IndexedOperands,
    Statistic,
    TrueRange,
    TrueRanges,
    contradictions,
)

UTC = pa.timestamp("us", "UTC")
FAR = 1_700_000_000_000_000_000
"""A time beyond the year 9999, in microseconds."""
NAN = float("nan")


def true_of(value_type: pa.DataType, *batches: list[Any]) -> TrueRange:
    found = TrueRange()
    for values in batches:
        found.add(
            pa.array(values, pa.int64()).cast(value_type)
            if pa.types.is_timestamp(value_type)
            else pa.array(values, value_type)
        )
    return found


def said(
    value_type: pa.DataType,
    least: Any,
    greatest: Any,
    true: TrueRange,
    nulls: int = 0,
    values: int = 9,
    *,
    exact: bool = False,
) -> list[str]:
    bounds = (
        pa.array([least, greatest], pa.int64()).cast(value_type)
        if pa.types.is_timestamp(value_type)
        else pa.array([least, greatest], value_type)
    )
    return list(
        contradictions(
            Statistic(bounds[0], bounds[1], nulls, values, False), true, Counts.EXACT if exact else Counts.LOOSE
        )
    )


DAY = datetime.date(2024, 1, 2)
CASES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int32(), [-5, 0, 7]),
    (pa.int64(), [-(1 << 62), 0, 1 << 62]),
    (pa.float32(), [-1.5, -0.0, 2.5]),
    (pa.float64(), [-1.5, 0.0, float("inf")]),
    (pa.string(), ["A", "a", "é"]),
    (pa.date32(), [DAY, DAY + datetime.timedelta(1), DAY + datetime.timedelta(2)]),
    (UTC, [-FAR, 0, FAR]),
    (pa.timestamp("us"), [-FAR, 0, FAR]),
    (pa.decimal128(30, 12), [decimal.Decimal("-1.5"), decimal.Decimal("0"), decimal.Decimal("99999999.000000000001")]),
]


@pytest.mark.parametrize(("value_type", "values"), CASES)
def test_bounds_of_every_type(value_type: pa.DataType, values: list[Any]) -> None:
    low, middle, high = values
    true = true_of(value_type, [middle, None], [low], [], [high, high])
    assert (true.rows, true.nulls, true.has_values) == (5, 1, True)
    assert said(value_type, low, high, true) == []
    (below,) = said(value_type, middle, high, true)
    assert below.startswith("the stored minimum is ")
    (above,) = said(value_type, low, middle, true)
    assert above.startswith("the stored maximum is ")
    assert (
        said(value_type, None, high, true)
        == said(value_type, low, None, true)
        == said(value_type, None, None, true)
        == []
    )
    (nothing,) = said(value_type, None, None, true, 9, 9)
    assert nothing.startswith("stored are 9 values, all null, but there is ")


def test_booleans() -> None:
    true = true_of(pa.bool_(), [True, False])
    assert said(pa.bool_(), False, True, true) == []
    assert len(said(pa.bool_(), True, True, true)) == 1
    assert len(said(pa.bool_(), False, False, true)) == 1


def test_nan_is_greater_than_every_number() -> None:
    value_type = pa.float64()
    mixed, only = true_of(value_type, [1.0, NAN]), true_of(value_type, [NAN])
    assert said(value_type, 1.0, 1.0, mixed) == ["the stored maximum is 1.0, but there is NaN"]
    assert (
        said(value_type, 1.0, NAN, mixed)
        == said(value_type, 1.0, None, mixed)
        == said(value_type, NAN, NAN, only)
        == []
    )
    assert said(value_type, 0.0, 5.0, only) == ["the stored maximum is 5.0, but there is NaN"]
    assert said(value_type, None, None, only, 9, 9) == ["stored are 9 values, all null, but there is NaN"]
    assert len(said(value_type, NAN, NAN, mixed)) == 1


def test_bytes_and_text_that_java_orders_otherwise_bound_nothing() -> None:
    binary = true_of(pa.binary(), [b"\x00", b"\xff"])
    assert said(pa.binary(), b"\x10", b"\x11", binary) == []
    text = true_of(pa.string(), ["\U0001f600"])
    assert said(pa.string(), "\U0001f601", "\U0001f602", text) == []
    assert len(said(pa.string(), "a", "b", text)) == 1


def test_a_narrower_type_than_the_columns() -> None:
    """A column that was widened: the bound is compared as the column orders now. One that has become text has no
    bound.
    """
    true = TrueRange()
    true.add(pa.array([1, 1 << 40], pa.int64()))
    bounds = pa.array([1, 5], pa.int32())
    assert len(list(contradictions(Statistic(bounds[0], bounds[1], 0, 2, False), true, Counts.LOOSE))) == 1
    text = TrueRange()
    text.add(pa.array(["1", "9"]))
    assert list(contradictions(Statistic(bounds[0], bounds[1], 0, 2, False), text, Counts.LOOSE)) == []


def test_counts() -> None:
    true = true_of(pa.int32(), [1, None])
    assert said(pa.int32(), 1, 1, true, 1, 2, exact=True) == []
    assert said(pa.int32(), 1, 1, true, 0, 2, exact=True) == ["stored are 0 nulls of 2 values, but there are 1 of 2"]
    assert said(pa.int32(), 1, 1, true, 7, 9) == []
    empty = true_of(pa.int32(), [None, None])
    assert not empty.has_values
    assert said(pa.int32(), None, None, empty, 2, 2, exact=True) == []
    assert said(pa.int32(), 5, 6, empty, 2, 2, exact=True) == [], "a range that nothing is in contains it"


def test_values_inside_structs_and_long_texts() -> None:
    batch = pa.RecordBatch.from_pylist([{"s": {"a": "x" * 100}}, {"s": None}])
    ranges = TrueRanges(IndexedOperands({"s.a": Column(("s", "a")), "t": Column(("t",))}))
    ranges.add(batch, ["s.a"])
    true = ranges.of("s.a")
    assert (true.rows, true.nulls) == (2, 1)
    assert ranges.of("t").rows == 0
    (what,) = said(pa.string(), "y", "z", true)
    assert what.endswith("…")
    assert len(what) < 120


def test_counts_that_may_be_more() -> None:
    true = true_of(pa.int32(), [1, None])
    null = pa.scalar(None, pa.int32())
    for nulls, values, fits in ((1, 2, True), (4, 9, True), (0, 9, False), (1, 1, False)):
        found = list(contradictions(Statistic(null, null, nulls, values, True), true, Counts.AT_LEAST))
        assert (found == []) is fits
