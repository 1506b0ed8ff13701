"""Which instants completed after a moment, in both layouts and in the timeline's zone."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from airflow_hudi.conditions.condition import bound_of, is_later, later_shown
from hudi_core.errors import ConfigError
from tests.support.looks import look_at

SECOND = datetime(2026, 1, 2, tzinfo=timezone.utc)


@pytest.mark.parametrize("given", [None, "", "  "])
def test_nothing_is_no_bound(given: str | None) -> None:
    bound, look = bound_of(given), look_at(["001.commit"])
    assert (bound, later_shown(bound), is_later(look, look.timeline.instants[0], bound)) == (None, "", True)


@pytest.mark.parametrize("given", ["yesterday", "2026-13-01", "2026-01-02 25:00:00", "1e9", "٢٠٢٦"])
def test_what_is_no_time_is_refused(given: str) -> None:
    with pytest.raises(ConfigError, match="neither a date nor an instant time"):
        bound_of(given)


@pytest.mark.parametrize(
    "given",
    [
        SECOND,
        SECOND.astimezone(timezone(timedelta(hours=5))),
        SECOND.replace(tzinfo=None),
        "2026-01-02",
        "2026-01-02T00:00:00Z",
        "2026-01-02 00:00:00+00:00",
        "2026-01-02T01:00:00+01:00",
        " 2026-01-02 ",
    ],
)
@pytest.mark.parametrize(("zone", "midnight"), [("UTC", "20260102000000"), ("Asia/Tokyo", "20260102090000")])
def test_a_date_is_a_moment_in_every_zone(given: str | datetime, zone: str, midnight: str) -> None:
    """Without an offset it is in UTC. What completed at the moment itself is not later."""
    bound = bound_of(given)
    look = look_at([f"20260101000000000_{midnight}000.commit"], 2, zone=zone)
    later = look_at([f"20260101000000000_{midnight}001.commit"], 2, zone=zone)
    assert not is_later(look, look.timeline.instants[0], bound)
    assert is_later(later, later.timeline.instants[0], bound)


def test_a_moment_that_the_zone_of_the_timeline_does_not_have() -> None:
    look = look_at(["20260101000000000_20260102000000000.commit"], 2, zone="Asia/Tokyo")
    bound = bound_of("9999-12-31T23:00:00Z")
    with pytest.raises(ConfigError, match="outside of the years 1 to 9999"):
        is_later(look, look.timeline.instants[0], bound)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
def test_layout_1_has_the_time_of_the_completed_file(zone: str) -> None:
    seconds = SECOND.timestamp()
    look = look_at(
        {
            "20260101000000000.commit.requested": 0.0,
            "20260101000000000.inflight": 0.0,
            "20260101000000000.commit": seconds,
        },
        zone=zone,
    )
    (instant,) = look.timeline
    assert is_later(look, instant, "2026-01-01T23:59:59Z")
    assert not is_later(look, instant, "2026-01-02")


def test_in_a_store_of_whole_seconds_writes_keep_their_order() -> None:
    second = SECOND.timestamp()
    look = look_at({"20260101235959900.commit": second, "20260102000000400.commit": second})
    assert [look.completed_at(item) for item in look.timeline] == ["20260102000000000", "20260102000000400"]


def test_a_file_that_an_upgrade_did_not_rename_has_its_own_time() -> None:
    look = look_at({"20260101000000000.commit": SECOND.timestamp()}, 2, zone="Asia/Tokyo")
    (instant,) = look.timeline
    assert look.completed_at(instant) == "20260102090000000"


def test_digits_are_a_time_of_the_timeline() -> None:
    look = look_at(["20260101000000000_20260102000000000.commit"], 2, zone="Asia/Tokyo")
    (instant,) = look.timeline
    assert is_later(look, instant, "20260101235959999")
    assert not is_later(look, instant, "20260102000000000")
