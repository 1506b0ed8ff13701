"""Functions of expression indexes: values as Spark 3.5 gives them."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.codec.bloom import BloomFilter
from hudi_core.errors import UnsupportedError
from hudi_core.metadata_table.extract.expressions import ExpressionValues, function_of
from hudi_core.metadata_table.records.bounds import Bound, ValueType, encode_bound
from hudi_core.metadata_table.records.file_statistics import ColumnRange, Expression, FilterText
from tests.support.bloom_filters import might_contain

UTC = pa.timestamp("us", tz="UTC")


def moments(*texts: str | None) -> pa.Array:
    return pa.array(
        [
            None if text is None else datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.timezone.utc)
            for text in texts
        ],
        UTC,
    )


def computed(name: str, values: pa.Array, zone: str | None = "UTC", **options: str) -> list[Any]:
    return list(function_of(name, options, values.type, zone)[0](values).to_pylist())


@pytest.mark.parametrize(
    ("name", "options", "values", "expected"),
    [
        ("identity", {}, ["b", None], ["b", None]),
        ("lower", {}, ["ABC", None, "İI", "ΑΣ", "É"], ["abc", None, "i̇i", "ας", "é"]),
        ("upper", {}, ["abc", None, "straße", "ﬁ"], ["ABC", None, "STRASSE", "FI"]),
        ("trim", {}, ["  a b ", "\ta\t", None], ["a b", "\ta\t", None]),
        ("trim", {"trimString": "xy"}, ["xyaxbyx"], ["axb"]),
        ("ltrim", {}, ["  a "], ["a "]),
        ("rtrim", {}, ["  a "], ["  a"]),
        ("length", {}, ["日本", "", None], [2, 0, None]),
        ("substring", {"pos": "1", "len": "2"}, ["日本語", "a", None], ["日本", "a", None]),
        ("substring", {"pos": "0", "len": "2"}, ["hello"], ["he"]),
        ("substring", {"pos": "2", "len": "3"}, ["hello"], ["ell"]),
        ("substring", {"pos": "-3", "len": "2"}, ["hello", "ab"], ["ll", "a"]),
        ("substring", {"pos": "-3", "len": "3"}, ["hello"], ["llo"]),
        ("substring", {"pos": "-10", "len": "7"}, ["hello"], ["he"]),
        ("substring", {"pos": "1", "len": "0"}, ["hello", None], ["", None]),
    ],
)
def test_functions_of_text(name: str, options: dict[str, str], values: list[str | None], expected: list[Any]) -> None:
    assert computed(name, pa.array(values, pa.string()), None, **options) == expected


def test_functions_of_dates_need_no_zone() -> None:
    dates = pa.array([datetime.date(2024, 2, 29), None, datetime.date(1969, 12, 31)])
    assert computed("year", dates, None) == [2024, None, 1969]
    assert computed("month", dates, None) == [2, None, 12]
    assert computed("day", dates, None) == [29, None, 31]
    assert computed("date_add", dates, None, days="1") == [datetime.date(2024, 3, 1), None, datetime.date(1970, 1, 1)]
    assert computed("date_sub", dates, None, days="1") == [
        datetime.date(2024, 2, 28),
        None,
        datetime.date(1969, 12, 30),
    ]
    assert computed("to_date", dates, None) == dates.to_pylist()


def test_functions_of_timestamps_go_by_the_session_zone() -> None:
    values = moments("2023-12-31T23:30:05.5", None, "1969-12-31T23:59:59.9")
    assert computed("hour", values) == [23, None, 23]
    assert computed("year", values) == [2023, None, 1969]
    assert computed("day", values) == [31, None, 31]
    assert computed("year", values, "Europe/Berlin") == [2024, None, 1970]
    assert computed("hour", values, "America/New_York") == [18, None, 18]
    assert computed("date_format", values, format="yyyy-MM-dd HH:mm:ss") == [
        "2023-12-31 23:30:05",
        None,
        "1969-12-31 23:59:59",
    ]
    assert computed("date_format", values, "Asia/Kolkata", format="yyyyMMdd'T'HH") == [
        "20240101T05",
        None,
        "19700101T05",
    ]
    assert computed("unix_timestamp", values, None) == [1704065405, None, 0]


def test_seconds_become_text() -> None:
    values = pa.array([0, 1704065405, None, -1, 1700000001000], pa.int64())
    assert computed("from_unixtime", values) == [
        "1970-01-01 00:00:00",
        "2023-12-31 23:30:05",
        None,
        "1969-12-31 23:59:59",
        "+55840-11-08 22:30:00",
    ]
    assert computed("from_unixtime", values, format="yyyy-MM-dd")[1:4] == ["2023-12-31", None, "1969-12-31"]
    assert computed("from_unixtime", values, format="M/d H:m")[1] == "12/31 23:30"
    assert computed("from_unixtime", pa.array([], pa.int64()), format="yyyy") == []


@pytest.mark.parametrize(
    ("name", "options", "kind", "zone"),
    [
        ("regexp_extract", {"pattern": "a", "idx": "0"}, pa.string(), "UTC"),
        ("regexp_replace", {}, pa.string(), "UTC"),
        ("split", {"pattern": ","}, pa.string(), "UTC"),
        ("abs", {}, pa.int32(), "UTC"),
        ("lower", {}, pa.int32(), "UTC"),
        ("year", {}, pa.string(), "UTC"),
        ("hour", {}, UTC, None),
        ("from_unixtime", {"format": "yyyy"}, pa.int64(), None),
        ("from_unixtime", {"format": "EEE"}, pa.int64(), "UTC"),
        ("from_unixtime", {"format": "yy"}, pa.int64(), "UTC"),
        ("from_unixtime", {"format": "yyyy[-MM]"}, pa.int64(), "UTC"),
        ("from_unixtime", {"format": "yyyy'"}, pa.int64(), "UTC"),
        ("date_format", {}, UTC, "UTC"),
        ("to_timestamp", {"format": "yyyy"}, pa.string(), "UTC"),
        ("substring", {"pos": "x", "len": "1"}, pa.string(), "UTC"),
        ("date_add", {}, pa.date32(), "UTC"),
    ],
)
def test_what_is_not_computed_exactly_is_refused(
    name: str, options: dict[str, str], kind: pa.DataType, zone: str | None
) -> None:
    with pytest.raises(UnsupportedError, match=name):
        function_of(name, options, kind, zone)


@pytest.mark.parametrize("seconds", [-62167219201 - 86400 * 366, 1 << 50])
def test_years_without_a_text_are_refused(seconds: int) -> None:
    with pytest.raises(UnsupportedError, match="year 1"):
        computed("from_unixtime", pa.array([seconds], pa.int64()), format="yyyy")


def test_a_range_of_an_expression_counts_the_values_that_are_not_null() -> None:
    values = ExpressionValues(Expression("expr_index_a", "c", "lower", {}, "column_stats", 2), pa.string())
    values.add(pa.array(["B", None, "a"]))
    assert values.result(100) == ColumnRange(
        "c", Bound("string", "a"), Bound("string", "b"), 1, 2, 100, 200, ValueType(7)
    )


@pytest.mark.parametrize(("version", "type_"), [(1, ValueType(0)), (2, ValueType(16))])
def test_a_range_of_timestamps_is_one_of_microseconds(version: int, type_: ValueType) -> None:
    kind = pa.timestamp("ms", tz="UTC")
    values = ExpressionValues(Expression("expr_index_a", "c", "identity", {}, "column_stats", version), kind)
    values.add(pa.array([3, 1], pa.int64()).cast(kind))
    found = values.result(100)
    assert found == ColumnRange(
        "c", Bound("timestamp_micros", 1000), Bound("timestamp_micros", 3000), 0, 2, 100, 200, type_
    )
    assert isinstance(found, ColumnRange)
    wrapper = encode_bound(found.least, found.type)
    assert wrapper is not None
    assert wrapper[0].endswith("TimestampMicrosWrapper" if version == 1 else "LongWrapper")


def test_a_filter_of_an_expression_holds_its_values() -> None:
    values = ExpressionValues(
        Expression("expr_index_a", "c", "lower", {}, "bloom_filters", 2, None, (100, 1e-6, 1000)), pa.string()
    )
    values.add(pa.array(["B", None, "Xyz"]).slice(1))
    values.add(pa.array([None], pa.string()))
    found = values.result(100)
    assert isinstance(found, FilterText)
    bloom = BloomFilter.parse(found.text, found.type_code, path="x")
    assert might_contain(bloom, b"xyz")
    assert not might_contain(bloom, b"b")
    assert bloom.entries == 100


def test_a_filter_over_values_whose_text_is_not_known_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="bloom"):
        ExpressionValues(Expression("expr_index_a", "c", "identity", {}, "bloom_filters", 2), pa.float64())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("upper", "\u10d0"),
        ("lower", "\u1c90"),
        ("lower", "\u13a0"),
        ("upper", "a\uab70"),
        ("lower", "\u0528"),
        ("upper", "\U000104d8"),
    ],
)
def test_letters_that_not_every_jvm_knows_the_other_case_of_are_refused(name: str, text: str) -> None:
    """Georgian has capitals since Unicode 11: Java 8 and 11 leave its letters, Java 17 does not."""
    function, _ = function_of(name, {}, pa.string(), None)
    with pytest.raises(UnsupportedError, match="the JVM's release of Unicode"):
        function(pa.array(["plain", text, None]))


def test_georgian_text_has_a_lower_case() -> None:
    """It is its own in each release."""
    lower, _ = function_of("lower", {}, pa.string(), None)
    assert lower(pa.array(["\u10d0\u10d1"])).to_pylist() == ["\u10d0\u10d1"]


def test_old_letters_have_their_other_case() -> None:
    upper, _ = function_of("upper", {}, pa.string(), None)
    lower, _ = function_of("lower", {}, pa.string(), None)
    assert upper(pa.array(["stra\u00dfe", "\u0441\u043b\u043e\u0432\u043e", None])).to_pylist() == [
        "STRASSE",
        "\u0421\u041b\u041e\u0412\u041e",
        None,
    ]
    assert lower(pa.array(["\u039f\u03a3", "\u0130"])).to_pylist() == ["\u03bf\u03c2", "i\u0307"]


def test_seconds_before_1970_are_those_of_spark() -> None:
    """UnixTimestamp divides microseconds as Java does."""
    for unit, per in (("ms", 1000), ("us", 1_000_000)):
        kind = pa.timestamp(unit, tz="UTC")
        function, _ = function_of("unix_timestamp", {}, kind, None)
        values = pa.array([-per // 2, -per, -per - 1, per + 1, None], pa.int64()).cast(kind)
        assert function(values).to_pylist() == [0, -1, -1, 1, None]
