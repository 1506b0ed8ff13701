"""Carrying out a rollback's plan: what goes, and what drops the plan."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hudi_core.codec.log.blocks import ROLLBACK_COMMAND, BlockType, HeaderKey, encode_block
from hudi_core.errors import ConflictError, FormatError, TimelineError
from hudi_core.filegroup.write.rollback_files import RollbackStat
from hudi_core.model.names import parse_base_file
from hudi_core.services.rollback.execution import changes_of
from hudi_core.services.rollback.job import run_rollback
from hudi_core.services.rollback.verb import RollbackService, request_rollback, rollback
from hudi_core.timeline.actions.rollback import RollbackStep, decode_rollback_plan, encode_rollback_plan
from hudi_core.timeline.instant import Action, State
from tests.support.changed_tables import (
    an_owner,
    data_files,
    open_context,
    pending_write,
)
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import read_rows
from tests.support.tiers import tiered
from tests.unit.hudi_core.services.rollback.test_job import VERSIONS, Golden


@pytest.mark.parametrize(
    ("version", "name"),
    tiered(
        [("6", "cow_basic"), ("6", "mor_basic"), ("8", "mor_basic"), ("9", "mor_basic")],
        [("6", "cow_basic"), ("9", "mor_basic")],
    ),
)
@pytest.mark.parametrize("is_named", [False, True])
def test_a_write_that_completes_after_its_rollback_was_planned_stays(
    golden: Golden, version: str, name: str, is_named: bool
) -> None:
    """Its writer was only slow: what it acknowledged must not be rolled back by a run that finishes the pending
    rollback. It wrote its completed file before, and renamed it into place behind it, so that times tell nothing.
    """
    table = golden(version, name).table
    context = open_context(table)
    rows = read_rows(table)
    last = context.active.load().commits().last()
    assert last is not None
    completed = table / context.active.path_of(last)
    written = completed.rename(completed.with_name("written"))
    (pending,) = context.active.load().pending()
    metadata_timeline = request_rollback(context, pending, an_owner())
    written.rename(completed)
    with pytest.raises(ConflictError, match="completed after its rollback"):
        rollback(context, last.requested_time if is_named else None, an_owner())
    assert context.active.load().find(metadata_timeline, Action.ROLLBACK) is None
    assert read_rows(table).equals(rows)
    assert rollback(context, None, an_owner()).target is None


def test_a_command_block_of_an_earlier_attempt_is_not_written_again(golden: Golden) -> None:
    """Table version 6; its marker under the rollback's instant names it, also when real Hudi wrote it."""
    case = golden("6", "failed_inflight_mor")
    failed, after = pending_write(case.table), case.after()
    context = open_context(case.table)
    scheduled = RollbackService().schedule(context, an_owner(), dry_run=False)
    assert scheduled.instant is not None
    (log,) = (case.table / "2024-01-01").glob(".*.log.2_*")
    name = log.name.replace(".log.2_1-532-667", ".log.3_7-7-7")
    headers = {
        HeaderKey.INSTANT_TIME: scheduled.instant,
        HeaderKey.TARGET_INSTANT_TIME: failed,
        HeaderKey.COMMAND_BLOCK_TYPE: ROLLBACK_COMMAND,
    }
    (case.table / "2024-01-01" / name).write_bytes(encode_block(BlockType.COMMAND, headers))
    marker = case.table / ".hoodie" / ".temp" / scheduled.instant / "2024-01-01" / f"{name}.marker.APPEND"
    marker.parent.mkdir(parents=True)
    marker.write_bytes(b"")
    rollback(context, failed, an_owner())
    assert data_files(case.table) == data_files(after)
    assert (case.table / "2024-01-01" / name).exists()
    assert not marker.exists()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_completed_clustering_goes_with_its_plan(golden: Golden, version: str) -> None:
    case = golden(version, "clustered_cow")
    context = open_context(case.table)
    *_, clustering, newest = context.active.load().commits()
    assert clustering.action == Action.REPLACE_COMMIT
    rollback(context, newest.requested_time, an_owner())
    rows = read_rows(case.table, "off")
    rollback(context, clustering.requested_time, an_owner())
    assert not context.active.load().contains(clustering.requested_time)
    assert_same_rows(read_rows(case.table, "off"), rows)  # clustering keeps rows as they are


def test_a_completed_compaction_goes_with_the_log_files_on_top_of_it(golden: Golden) -> None:
    """Table version 6: they carry its instant; without it they would be their file group's newest slice once it is
    archived.
    """
    case = golden("6", "mor_compacted")
    context = open_context(case.table)
    while (newest := context.active.load().commits().last()) is not None:
        rollback(context, newest.requested_time, an_owner())
        if newest.action == Action.COMMIT:
            break
    assert newest is not None
    assert newest.pending_action == Action.COMPACTION
    assert [path for path in data_files(case.table) if newest.requested_time in path] == []


def test_file_changes_name_deleted_files_and_the_logs_of_command_blocks() -> None:
    stats = [
        RollbackStat("p", deleted=("a.parquet", "b.log")),
        RollbackStat("q", commands={".c.log.2": 10}, failed_logs={".c.log.1": 5}, kept_logs={".c.log.1": 7}),
    ]
    changes = changes_of(stats)
    assert changes.deleted == {"p": frozenset({"a.parquet", "b.log"})}
    assert changes.written == {"q": {".c.log.1": 7, ".c.log.2": 10}}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_plan_with_a_request_that_cannot_be_followed_writes_nothing(golden: Golden, version: str) -> None:
    """The request is the last of the plan: nothing of the earlier ones is done, nor is anything claimed."""
    table = golden(version, "failed_inflight_mor").table
    context, failed = open_context(table), pending_write(table)
    path = table / request_a_rollback(table, failed)
    plan = decode_rollback_plan(path.read_bytes(), path=path.name)
    wrong = RollbackStep("2024-01-01", "../f", "001", (), {"a": 1})
    path.write_bytes(encode_rollback_plan(plan.instant, plan.action, (*plan.requests, wrong)))
    before = {path: path.is_dir() or path.read_bytes() for path in table.rglob("*")}
    with pytest.raises(FormatError, match="no file slice") as caught:
        rollback(context, failed, an_owner())
    assert str(caught.value.path).endswith(path.name)
    assert {path: path.is_dir() or path.read_bytes() for path in table.rglob("*")} == before


@pytest.mark.parametrize("version", VERSIONS)
def test_a_plan_for_an_archived_commit_is_refused(golden: Golden, version: str) -> None:
    """Its instant is not on the timeline, as that of a rollback that died; but its files hold rows."""
    table = golden(version, "archived_timeline_mor").table
    context = open_context(table)
    failed = min(context.history().timeline().commits().requested_times)
    (newest, *_) = table.glob("*/*.parquet")
    data = newest.with_name(str(replace(parse_base_file(newest.name), instant=failed)))
    data.write_bytes(newest.read_bytes())
    request = RollbackStep(data.parent.name, delete=(f"/t/{data.parent.name}/{data.name}",))
    rollback_at = context.new_instant(context.active.load())
    content = encode_rollback_plan(failed, Action.DELTA_COMMIT, [request])
    context.active.create_requested(rollback_at, Action.ROLLBACK, content)
    before = {path: path.is_dir() or path.read_bytes() for path in table.rglob("*")}
    with pytest.raises(FormatError, match="completed and archived") as caught:
        run_rollback(context, rollback_at, an_owner())
    assert rollback_at in str(caught.value.path)
    assert {path: path.is_dir() or path.read_bytes() for path in table.rglob("*")} == before


def request_a_rollback(table: Path, failed: str) -> str:
    """The path of the plan that this engine makes for `failed`."""
    context = open_context(table)
    instant = context.active.load().find(failed, Action.DELTA_COMMIT)
    assert instant is not None
    return context.active.path(request_rollback(context, instant, an_owner()), Action.ROLLBACK, State.REQUESTED)


def files_of(table: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in table.rglob("*") if path.is_file()}


def request_plan(table: Path, instant: str, action: str, *requests: RollbackStep) -> str:
    """A rollback that some process planned; its instant."""
    active = open_context(table).active
    when = str(int(max(item.completed_at for item in active.load())) + 1)
    active.create_requested(when, Action.ROLLBACK, encode_rollback_plan(instant, action, requests))
    return when


def assert_refused(table: Path, planned: str, match: str) -> None:
    """Before the claim, and so before the first delete."""
    before = files_of(table)
    with pytest.raises(FormatError, match=match) as caught:
        run_rollback(open_context(table), planned, an_owner())
    assert (caught.value.path or "").endswith(f"{planned}.rollback.requested")
    assert files_of(table) == before


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_every_name_of_a_plan_is_checked_before_the_first_delete(golden: Golden, version: str) -> None:
    table = golden(version, "failed_inflight_cow").table
    failed = pending_write(table)
    path = min(table.rglob(f"*_{failed}.parquet"))
    partition = path.parent.relative_to(table).as_posix()
    bad = RollbackStep(partition, "../x", failed, log_blocks={".f_1.log.1_0-0-0": 1})
    planned = request_plan(table, failed, Action.COMMIT, RollbackStep(partition, delete=(str(path),)), bad)
    assert_refused(table, planned, "is no file slice")


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_files_of_another_instant_are_left_alone(golden: Golden, version: str) -> None:
    table = golden(version, "failed_inflight_cow").table
    failed = pending_write(table)
    mine = min(table.rglob(f"*_{failed}.parquet"))
    other = min(path for path in mine.parent.glob("*.parquet") if failed not in path.name)
    request = RollbackStep(mine.parent.relative_to(table).as_posix(), delete=(str(other), str(mine), "../../x"))
    run_rollback(open_context(table), request_plan(table, failed, Action.COMMIT, request), an_owner())
    assert other.exists()
    assert not mine.exists()


def test_log_files_with_rows_of_later_writes_stay(golden: Golden) -> None:
    """Table version 6: they carry the instant of the compaction on whose slice they are. Real Hudi plans to delete them
    while no later deltacommit is completed.
    """
    table = golden("6", "mor_compaction_requested").table
    active = open_context(table).active
    (compaction,) = active.load().pending_compactions()
    instant = compaction.requested_time
    active.to_inflight(instant, Action.COMPACTION)
    logs = sorted(path for path in table.glob(f"*/.*_{instant}.log.*") if path.suffix != ".crc")
    assert logs
    requests = [RollbackStep(path.parent.relative_to(table).as_posix(), delete=(str(path),)) for path in logs]
    planned = request_plan(table, instant, Action.COMPACTION, *requests)
    assert_refused(table, planned, "which holds rows of a completed instant")
    for path in logs:  # what a writer left there that never completed
        path.write_bytes(encode_block(BlockType.DELETE, {HeaderKey.INSTANT_TIME: f"{int(instant) + 1}"}, b""))
    run_rollback(open_context(table), planned, an_owner())
    assert not any(path.exists() for path in logs)


def test_a_compaction_whose_log_files_hold_rows_of_an_older_write_stays(golden: Golden) -> None:
    """Table version 6: the write was requested before the compaction, was still at work when that was, and appended to
    its slice. No later commit is on the timeline.
    """
    table = golden("6", "mor_compacted").table
    context = open_context(table)
    while (newest := context.active.load().commits().last()) is not None and newest.action != Action.COMMIT:
        rollback(context, newest.requested_time, an_owner())
    assert newest is not None
    older = context.active.load().commits().before(newest.requested_time).last()
    assert older is not None
    base = min(table.glob(f"*/*_{newest.requested_time}.parquet"))
    log = base.with_name(f".{parse_base_file(base.name).file_id}_{newest.requested_time}.log.99_0-1-0")
    log.write_bytes(encode_block(BlockType.DELETE, {HeaderKey.INSTANT_TIME: older.requested_time}, b""))
    before = files_of(table)
    for dry_run in (True, False):
        with pytest.raises(TimelineError, match="another completed write has rows in the log file"):
            rollback(context, newest.requested_time, an_owner(), dry_run=dry_run)
        assert files_of(table) == before
    request = RollbackStep(base.parent.relative_to(table).as_posix(), delete=(str(log),))
    planned = request_plan(table, newest.requested_time, Action.COMMIT, request)
    assert_refused(table, planned, "which holds rows of a completed instant")
