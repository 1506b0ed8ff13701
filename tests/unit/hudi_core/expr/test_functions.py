from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.errors import ConfigError
from hudi_core.expr.functions import FUNCTIONS, call
from hudi_core.expr.tree import Literal

UTC = dt.timezone.utc
MOMENTS = pa.array(
    [dt.datetime(2024, 1, 1, 23, 30, 5, 999999, UTC), dt.datetime(1969, 12, 31, 23, 59, 59, 500000, UTC), None]
)
DAYS = pa.array([dt.date(2024, 5, 6), None])


ODD = pa.array([b"a", b"\xff\xfe"], pa.binary()).view(pa.string())
"""Texts, one of which is no UTF-8."""


def values(name: str, array: pa.Array, *literals: Any, zone: str = "UTC") -> list[Any]:
    found: list[Any] = call(name, array, [Literal.of(literal) for literal in literals], zone).to_pylist()
    return found


@pytest.mark.parametrize(
    ("name", "array", "literals", "expected"),
    [
        ("abs", pa.array([-1, 2, None]), (), [1, 2, None]),
        ("lower", pa.array(["AbC", "ÄΣ", None, "İ"]), (), ["abc", "äς", None, "i̇"]),
        ("upper", pa.array(["abc", "straße", None]), (), ["ABC", "STRASSE", None]),
        ("upper", pa.array(["abc", None]), (), ["ABC", None]),
        ("trim", pa.array([" a ", "\ta\t"]), (), ["a", "\ta\t"]),
        ("ltrim", pa.array([" a "]), (), ["a "]),
        ("rtrim", pa.array([" a "]), (), [" a"]),
        ("length", pa.array(["ä𝄞", "", None]), (), [2, 0, None]),
        ("substring", pa.array(["äbcd", None]), (2, 2), ["bc", None]),
        ("substring", pa.array(["abcd"]), (0, 2), ["ab"]),
        ("substring", pa.array(["abcd"]), (3,), ["cd"]),
        ("substring", pa.array(["abcd"]), (2, -1), [""]),
        ("year", MOMENTS, (), [2024, 1969, None]),
        ("month", DAYS, (), [5, None]),
        ("day", DAYS, (), [6, None]),
        ("hour", MOMENTS, (), [23, 23, None]),
        ("hour", DAYS, (), [0, None]),
        ("minute", MOMENTS, (), [30, 59, None]),
        ("second", MOMENTS, (), [5, 59, None]),
        ("to_date", MOMENTS, (), [dt.date(2024, 1, 1), dt.date(1969, 12, 31), None]),
        ("to_date", DAYS, (), [dt.date(2024, 5, 6), None]),
        ("date_format", MOMENTS, ("yyyy-MM-dd'T'HH:mm:ss",), ["2024-01-01T23:30:05", "1969-12-31T23:59:59", None]),
        ("date_format", DAYS, ("dd.MM.yyyy HH%'it''s'",), ["06.05.2024 00%it's", None]),
        (
            "from_unixtime",
            pa.array([0, -1, None], pa.int32()),
            (),
            ["1970-01-01 00:00:00", "1969-12-31 23:59:59", None],
        ),
        ("from_unixtime", pa.array([1700000000]), ("yyyyMMdd",), ["20231114"]),
    ],
)
def test_values_are_those_of_spark(name: str, array: pa.Array, literals: tuple[Any, ...], expected: list[Any]) -> None:
    assert values(name, array, *literals) == expected


def test_years_beyond_what_arrow_keeps() -> None:
    """Milliseconds taken for seconds lie in the year 55840; Java writes it with a sign, and counts years of an era."""
    seconds = pa.array([1700000001005, 253402300799, 253402300800, -62135596801, -99999999999, 0, None])
    expected = ["+55840-11-08", "9999-12-31", "+10000-01-01", "0001-12-31", "1200-02-15", "1970-01-01", None]
    assert values("from_unixtime", seconds, "yyyy-MM-dd") == expected
    assert values("from_unixtime", pa.array([2**63 - 1]), "yyyy")[0] == "+292277026596"
    far = pa.array([1700000001005], pa.timestamp("s", "UTC"))
    assert (values("year", far), values("month", far), values("day", far), values("hour", far)) == (
        [55840],
        [11],
        [8],
        [22],
    )
    assert call("to_date", far, [], "UTC").cast(pa.int32()).to_pylist() == [1700000001005 // 86400]
    assert values("date_format", pa.array([10_000_000], pa.int32()).cast(pa.date32()), "'y'yyyy%dd") == ["y+29349%26"]


def test_wall_time_of_a_zone() -> None:
    assert values("hour", MOMENTS[:1], zone="Europe/Berlin") == [0]
    assert values("to_date", MOMENTS[:1], zone="Europe/Berlin") == [dt.date(2024, 1, 2)]
    assert values("from_unixtime", pa.array([0]), zone="+05:30") == ["1970-01-01 05:30:00"]
    naive = pa.array([dt.datetime(2024, 1, 1, 23)])
    assert values("hour", naive, zone="Europe/Berlin") == [23]


@pytest.mark.parametrize(
    ("name", "array", "literals"),
    [
        ("nope", pa.array(["a"]), ()),
        ("lower", pa.array([1]), ()),
        ("year", pa.array(["2024"]), ()),
        ("abs", pa.array(["a"]), ()),
        ("from_unixtime", pa.array([1.5]), ()),
        ("from_unixtime", pa.array([1]), (5,)),
        ("date_format", DAYS, ()),
        ("date_format", DAYS, ("yy",)),
        ("date_format", DAYS, ("yyyy'open",)),
        ("substring", pa.array(["a"]), ("1",)),
        ("substring", pa.array(["a"]), (99999999999999999999,)),
        ("substring", pa.array(["a"]), (1, 1 << 31)),
        ("lower", pa.array(["a"]), (1,)),
        ("upper", ODD, ()),
        ("substring", ODD, (1, 2)),
    ],
)
def test_what_cannot_be_computed_is_refused(name: str, array: pa.Array, literals: tuple[Any, ...]) -> None:
    with pytest.raises(ConfigError):
        values(name, array, *literals)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_every_function_gives_one_value_per_row_and_null_for_null(name: str) -> None:
    literals = {"substring": (1,), "date_format": ("yyyy",)}.get(name, ())
    kinds = [pa.string(), pa.date32(), pa.int64()]
    results = []
    for kind in kinds:
        try:
            results.append(call(name, pa.nulls(3, kind), [Literal.of(value) for value in literals], "UTC"))
        except ConfigError:
            continue
    assert results
    assert all(len(result) == 3 and result.null_count == 3 for result in results)
