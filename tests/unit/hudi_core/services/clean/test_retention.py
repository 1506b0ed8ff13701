"""When a clean is due, what it keeps, and where it looks."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from hudi_core.config.services.retention_config import CleanConfig
from hudi_core.services.clean.retention import RetentionInputs, Scope, retention
from hudi_core.services.service import Nothing
from hudi_core.timeline.actions.clean import LastClean
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.timeline import Timeline

NOW = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)


def at(hour: int) -> str:
    return f"20261121{hour:02d}0000000"


def done(hour: int, action: str = Action.COMMIT, completed: str | None = None) -> Instant:
    return Instant(at(hour), action, State.COMPLETED, completed)


def pending(hour: int, action: str = Action.COMMIT) -> Instant:
    return Instant(at(hour), action, State.INFLIGHT)


def inputs(
    *instants: Instant, last: LastClean | None = None, savepoints: frozenset[str] = frozenset(), zone: str = "UTC"
) -> RetentionInputs:
    return RetentionInputs(Timeline(instants), NOW, zone, last, savepoints)


def scope(found: RetentionInputs, **options: str) -> Scope | Nothing:
    return retention(found, CleanConfig.of({name.replace("_", "."): value for name, value in options.items()}))


FIVE = tuple(done(hour) for hour in range(1, 6))


def earliest(found: Scope | Nothing) -> str | None:
    assert isinstance(found, Scope), found
    return None if found.earliest is None else found.earliest.requested_time


@pytest.mark.parametrize(("retained", "expected"), [(1, 5), (2, 4), (4, 2)])
def test_the_newest_commits_are_kept(retained: int, expected: int) -> None:
    assert earliest(scope(inputs(*FIVE), hoodie_clean_commits_retained=str(retained))) == at(expected)


@pytest.mark.parametrize("retained", [5, 10])
def test_too_few_commits_are_a_reason_that_names_the_option(retained: int) -> None:
    found = scope(inputs(*FIVE), hoodie_clean_commits_retained=str(retained))
    assert found == Nothing(f"the timeline has 5 commits and hoodie.clean.commits.retained keeps {retained}")


@pytest.mark.parametrize(
    "action", [Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT, Action.COMPACTION, Action.CLUSTERING]
)
def test_a_pending_write_holds_the_earliest_back(action: str) -> None:
    instants = (done(1), done(2), pending(3, action), done(4), done(5), done(6))
    assert earliest(scope(inputs(*instants), hoodie_clean_commits_retained="1")) == at(2)


@pytest.mark.parametrize("action", [Action.LOG_COMPACTION, Action.ROLLBACK, Action.INDEXING])
def test_other_pending_instants_do_not(action: str) -> None:
    instants = (done(1), done(2), pending(3, action), done(4), done(5))
    assert earliest(scope(inputs(*instants), hoodie_clean_commits_retained="1")) == at(5)


def test_a_pending_write_before_every_commit_is_the_reason() -> None:
    found = scope(inputs(pending(1), *(done(hour) for hour in range(2, 6))), hoodie_clean_commits_retained="1")
    assert isinstance(found, Nothing)
    assert f"commit {at(1)} is pending" in found.reason
    assert "complete it or roll it back" in found.reason


@pytest.mark.parametrize(("hours", "expected"), [(7, 5), (8, 4), (24, 1)])
def test_by_hours_the_first_commit_within_them_is_the_earliest(hours: int, expected: int) -> None:
    assert earliest(scope(inputs(*FIVE), hoodie_cleaner_hours_retained=str(hours))) == at(expected)


def test_hours_are_counted_in_the_timelines_zone() -> None:
    assert earliest(scope(inputs(*FIVE, zone="Asia/Tokyo"), hoodie_clean_hours_retained="17")) == at(4)


def test_by_hours_without_a_commit_within_them_nothing_goes() -> None:
    found = scope(inputs(*FIVE), hoodie_clean_hours_retained="6")
    assert isinstance(found, Nothing)
    assert "hoodie.clean.hours.retained" in found.reason


def test_by_versions_every_partition_is_looked_at() -> None:
    last = LastClean(at(4), at(2), at(3))
    assert scope(inputs(*FIVE, last=last), hoodie_cleaner_policy="KEEP_LATEST_FILE_VERSIONS") == Scope(None)


@pytest.mark.parametrize(("commits", "due"), [("2", True), ("3", False)])
def test_a_clean_is_due_by_the_commits_since_the_last(commits: str, due: bool) -> None:
    last = LastClean(at(4), at(2), at(3))
    found = scope(inputs(*FIVE, last=last), hoodie_clean_commits_retained="1", hoodie_clean_max_commits=commits)
    assert isinstance(found, Scope) == due
    if not due:
        assert found == Nothing("2 commits since the last clean, but hoodie.clean.trigger.max.commits is 3")


def test_a_pending_clean_comes_first() -> None:
    found = scope(inputs(*FIVE, pending(6, Action.CLEAN)), hoodie_clean_commits_retained="1")
    assert found == Nothing(f"clean {at(6)} is pending: run it first, or set hoodie.clean.multiple.enabled=true")
    again = scope(
        inputs(*FIVE, pending(6, Action.CLEAN)), hoodie_clean_commits_retained="1", hoodie_clean_allow_multiple="true"
    )
    assert earliest(again) == at(5)


def changed(found: Scope | Nothing) -> list[str] | None:
    assert isinstance(found, Scope), found
    return None if found.commits is None else [instant.requested_time for instant in found.commits]


def test_incremental_looks_where_commits_were_since_the_last_clean() -> None:
    last = LastClean(at(4), at(2), at(3))
    assert changed(scope(inputs(*FIVE, last=last), hoodie_clean_commits_retained="1")) == [at(2), at(3), at(4)]


@pytest.mark.parametrize(
    "last",
    [
        None,
        LastClean(at(4), "", at(3)),
        LastClean(at(4), at(0), at(3)),
        LastClean(at(4), "20261121023000000", at(3)),
        LastClean(at(4), "99991231000000000", at(3)),
        LastClean(at(4), at(2), at(3), frozenset({at(1)})),
    ],
    ids=["no clean", "by versions", "archived", "rolled back", "never real", "savepoint deleted"],
)
def test_incremental_falls_back_to_every_partition(last: LastClean | None) -> None:
    """What the last clean says it retained must be a real commit of the timeline, or what it left could be anywhere."""
    assert changed(scope(inputs(*FIVE, last=last), hoodie_clean_commits_retained="1")) is None


def test_incremental_can_be_turned_off() -> None:
    last = LastClean(at(4), at(2), at(3))
    found = scope(inputs(*FIVE, last=last), hoodie_clean_commits_retained="1", hoodie_cleaner_incremental_mode="false")
    assert changed(found) is None


def test_incremental_looks_at_commits_that_completed_late() -> None:
    """By hours a pending commit holds nothing back, so the last clean went past one that was being written."""
    late = done(1, Action.DELTA_COMMIT, at(6))
    on_time = [done(hour, Action.DELTA_COMMIT, f"{at(hour)[:-1]}5") for hour in range(2, 6)]
    last = LastClean(at(5), at(3), at(4))
    assert changed(scope(inputs(late, *on_time, last=last), hoodie_clean_hours_retained="7")) == [at(1), at(3), at(4)]


@pytest.mark.parametrize(("cap", "expected"), [(1, 2), (2, 3), (3, 4), (4, 5), (9, 5)])
def test_a_cap_lets_one_clean_move_on_by_so_many_commits(cap: int, expected: int) -> None:
    last = LastClean(at(1), at(1), "")
    options = {"hoodie_clean_commits_retained": "1", "hoodie_clean_max_commits_to_clean": str(cap)}
    assert earliest(scope(inputs(*FIVE, last=last), **options)) == at(expected)


def test_now_is_taken_as_given() -> None:
    moved = RetentionInputs(Timeline(FIVE), NOW + timedelta(hours=2))
    assert earliest(retention(moved, CleanConfig.of({"hoodie.clean.hours.retained": "9"}))) == at(5)
