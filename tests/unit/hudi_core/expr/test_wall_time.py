from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from hudi_core.errors import ConfigError
from hudi_core.expr.wall_time import WallTime, parse_date, parse_timestamp, strftime_parts, zone_of

AT = dt.datetime(2026, 7, 1, 23, 30, 5)


def test_wall_time_is_that_of_the_zone() -> None:
    array = pa.array([AT, None], pa.timestamp("us", tz="UTC"))
    wall = WallTime.of(array, "Europe/Berlin")
    assert wall.date().to_pylist() == [dt.date(2026, 7, 2), None]
    assert wall.format("yyyy-MM-dd HH:mm:ss").to_pylist() == ["2026-07-02 01:30:05", None]
    assert wall.year().to_pylist() == [2026, None]


def test_times_without_a_zone_are_as_they_are() -> None:
    assert WallTime.of(pa.array([AT], pa.timestamp("ns")), "Europe/Berlin").date().to_pylist() == [AT.date()]
    assert WallTime.of(pa.array([AT.date()], pa.date32()), "Asia/Tokyo").date().to_pylist() == [AT.date()]
    seconds = WallTime.of_unix_seconds(pa.array([-1], pa.int32()), "UTC")
    assert seconds.format("yyyy-MM-dd HH:mm:ss").to_pylist() == ["1969-12-31 23:59:59"]


@pytest.mark.parametrize(
    ("year", "text"), [(1600, "1600"), (10_000, "+10000"), (250_000, "+250000"), (0, "0001"), (-400, "0401")]
)
def test_years_that_the_calendar_of_arrow_does_not_hold(year: int, text: str) -> None:
    cycles, rest = divmod(year - 2000, 400)
    start = dt.datetime(2000 + rest, 1, 1, tzinfo=dt.timezone.utc).timestamp()
    wall = WallTime.of_unix_seconds(pa.array([int(start) + cycles * 146_097 * 86_400], pa.int64()), "UTC")
    assert wall.year().to_pylist() == [year]
    assert wall.format("yyyy/MM").to_pylist() == [f"{text}/01"]


def test_patterns_of_java() -> None:
    assert "".join(strftime_parts("yyyy-MM-dd'T'HH''mm%")) == "%Y-%m-%dT%H'%M%%"
    for pattern in ("yy", "EEE", "yyyy'"):
        with pytest.raises(ConfigError, match="is not supported from"):
            strftime_parts(pattern)


def test_other_types() -> None:
    with pytest.raises(ConfigError, match="computed of string"):
        WallTime.of(pa.array(["2026"]), "UTC")


UTC = dt.timezone.utc


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026", dt.date(2026, 1, 1)),
        ("2026-2", dt.date(2026, 2, 1)),
        (" 2026-02-03 ", dt.date(2026, 2, 3)),
        ("2026-02-03T23:59", dt.date(2026, 2, 3)),
    ],
)
def test_dates(text: str, expected: dt.date) -> None:
    assert parse_date(text) == expected


@pytest.mark.parametrize("text", ["", "26-02-03", "2026-13", "2026-02-30", "today"])
def test_no_dates(text: str) -> None:
    with pytest.raises(ConfigError, match="is no date"):
        parse_date(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-2-3", dt.datetime(2026, 2, 3)),
        ("2026-02-03 4:5", dt.datetime(2026, 2, 3, 4, 5)),
        ("2026-02-03T04:05:06.123456789", dt.datetime(2026, 2, 3, 4, 5, 6, 123456)),
        ("2026-02-03 04:05:06.5 UTC", dt.datetime(2026, 2, 3, 4, 5, 6, 500000, UTC)),
        ("2026-02-03 04:05:06+02:00", dt.datetime(2026, 2, 3, 2, 5, 6, tzinfo=UTC)),
    ],
)
def test_timestamps(text: str, expected: dt.datetime) -> None:
    assert parse_timestamp(text) == expected


@pytest.mark.parametrize("text", ["2026-02", "2026-02-03 24:00", "2026-02-03 04:05:06 Nowhere", "noon"])
def test_no_timestamps(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_timestamp(text)


@pytest.mark.parametrize(
    ("name", "hours"), [("Z", 0), ("+02:00", 2), ("GMT-3", -3), ("UTC+0530", 5.5), ("Europe/Berlin", 1)]
)
def test_zones(name: str, hours: float) -> None:
    assert dt.datetime(2026, 2, 3, tzinfo=zone_of(name)).utcoffset() == dt.timedelta(hours=hours)


@pytest.mark.parametrize("name", ["+19:00", "Europe/Atlantis", "../zone", ""])
def test_no_zones(name: str) -> None:
    with pytest.raises(ConfigError, match="is no time zone"):
        zone_of(name)
