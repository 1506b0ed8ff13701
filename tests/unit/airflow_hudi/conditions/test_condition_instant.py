"""Which instants a service, a sensor and a trigger take for theirs, on timelines of both layouts."""

from __future__ import annotations

import pytest

from airflow_hudi.conditions.condition import (
    InstantCondition,
    first_planned,
    mark_before_planning,
    newest_time,
    of_action,
    oldest_pending,
)
from hudi_core.errors import ConfigError
from hudi_core.timeline.naming import timeline_of
from hudi_core.timeline.timeline import Timeline
from tests.support.looks import look_at


def timeline(layout: int, *names: str) -> Timeline:
    return timeline_of(dict.fromkeys(names, 0.0), layout, dict.fromkeys(names, 0.0))


PENDING = ("103.clean.requested", "104.rollback.requested", "104.rollback.inflight", "105.clean.requested")
LAYOUTS = {
    1: timeline(1, "101.commit", "102.clean", *PENDING),
    2: timeline(2, "101_111.commit", "102_112.clean", *PENDING),
}


@pytest.mark.parametrize("layout", [1, 2])
def test_cleans_and_rollbacks_of_both_layouts(layout: int) -> None:
    found = LAYOUTS[layout]
    assert [item.requested_time for item in of_action(found, "clean")] == ["102", "103", "105"]
    clean, rollback = oldest_pending(found, "clean"), oldest_pending(found, "rollback")
    assert clean is not None
    assert rollback is not None
    assert (clean.requested_time, rollback.requested_time, rollback.state.value) == ("103", "104", "inflight")
    later = first_planned(found, "clean", "103")
    assert later is not None
    assert later.requested_time == "105"
    assert first_planned(found, "clean", "105") is None
    assert oldest_pending(found, "restore") is None
    for action, time in (("clean", "103"), ("rollback", "104")):
        seen = InstantCondition(action).find(look_at(found))
        assert seen is not None
        assert seen.requested_time == time


@pytest.mark.parametrize("layout", [1, 2])
def test_an_indexing_is_planned_before_the_latest_write(layout: int) -> None:
    names = ("099.indexing.requested", "101.commit") if layout == 1 else ("099.indexing.requested", "101_111.commit")
    mark = mark_before_planning(timeline(layout, *names), "indexing")
    assert first_planned(timeline(layout, *names), "indexing", mark) is None
    planned = first_planned(timeline(layout, *names, "098.indexing.requested"), "indexing", mark)
    assert planned is not None
    assert planned.requested_time == "098"
    first = mark_before_planning(timeline(layout, names[1]), "indexing")
    assert first_planned(timeline(layout, names[1]), "indexing", first) is None
    assert first_planned(timeline(layout, *names), "indexing", first) is not None
    assert mark_before_planning(LAYOUTS[layout], "clean") == newest_time(LAYOUTS[layout])


def test_rollbacks_of_a_pending_restore_are_its_own() -> None:
    found = timeline(
        1,
        "100.rollback.requested",
        "103.restore.requested",
        "104.rollback.requested",
        "105.rollback",
        "106.clean.requested",
    )
    assert [item.requested_time for item in of_action(found, "rollback")] == ["100", "105"]
    assert [item.requested_time for item in of_action(found, "clean")] == ["106"]
    alone = timeline(1, "103.restore.requested", "104.rollback.requested")
    assert oldest_pending(alone, "rollback") is None
    assert InstantCondition("rollback").find(look_at(alone)) is None
    done = timeline(1, "103.restore", "104.rollback.requested")
    assert InstantCondition("rollback").find(look_at(done)) is not None


def test_a_compaction_answers_to_both_names() -> None:
    found = timeline(1, "101.compaction.requested", "101.commit", "102.compaction.requested")
    assert [item.requested_time for item in of_action(found, "compaction")] == ["101", "102"]
    assert [item.requested_time for item in of_action(found, "commit")] == ["101"]


def test_the_newest_time() -> None:
    assert newest_time(timeline(1)) == "0"
    assert newest_time(LAYOUTS[1]) == "105"
    assert newest_time(LAYOUTS[2]) == "112"
    assert newest_time(LAYOUTS[2], before="104") == "103"
    assert newest_time(LAYOUTS[2], before="101") == "0"


NAMES = [
    "hoodie.properties",
    "001.deltacommit.requested",
    "001.deltacommit.inflight",
    "001.deltacommit",
    "002.compaction.requested",
    "002.compaction.inflight",
    "002.commit",
    "003.compaction.requested",
    "003.compaction.inflight",
    "004.compaction.requested",
    "005.clean.requested",
]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (InstantCondition("compaction"), "003"),
        (InstantCondition("compaction", "requested"), "004"),
        (InstantCondition("compaction", "inflight"), "003"),
        (InstantCondition("compaction", "completed"), "002"),
        (InstantCondition("commit", "completed"), "002"),
        (InstantCondition("deltacommit", "completed"), "001"),
        (InstantCondition("deltacommit", "completed", after="001"), None),
        (InstantCondition("compaction", "pending", instant="004"), "004"),
        (InstantCondition("compaction", "pending", instant="002"), None),
        (InstantCondition("compaction", "pending", after="003"), "004"),
        (InstantCondition("clean"), "005"),
        (InstantCondition("clustering"), None),
    ],
)
def test_finds_the_oldest_instant_that_holds(condition: InstantCondition, expected: str | None) -> None:
    found = condition.find(look_at(NAMES))
    assert (found and found.requested_time) == expected


@pytest.mark.parametrize(
    "arguments",
    [
        ("compaction", "done"),
        ("",),
        ("compaction", "pending", "yesterday"),
        ("compaction", "pending", None, "x"),
        ("compaction", "completed", None, None, "yesterday"),
        ("compaction", "pending", None, None, "2026-01-02"),
    ],
)
def test_refuses_what_can_never_hold(arguments: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError):
        InstantCondition(*arguments)


def test_an_instant_that_completed_after_a_time() -> None:
    """By the completion time, which is later than the instant."""
    found = look_at(["20260101000000000_20260102000000500.clean", "20260103000000000_20260103000009000.clean"], 2)
    for bound, instant in (
        ("2026-01-02", "20260101000000000"),
        ("2026-01-02T01:00:00+01:00", "20260101000000000"),
        ("20260102000000499", "20260101000000000"),
        ("20260102000000500", "20260103000000000"),
        ("2026-01-02 00:00:01Z", "20260103000000000"),
        ("2026-01-04", None),
    ):
        seen = InstantCondition("clean", "completed", completed_after=bound).find(found)
        assert (seen and seen.requested_time) == instant, bound


def test_what_a_wait_says() -> None:
    waits = InstantCondition("clean", "completed", after="001", completed_after="2026-01-02")
    assert waits.unmet() == "no completed clean after 001 completed after 2026-01-02"
    assert waits.waiting(look_at([])) == f"/nowhere shows {waits.unmet()} yet"
    shown = waits.waiting(look_at(["002.clean.requested"]))
    assert shown.endswith(" yet: clean 002 is requested, claimed by no process now")
