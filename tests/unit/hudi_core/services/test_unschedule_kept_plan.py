from __future__ import annotations

import pytest

from hudi_core.errors import ConflictError, TimelineError
from hudi_core.services.takeover import takeover
from hudi_core.timeline.instant import Action, State
from tests.support.changed_tables import (
    an_owner,
    data_files,
    known_times,
    open_context,
    shown,
)
from tests.unit.hudi_core.services.test_unschedule import Golden, drop, the_plan


def test_rows_behind_a_compaction_of_layout_1_are_not_lost(golden: Golden) -> None:
    table = golden("6", "mor_compaction_requested").table
    plan = the_plan(open_context(table))
    before, known = data_files(table), known_times(table)
    timeline = shown(table, known)
    with pytest.raises(TimelineError, match="rows would be lost") as refused:
        drop(table, plan.requested_time, an_owner())
    assert f"hudictl run compaction TABLE --instant {plan.requested_time}" in str(refused.value.remedy)
    assert (data_files(table), shown(table, known)) == (before, timeline)


def test_a_writer_that_may_be_logging_behind_a_compaction_of_layout_1_is_waited_for(golden: Golden) -> None:
    table = golden("6", "mor_compaction_requested_only").table
    context = open_context(table)
    plan = the_plan(context)
    later = str(int(plan.requested_time) + 1)
    context.active.create_requested(later, Action.DELTA_COMMIT)
    with pytest.raises(ConflictError, match=f"deltacommit {later} is pending"):
        drop(table, plan.requested_time, an_owner())
    assert context.active.load().contains(plan.requested_time)


def test_rows_behind_a_compaction_with_a_damaged_plan_are_not_lost(golden: Golden) -> None:
    table = golden("6", "mor_compaction_requested").table
    plan = the_plan(open_context(table))
    (table / ".hoodie" / f"{plan.requested_time}.compaction.requested").write_bytes(b"")
    with pytest.raises(TimelineError, match="rows would be lost"):
        drop(table, plan.requested_time, an_owner())


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_rows_in_the_buckets_that_a_clustering_makes_stay_and_so_does_its_plan(golden: Golden, version: str) -> None:
    """Once Hudi has run it they are nowhere else; were it dropped, they would be there twice some day. What an attempt
    wrote goes alone.
    """
    table = golden(version, "clustering_requested_mor").table
    context = open_context(table)
    plan = the_plan(context)
    instant, action = plan.requested_time, plan.pending_action
    written = min(table.glob("*/.*.log.*"))
    logged = written.with_name(f".a1b2c3d4-0_{instant}.log.1_0-0-0")
    logged.write_bytes(written.read_bytes())
    attempted = written.with_name(f"a1b2c3d4-0_0-0-0_{instant}.parquet")
    attempted.write_bytes(b"an attempt")
    context.active.to_inflight(instant, action)
    with pytest.raises(TimelineError, match="1 log files of later writes are in the buckets") as refused:
        drop(table, instant, an_owner())
    assert (refused.value.path, refused.value.remedy) == (str(logged.relative_to(table)), "let Hudi run it")
    assert attempted.exists()
    freed = takeover(open_context(table), instant, an_owner())
    assert list(freed.removed.files) == [str(attempted.relative_to(table))]
    assert (logged.exists(), attempted.exists()) == (True, False)
    assert context.active.load().get(instant, action).state is State.REQUESTED
