from __future__ import annotations

import datetime as dt

import pytest

from hudi_core.errors import ConfigError
from hudi_core.expr.temporal_text import parse_date, parse_timestamp, zone_of

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
