from __future__ import annotations

import pytest

from hudi_core.errors import ConfigError, ConflictError, TimelineError
from hudi_core.services.rollback.verb import request_rollback
from hudi_core.services.unschedule import unschedule
from hudi_core.timeline.actions.rollback import RestoredInstant, RestorePlan, encode_restore_plan
from hudi_core.timeline.instant import Action
from tests.support.changed_tables import an_owner, leftovers, open_context
from tests.support.crash_leftovers import LATE, left_file
from tests.support.damaged_files import tree
from tests.support.golden_cleans import run_clean
from tests.support.hudictl_runner import hudictl
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import read_rows
from tests.support.tiers import tiered
from tests.unit.hudi_core.services.clean.test_kept_files_checks import request_clean
from tests.unit.hudi_core.services.test_unschedule import Golden, refuses, the_plan

PLAN = encode_restore_plan(RestorePlan("20200101000000000", ()))


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_what_was_dropped_before_is_nothing_to_drop(golden: Golden, version: str) -> None:
    table = golden(version, "clean_requested_mor").table
    instant = the_plan(open_context(table)).requested_time
    assert hudictl("unschedule", table, instant, "--json").document["reason"] is None
    before = tree(table)
    for more in ([], ["--dry-run"]):
        again = hudictl("unschedule", table, instant, *more, "--json")
        assert (again.code, again.document["action"]) == (0, "")
        assert again.document["removed"] == {"files": 0, "bytes": 0, "instants": []}
        assert instant in again.document["reason"]
    people = hudictl("unschedule", table, instant)
    assert (people.code, people.out.splitlines()[0]) == (0, f"nothing to do: {again.document['reason']}")
    assert tree(table) == before


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_what_is_no_plan_is_refused_with_the_verb_that_helps(golden: Golden, version: str) -> None:
    failed = golden(version, "failed_inflight_mor").table
    context = open_context(failed)
    (write,) = context.active.load().pending()
    refuses(failed, write.requested_time, ConfigError, "is a write, not a plan")
    rollback = request_rollback(context, write, an_owner())
    refuses(failed, rollback, TimelineError, "half done")
    refuses(failed, "20200101000000000", ConfigError, "older than the timeline: `hudictl timeline TABLE --archived`")
    basic = golden(version, "mor_basic").table
    done = open_context(basic).active.load().commits().instants[-1]
    refuses(basic, done.requested_time, ConfigError, "is completed")
    open_context(basic).active.to_inflight(done.requested_time, Action.SAVEPOINT)
    refuses(basic, done.requested_time, ConfigError, "savepoint of .* is not finished")
    cleaning = golden(version, "clean_requested_mor").table
    context = open_context(cleaning)
    plan = the_plan(context)
    context.active.to_inflight(plan.requested_time, Action.CLEAN)
    refuses(cleaning, plan.requested_time, TimelineError, "files that it lists may be gone")


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_clean_that_is_inflight_and_that_no_run_would_finish_is_dropped(golden: Golden, version: str) -> None:
    """Its run says that it has to be dropped, as readers need a file of its plan."""
    table = golden(version, "cow_basic").table
    context, rows = open_context(table), read_rows(table)
    view = context.view(context.active.load())
    partition = view.partitions()[0]
    instant = request_clean(table, {partition: (view.latest_base_files(partition)[0].name,)})
    context.active.to_inflight(instant, Action.CLEAN)
    with pytest.raises(ConflictError, match="readers of the latest state need") as refused:
        run_clean(table, instant)
    assert "unschedule" in str(refused.value.remedy)
    for dry_run in (True, False):
        done = unschedule(context, instant, an_owner(), dry_run=dry_run)
        assert (done.action, done.removed.instants) == ("clean", (instant,))
    assert not context.active.load().contains(instant)
    assert leftovers(table, instant) == []
    assert_same_rows(read_rows(table), rows)


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["9"]))
@pytest.mark.parametrize("content", [None, b"", PLAN[:-9]], ids=["whole", "empty", "cut"])
def test_a_restore_is_dropped_while_it_is_only_requested(golden: Golden, version: str, content: bytes | None) -> None:
    """It has deleted nothing, whether or not its plan can be read."""
    table = golden(version, "mor_basic").table
    context, before = open_context(table), tree(table)
    *_, target, newest = context.active.load().commits()
    plan = RestorePlan(target.requested_time, (RestoredInstant(newest.requested_time, newest.action),))
    left_file(table, context.active, Action.RESTORE, content=encode_restore_plan(plan) if content is None else content)
    doctor = hudictl("doctor", table, "--option", "airflow_hudi.doctor.stuck_minutes=0", "--json").document
    rule = "stuck_instant" if content is None else "unreadable_plan"
    (finding,) = [item for item in doctor["findings"] if (item["rule"], item["instant"]) == (rule, LATE)]
    assert (f"unschedule {table} {LATE}" if content is not None else f"restore {table} --instant") in finding["fix"]
    if content is not None:
        for command in (["restore", table, "--instant", target.requested_time], ["takeover", table, LATE]):
            refused = hudictl(*command, "--json")
            assert (refused.code, refused.error["type"]) == (2, "CorruptFileError")
            assert f"hudictl unschedule TABLE {LATE}" in refused.error["remedy"]
        assert hudictl("schedule", "clean", table).code == 0
        assert hudictl("plan", table).code == 0
    refused = hudictl("rollback", table, "--instant", newest.requested_time, "--json")
    assert (refused.code, refused.error["message"]) == (1, f"restore {LATE} is not finished")
    assert unschedule(context, LATE, an_owner(), dry_run=True).removed.instants == (LATE,)
    assert unschedule(context, LATE, an_owner()).removed.files == {}
    assert {path for path in tree(table) if LATE in path} == set()
    assert leftovers(table, LATE) == []
    assert set(before) <= set(tree(table))


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_restore_that_has_begun_is_not_dropped(golden: Golden, version: str) -> None:
    table = golden(version, "mor_basic").table
    active = open_context(table).active
    left_file(table, active, Action.RESTORE, content=PLAN)
    active.to_inflight(LATE, Action.RESTORE)
    refuses(table, LATE, TimelineError, "half done")
