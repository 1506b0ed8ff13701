"""That nothing is pending for too long, and the form in which conditions reach the triggerer."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from airflow_hudi.conditions.condition import Condition, InstantCondition, NoPendingCondition, seconds_in
from airflow_hudi.conditions.writes import CommitCondition, PartitionCondition
from airflow_hudi.triggers.wait import AwaitedSource, condition_of
from hudi_core.errors import ConfigError
from tests.support.looks import look_at

OLD, YOUNG = "20260102100000000", "20260102115900000"
"""Two hours and a minute before NOON."""
DONE = "20260101000000000.commit"


def test_nothing_pending() -> None:
    for condition in (NoPendingCondition(), NoPendingCondition(60), NoPendingCondition(60, "clean")):
        assert condition.check(look_at([DONE])) == {"pending": 0, "oldest": None}


@pytest.mark.parametrize("layout", [1, 2])
def test_what_is_pending_for_too_long(layout: int) -> None:
    look = look_at([f"{OLD}.compaction.requested", f"{YOUNG}.clean.requested", f"{YOUNG}.clean.inflight"], layout)
    assert NoPendingCondition(7199).check(look) is None
    oldest = {"instant": OLD, "action": "compaction", "state": "requested", "age_seconds": 7200}
    assert NoPendingCondition(7200).check(look) == {"pending": 2, "oldest": oldest}
    assert NoPendingCondition(0).check(look) is None


def test_of_one_action() -> None:
    look = look_at([f"{OLD}.compaction.requested", f"{YOUNG}.clean.requested"])
    oldest = {"instant": YOUNG, "action": "clean", "state": "requested", "age_seconds": 60}
    assert NoPendingCondition(3600, "clean").check(look) == {"pending": 1, "oldest": oldest}
    assert NoPendingCondition(3600, "compaction").check(look) is None
    assert NoPendingCondition(0, "rollback").check(look) == {"pending": 0, "oldest": None}


def test_with_no_age_even_what_a_clock_ahead_requested_is_pending() -> None:
    assert NoPendingCondition().check(look_at(["20260102120005000.clean.requested"])) is None


def test_the_age_is_by_the_timelines_zone() -> None:
    look = look_at(["20260102200000000.clean.requested"], zone="Asia/Tokyo")
    assert NoPendingCondition(3599).check(look) is None
    assert NoPendingCondition(3600).check(look) is not None


def test_what_a_wait_says() -> None:
    look = look_at([f"{OLD}.compaction.requested"])
    condition = NoPendingCondition(60, "compaction")
    assert condition.unmet() == "a pending compaction for longer than 60 s"
    assert condition.waiting(look) == (
        f"/nowhere shows {condition.unmet()}: compaction {OLD} is requested for 7200 s, claimed by no process now"
    )
    assert NoPendingCondition().unmet() == "a pending instant"


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        (90, 90),
        (90.5, 91),
        (0.5, 1),
        ("90", 90),
        ("90s", 90),
        (" 2h ", 7200),
        ("1d", 86400),
        (timedelta(minutes=3), 180),
        (0, 0),
    ],
)
def test_ages(given: float | str | timedelta, seconds: int) -> None:
    assert seconds_in(given) == seconds


@pytest.mark.parametrize("given", ["soon", "", "-5", "2 weeks"])
def test_what_is_no_age_is_refused(given: str) -> None:
    with pytest.raises(ConfigError, match="is no duration"):
        seconds_in(given)


@pytest.mark.parametrize("given", [timedelta(seconds=-1), -5, -0.5, True, False, float("nan"), float("inf")])
def test_a_number_that_is_no_age_is_refused(given: float | timedelta) -> None:
    with pytest.raises(ConfigError, match="give seconds"):
        seconds_in(given)


def test_a_negative_age_is_refused() -> None:
    with pytest.raises(ConfigError):
        NoPendingCondition(-1)


@pytest.mark.parametrize(
    ("kind", "condition"),
    [
        ("instant", InstantCondition("clean", "completed", "002", "001", "2026-01-02")),
        ("no_pending", NoPendingCondition(60, "clean")),
        ("commit", CommitCondition("2026-01-02")),
        ("partition", PartitionCondition(["day=1", "day=2"], "any", "2026-01-02")),
        ("source", AwaitedSource("s3://lake/rows", "_SUCCESS", None)),
    ],
)
def test_conditions_travel_as_json(kind: str, condition: Condition) -> None:
    found = condition.to_json()
    assert found["kind"] == kind
    again = condition_of(json.loads(json.dumps(found)))
    assert type(again) is type(condition)
    assert again.to_json() == found
    assert (again.unmet(), again.action) == (condition.unmet(), condition.action)


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ({}, "unknown condition None"),
        ({"kind": "weather"}, "unknown condition 'weather'"),
        ({"kind": "commit", "until": 1}, "has other arguments"),
        ({"kind": "partition", "partitions": []}, "no partition"),
        ({"kind": "instant", "action": "clean", "state": "done"}, "unknown instant state"),
    ],
)
def test_other_json_is_refused(found: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        condition_of(found)
