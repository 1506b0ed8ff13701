from __future__ import annotations

import pytest

from hudi_core.timeline.instant import (
    COMMIT_ACTIONS,
    KNOWN_ACTIONS,
    PLANNED_ACTIONS,
    STATES,
    WRITE_ACTIONS,
    Action,
    Instant,
    State,
    completed_action,
)


def test_states_have_an_order() -> None:
    assert [state.rank for state in STATES] == [0, 1, 2]
    assert sorted(State, key=lambda state: state.rank) == list(STATES)


@pytest.mark.parametrize(
    ("pending", "completed"),
    [
        (Action.COMPACTION, Action.COMMIT),
        (Action.LOG_COMPACTION, Action.DELTA_COMMIT),
        (Action.CLUSTERING, Action.REPLACE_COMMIT),
        (Action.CLEAN, Action.CLEAN),
        ("unknown", "unknown"),
    ],
)
def test_the_name_under_which_an_action_completes(pending: str, completed: str) -> None:
    assert completed_action(pending) == completed


def test_sets_of_actions() -> None:
    assert COMMIT_ACTIONS < WRITE_ACTIONS < KNOWN_ACTIONS
    assert {completed_action(action) for action in WRITE_ACTIONS} == COMMIT_ACTIONS
    assert {Action.COMMIT, Action.DELTA_COMMIT, Action.SAVEPOINT} == KNOWN_ACTIONS - PLANNED_ACTIONS


def test_what_an_instant_says_of_itself() -> None:
    done = Instant("001", Action.COMMIT, State.COMPLETED, "005", Action.COMPACTION)
    assert (done.is_completed, done.pending_action, done.completed_at) == (True, Action.COMPACTION, "005")
    old = Instant("001", Action.COMMIT, State.COMPLETED)
    assert (old.pending_action, old.completed_at) == (Action.COMMIT, "001")
    assert not Instant("001", Action.COMMIT, State.INFLIGHT).is_completed


def test_how_an_instant_was_planned_does_not_tell_it_from_others() -> None:
    assert Instant("001", Action.COMMIT, State.COMPLETED, None, Action.COMPACTION) == Instant(
        "001", Action.COMMIT, State.COMPLETED, is_legacy=True
    )


def test_states_of_one_instant_stand_side_by_side() -> None:
    """HoodieInstant.COMPARATOR: a compaction sorts as the commit that it becomes."""
    order = [
        Instant("001", Action.COMPACTION, State.INFLIGHT),
        Instant("001", Action.COMMIT, State.COMPLETED),
        Instant("001", Action.SAVEPOINT, State.REQUESTED),
        Instant("002", Action.CLEAN, State.REQUESTED),
    ]
    assert sorted({*order}, key=lambda instant: instant.sort_key) == order
