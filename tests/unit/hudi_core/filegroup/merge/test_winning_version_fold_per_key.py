"""The shortcuts of the fold against the same rules taken event by event."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hudi_core.filegroup.merge.table_policy import MergePolicy, Rules
from hudi_core.filegroup.merge.winning_version import (
    Events,
    Folded,
    Kind,
    Step,
    event_time_winners,
    fold_in_rounds,
    last_events,
    log_step,
    winners,
)

EVENTS = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from(list(Kind)), st.integers(-1, 3)), min_size=1, max_size=24
)


def events_of(found: list[tuple[int, Kind, int]]) -> Events:
    keys = sorted({key for key, _, _ in found})
    codes = np.array([keys.index(key) for key, _, _ in found], dtype=np.int32)
    kinds = np.array([kind for _, kind, _ in found], dtype=np.uint8)
    ranks = np.array([rank for _, _, rank in found], dtype=np.int64)
    return Events(codes, kinds, ranks, np.arange(len(found)), np.zeros(len(found), dtype=np.bool_), len(keys))


def never(
    old: NDArray[np.int64], new: NDArray[np.int64], wins: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """No row lacks a column, so the one that wins is left as it is."""
    return np.where(wins, new, old), np.zeros(len(old), dtype=np.uint8)


def by_rounds(rules: Rules, events: Events, *, deletes_win: bool = False) -> Folded:
    policy = MergePolicy(("key",), ("ordering",), rules)

    def step(old: NDArray[np.uint8], new: NDArray[np.uint8], above: NDArray[np.bool_]) -> Step:
        return log_step(policy, old, new, above, deletes_win=deletes_win)

    return fold_in_rounds(events, step, never)


@settings(max_examples=300, deadline=None)
@given(EVENTS)
def test_rule_of_0_15(found: list[tuple[int, Kind, int]]) -> None:
    events = events_of(found)
    policy = MergePolicy(("key",), ("ordering",), Rules.PAYLOAD_0_15)
    chosen, folded = winners(events, policy, never), by_rounds(Rules.PAYLOAD_0_15, events)
    assert events.kinds[chosen].tolist() == folded.kinds.tolist()
    rows = folded.kinds <= Kind.FLAGGED
    assert chosen[rows].tolist() == folded.rows[rows].tolist()


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(EVENTS, st.booleans())
def test_event_time(found: list[tuple[int, Kind, int]], deletes_win: bool) -> None:
    events = events_of(found)
    chosen, folded = (
        event_time_winners(events, deletes_win=deletes_win),
        by_rounds(Rules.EVENT_TIME, events, deletes_win=deletes_win),
    )
    assert events.kinds[chosen].tolist() == folded.kinds.tolist()
    compared = folded.kinds < Kind.NATURAL_DELETE
    assert chosen[compared].tolist() == folded.ordered_by[compared].tolist()


@given(EVENTS)
def test_commit_time(found: list[tuple[int, Kind, int]]) -> None:
    events = events_of(found)
    assert last_events(events).tolist() == by_rounds(Rules.COMMIT_TIME, events).rows.tolist()


def test_ordering_values_at_the_edge_of_64_bits() -> None:
    lowest = np.iinfo(np.int64).min
    events = Events(
        np.zeros(2, dtype=np.int32),
        np.zeros(2, dtype=np.uint8),
        np.array([lowest, lowest]),
        np.arange(2),
        np.zeros(2, dtype=np.bool_),
        1,
    )
    assert winners(events, MergePolicy(("key",), ("ordering",)), never).tolist() == [1]
    assert event_time_winners(events, deletes_win=False).tolist() == [1]
