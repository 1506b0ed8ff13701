from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.errors import TimelineError
from hudi_core.timeline.instant import KNOWN_ACTIONS, Instant, State, completed_action
from hudi_core.timeline.naming import legacy_name, timeline_of

T = "20261120214905004"
times = st.from_regex(r"\A[0-9]{14,23}\Z")


@given(times, st.sampled_from(sorted(KNOWN_ACTIONS)), st.sampled_from(State))
def test_names_round_trip(time: str, action: str, state: State) -> None:
    expected = completed_action(action) if state is State.COMPLETED else action
    assert list(timeline_of([legacy_name(time, action, state)])) == [Instant(time, expected, state)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (f"{T}.inflight", Instant(T, "commit", State.INFLIGHT)),
        (f"{T}.commit.requested", Instant(T, "commit", State.REQUESTED)),
        (f"{T}.compaction.inflight", Instant(T, "compaction", State.INFLIGHT)),
        (f"{T}006.rollback", Instant(f"{T}006", "rollback", State.COMPLETED)),
        (f"{T}.newthing.requested", Instant(T, "newthing", State.REQUESTED)),
    ],
)
def test_parse(name: str, expected: Instant) -> None:
    assert list(timeline_of([name])) == [expected]


@pytest.mark.parametrize(
    "name",
    [
        "hoodie.properties",
        f".{T}.commit.crc",
        f"{T}",
        f"{T}.",
        f"{T}.requested",
        f"{T}.inflight.inflight",
        f"{T}.commit.done",
        f"{T}_{T}.commit",
        f"x{T}.commit",
        f"{T}.commit\n",
        "\u0661\u0662.commit",
        f"{'1' * 41}.commit",
    ],
)
def test_foreign_names_are_no_instants(name: str) -> None:
    assert len(timeline_of([name])) == 0


@pytest.mark.parametrize("time", ["", "../1", "1/2", "12 "])
def test_malformed_times_make_no_name(time: str) -> None:
    with pytest.raises(TimelineError, match="no timeline file name"):
        legacy_name(time, "commit", State.COMPLETED)


def test_only_the_highest_state_counts() -> None:
    names = [f"{T}.compaction.requested", f"{T}.commit", f"{T}.compaction.inflight"]
    (instant,) = timeline_of(names)
    assert instant == Instant(T, "commit", State.COMPLETED)
    assert instant.pending_action == "compaction"


def test_a_savepoint_stands_beside_the_commit_that_it_saves() -> None:
    names = [f"{T}.savepoint", f"{T}.savepoint.inflight", f"{T}.commit"]
    assert [(instant.action, instant.state) for instant in timeline_of(names)] == [
        ("commit", State.COMPLETED),
        ("savepoint", State.COMPLETED),
    ]


def test_log_compaction_and_its_delta_commit_are_one() -> None:
    assert [instant.action for instant in timeline_of([f"{T}.logcompaction.requested", f"{T}.deltacommit"])] == [
        "deltacommit"
    ]


def test_an_unknown_completed_name_counts_only_beside_its_pending_file() -> None:
    assert len(timeline_of([f"{T}.tmp", f"{T}.bak"])) == 0
    (instant,) = timeline_of([f"{T}.newthing", f"{T}.newthing.requested"])
    assert instant == Instant(T, "newthing", State.COMPLETED)
