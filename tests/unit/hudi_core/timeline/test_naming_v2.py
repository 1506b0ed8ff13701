"""Names of layout 2: requested and completion time, clustering, and what an upgrade left."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.errors import TimelineError
from hudi_core.timeline.instant import KNOWN_ACTIONS, Action, Instant, State
from hudi_core.timeline.naming import naming_for, timeline_of

T = "20261120214905004"
C = "20261120214907001"

file_name = naming_for(2).file_name


@given(
    st.from_regex(r"\d{1,17}", fullmatch=True),
    st.from_regex(r"\d{1,17}", fullmatch=True),
    st.sampled_from(sorted(KNOWN_ACTIONS)),
)
def test_names_and_instants_are_one_to_one(time: str, completion: str, action: str) -> None:
    if not time.isascii() or not completion.isascii():
        with pytest.raises(TimelineError):
            file_name(time, action, State.COMPLETED, completion)
        return
    for state in State:
        if action == Action.SAVEPOINT and state is State.REQUESTED:
            continue
        name = file_name(time, action, state, completion)
        (parsed,) = timeline_of([name], 2)
        assert (parsed.requested_time, parsed.state) == (time, state)
        assert parsed.completion_time == (completion if state is State.COMPLETED else None)
        again = file_name(parsed.requested_time, parsed.action, state, parsed.completion_time)
        assert again == name


@pytest.mark.parametrize(
    ("name", "action", "state"),
    [
        (f"{T}_{C}.commit", "commit", State.COMPLETED),
        (f"{T}.clustering.requested", "clustering", State.REQUESTED),
        (f"{T}.inflight", "commit", State.INFLIGHT),
        (f"{T}.newthing.inflight", "newthing", State.INFLIGHT),
    ],
)
def test_names(name: str, action: str, state: State) -> None:
    assert list(timeline_of([name], 2)) == [Instant(T, action, state, C if state is State.COMPLETED else None)]


FOREIGN = [
    "hoodie.properties",
    "history",
    "",
    ".",
    T,
    f"_{T}.commit",
    f"{T}_.commit",
    f"{T}_{C}",
    f"{T}_{C}.",
    f"{T}_{C}.inflight",
    f"{T}_{C}.requested",
    f"{T}_{C}.commit.inflight",
    f"{T}_{C}.COMMIT",
    f"{T}_{C}_1.commit",
    f"{T}_{C}.commit\n",
    f"٣_{C}.commit",
    f"{'1' * 41}_{C}.commit",
    f".{T}.commit",
]


@pytest.mark.parametrize("name", FOREIGN)
def test_other_files_are_not_the_timelines(name: str) -> None:
    assert len(timeline_of([name], 2)) == 0


@pytest.mark.parametrize("action", ["requested", "inflight", "Commit", "a.b", ""])
def test_a_completed_name_needs_an_action(action: str) -> None:
    with pytest.raises(TimelineError, match="completed instant"):
        file_name(T, action, State.COMPLETED, C)


@pytest.mark.parametrize("completion", [None, "", "x", "1" * 41])
def test_a_completed_name_needs_a_completion_time(completion: str | None) -> None:
    with pytest.raises(TimelineError, match="completed instant"):
        file_name(T, "commit", State.COMPLETED, completion)


def test_clustering_completes_as_replacecommit() -> None:
    names = [f"{T}.clustering.requested", f"{T}.clustering.inflight", f"{T}_{C}.replacecommit"]
    (instant,) = timeline_of(names, 2)
    assert (instant.action, instant.pending_action, instant.completion_time) == ("replacecommit", "clustering", C)
    assert file_name(T, "clustering", State.COMPLETED, C) == names[2]


def test_of_two_completions_the_first_counts() -> None:
    (instant,) = timeline_of([f"{T}_{C}9.commit", f"{T}_{C}.commit", f"{T}.inflight"], 2)
    assert instant.completion_time == C


def test_what_an_upgrade_left_completed_when_its_file_was_modified() -> None:
    (instant,) = timeline_of([f"{T}.commit"], 2, {f"{T}.commit": 0.0}, "UTC")
    assert instant.is_legacy
    assert instant.completed_at == "19700101000000000"
    (unknown,) = timeline_of([f"{T}.commit"], 2)
    assert unknown.completion_time is None
    assert unknown.completed_at == T


def test_an_unknown_completed_name_counts_only_beside_its_pending_file() -> None:
    assert len(timeline_of([f"{T}_{C}.bak"], 2)) == 0
    (instant,) = timeline_of([f"{T}_{C}.newthing", f"{T}.newthing.requested"], 2)
    assert instant == Instant(T, "newthing", State.COMPLETED, C)
