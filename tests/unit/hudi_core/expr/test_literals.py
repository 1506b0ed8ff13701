from __future__ import annotations

import datetime as dt
import decimal

import pyarrow as pa
import pytest

from hudi_core.errors import ConfigError
from hudi_core.expr.literals import Place, fold, instant, place
from hudi_core.expr.tree import OPERATORS, Literal, Value


def at(kind: pa.DataType, value: Value, zone: str = "UTC") -> Place:
    return place(kind, Literal.of(value), zone, where="c")


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (pa.int32(), 5, 5),
        (pa.int32(), "5", 5),
        (pa.int64(), decimal.Decimal("5.0"), 5),
        (pa.decimal128(5, 2), "1.25", decimal.Decimal("1.25")),
        (pa.string(), "x", "x"),
        (pa.binary(), "x", b"x"),
        (pa.bool_(), "TRUE", 1),
        (pa.date32(), "2026-02-01", dt.date(2026, 2, 1)),
        (pa.timestamp("us"), "2026-02-01 01:00:00", dt.datetime(2026, 2, 1, 1)),
    ],
)
def test_literals_that_columns_hold(kind: pa.DataType, value: Value, expected: object) -> None:
    found = at(kind, value)
    assert (found.value.as_py(), found.exact, found.side) == (expected, True, 0)


def test_between_two_values_of_the_column() -> None:
    low = at(pa.int32(), decimal.Decimal("2.5"))
    assert (low.value.as_py(), low.exact) == (2, False)
    assert {operator: fold(operator, low) for operator in ("<", "<=", ">", ">=")} == {
        "<": ("<=", low.value),
        "<=": ("<=", low.value),
        ">": (">", low.value),
        ">=": (">", low.value),
    }
    assert (fold("=", low), fold("<>", low)) == (False, True)


@pytest.mark.parametrize(("value", "side"), [(1 << 40, 1), (-(1 << 40), -1)])
def test_beyond_the_range_of_the_type(value: int, side: int) -> None:
    found = at(pa.int32(), value)
    assert (found.value, found.side) == (None, side)
    true = {"<", "<=", "<>"} if side > 0 else {">", ">=", "<>"}
    assert {operator for operator in OPERATORS if fold(operator, found)} == true


def test_a_moment_within_a_day_is_no_date() -> None:
    assert at(pa.date32(), dt.datetime(2026, 2, 1)).exact
    noon = at(pa.date32(), dt.datetime(2026, 2, 1, 12))
    assert (noon.value.as_py(), noon.exact) == (dt.date(2026, 2, 1), False)


def test_wall_time_is_that_of_the_zone() -> None:
    found = at(pa.timestamp("us", tz="UTC"), "2026-02-01 01:00:00", "Europe/Berlin")
    assert found.value.as_py() == dt.datetime(2026, 2, 1, tzinfo=dt.timezone.utc)


@pytest.mark.parametrize(
    ("kind", "value", "remedy"),
    [
        (pa.int32(), "x", "column's type"),
        (pa.int32(), "5_000", "column's type"),
        (pa.float64(), "\u0665.0", "column's type"),
        (pa.string(), 5, "in quotes"),
        (pa.list_(pa.int32()), 5, "field of a struct"),
        (pa.bool_(), 1, "column's type"),
    ],
)
def test_literals_that_cannot_be_compared(kind: pa.DataType, value: Value, remedy: str) -> None:
    with pytest.raises(ConfigError, match="column 'c' is") as caught:
        at(kind, value)
    assert remedy in str(caught.value.remedy)


def test_moments_by_the_zone() -> None:
    same = dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)
    assert instant(dt.datetime(2024, 1, 1, 1), "Europe/Berlin") == instant(same, "Europe/Berlin")


@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("us")])
@pytest.mark.parametrize(("year", "hours"), [(1, 5), (9999, -5)])
def test_a_timestamp_beyond_the_years_of_the_zone(kind: pa.DataType, year: int, hours: int) -> None:
    value = dt.datetime(year, 1 if year == 1 else 12, 1 if year == 1 else 31, 0 if year == 1 else 23)
    there = value.replace(tzinfo=dt.timezone(dt.timedelta(hours=hours)))
    with pytest.raises(ConfigError, match="not within the years 1 to 9999 in UTC") as caught:
        place(kind, Literal.of(there), "UTC", where="c")
    assert caught.value.remedy
