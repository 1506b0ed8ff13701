"""When a compaction is due: a timeline and options in, a reason or none out."""

from __future__ import annotations

import pytest

from hudi_core.config.services.compaction_config import CompactionConfig
from hudi_core.services.compaction.strategies import why_not_due
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.timeline import Timeline

COMMITS = "hoodie.compact.inline.max.delta.commits"
SECONDS = "hoodie.compact.inline.max.delta.seconds"
TRIGGER = "hoodie.compact.inline.trigger.strategy"


def at(second: int) -> str:
    return f"2026010100{second // 60:02d}{second % 60:02d}000"


def delta(second: int, state: State = State.COMPLETED, completed: int | None = None) -> Instant:
    completion = at(completed or second + 1) if state is State.COMPLETED else None
    return Instant(at(second), Action.DELTA_COMMIT, state, completion)


def compaction(second: int, state: State = State.COMPLETED) -> Instant:
    if state is State.COMPLETED:
        return Instant(at(second), Action.COMMIT, state, at(second + 1))
    return Instant(at(second), Action.COMPACTION, state)


def reason(instants: list[Instant], now: int, *, by_completion: bool = True, **options: str) -> str | None:
    config = CompactionConfig.of(
        {{"trigger": TRIGGER, "commits": COMMITS, "seconds": SECONDS}[k]: v for k, v in options.items()}
    )
    return why_not_due(Timeline(instants), at(now), config, by_completion=by_completion)


def test_without_a_delta_commit_nothing_is_due() -> None:
    assert reason([], 100, commits="1") == "the table has no delta commit; no option changes that"


def test_delta_commits_are_counted_since_the_last_completed_compaction() -> None:
    instants = [delta(1), delta(2), compaction(3), delta(5), delta(6), compaction(8, State.REQUESTED)]
    assert reason(instants, 100, commits="2") is None
    assert reason(instants, 100, commits="3") == (
        f"2 delta commits since the last compaction ({at(3)}), but {COMMITS} is 3 ({TRIGGER}=NUM_COMMITS)"
    )


def test_without_a_compaction_the_first_delta_commit_counts_too() -> None:
    assert reason([delta(1), delta(2)], 100, commits="2") is None
    assert "since the first one" in str(reason([delta(1), delta(2)], 100, commits="3"))


@pytest.mark.parametrize(("by_completion", "due"), [(True, False), (False, True)])
@pytest.mark.parametrize("trigger", ["NUM_COMMITS", "NUM_AND_TIME", "NUM_OR_TIME"])
@pytest.mark.parametrize("earlier", [[], [compaction(1)]])
def test_a_pending_delta_commit_counts_in_layout_1(
    by_completion: bool, due: bool, trigger: str, earlier: list[Instant]
) -> None:
    """HUDI-5505 ended that in 1.x."""
    instants = [*earlier, delta(2), delta(3, State.INFLIGHT)]
    seconds = "999" if trigger == "NUM_OR_TIME" else "0"
    found = reason(instants, 100, by_completion=by_completion, commits="2", seconds=seconds, trigger=trigger)
    assert (found is None) == due


@pytest.mark.parametrize("by_completion", [True, False])
def test_after_the_last_request_a_pending_delta_commit_counts(by_completion: bool) -> None:
    """In every release, and by the time of its request also where completion times are known."""
    pending = [compaction(3, State.REQUESTED), delta(4, State.INFLIGHT)]
    overtaking = [delta(1, completed=6), compaction(5, State.REQUESTED)]
    for instants, due in ((pending, True), (overtaking, False)):
        found = reason(
            instants, 100, by_completion=by_completion, commits="1", trigger="NUM_COMMITS_AFTER_LAST_REQUEST"
        )
        assert (found is None) == due


def test_after_the_last_request_an_older_plan_that_is_pending_counts() -> None:
    instants = [compaction(1, State.INFLIGHT), delta(2), delta(3), compaction(4), delta(6)]
    assert reason(instants, 100, commits="3", trigger="NUM_COMMITS_AFTER_LAST_REQUEST") is None


@pytest.mark.parametrize("by_completion", [True, False])
def test_without_a_compaction_time_counts_from_the_first_delta_commit_also_a_pending_one(by_completion: bool) -> None:
    instants = [delta(1, State.INFLIGHT), delta(50)]
    assert reason(instants, 100, trigger="TIME_ELAPSED", seconds="99", by_completion=by_completion) is None


@pytest.mark.parametrize(("by_completion", "due"), [(True, True), (False, False)])
def test_layout_2_counts_what_completed_after_the_compaction_was_requested(by_completion: bool, due: bool) -> None:
    overtaking = [delta(1, completed=6), compaction(5)]
    assert (reason(overtaking, 100, by_completion=by_completion, commits="1") is None) == due


def test_after_the_last_request_a_pending_compaction_counts() -> None:
    instants = [delta(1), compaction(3, State.REQUESTED), delta(5)]
    assert reason(instants, 100, commits="2", trigger="NUM_COMMITS") is None
    assert f"since the last plan ({at(3)})" in str(
        reason(instants, 100, commits="2", trigger="NUM_COMMITS_AFTER_LAST_REQUEST")
    )
    assert reason(instants, 100, commits="1", trigger="NUM_COMMITS_AFTER_LAST_REQUEST") is None


@pytest.mark.parametrize(
    ("trigger", "commits", "seconds", "lacks"),
    [
        ("TIME_ELAPSED", "9", "97", []),
        ("TIME_ELAPSED", "1", "98", [SECONDS]),
        ("NUM_OR_TIME", "9", "97", []),
        ("NUM_OR_TIME", "1", "98", []),
        ("NUM_OR_TIME", "9", "98", [COMMITS, SECONDS]),
        ("NUM_AND_TIME", "1", "97", []),
        ("NUM_AND_TIME", "1", "98", [SECONDS]),
        ("NUM_AND_TIME", "9", "97", [COMMITS]),
        ("NUM_AND_TIME", "9", "98", [COMMITS, SECONDS]),
    ],
)
def test_number_and_time(trigger: str, commits: str, seconds: str, lacks: list[str]) -> None:
    found = reason([compaction(3), delta(5)], 100, trigger=trigger, commits=commits, seconds=seconds)
    assert (found is None) == (not lacks)
    assert [option for option in (COMMITS, SECONDS) if option in str(found)] == lacks
    assert found is None or f"{TRIGGER}={trigger}" in found


@pytest.mark.parametrize("first", ["00000000000002", "001"])
@pytest.mark.parametrize("trigger", ["NUM_COMMITS", "TIME_ELAPSED", "NUM_OR_TIME", "NUM_AND_TIME"])
def test_an_instant_that_is_no_date_is_long_ago(first: str, trigger: str) -> None:
    """As that of a bootstrap, or of a table that was written with numbers."""
    instants = [Instant(first, Action.DELTA_COMMIT, State.COMPLETED, at(2))]
    assert reason(instants, 100, trigger=trigger, commits="1", seconds="999999999") is None
    found = reason(instants, 100, trigger=trigger, commits="2", seconds="999999999")
    assert (found is None) == (trigger in ("TIME_ELAPSED", "NUM_OR_TIME"))
