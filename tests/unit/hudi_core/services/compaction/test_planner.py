"""Scheduling a compaction: what is requested, what is not and why, and what writers that begin meanwhile keep.

Plans against those of real Hudi: tests/golden/test_compaction_plans.py, tests/interop/test_compaction_planning.py.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConfigError, ConflictError, UnsupportedError
from hudi_core.services.compaction import planner as planning
from hudi_core.services.compaction.planner import CompactionService, Planned, make_plan
from hudi_core.services.context import RUN_KEY, TableContext
from hudi_core.services.service import Nothing, Scheduled
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.owner import Owner
from hudi_core.verbs.run import RunRequest
from tests.support.bootstrapped_tables import bootstrap_one
from tests.support.golden_compactions import context_of
from tests.support.golden_data import GoldenCase
from tests.support.rows import assert_same_rows
from tests.support.table_files import contents
from tests.support.table_invariants import read_rows
from tests.support.table_requests import perform
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ("6", "8", "9")
OWNER = Owner.current("test")
COMMITS = "hoodie.compact.inline.max.delta.commits"
STRATEGY = "hoodie.compaction.strategy"
DUE = {COMMITS: "1"}
OPTIMISTIC = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
LATER = "20990101000000000"


def schedule(table: Path, options: dict[str, str] | None = None, *, dry_run: bool = False) -> Scheduled:
    return CompactionService().schedule(context_of(table, {**DUE, **(options or {})}), OWNER, dry_run=dry_run)


def reason(table: Path, options: dict[str, str] | None = None) -> str:
    """Why nothing is planned; nothing is written."""
    before = contents(table)
    done = schedule(table, options)
    assert (done.instant, done.plan) == (None, None)
    assert contents(table) == before
    return str(done.reason)


def begin_write(context: TableContext, instant: str = LATER) -> None:
    for state in (State.REQUESTED, State.INFLIGHT):
        context.storage.write(context.active.path(instant, Action.DELTA_COMMIT, state), b"")


@pytest.mark.parametrize("folder", tiered(VERSIONS, ["6", "9"]))
def test_planned_run_and_then_nothing_is_due(golden: Golden, folder: str) -> None:
    table = golden(folder, "mor_basic").table
    before, rows = contents(table), read_rows(table)
    would = schedule(table, dry_run=True)
    assert (would.instant, contents(table)) == (None, before)
    done = schedule(table)
    assert done.instant is not None
    assert done.plan == would.plan
    assert done.plan is not None
    assert (done.plan["file_groups"], done.plan["log_files"], done.plan["partitions_left_out"]) == (3, 10, [])
    context = context_of(table, DUE)
    assert CompactionService().pending(context, context.active.load()) == [done.instant]
    extra = context.active.read_plan(done.instant).extra_metadata
    assert extra is not None
    assert extra[RUN_KEY] == OWNER.run_id
    assert_same_rows(read_rows(table), rows)
    assert reason(table) == (
        "no file group has log files in 3 partitions, beside 3 that pending plans hold (`hudictl run` or `hudictl "
        "unschedule` frees them); no option changes that"
    )
    run = perform(context, RunRequest(table=str(table), service="compaction", owner="t"), LocalEngine(1), OWNER)
    assert [item.state for item in run.instants] == ["completed"]
    assert_same_rows(read_rows(table), rows)
    assert f"{COMMITS} is 1" in reason(table)


@pytest.mark.parametrize("folder", tiered(VERSIONS, ["6", "9"]))
def test_a_run_that_plans_first(golden: Golden, folder: str) -> None:
    table = golden(folder, "mor_basic").table
    rows = read_rows(table)
    request = RunRequest(table=str(table), service="compaction", owner="t", schedule=True)
    done = perform(context_of(table, DUE), request, LocalEngine(1), OWNER)
    assert [(item.state, item.files_written) for item in done.instants] == [("completed", 3)]
    assert_same_rows(read_rows(table), rows)
    again = perform(context_of(table, DUE), request, LocalEngine(1), OWNER)
    assert (again.instants, f"{COMMITS} is 1" in str(again.reason)) == ((), True)


@pytest.mark.parametrize("folder", tiered(VERSIONS, ["9"]))
def test_a_budget_makes_several_plans_of_one(golden: Golden, folder: str) -> None:
    """The largest part of logs first; the rest is due whatever the trigger says, to the next process as well."""
    table = golden(folder, "mor_basic").table
    rows = read_rows(table)
    whole = schedule(table, dry_run=True).plan
    assert whole is not None
    assert whole["left_by_budget"] == 0
    budget = {"airflow_hudi.plan.max.bytes": "1"}
    first = schedule(table, budget)
    assert first.plan is not None
    (taken,) = first.plan["operations"]
    assert first.plan["left_by_budget"] == 2
    shares = {
        item["file_id"]: sum((table / item["partition"] / name).stat().st_size for name in item["log_files"])
        / item["bytes"]
        for item in whole["operations"]
    }
    assert taken["file_id"] == max(shares, key=lambda name: shares[name])
    assert len(first.plan["partitions_left_out"]) == 2
    request = RunRequest(table=str(table), service="compaction", owner="t", schedule=True, all_pending=True)
    done = perform(context_of(table, {COMMITS: "40", **budget}), request, LocalEngine(1), OWNER)
    assert [(item.state, item.files_written) for item in done.instants] == [("completed", 1)] * 3
    assert_same_rows(read_rows(table), rows)
    assert f"but {COMMITS} is 40" in reason(table, {COMMITS: "40", **budget})


@pytest.mark.parametrize("folder", VERSIONS)
def test_a_copy_on_write_table_has_nothing_to_compact(golden: Golden, folder: str) -> None:
    assert reason(golden(folder, "cow_basic").table) == (
        "the table is copy-on-write: it has no log files to compact; no option changes that"
    )


def test_what_is_not_due_names_the_option(golden: Golden) -> None:
    assert f"but {COMMITS} is 40" in reason(golden("8", "mor_basic").table, {COMMITS: "40"})


@pytest.mark.parametrize("name", ["compaction_inflight", "clustering_requested_mor", "log_compaction_requested"])
def test_a_file_group_of_a_pending_plan_is_not_planned_again(golden: Golden, name: str) -> None:
    for folder in VERSIONS:
        assert "pending plans hold" in reason(golden(folder, name).table)


@pytest.mark.parametrize(
    ("name", "option", "value", "how"),
    [
        ("LogFileNumBased", "logfile.num.threshold", "99", "takes none of 3 file groups with log files"),
        ("LogFileSizeBased", "logfile.size.threshold", "999999", "takes none of 3 file groups with log files"),
        ("PartitionRegexBased", "partition.path.regex", "nowhere", "in the 0 of 3 partitions that the strategy takes"),
    ],
)
@pytest.mark.parametrize("folder", tiered(VERSIONS, ["6", "9"]))
def test_a_strategy_that_takes_nothing_is_named_with_its_option(
    golden: Golden, folder: str, name: str, option: str, value: str, how: str
) -> None:
    name, option = f"{name}CompactionStrategy", f"hoodie.compaction.{option}"
    said = reason(golden(folder, "mor_basic").table, {STRATEGY: name, option: value})
    assert f"{how} ({STRATEGY}, {option})" in said


@pytest.mark.parametrize("folder", VERSIONS)
def test_partitions_that_are_left_out_are_recorded_for_the_next_planner(golden: Golden, folder: str) -> None:
    table = golden(folder, "mor_basic").table
    done = schedule(
        table, {STRATEGY: "PartitionRegexBasedCompactionStrategy", "hoodie.compaction.partition.path.regex": "01$"}
    )
    assert done.plan is not None
    assert done.instant is not None
    (taken,) = (item["partition"] for item in done.plan["operations"])
    left = sorted({"2024-01-01", "2024-01-02", "2024-01-03"} - {taken})
    assert done.plan["partitions_left_out"] == left
    assert context_of(table).active.read_plan(done.instant).missing_partitions == tuple(left)


@pytest.mark.parametrize("folder", ["8", "9"])
def test_a_write_that_completes_after_the_instant_is_not_in_the_plan(golden: Golden, folder: str) -> None:
    context = context_of(golden(folder, "mor_basic").table, DUE)
    timeline = context.active.load()
    last = timeline.of_actions(Action.DELTA_COMMIT).last()
    assert last is not None
    made = [
        make_plan(context, timeline, instant, today=date(2026, 1, 1)) for instant in (LATER, last.requested_time + "1")
    ]
    whole, before = (
        [len(item.log_files) for item in plan.plan.operations] for plan in made if isinstance(plan, Planned)
    )
    assert sum(before) < sum(whole)
    names = [
        name
        for plan in made[1:]
        if isinstance(plan, Planned)
        for item in plan.plan.operations
        for name in item.log_files
    ]
    assert names
    assert not any(last.requested_time in name for name in names)


def test_in_version_6_nothing_is_planned_behind_a_live_write(golden: Golden) -> None:
    table = golden("6", "mor_basic").table
    begin_write(context_of(table))
    assert reason(table).startswith(f"deltacommit {LATER} is pending, and what it writes would be lost behind a plan")
    assert schedule(table, OPTIMISTIC, dry_run=True).plan is not None, "its writer finds the conflict"


def test_in_version_6_nothing_is_planned_behind_a_failed_write_of_an_eager_writer(golden: Golden) -> None:
    table = golden("6", "failed_inflight_mor").table
    policy = "hoodie.cleaner.policy.failed.writes"
    for options in ({}, {policy: "EAGER"}):
        why = reason(table, options)
        assert why.startswith("deltacommit 20261120215322754 is pending, and an EAGER writer")
        assert f"hudictl rollback TABLE, or set {policy}=LAZY" in why
    assert schedule(table, {policy: "LAZY"}).instant is not None


@pytest.mark.parametrize("folder", ["8", "9"])
def test_in_later_versions_a_failed_write_is_passed_over(golden: Golden, folder: str) -> None:
    assert schedule(golden(folder, "failed_inflight_mor").table).instant is not None


@pytest.mark.parametrize("folder", ["8", "9"])
def test_in_later_versions_a_live_write_belongs_to_the_new_slice(golden: Golden, folder: str) -> None:
    table = golden(folder, "mor_basic").table
    begin_write(context_of(table))
    assert schedule(table).instant is not None


@pytest.mark.parametrize("seconds", [-5, 0, 5])
def test_a_plan_waits_for_a_write_that_began_before_it(golden: Golden, seconds: int) -> None:
    table = golden("6", "mor_basic").table
    instant = schedule(table).instant
    assert instant is not None
    context = context_of(table)
    begin_write(context)
    planned = (table / context.active.path(instant, Action.COMPACTION, State.REQUESTED)).stat().st_mtime
    began = table / context.active.path(LATER, Action.DELTA_COMMIT, State.REQUESTED)
    os.utime(began, (planned + seconds, planned + seconds))
    request = RunRequest(table=str(table), service="compaction", owner="t", instant=instant)
    if seconds > 0:
        assert perform(context, request, LocalEngine(1), OWNER).instants[0].state == "completed"
        return
    before = contents(table)
    with pytest.raises(ConflictError, match=f"deltacommit {LATER} began before compaction {instant} was planned"):
        perform(context, request, LocalEngine(1), OWNER)
    assert contents(table) == before
    optimistic = context_of(table, OPTIMISTIC)
    assert perform(optimistic, request, LocalEngine(1), OWNER).instants[0].state == "completed"


@pytest.mark.parametrize("changed", [False, True])
def test_the_table_is_read_again_where_its_timeline_changed(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, changed: bool
) -> None:
    table = golden("9", "mor_basic").table
    drawn = []

    def watched(context: TableContext, timeline: Timeline, instant: str, *, today: date) -> Planned | Nothing:
        if changed and not drawn:
            begin_write(context)
        drawn.append(instant)
        return make_plan(context, timeline, instant, today=today)

    monkeypatch.setattr(planning, "make_plan", watched)
    instant = schedule(table).instant
    assert instant is not None
    assert len(drawn) == (2 if changed else 1)
    assert (drawn[-1] == instant) == changed


def test_nothing_is_planned_beside_a_pending_restore_or_rollback(golden: Golden) -> None:
    table = golden("8", "mor_basic").table
    context = context_of(table)
    for action in (Action.ROLLBACK, Action.RESTORE):
        path = context.active.path(LATER, action, State.REQUESTED)
        context.storage.write(path, b"")
        assert f"{action} {LATER} is pending" in reason(table)
        context.storage.delete(path)
    assert schedule(table).instant is not None


def test_a_table_that_is_not_compacted_gets_no_plan(golden: Golden) -> None:
    table = golden("9", "mor_basic").table
    with (table / ".hoodie" / "hoodie.properties").open("a") as properties:
        properties.write("hoodie.table.base.file.format=ORC\n")
    before = contents(table)
    with pytest.raises(UnsupportedError, match="base files of format ORC"):
        schedule(table)
    assert contents(table) == before


def test_options_are_checked_before_anything_is_read(golden: Golden) -> None:
    with pytest.raises(ConfigError, match=STRATEGY):
        schedule(golden("9", "mor_basic").table, {STRATEGY: "Mine"})


@pytest.mark.parametrize("folder", VERSIONS)
def test_a_file_group_of_a_bootstrap_is_left_to_hudi(golden: Golden, folder: str) -> None:
    """Its base file holds no column of the table: the new one would hold the rows of the log files alone."""
    table = golden(folder, "mor_basic").table
    partition, _, name = bootstrap_one(table).rpartition("/")
    done = schedule(table)
    assert done.plan is not None
    assert name not in [item["base_file"] for item in done.plan["operations"]]
    assert (done.plan["file_groups"], done.plan["partitions_left_out"]) == (2, [partition])
    assert reason(table) == (
        "no file group has log files in 3 partitions, beside 2 that pending plans hold (`hudictl run` or `hudictl "
        "unschedule` frees them), beside 1 whose base file is a bootstrap's, without columns of the table (let Hudi "
        "compact them); no option changes that"
    )
