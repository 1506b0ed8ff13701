from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_core.filegroup.fold import Kind, winners
from tests.unit.hudi_core.filegroup.reference import Delete, Event, Record, fold

EVENTS = st.lists(st.tuples(st.integers(0, 4), st.sampled_from(list(Kind)), st.integers(0, 3)), min_size=1, max_size=60)


def chosen(events: list[tuple[int, Kind, int]]) -> dict[int, int]:
    """The winning position by key, from the vectorised fold."""
    codes, keys = [], {}
    for key, _, _ in events:
        codes.append(keys.setdefault(key, len(keys)))
    kinds = np.array([kind for _, kind, _ in events], dtype=np.uint8)
    ranks = np.array([rank for _, _, rank in events], dtype=np.int64)
    result = winners(np.array(codes, dtype=np.int32), kinds, ranks, len(keys))
    return {key: int(result[code]) for key, code in keys.items()}


def expected(events: list[tuple[int, Kind, int]]) -> dict[int, int]:
    """The same by the reference."""
    made: list[Event] = []
    for position, (key, kind, rank) in enumerate(events):
        if kind <= Kind.FLAGGED:
            made.append(Record(str(key), rank, {"at": position}, kind is Kind.FLAGGED))
        else:
            made.append(Delete(str(key), None if kind is Kind.NATURAL_DELETE else rank))
    at = {id(event): position for position, event in enumerate(made)}
    return {int(key): at[id(event)] for key, event in fold(made).items()}


@settings(max_examples=300, deadline=None)
@given(EVENTS)
def test_fold_equals_the_reference(events: list[tuple[int, Kind, int]]) -> None:
    assert chosen(events) == expected(events)


R, F, T, N = Kind.RECORD, Kind.FLAGGED, Kind.TYPED_DELETE, Kind.NATURAL_DELETE


@pytest.mark.parametrize(
    ("what", "events", "winner"),
    [
        ("later record of equal ordering wins", [(R, 5), (R, 5)], 1),
        ("earlier record of greater ordering wins", [(R, 6), (R, 5)], 0),
        ("natural delete beats any ordering", [(R, 9), (N, 0)], 1),
        ("record after a natural delete comes back with a lower ordering", [(R, 9), (N, 0), (R, 1)], 2),
        ("typed delete loses to a greater record", [(R, 9), (T, 8)], 0),
        ("typed delete wins a tie", [(R, 9), (T, 9)], 1),
        ("record after a typed delete comes back whatever the delete's ordering", [(T, 9), (R, 1)], 1),
        ("a delete that lost does not hide the record from the next comparison", [(R, 9), (T, 8), (R, 8)], 0),
        ("after an effective delete the old record's ordering is forgotten", [(R, 9), (T, 9), (R, 1), (T, 1)], 3),
        ("a flagged record competes by its ordering", [(R, 9), (F, 8)], 0),
        ("a flagged record with the greater ordering stays", [(F, 9), (R, 8)], 0),
        ("delete after delete", [(N, 0), (T, 1), (N, 0)], 2),
    ],
)
def test_rules_of_one_key(what: str, events: list[tuple[Kind, int]], winner: int) -> None:
    assert chosen([(0, kind, rank) for kind, rank in events]) == {0: winner}, what


def test_extreme_ranks_are_ranks() -> None:
    low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    assert chosen([(0, R, low), (1, R, high), (0, R, low), (1, R, low)]) == {0: 2, 1: 1}


def test_many_events_of_one_key_with_typed_deletes() -> None:
    events = [(0, R if index % 3 else T, index % 7) for index in range(3000)]
    assert chosen(events) == expected(events)
