"""Scheduling a log compaction: what is requested, and why nothing is.

Plans against those of real Hudi: tests/golden/test_log_compactions.py, tests/interop/test_log_compaction.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hudi_core.codec.log.blocks import LogBlock
from hudi_core.config.engine_config import EngineConfig
from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConfigError
from hudi_core.filegroup.read.log_scan import log_blocks
from hudi_core.filegroup.write import log_copy
from hudi_core.model.names import LogFileName, parse_data_file
from hudi_core.services.compaction.log_planner import LogCompactionService
from hudi_core.services.compaction.planner import CompactionService
from hudi_core.services.context import RUN_KEY, TableContext
from hudi_core.timeline.actions.commit import encode_commit, encode_commit_avro
from hudi_core.timeline.instant import Action, State
from hudi_core.verbs.run import RunRequest
from tests.support.golden_cleans import without_metadata_table
from tests.support.golden_compactions import context_of
from tests.support.golden_data import GoldenCase
from tests.support.log_compactions import ENABLED, FROM_ONE, OWNER, PLANNED, VERSIONS, merge_logs, planned, schedule
from tests.support.rows import assert_same_rows
from tests.support.table_files import contents
from tests.support.table_invariants import read_rows
from tests.support.table_requests import nothing_to_do, perform
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
BLOCKS = "hoodie.log.compaction.blocks.threshold"


def reason(table: Path, options: dict[str, str]) -> str:
    """Why nothing is planned; nothing is written."""
    before = contents(table)
    done = schedule(table, options)
    assert (done.instant, done.plan) == (None, None)
    assert contents(table) == before
    return str(done.reason)


def begin_write(context: TableContext, instant: str) -> None:
    for state in (State.REQUESTED, State.INFLIGHT):
        context.storage.write(context.active.path(instant, Action.DELTA_COMMIT, state), b"")


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_planned_run_and_then_nothing_is_due(golden: Golden, version: str) -> None:
    table = golden(version, "mor_basic").table
    before, rows = contents(table), read_rows(table)
    would = schedule(table, dry_run=True)
    assert (would.instant, contents(table)) == (None, before)
    done = schedule(table)
    assert done.instant is not None
    assert done.plan == would.plan
    assert done.plan is not None
    assert (done.plan["file_groups"], done.plan["log_files"]) == (3, 10)
    plan = context_of(table).active.read_plan(done.instant, Action.LOG_COMPACTION)
    assert plan.extra_metadata is not None
    assert plan.extra_metadata[RUN_KEY] == OWNER.run_id
    assert_same_rows(read_rows(table), rows)
    held = reason(table, FROM_ONE)
    assert held == (
        f"log compaction {done.instant} is pending: run it, or drop it by `hudictl unschedule`; no option changes that"
        if version == "9"
        else "no file slice has log files, beside 3 that pending plans hold (`hudictl run` or `hudictl unschedule` "
        "frees them); no option changes that"
    )
    due = {"hoodie.compact.inline.max.delta.commits": "1"}
    compaction = CompactionService().schedule(context_of(table, due), OWNER, dry_run=True)
    assert compaction.reason.startswith("no file group has log files in 3 partitions, beside 3 that pending plans hold")
    merge_logs(table)
    again = reason(table, {**ENABLED, BLOCKS: "3"})
    assert f"{BLOCKS}" in again
    assert_same_rows(read_rows(table), rows, ignore=())


@pytest.mark.parametrize("version", tiered(VERSIONS, ["9"]))
@pytest.mark.parametrize("least", tiered(["1", "2", "5"], ["1", "5"]))
def test_what_one_has_merged_is_left_alone(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, version: str, least: str
) -> None:
    """Its output has more blocks than the threshold asks for: one for each record, and those of deletes."""
    monkeypatch.setattr(log_copy, "BLOCK_BYTES", 1)
    table = golden(version, "mor_basic").table
    rows = read_rows(table)
    request = RunRequest(str(table), "log_compaction", schedule=True, all_pending=True)
    context = context_of(table, {**ENABLED, BLOCKS: least})
    steps: list[str] = []

    def count(instant: str, done: int, total: int) -> None:
        steps.append(instant)
        assert len(set(steps)) < 3, "the run plans its own output"

    found = perform(context, request, LocalEngine(1), OWNER, count)
    assert [item.state for item in found.instants] == ["completed"]
    assert_same_rows(read_rows(table), rows, ignore=())


def newest_log(table: Path) -> tuple[str, LogFileName, bytes, str]:
    """Partition, name, content and instant of the newest log file of a file group."""
    context = context_of(table)
    view = context.view(context.active.load(), "off")
    partition = view.partitions()[0]
    (file, *_) = (item.log_files[-1] for item in view.latest_slices(partition) if item.log_files)
    (block, *_) = (item for item in log_blocks(context.storage, [file]) if isinstance(item, LogBlock))
    name = parse_data_file(file.name)
    assert isinstance(name, LogFileName)
    assert block.instant_time is not None
    return partition, name, context.storage.read(f"{partition}/{file.name}"), block.instant_time


def write_again(table: Path, log: tuple[str, LogFileName, bytes, str]) -> str:
    """The instant of a delta commit whose log block holds the rows of `log`."""
    partition, name, content, written = log
    context = context_of(table)
    active, timeline = context.active, context.active.load()
    instant, done = context.new_instant(timeline), active.read_commit(timeline.commits().instants[-1])
    made = replace(name, version=name.version + 9) if active.layout == 1 else replace(name, instant=instant, version=1)
    (table / partition / str(made)).write_bytes(content.replace(written.encode(), instant.encode()))
    done = replace(done, partition_to_write_stats={}, operation_type="UPSERT")
    data = encode_commit(done) if active.layout == 1 else encode_commit_avro(done)
    active.create_requested(instant, Action.DELTA_COMMIT)
    active.to_inflight(instant, Action.DELTA_COMMIT)
    active.complete(instant, Action.DELTA_COMMIT, data, str(int(instant) + 1))
    return instant


def blocks_of(table: Path, log: tuple[str, LogFileName, bytes, str], *instants: str) -> int:
    """How many log blocks of `instants` the file group of `log` has."""
    context = context_of(table)
    view = context.view(context.active.load(), "off")
    slices = [item for item in view.latest_slices(log[0]) if item.file_group.file_id == log[1].file_id]
    found = (block for item in slices for block in log_blocks(context.storage, item.log_files))
    return sum(isinstance(block, LogBlock) and block.instant_time in instants for block in found)


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_what_one_has_merged_is_taken_with_a_new_block_where_both_reach_the_threshold(
    golden: Golden, version: str
) -> None:
    """Hudi counts the merged blocks, and no more those that they were merged of (getCurrentInstantLogBlocks). In
    version 9 it counts delta commits first, the log compaction with them.
    """
    table = without_metadata_table(golden(version, "mor_basic").table)
    log = newest_log(table)
    merged = str(schedule(table).instant)
    merge_logs(table)
    written = write_again(table, log)
    rows = read_rows(table)
    least = 2 if version == "9" else blocks_of(table, log, merged, written)
    assert least >= 2
    reason(table, {**ENABLED, BLOCKS: str(least + 1)})
    due = schedule(table, {**ENABLED, BLOCKS: str(least)})
    assert due.plan is not None, due.reason
    assert due.plan["file_groups"] == 1
    (operation,) = context_of(table).active.read_plan(str(due.instant), Action.LOG_COMPACTION).operations
    assert (operation.file_group.partition, operation.file_group.file_id) == (log[0], log[1].file_id)
    merge_logs(table)
    assert_same_rows(read_rows(table), rows, ignore=())
    reason(table, {**ENABLED, BLOCKS: "1"})


@pytest.mark.parametrize("version", tiered(VERSIONS, ["9"]))
def test_what_a_budget_left_out_is_due_at_once(golden: Golden, version: str) -> None:
    """In version 9 as well, where delta commits are counted: a file slice in each plan, until all are merged."""
    table = golden(version, "mor_basic").table
    rows = read_rows(table)
    context = context_of(table, {**ENABLED, BLOCKS: "3", "airflow_hudi.plan.max.bytes": "1"})
    request = RunRequest(str(table), "log_compaction", schedule=True, all_pending=True)
    found = perform(context, request, LocalEngine(1), OWNER)
    assert [(item.state, item.files_written) for item in found.instants] == [("completed", 1)] * 3
    assert_same_rows(read_rows(table), rows, ignore=())


def test_it_is_planned_on_an_explicit_option_only(golden: Golden) -> None:
    table = golden("8", "mor_basic").table
    said = "log compactions are planned with hoodie.log.compaction.enable=true only, since readers must know them"
    assert reason(table, {}) == said
    assert reason(table, {"hoodie.log.compaction.enable": "false"}) == said
    with pytest.raises(ConfigError, match=BLOCKS):
        schedule(table, {**ENABLED, BLOCKS: "none"})


def test_the_threshold_chooses_the_slices(golden: Golden) -> None:
    """In version 9 delta commits are counted first, then log files; before, log blocks of each slice."""
    for version in VERSIONS:
        table = golden(version, "mor_basic").table
        counts = {}
        for least in (1, 3, 4, 5, 9):
            done = schedule(table, {**ENABLED, BLOCKS: str(least)}, dry_run=True)
            counts[least] = 0 if done.plan is None else done.plan["file_groups"]
        assert counts[1] == 3
        assert counts[9] == 0
        assert list(counts.values()) == sorted(counts.values(), reverse=True)
    assert reason(golden("9", "mor_basic").table, {**ENABLED, BLOCKS: "9"}).endswith(
        f"delta commits so far, but {BLOCKS} is 9"
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_nothing_is_planned_beside_what_takes_rows_back_or_comes_between(golden: Golden, version: str) -> None:
    table = golden(version, "mor_basic").table
    context = context_of(table)
    begin_write(context, "20990101000000000")
    made = schedule(table, dry_run=True)
    assert "deltacommit 20990101000000000 is pending, and its log blocks may come between" in str(made.reason)
    context.storage.write(context.active.path("20990102000000000", Action.ROLLBACK, State.REQUESTED), b"")
    assert "rollback 20990102000000000 is pending" in str(schedule(table, dry_run=True).reason)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_look_and_a_run_say_the_same(golden: Golden, version: str) -> None:
    table = golden(version, PLANNED).table
    context = context_of(table)
    assert nothing_to_do(context, RunRequest(str(table), "log_compaction")) is None
    found = perform(context, RunRequest(str(table), "log_compaction"), LocalEngine(1), OWNER)
    assert [item.state for item in found.instants] == ["completed"]
    for schedules in (False, True):
        request = RunRequest(str(table), "log_compaction", schedule=schedules)
        looked = nothing_to_do(context_of(table), request)
        ran = perform(context_of(table), request, LocalEngine(1), OWNER)
        assert looked is not None
        assert (looked.instants, looked.reason) == (ran.instants, ran.reason) == ((), ran.reason)
        assert ran.reason is not None


@pytest.mark.parametrize("version", VERSIONS)
def test_the_extent_of_a_plan(golden: Golden, version: str) -> None:
    table = golden(version, PLANNED).table
    context = context_of(table)
    extent = LogCompactionService().extent(context, planned(table), _engine_config())
    assert extent.units == 3
    assert extent.size > extent.largest > 0


def _engine_config() -> EngineConfig:
    return EngineConfig.of({})
