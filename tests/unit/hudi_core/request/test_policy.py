"""Policies as values: quiet hours, options, requests, which table has which."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from hudi_core.errors import ConfigError
from hudi_core.request.policy import (
    ALL_SERVICES,
    DEFAULT_SERVICES,
    Policy,
    QuietHours,
    ServicePolicy,
)
from hudi_core.request.services import SERVICES
from hudi_core.verbs.batch import requests_of_policy
from hudi_core.verbs.request import parse_request


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("hours", "moment", "holds"),
    [
        ("08:00-18:00", "2026-11-25T08:00", True),
        ("08:00-18:00", "2026-11-25T18:00", False),
        ("22:00-06:00", "2026-11-25T23:30", True),
        ("22:00-06:00", "2026-11-25T05:59", True),
        ("22:00-06:00", "2026-11-25T12:00", False),
        ("08:00-18:00 Europe/Berlin", "2026-11-25T07:30", True),
        ("08:00-18:00 Europe/Berlin", "2026-11-25T17:30", False),
        ("08:00-18:00 UTC sat,sun", "2026-11-25T12:00", False),
        ("08:00-18:00 wed", "2026-11-25T12:00", True),
        # Hours that begin on a Saturday end on the Sunday.
        ("22:00-06:00 sat", "2026-11-29T05:00", True),
        ("22:00-06:00 sat", "2026-11-28T05:00", False),
    ],
)
def test_quiet_hours(hours: str, moment: str, holds: bool) -> None:
    assert QuietHours.parse(hours).holds(at(moment)) == holds
    policy = Policy(quiet_hours=(QuietHours.parse(hours),))
    assert policy.quiet(at(moment)) == (hours if holds else None)


@pytest.mark.parametrize(
    ("hours", "moment", "begin"),
    [
        ("08:00-18:00", "2026-11-25T07:59", "2026-11-25T08:00"),
        ("08:00-18:00", "2026-11-25T08:00", "2026-11-26T08:00"),
        ("22:00-06:00 sat", "2026-11-25T23:00", "2026-11-28T22:00"),
        ("22:00-06:00 wed", "2026-11-25T23:00", "2026-12-02T22:00"),
        # Clocks go back in Berlin on that night.
        ("08:00-18:00 Europe/Berlin", "2026-10-24T12:00", "2026-10-25T07:00"),
        ("08:00-18:00 Europe/Berlin", "2026-10-24T05:00", "2026-10-24T06:00"),
        # 02:30 is twice on that night, and 02:45 of the second time is again one of the hours.
        ("02:30-04:00 Europe/Berlin", "2026-10-25T00:00", "2026-10-25T00:30"),
        ("02:30-04:00 Europe/Berlin", "2026-10-25T00:30", "2026-10-25T01:30"),
        # They end at 02:30, and at 03:00 it is 02:00 again, which is one of the hours.
        ("01:00-02:30 Europe/Berlin", "2026-10-25T00:30", "2026-10-25T01:00"),
        ("01:00-02:30 Europe/Berlin", "2026-10-25T01:00", "2026-10-26T00:00"),
        ("22:00-02:30 Europe/Berlin sat", "2026-10-25T00:40", "2026-10-25T01:00"),
        ("22:00-02:30 Europe/Berlin sun", "2026-10-25T00:40", "2026-10-25T21:00"),
        ("01:00-03:30 Europe/Berlin", "2026-10-24T23:00", "2026-10-26T00:00"),
        # At midnight it is 23:00 again.
        ("20:00-23:30 America/Asuncion", "2024-03-24T02:40", "2024-03-24T03:00"),
        # There is no 02:30 on that night: behind 01:59 comes 03:00, which is one of the hours.
        ("02:30-04:00 Europe/Berlin", "2026-03-28T12:00", "2026-03-29T01:00"),
        ("02:30-04:00 Europe/Berlin", "2026-03-29T01:00", "2026-03-30T00:30"),
        ("02:00-04:00 Europe/Berlin", "2026-03-28T12:00", "2026-03-29T01:00"),
        ("03:00-04:00 Europe/Berlin", "2026-03-28T12:00", "2026-03-29T01:00"),
    ],
)
def test_when_quiet_hours_begin(hours: str, moment: str, begin: str) -> None:
    assert QuietHours.parse(hours).next_begin(at(moment)) == at(begin)
    assert Policy(quiet_hours=(QuietHours.parse(hours),)).quiet_from(at(moment)) == at(begin).timestamp()
    assert QuietHours.parse(hours).holds(at(begin))
    assert not QuietHours.parse(hours).holds(at(begin) - timedelta(minutes=1))


@pytest.mark.parametrize(
    ("since", "now", "overdue"),
    [
        ("2026-11-25T05:00", "2026-11-25T07:00", False),
        ("2026-11-25T05:00", "2026-11-25T07:01", True),
        # An hour before the quiet hours, and an hour behind them.
        ("2026-11-25T07:00", "2026-11-25T12:00", False),
        ("2026-11-25T07:00", "2026-11-25T19:00", False),
        ("2026-11-25T07:00", "2026-11-25T19:02", True),
        ("2026-11-25T09:00", "2026-11-25T17:00", False),
        # Weeks ago, and reported in quiet hours, too.
        ("2026-10-25T09:00", "2026-11-25T12:00", True),
    ],
)
def test_what_waits_in_quiet_hours_is_not_overdue_by_them(since: str, now: str, overdue: bool) -> None:
    policy = Policy(quiet_hours=(QuietHours.parse("08:00-18:00"),), pending_age=2 * 3600)
    age = int((at(now) - at(since)).total_seconds())
    assert policy.is_overdue(age, at(now)) == overdue
    assert Policy(pending_age=2 * 3600).is_overdue(age, at(now)) == (age > 2 * 3600)
    assert not Policy(quiet_hours=policy.quiet_hours).is_overdue(age, at(now))


def test_where_every_hour_is_quiet_nothing_is_overdue() -> None:
    hours = tuple(map(QuietHours.parse, ("00:00-12:00", "12:00-00:00")))
    assert not Policy(quiet_hours=hours, pending_age=60).is_overdue(10**9, at("2026-11-25T12:00"))


def test_the_next_of_several_quiet_hours_counts() -> None:
    hours = tuple(map(QuietHours.parse, ("08:00-18:00 sat", "22:00-23:00")))
    assert Policy(quiet_hours=hours).quiet_from(at("2026-11-25T12:00")) == at("2026-11-25T22:00").timestamp()
    assert Policy().quiet_from(at("2026-11-25T12:00")) is None


@pytest.mark.parametrize(
    "text",
    ["", "8-18", "25:00-26:00", "08:00-18:00 Nowhere/Land", "08:00-18:00 America", "08:00-18:00 someday", "08:00"],
)
def test_no_hours(text: str) -> None:
    with pytest.raises(ValueError, match="are no hours such as"):
        QuietHours.parse(text)


def test_hours_that_end_where_they_begin_are_a_day() -> None:
    """From midnight, or on days by name; else no hour would be left."""
    assert QuietHours.parse("00:00-00:00").holds(at("2026-11-25T12:00"))
    saturday = QuietHours.parse("08:00-08:00 sat")
    assert [saturday.holds(at(f"2026-11-{text}")) for text in ("28T07:59", "28T08:00", "29T07:59", "29T08:00")] == [
        False,
        True,
        True,
        False,
    ]
    with pytest.raises(ValueError, match="end where they begin"):
        QuietHours.parse("08:00-08:00 Europe/Berlin")


def test_requests_have_what_the_policy_says() -> None:
    compaction = ServicePolicy("compaction", {"commits": "3"}, {"a": "own", "b": "own"})
    policy = Policy((compaction, ServicePolicy("clean")), {"a": "all", "c": "all"}, minutes=5, size=1000)
    first, second = requests_of_policy(policy, "/t", owner="me", options={"c": "given"})
    assert (first.service, first.when, first.max_minutes) == ("compaction", {"commits": "3"}, 5)
    assert first.options == {"a": "own", "b": "own", "c": "given", "airflow_hudi.plan.max.bytes": "1000"}
    assert (first.schedule, first.all_pending, first.owner, second.owner) == (True, True, "me", "me")
    assert second.options == {"a": "all", "c": "given", "airflow_hudi.plan.max.bytes": "1000"}
    assert parse_request(first.to_json()) == first


def test_a_condition_that_is_wrong_is_refused_at_once() -> None:
    with pytest.raises(ConfigError, match="clean has no condition"):
        ServicePolicy("clean", {"bytes": "1"})


def test_services_without_a_policy() -> None:
    assert tuple(item.service for item in Policy().services) == DEFAULT_SERVICES
    assert {item.service for item in ALL_SERVICES.services} == SERVICES.keys()
    assert tuple(item.service for item in ALL_SERVICES.services)[: len(DEFAULT_SERVICES)] == DEFAULT_SERVICES
