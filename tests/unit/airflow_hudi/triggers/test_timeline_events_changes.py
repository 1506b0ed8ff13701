"""What is new on a timeline, and marks that outlive a process."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_hudi.triggers.timeline_events import COMPLETED, PENDING, HudiTimelineEventTrigger
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action, Instant, State
from hudi_core.timeline.timeline import Timeline

NOW = 1_790_000_000.0


def at(number: int) -> str:
    return f"202601010000{number:05}"


def write(number: int, completed: int | None = None, *, state: State = State.COMPLETED) -> Instant:
    return Instant(at(number), Action.DELTA_COMMIT, state, None if completed is None else at(completed))


def planned(number: int, action: str = Action.COMPACTION) -> Instant:
    return Instant(at(number), action, State.REQUESTED)


def watch_of(state: str, actions: Sequence[str] = (), repeat_seconds: float = 900.0) -> HudiTimelineEventTrigger:
    return HudiTimelineEventTrigger(table="/nowhere", state=state, actions=actions, repeat_seconds=repeat_seconds)


def times(instants: list[Instant]) -> list[str]:
    return [item.requested_time for item in instants]


def test_pending_services_are_reported_once_while_they_are_pending() -> None:
    watch = watch_of(PENDING)
    first = Timeline([write(1, 2), planned(3), write(4, state=State.INFLIGHT), planned(5, Action.CLEAN)])
    new, mark = watch.changes(first, watch.start(first), NOW)
    assert times(new) == [at(3), at(5)]
    assert watch.changes(first, json.loads(json.dumps(mark)), NOW) == ([], mark)
    new, mark = watch.changes(Timeline([*first, planned(6, Action.CLUSTERING)]), mark, NOW)
    assert times(new) == [at(6)]
    # What was run and is planned once more under its time, after a rollback, is reported once more.
    _, without = watch.changes(Timeline([write(1, 2)]), mark, NOW)
    assert times(watch.changes(first, without, NOW)[0]) == [at(3), at(5)]


def test_what_stays_pending_is_reported_again_after_a_while() -> None:
    watch = watch_of(PENDING, repeat_seconds=600)
    timeline = Timeline([planned(1), planned(2, Action.CLEAN)])
    _, mark = watch.changes(timeline, watch.start(timeline), NOW)
    more = Timeline([*timeline, planned(3)])
    new, mark = watch.changes(more, mark, NOW + 599)
    assert times(new) == [at(3)]
    new, mark = watch.changes(more, json.loads(json.dumps(mark)), NOW + 600)
    assert times(new) == [at(1), at(2)]
    # Each has a time of its own; what is run is forgotten.
    assert watch.changes(more, mark, NOW + 1198)[0] == []
    new, mark = watch.changes(Timeline([planned(2, Action.CLEAN), planned(3)]), mark, NOW + 1199)
    assert times(new) == [at(3)]
    assert set(mark["reported"]) == {at(2), at(3)}


def test_completed_writes_are_those_behind_the_start() -> None:
    watch = watch_of(COMPLETED)
    first = Timeline([write(1, 2), write(3, 9), planned(4)])
    mark = watch.start(first)
    assert watch.changes(first, mark, NOW)[0] == []
    # Requested earlier, completed later; and one at the same time as the last.
    later = Timeline([*first, write(2, 10), write(5, 9)])
    new, mark = watch.changes(later, mark, NOW)
    assert times(new) == [at(5), at(2)]
    assert watch.changes(later, json.loads(json.dumps(mark)), NOW)[0] == []


def test_a_write_that_completes_before_the_mark_by_its_clock_is_reported() -> None:
    """Summer time ends at 03:00: what completes in the next hour has earlier times."""
    watch = watch_of(COMPLETED)
    night = Instant("20261025024900000", Action.COMMIT, State.COMPLETED, "20261025025000000")
    mark = watch.start(Timeline([night]))
    earlier = Instant("20261025020500000", Action.COMMIT, State.COMPLETED, "20261025020600000")
    new, mark = watch.changes(Timeline([night, earlier]), mark, NOW)
    assert times(new) == ["20261025020500000"]
    assert watch.changes(Timeline([night, earlier]), mark, NOW)[0] == []


def test_a_gap_is_what_may_have_been_archived_unseen() -> None:
    watch = watch_of(COMPLETED, (Action.REPLACE_COMMIT,))
    mark = watch.start(Timeline([write(1, 2), write(3, 4)]))
    assert watch.gap(Timeline([write(3, 4), write(5, 6)]), mark) is None
    later = Timeline([planned(4), write(5, 6)])
    assert watch.gap(later, mark) == (at(3), at(5))
    assert watch.gap(later, watch.changes(later, mark, NOW)[1]) is None
    assert watch.gap(later, {}) is None
    assert watch_of(PENDING).gap(later, mark) is None


def test_layout_1_has_no_completion_times() -> None:
    watch = watch_of(COMPLETED)
    first = Timeline([write(1), write(5)])
    new, mark = watch.changes(Timeline([*first, write(3)]), watch.start(first), NOW)
    assert times(new) == [at(3)]
    assert watch.changes(Timeline([*first, write(3)]), mark, NOW)[0] == []
    # The table is upgraded meanwhile.
    upgraded = Timeline([write(1, 1), write(3, 6), write(5, 5), write(7, 8)])
    assert times(watch.changes(upgraded, mark, NOW)[0]) == [at(7)]


def test_named_actions() -> None:
    watch = watch_of(PENDING, (Action.CLEAN,))
    timeline = Timeline([planned(1), planned(2, Action.CLEAN)])
    assert times(watch.changes(timeline, watch.start(timeline), NOW)[0]) == [at(2)]
    compaction = Instant(at(3), Action.COMMIT, State.COMPLETED, at(4), Action.COMPACTION)
    assert watch_of(COMPLETED, (Action.COMPACTION,)).holds(compaction)
    assert not watch_of(COMPLETED, (Action.CLEAN,)).holds(compaction)


def test_table_services_are_no_completed_writes() -> None:
    services = (Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING)
    completed = [Instant(at(3), Action.COMMIT, State.COMPLETED, at(4), planned) for planned in services]
    overwrite = Instant(at(5), Action.REPLACE_COMMIT, State.COMPLETED, at(6), Action.REPLACE_COMMIT)
    assert [item for item in (*completed, overwrite) if watch_of(COMPLETED).holds(item)] == [overwrite]
    assert all(map(watch_of(COMPLETED, tuple(COMMIT_ACTIONS)).holds, (*completed, overwrite)))


@pytest.mark.parametrize(
    "mark", [{}, {"reported": None}, {"reported": [at(3)]}, {"until": None, "at": None}, {"other": 1}]
)
def test_a_mark_of_another_form_reports_everything(mark: dict[str, object]) -> None:
    timeline = Timeline([write(1, 2), planned(3)])
    assert times(watch_of(PENDING).changes(timeline, mark, NOW)[0]) == [at(3)]
    assert times(watch_of(COMPLETED).changes(timeline, mark, NOW)[0]) == [at(1)]


def test_no_other_state() -> None:
    with pytest.raises(TypeError, match="state is 'inflight'"):
        watch_of("inflight")


@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(1, 9)), unique_by=lambda item: item[0], max_size=12),
    st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_every_completed_write_is_reported_once(order: list[tuple[int, int]], layout_2: bool) -> None:
    """They complete in this order, some at the same time, and looks come in between."""
    watch, clock = watch_of(COMPLETED), 0
    timeline = Timeline([])
    mark = watch.start(timeline)
    reported: list[str] = []
    for number, gap in order:
        clock += gap - 1
        timeline = Timeline([*timeline, write(number, clock if layout_2 else None)])
        new, mark = watch.changes(timeline, mark, NOW)
        reported += times(new)
    assert sorted(reported) == sorted(at(number) for number, _ in order)
