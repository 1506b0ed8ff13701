from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.errors import ConfigError, TimelineError
from hudi_core.timeline.instant_time import (
    earlier,
    format_instant,
    new_instant,
    of_epoch_millis,
    of_epoch_seconds,
    parse_instant,
    resolve_as_of,
    zone_of,
    zone_text,
)
from tests.support.process_zone import in_zone

_moments = st.datetimes(datetime(1970, 1, 2), datetime(9998, 1, 1), timezones=st.just(timezone.utc))
NOW = datetime(2026, 11, 20, 21, 49, 5, 4999, tzinfo=timezone.utc)


@given(_moments)
def test_instants_round_trip_to_the_millisecond(moment: datetime) -> None:
    text = format_instant(moment)
    assert len(text) == 17
    assert parse_instant(text, "UTC") == moment - timedelta(microseconds=moment.microsecond % 1000)


def test_forms_of_an_instant() -> None:
    assert format_instant(NOW) == "20261120214905004"
    assert parse_instant("20261120214905", "UTC") == NOW.replace(microsecond=999000)
    assert parse_instant("20261120214905004006", "UTC") == NOW.replace(microsecond=4000)
    assert parse_instant("20261120214905004").tzinfo is not None


@pytest.mark.parametrize("text", ["", "2026", "00000000000000010", "2026112021490500x", "20269920214905004"])
def test_what_is_no_date(text: str) -> None:
    with pytest.raises(TimelineError):
        parse_instant(text, "UTC")


@given(
    st.lists(
        _moments.map(format_instant)
        | _moments.map(lambda moment: format_instant(moment) + "006")
        | _moments.map(lambda m: format_instant(m)[:14])
    )
)
def test_a_new_instant_is_larger_than_all(after: list[str]) -> None:
    instant = new_instant(after, "UTC", clock=lambda: NOW)
    assert len(instant) == 17
    assert all(instant > other for other in after)
    if all(other < "20261120214905004" for other in after):
        assert instant == "20261120214905004"


def test_a_clock_behind_the_timeline_counts_on_from_it() -> None:
    assert new_instant(["20261231235959999"], "UTC", clock=lambda: NOW) == "20270101000000000"
    assert new_instant(["20261120214905004001"], "UTC", clock=lambda: NOW) == "20261120214905005"
    with pytest.raises(TimelineError, match="ahead of the clock"):
        new_instant(["99999999999999999"], "UTC", clock=lambda: NOW)


def test_the_zone_is_the_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    local = new_instant([], "local", clock=lambda: NOW)
    assert local == format_instant(NOW.astimezone())
    assert new_instant([], "Asia/Tokyo", clock=lambda: NOW) == "20261121064905004"
    assert parse_instant("20261121064905004", "Asia/Tokyo") == NOW.replace(microsecond=4000)


@pytest.fixture(params=["UTC", "America/Los_Angeles", "Asia/Tokyo"])
def here(request: pytest.FixtureRequest) -> Iterator[str]:
    """The zone of this process, which LOCAL means."""
    with in_zone(request.param):
        yield request.param


ENDS = ["00010101000000000", "00010101000000", "99991231235959", "99991231235959999", "99991231235959999001"]


@pytest.mark.parametrize("text", ENDS)
def test_the_ends_of_the_calendar_are_a_moment_or_no_date(here: str, text: str) -> None:
    try:
        moment = parse_instant(text)
    except TimelineError as error:
        assert f"{text!r} is no date in the time zone LOCAL" in error.message  # noqa: PT017 (a moment will do as well)
    else:
        assert format_instant(moment)[:14] == text[:14]


@pytest.mark.parametrize("text", ENDS)
def test_an_instant_is_one_in_every_zone(here: str, text: str) -> None:
    assert resolve_as_of(text) == resolve_as_of(text, "Asia/Tokyo") == text


@pytest.mark.parametrize("name", ["", "Nowhere/Town", "../etc/passwd", "/etc/passwd", "Europe", "a" * 5000, "x\x00y"])
def test_what_is_no_zone(name: str) -> None:
    with pytest.raises(ConfigError, match="no time zone"):
        zone_of(name)


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-11-20", "20261120000000000"),
        ("2026-11-20 22:33:44", "20261120223344999"),
        ("2026-11-20 22:33:44.123", "20261120223344123"),
        ("2026-11-20T22:33:44.5", "20261120223344500"),
        (" 20261120223344 ", "20261120223344"),
        ("20261120223344123", "20261120223344123"),
        ("20261120223344123001", "20261120223344123001"),
        ("00000000000000000", "00000000000000000"),
        ("00000000000001", "00000000000001"),
        ("2026-11-20T22:33:44.123456Z", "20261121073344123"),
        ("2026-11-20 22:33:44+01:00", "20261121063344999"),
        ("2026-11-20+09:00", "20261120000000000"),
    ],
)
def test_what_a_time_travel_text_means(text: str, instant: str) -> None:
    assert resolve_as_of(text, "Asia/Tokyo") == instant


NO_INSTANT = [
    "",
    "now",
    "2026",
    "2026-13-01",
    "2026-02-30",
    "2026-11-20 25:00:00",
    "20269920214905004",
    "2026-11-20 22:33",
    "0001-01-01+14:00",
]


@pytest.mark.parametrize("text", NO_INSTANT)
def test_what_means_no_instant(text: str) -> None:
    with pytest.raises(ConfigError, match=r"instant|date"):
        resolve_as_of(text, "Asia/Tokyo")


def test_messages_name_the_zone() -> None:
    with pytest.raises(ConfigError, match="time zone Asia/Tokyo"):
        resolve_as_of("20269920214905004", "Asia/Tokyo")
    with pytest.raises(ConfigError, match=r"LOCAL \(here "):
        resolve_as_of("2026-99-20")
    assert zone_text("utc") == "UTC"


@given(_moments)
def test_dates_and_their_instants_agree(moment: datetime) -> None:
    text = f"{moment.replace(tzinfo=None).isoformat(sep=' ', timespec='milliseconds')}"
    assert resolve_as_of(text, "UTC") == format_instant(moment)


def test_the_default_clock_is_the_systems() -> None:
    before = format_instant(datetime.now(timezone.utc))
    assert before <= new_instant([], "UTC") <= format_instant(datetime.now(timezone.utc))


@given(_moments)
def test_milliseconds_are_exact_in_every_year(moment: datetime) -> None:
    whole = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    millis = (whole - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(milliseconds=1)
    assert of_epoch_millis(millis, "UTC") == format_instant(whole)


def test_a_float_of_seconds_is_not() -> None:
    assert of_epoch_millis(253402300799999, "UTC") == "99991231235959999"
    assert any(
        of_epoch_seconds(millis / 1000, "UTC") != of_epoch_millis(millis, "UTC")
        for millis in range(8590000000000, 8590000001000)
    )


@given(_moments, st.integers(1, 10_000))
def test_an_earlier_time_is_smaller_as_text(moment: datetime, millis: int) -> None:
    text = format_instant(moment)
    assert earlier(text, millis) < text
    assert parse_instant(text, "UTC") - parse_instant(earlier(text, millis), "UTC") == timedelta(milliseconds=millis)


def test_an_earlier_time_of_other_forms() -> None:
    assert earlier("20240101000000", 1) == "20231231235959999"
    assert earlier("20261120214905004006", 1) == "20261120214905003"
    with pytest.raises(TimelineError, match="no date"):
        earlier("00000000000000010", 1)
