"""What may be rolled back: one test for each rule, each with the case that it lets through."""

from __future__ import annotations

import pytest

from hudi_core.errors import ConflictError, TimelineError, UnsupportedError
from hudi_core.services.rollback.checks import RollbackInputs, check_may_roll_back
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.timeline import Timeline

LAZY = RollbackInputs(eager=False)
EAGER = RollbackInputs(eager=True)


def completed(
    time: str, action: str = Action.DELTA_COMMIT, completion: str | None = None, planned: str | None = None
) -> Instant:
    return Instant(time, action, State.COMPLETED, completion, planned or action)


def pending(time: str, action: str = Action.DELTA_COMMIT, state: State = State.INFLIGHT) -> Instant:
    return Instant(time, action, state, None, action)


def check(target: Instant, *others: Instant, inputs: RollbackInputs = LAZY) -> None:
    check_may_roll_back(Timeline([target, *others]), target, inputs)


def test_a_savepointed_commit_never_goes() -> None:
    for inputs in (LAZY, EAGER):
        with pytest.raises(TimelineError, match="savepointed"):
            check(completed("2"), completed("2", Action.SAVEPOINT), inputs=inputs)
    check(completed("2"), completed("1", Action.SAVEPOINT))


def test_an_unfinished_savepoint_keeps_its_completed_commit() -> None:
    """Hudi rolls that back, and a savepoint of a commit that is gone stays."""
    with pytest.raises(TimelineError, match="unfinished savepoint") as caught:
        check(completed("2"), pending("2", Action.SAVEPOINT))
    assert caught.value.remedy == "delete the savepoint first: `hudictl savepoint delete TABLE --instant 2`"
    check(completed("2"), pending("1", Action.SAVEPOINT))
    check(pending("2"), pending("2", Action.SAVEPOINT))


def test_a_completed_commit_goes_only_as_the_newest() -> None:
    for inputs in (LAZY, EAGER):
        with pytest.raises(TimelineError, match="followed by deltacommit 3"):
            check(completed("2"), completed("1"), completed("3"), inputs=inputs)
    check(completed("2"), completed("1"))
    check(completed("2"), completed("3", Action.CLEAN))


def test_what_completed_later_counts_as_later() -> None:
    with pytest.raises(TimelineError, match="followed by deltacommit 1"):
        check(completed("2", completion="5"), completed("1", completion="6"))
    check(completed("2", completion="5"), completed("1", completion="4"))
    # A compaction works on what was there when it was requested.
    check(completed("2", completion="5"), completed("1", Action.COMMIT, "6", Action.COMPACTION))


def test_nothing_pending_may_be_built_on_it() -> None:
    with pytest.raises(ConflictError, match="has deltacommit 3 pending") as caught:
        check(completed("2"), pending("3"))
    assert "hudictl rollback TABLE --instant 3" in str(caught.value.remedy)
    with pytest.raises(ConflictError, match="has deltacommit 1 pending"):
        check(completed("2"), pending("1"))
    for action in (Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING):
        with pytest.raises(TimelineError, match=f"{action} 3 was planned on"):
            check(completed("2"), pending("3", action, State.REQUESTED))
        check(completed("2"), pending("1", action, State.REQUESTED))
    with pytest.raises(TimelineError, match="replacecommit 3 was planned on"):
        check(
            completed("2"),
            pending("3", Action.REPLACE_COMMIT),
            inputs=RollbackInputs(eager=False, clusterings=frozenset({"3"})),
        )


def test_a_clean_since_then_took_what_it_would_go_back_to() -> None:
    with pytest.raises(TimelineError, match="clean 3 removes"):
        check(completed("2"), completed("3", Action.CLEAN), inputs=RollbackInputs(eager=False, cleaned=("3",)))


def test_an_upgrade_lies_between() -> None:
    with pytest.raises(UnsupportedError, match="before the table's upgrade"):
        check(Instant("2", Action.DELTA_COMMIT, State.COMPLETED, "3", is_legacy=True))


def test_failed_writes_go_in_any_order_unless_the_policy_is_eager() -> None:
    check(pending("2"), completed("3"), pending("4"))
    with pytest.raises(TimelineError, match="older than the completed deltacommit 3"):
        check(pending("2"), completed("3"), inputs=EAGER)
    with pytest.raises(ConflictError, match="has deltacommit 4 pending"):
        check(pending("2"), pending("4"), inputs=EAGER)
    check(pending("2"), pending("1"), completed("1"), inputs=EAGER)
    # The remains of a LAZY writer.
    check(pending("2"), completed("3"), inputs=RollbackInputs(eager=True, heartbeat=True))


def test_an_attempt_at_a_plan_always_goes() -> None:
    for action in (Action.COMPACTION, Action.CLUSTERING):
        check(pending("2", action), completed("3"), pending("4"), inputs=EAGER)
    check(pending("2"), pending("3", Action.COMPACTION), inputs=EAGER)
    clustering = RollbackInputs(eager=True, clusterings=frozenset({"2"}))
    check(pending("2", Action.REPLACE_COMMIT), completed("3"), inputs=clustering)
