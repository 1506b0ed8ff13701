"""Scheduling a clustering: what is requested, what is not and why.

Plans against those of real Hudi: tests/golden/test_clustering_plans.py, tests/interop/test_clustering_planning.py.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from hudi_core.config.engine_config import EngineConfig
from hudi_core.config.table_config import update_properties
from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConfigError, ConflictError, UnsupportedError
from hudi_core.services.clustering.planner import ClusteringService, Planned, make_plan
from hudi_core.services.context import RUN_KEY, TableContext
from hudi_core.services.service import Scheduled
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.actions.content import decode_datum
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.pending_plans import read_clustering_plans
from hudi_core.transaction.owner import Owner
from hudi_core.verbs.run import RunRequest
from tests.support.changed_tables import begin_like_a_bucket, choose_payload
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
PLAN = "hoodie.clustering.plan.strategy"
SORTED = {f"{PLAN}.sort.columns": "name"}
OPTIMISTIC = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
LATER = "20990101000000000"
NOW = datetime(2026, 1, 1)


def schedule(table: Path, options: dict[str, str] | None = None, *, dry_run: bool = False) -> Scheduled:
    return ClusteringService().schedule(context_of(table, options), OWNER, dry_run=dry_run)


def reason(table: Path, options: dict[str, str] | None = None) -> str:
    """Why nothing is planned; nothing is written."""
    before = contents(table)
    done = schedule(table, options)
    assert (done.instant, done.plan) == (None, None)
    assert contents(table) == before
    return str(done.reason)


def run(table: Path, options: dict[str, str] | None = None, **fields: Any) -> Any:
    request = RunRequest(table=str(table), service="clustering", owner="t", **fields)
    return perform(context_of(table, options), request, LocalEngine(1), OWNER)


def begin_write(context: TableContext, action: str, instant: str = LATER) -> None:
    for state in (State.REQUESTED, State.INFLIGHT):
        context.storage.write(context.active.path(instant, action, state), b"")


def planned_file(table: Path, instant: str) -> dict[str, Any]:
    """The requested file, decoded."""
    name = "*.replacecommit.requested" if "6" in table.parts else "*.requested"
    (path,) = (path for path in table.glob(f".hoodie/**/{name}") if path.name.startswith(instant))
    return decode_datum(path.read_bytes(), path=path.name)


@pytest.mark.parametrize("case", ["cow_basic", "mor_basic"])
@pytest.mark.parametrize("folder", tiered(VERSIONS, ["6", "9"]))
def test_planned_run_and_then_nothing_is_to_do(golden: Golden, folder: str, case: str) -> None:
    table = golden(folder, case).table
    before, rows = contents(table), read_rows(table)
    would = schedule(table, SORTED, dry_run=True)
    assert (would.instant, contents(table)) == (None, before)
    done = schedule(table, SORTED)
    assert done.instant is not None
    assert done.plan == would.plan
    assert done.plan is not None
    assert done.plan["partitions_left_out"] == []
    assert {group["partition"] for group in done.plan["groups"]} == {"2024-01-01", "2024-01-02", "2024-01-03"}
    context = context_of(table)
    timeline = context.active.load()
    assert ClusteringService().pending(context, timeline) == [done.instant]
    (plan,) = read_clustering_plans(context.active, timeline).values()
    assert plan.extra_metadata[RUN_KEY] == OWNER.run_id
    extent = ClusteringService().extent(context, done.instant, EngineConfig.of({}))
    assert (extent.units, extent.size) == (len(plan.groups), done.plan["bytes"])
    assert "that pending plans hold" in reason(table, SORTED)
    assert_same_rows(read_rows(table), rows)
    assert [item.state for item in run(table, SORTED).instants] == ["completed"]
    assert_same_rows(read_rows(table), rows)
    layout, target = "hoodie.layout.optimize.strategy", f"{PLAN}.target.file.max.bytes"
    alike = f"an earlier clustering left as this one would ({PLAN}.sort.columns, {layout}, {target})"
    assert alike in reason(table, SORTED)
    for others in ({f"{PLAN}.sort.columns": "id"}, {**SORTED, layout: "hilbert"}, {**SORTED, target: "500"}):
        assert schedule(table, others, dry_run=True).plan is not None, "each of these options changes it"


@pytest.mark.parametrize("folder", tiered(VERSIONS, ["6", "9"]))
def test_a_run_that_plans_first_and_all_that_is_due(golden: Golden, folder: str) -> None:
    """One group in each plan: with `all_pending` plans are made until nothing is left (hudi#14086)."""
    table = golden(folder, "cow_basic").table
    rows = read_rows(table)
    one = {f"{PLAN}.max.num.groups": "1"}
    (first,) = run(table, one, schedule=True).instants
    assert (first.state, first.action) == ("completed", "clustering")
    more = run(table, one, schedule=True, all_pending=True)
    assert [item.state for item in more.instants] == ["completed", "completed"]
    again = run(table, one, schedule=True)
    assert (again.instants, "an earlier clustering left" in str(again.reason)) == ((), True)
    assert_same_rows(read_rows(table), rows)


@pytest.mark.parametrize("folder", tiered(VERSIONS, ["9"]))
def test_a_budget_makes_several_plans_of_one(golden: Golden, folder: str) -> None:
    table = golden(folder, "mor_basic").table
    rows = read_rows(table)
    whole = schedule(table, SORTED, dry_run=True).plan
    assert whole is not None
    counted = {
        **SORTED,
        "hoodie.clustering.async.enabled": "true",
        "hoodie.clustering.async.max.commits": "2",
        "airflow_hudi.plan.max.bytes": "1",
    }
    first = schedule(table, counted)
    assert first.plan is not None
    (taken,) = first.plan["groups"]
    assert taken in whole["groups"]
    assert first.plan["left_by_budget"] == whole["file_groups"] - len(taken["file_groups"])
    assert len(first.plan["partitions_left_out"]) == 2
    done = run(table, counted, schedule=True, all_pending=True)
    assert [item.state for item in done.instants] == ["completed"] * len(whole["groups"])
    assert_same_rows(read_rows(table), rows)
    assert "hoodie.clustering.async.max.commits is 2" in reason(table, counted)


@pytest.mark.parametrize(
    ("case", "scheme"), [("cow_basic", ""), ("clustering_then_cleaned", "file:")], ids=["metadata table", "listed"]
)
def test_addresses_are_as_real_hudi_lists_files(golden: Golden, case: str, scheme: str) -> None:
    table = golden("8", case).table
    instant = schedule(table).instant
    assert instant is not None
    raw = planned_file(table, instant)["clusteringPlan"]
    for group in raw["inputGroups"]:
        for item in group["slices"]:
            assert item["dataFilePath"].startswith(f"{scheme}{table}/{item['partitionPath']}/{item['fileId']}_")
            assert Path(item["dataFilePath"].removeprefix(scheme)).is_file()


def test_partitions_that_are_left_out_are_recorded_for_the_next_planner(golden: Golden) -> None:
    table = golden("9", "cow_basic").table
    done = schedule(table, {f"{PLAN}.max.num.groups": "1"})
    assert done.plan is not None
    assert done.instant is not None
    (taken,) = {group["partition"] for group in done.plan["groups"]}
    left = sorted({"2024-01-01", "2024-01-02", "2024-01-03"} - {taken})
    assert done.plan["partitions_left_out"] == left
    assert planned_file(table, done.instant)["clusteringPlan"]["missingSchedulePartitions"] == left


@pytest.mark.parametrize("folder", VERSIONS)
def test_commits_are_counted_where_the_options_say_so(golden: Golden, folder: str) -> None:
    table = golden(folder, "clustered_cow").table
    assert len(context_of(table).active.load().commits()) > 3
    inline, background = "hoodie.clustering.inline", "hoodie.clustering.async"
    other = {f"{PLAN}.sort.columns": "id"}
    for flag, number in ((inline, f"{inline}.max.commits"), (f"{background}.enabled", f"{background}.max.commits")):
        counted = {**other, flag: "true"}
        assert reason(table, {**counted, number: "2"}).endswith(f"but {number} is 2")
        assert "1 commits since the last clustering (" in reason(table, counted)
        assert schedule(table, {**counted, number: "1"}, dry_run=True).plan is not None
    assert schedule(table, {**other, f"{inline}.max.commits": "9"}, dry_run=True).plan is not None
    scheduled = schedule(table, {**other, "hoodie.clustering.schedule.inline": "true"}, dry_run=True)
    assert (scheduled.plan is None) == (folder != "6"), "0.15 counts none there"


@pytest.mark.parametrize("name", ["compaction_inflight", "clustering_requested_mor", "log_compaction_requested"])
@pytest.mark.parametrize("folder", VERSIONS)
def test_a_file_group_of_a_pending_plan_is_not_planned_again(golden: Golden, folder: str, name: str) -> None:
    table = golden(folder, name).table
    context = context_of(table)
    pending = context.view(context.active.load()).pending
    held = {*pending.compacting, *pending.log_compacting}
    held.update(group for plan in pending.read_clusterings().values() for group in plan.file_groups())
    assert held
    made = make_plan(context, context.active.load(), LATER, now=NOW)
    if isinstance(made, Planned):
        assert held.isdisjoint(made.plan.file_groups())
    else:
        assert f"beside {len(held)} that pending plans hold" in made.reason


def test_what_takes_nothing_names_its_options(golden: Golden) -> None:
    table = golden("9", "cow_basic").table
    assert f"that are large enough ({PLAN}.small.file.limit is 1)" in reason(table, {f"{PLAN}.small.file.limit": "1"})
    nowhere = reason(table, {f"{PLAN}.partition.selected": "nowhere"})
    assert f"in the 0 of 3 partitions that the options take (hoodie.clustering.plan.partition.filter.mode, {PLAN}" in (
        nowhere
    )
    unchanged = reason(golden("9", "clustering_requested_cow").table, {})
    assert unchanged.endswith("(`hudictl run` or `hudictl unschedule` frees them); no option changes that")
    empty = reason(golden("9", "empty_table_no_commits").table, {})
    assert empty == "no file group is to be clustered in 0 partitions; no option changes that"
    failed = golden("9", "empty_table_no_commits").table
    update_properties(LocalStorage(failed), {"hoodie.table.create.schema": ""})
    assert reason(failed, SORTED) == empty, "the first write failed: no schema is known, and none is needed"
    single = {f"{PLAN}.single.group.clustering.enabled": "false", f"{PLAN}.max.bytes.per.group": "1"}
    assert f"would be rewritten alone ({PLAN}.single.group.clustering.enabled)" in reason(table, single)


@pytest.mark.parametrize("folder", ["8", "9"])
def test_what_a_write_changes_that_completes_after_the_instant_is_left_for_the_next_plan(
    golden: Golden, folder: str
) -> None:
    context = context_of(golden(folder, "mor_basic").table)
    timeline = context.active.load()
    last = timeline.commits().last()
    assert last is not None
    touched = {(stat.partition_path, stat.file_id) for stat in context.active.read_commit(last).write_stats()}
    whole, before = (make_plan(context, timeline, at, now=NOW) for at in (LATER, last.requested_time + "1"))
    assert isinstance(whole, Planned)
    assert touched <= {(item.partition, item.file_id) for item in whole.plan.slices}
    if isinstance(before, Planned):
        assert touched.isdisjoint({(item.partition, item.file_id) for item in before.plan.slices})
        assert {partition for partition, _ in touched} <= {*(before.plan.missing_partitions or ())}
    else:
        assert f"{len(touched)} that are being written" in before.reason


@pytest.mark.parametrize("folder", VERSIONS)
def test_nothing_is_planned_behind_a_live_write_that_finds_no_conflicts(golden: Golden, folder: str) -> None:
    table = golden(folder, "cow_basic").table
    begin_write(context_of(table), Action.COMMIT)
    assert reason(table).startswith(f"commit {LATER} is pending, and what it writes would be lost behind a plan")
    assert schedule(table, OPTIMISTIC, dry_run=True).plan is not None, "its writer finds the conflict"


@pytest.mark.parametrize("seconds", [-5, 0, 5])
@pytest.mark.parametrize("folder", ["6", "9"])
def test_a_plan_waits_for_a_write_that_began_before_it(golden: Golden, folder: str, seconds: int) -> None:
    table = golden(folder, "cow_basic").table
    instant = schedule(table).instant
    assert instant is not None
    context = context_of(table)
    begin_write(context, Action.COMMIT)
    (requested,) = (path for path in table.glob(f".hoodie/**/{instant}.*.requested"))
    began = table / context.active.path(LATER, Action.COMMIT, State.REQUESTED)
    planned = requested.stat().st_mtime
    os.utime(began, (planned + seconds, planned + seconds))
    if seconds > 0:
        assert run(table, instant=instant).instants[0].state == "completed"
        return
    before = contents(table)
    with pytest.raises(ConflictError, match=rf"commit {LATER} began before \w+ {instant} was planned"):
        run(table, instant=instant)
    assert contents(table) == before


def test_nothing_is_planned_beside_a_pending_restore_or_rollback(golden: Golden) -> None:
    table = golden("8", "cow_basic").table
    context = context_of(table)
    for action in (Action.ROLLBACK, Action.RESTORE):
        path = context.active.path(LATER, action, State.REQUESTED)
        context.storage.write(path, b"")
        assert f"{action} {LATER} is pending, and may roll back what would be clustered" in reason(table)
        context.storage.delete(path)
    assert schedule(table).instant is not None


def test_a_table_that_is_not_clustered_gets_no_plan(golden: Golden) -> None:
    table = golden("9", "mor_basic").table
    with (table / ".hoodie" / "hoodie.properties").open("a") as properties:
        properties.write("hoodie.table.base.file.format=ORC\n")
    before = contents(table)
    with pytest.raises(UnsupportedError, match="base files of format ORC"):
        schedule(table)
    assert contents(table) == before


@pytest.mark.parametrize(
    "payload", ["com.acme.MyPayload", "org.apache.hudi.common.model.debezium.MySqlDebeziumAvroPayload"]
)
@pytest.mark.parametrize("folder", tiered(VERSIONS, ["9"]))
def test_without_log_files_the_payload_class_does_not_matter(golden: Golden, folder: str, payload: str) -> None:
    table = golden(folder, "cow_basic").table
    before = read_rows(table)
    choose_payload(table, payload)
    assert schedule(table).instant is not None
    (done,) = run(table).instants
    assert (done.state, done.error) == ("completed", None)
    assert_same_rows(read_rows(table), before, ignore=("_hoodie_file_name",))


@pytest.mark.parametrize("folder", VERSIONS)
def test_log_files_of_an_unknown_payload_class_are_not_planned(golden: Golden, folder: str) -> None:
    table = golden(folder, "mor_basic").table
    choose_payload(table, "com.acme.MyPayload")
    before = contents(table)
    with pytest.raises(UnsupportedError, match=r"com\.acme\.MyPayload"):
        schedule(table)
    assert contents(table) == before


def test_buckets_are_left_alone(golden: Golden) -> None:
    assert "12 that are buckets or of a bootstrap" in reason(golden("9", "bucket_index_cow").table)
    with pytest.raises(UnsupportedError, match="consistent hashing"):
        schedule(golden("9", "bucket_index_consistent_mor").table)


@pytest.mark.parametrize("folder", VERSIONS)
def test_a_file_group_that_begins_like_a_bucket_by_chance_is_planned(golden: Golden, folder: str) -> None:
    table = golden(folder, "mor_basic").table
    partition, renamed = begin_like_a_bucket(table)
    assert schedule(table).instant is not None
    context = context_of(table)
    (planned,) = read_clustering_plans(context.active, context.active.load()).values()
    assert renamed in [item.file_id for item in planned.slices if item.partition == partition]


def test_options_are_checked_before_anything_is_written(golden: Golden) -> None:
    table = golden("9", "cow_basic").table
    before = contents(table)
    with pytest.raises(ConfigError, match=f"{PLAN}.class"):
        schedule(table, {f"{PLAN}.class": "Mine"})
    assert contents(table) == before


@pytest.mark.parametrize("folder", VERSIONS)
def test_an_overwrite_that_is_pending_is_no_clustering(golden: Golden, folder: str) -> None:
    table = golden(folder, "cow_basic").table
    context = context_of(table)
    begin_write(context, Action.REPLACE_COMMIT)
    assert ClusteringService().pending(context, context.active.load()) == []


def test_stream_copy_keeps_files_of_other_columns_apart(golden: Golden) -> None:
    context = context_of(golden("9", "schema_evolution_cow").table)
    copied = {f"{PLAN}.class": "SparkStreamCopyClusteringPlanStrategy"}
    timeline = context.active.load()
    together, apart = (
        make_plan(replace(context, options=options), timeline, LATER, now=NOW) for options in ({}, copied)
    )
    assert isinstance(together, Planned)
    assert isinstance(apart, Planned)
    assert apart.plan.strategy_class.endswith(".SparkStreamCopyClusteringExecutionStrategy")
    assert {*apart.plan.file_groups()} == {*together.plan.file_groups()}
    assert len(apart.plan.groups) >= len(together.plan.groups)
    for group in apart.plan.groups:
        columns = {
            tuple(pq.read_schema(Path(context.uri) / item.partition / str(item.base_file)).names)
            for item in group.slices
        }
        assert len(columns) == 1
