"""What a rollback finds and whom it refuses, beyond what the golden tables show."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from hudi_core.codec.log.blocks import ROLLBACK_COMMAND, BlockType, HeaderKey
from hudi_core.codec.log.frames import encode_block
from hudi_core.errors import ConfigError, ConflictError, TimelineError
from hudi_core.services.rollback import planner
from hudi_core.services.rollback import verb as run
from hudi_core.services.rollback.job import RollbackJob
from hudi_core.services.rollback.planner import RollbackService, request_rollback
from hudi_core.services.rollback.verb import clean_failed_writes, rollback
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.actions.rollback import decode_rollback_plan
from hudi_core.timeline.instant import Action, State
from hudi_core.transaction.claim import claim
from hudi_core.transaction.owner import Owner
from tests.support.changed_tables import (
    METADATA,
    an_owner,
    assert_rows,
    data_files,
    known_times,
    leftovers,
    listed,
    new_instants,
    open_context,
    pending_write,
    shown,
)
from tests.support.fault_storage import FaultPlan, FaultStorage, InjectedCrash, Operation
from tests.support.golden_data import GoldenCase
from tests.support.rows import assert_same_rows, read_parquet
from tests.support.table_invariants import assert_metadata_true, has_metadata_table, read_rows

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["6", "8", "9"]


def heartbeat(table: Path, instant: str, age: float = 0.0) -> Path:
    path = table / ".hoodie" / ".heartbeat" / instant
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"")
    moment = time.time() - age
    os.utime(path, (moment, moment))
    return path


def dead_process() -> Owner:
    return replace(Owner.current("the process that dies"), process_start="1")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "name",
    ["mor_basic", "cow_basic", "mor_compacted", "mdt_all_mor", "insert_overwrite_partition_mor", "clustered_cow"],
)
def test_the_newest_commits_go_one_by_one(golden: Golden, version: str, name: str) -> None:
    """After each the table is what time travel to the commit before showed; every index of the metadata table tells the
    same.
    """
    case = golden(version, name)
    commits = [instant.requested_time for instant in open_context(case.table).active.load().commits()]
    for instant, before in list(zip(reversed(commits), reversed(commits[:-1]), strict=False))[:2]:
        expected = case.expected / f"as_of_{before}.parquet"
        result = rollback(open_context(case.table), instant, an_owner())
        assert result.target == instant
        rows = read_rows(case.table, "off")
        if expected.exists():
            assert_same_rows(rows, read_parquet(expected))
        assert_rows(case.table, rows)
        assert_metadata_true(case.table)
        assert leftovers(case.table, instant) == []
        if has_metadata_table(case.table):
            assert listed(case.table) == {
                path: size for path, size in data_files(case.table).items() if not path.endswith("_partition_metadata")
            }


@pytest.mark.parametrize("version", VERSIONS)
def test_an_older_commit_does_not_go(golden: Golden, version: str) -> None:
    case = golden(version, "mor_basic")
    context = open_context(case.table)
    first, *_ = context.active.load().commits()
    before = data_files(case.table)
    with pytest.raises(TimelineError, match="is followed by deltacommit"):
        rollback(context, first.requested_time, an_owner())
    assert data_files(case.table) == before
    assert context.active.load().of_actions(Action.ROLLBACK).instants == ()


@pytest.mark.parametrize("version", VERSIONS)
def test_who_is_alive_is_left_alone(golden: Golden, version: str) -> None:
    table = golden(version, "failed_inflight_mor").table
    failed = pending_write(table)
    context = open_context(table)
    heartbeat(table, failed)
    with pytest.raises(ConflictError, match="a writer is at work"):
        rollback(context, failed, an_owner())
    assert rollback(context, None, an_owner()).target is None
    assert clean_failed_writes(context, an_owner()) == []
    heartbeat(table, failed, age=121)
    assert rollback(context, None, an_owner(), dry_run=True).target == failed
    (result,) = clean_failed_writes(context, an_owner())
    assert result.target == failed
    assert leftovers(table, failed) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_a_young_write_without_a_heartbeat_may_be_an_eager_writers(golden: Golden, version: str) -> None:
    """Real Hudi's LAZY cleaning takes it for dead."""
    table = golden(version, "failed_inflight_mor").table
    failed = pending_write(table)
    for file in table.glob(f".hoodie/**/{failed}.*"):
        os.utime(file)
    context = open_context(table)
    assert clean_failed_writes(context, an_owner()) == []
    assert "EAGER" in (rollback(context, None, an_owner()).reason or "")
    assert [result.target for result in clean_failed_writes(context, an_owner(), eager=True, dry_run=True)] == [failed]
    eager = open_context(table, {"hoodie.cleaner.policy.failed.writes": "EAGER"})
    assert [result.target for result in clean_failed_writes(eager, an_owner())] == [failed]
    assert clean_failed_writes(eager, an_owner()) == []


def completes_the_rollback(operation: Operation) -> bool:
    return (
        operation.kind == "create_exclusive"
        and operation.path.endswith(".rollback")
        and "metadata" not in operation.path
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_hudi_3556_a_rollback_that_died_is_finished_under_its_own_instant(
    golden: Golden, version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = golden(version, "failed_after_metadata_mor")
    failed, known, after = pending_write(case.table), known_times(case.table), case.after()
    plan = FaultPlan(when=completes_the_rollback)
    dying = open_context(case.table, storage=FaultStorage(LocalStorage(case.table), plan))
    with pytest.raises(InjectedCrash):
        rollback(dying, failed, dead_process())
    (metadata_timeline,) = new_instants(case.table, known)
    with monkeypatch.context() as without_guard:
        copy = Path(shutil.copytree(case.table, tmp_path / "without guard"))
        for module in (run, planner):
            without_guard.setattr(module, "pending_rollback_of", lambda active, timeline, instant: None)
        with pytest.raises(
            ConfigError, match="holds no instant"
        ):  # it went before the rollback completed, which nobody finishes any more
            rollback(open_context(copy), failed, an_owner())
    context = open_context(case.table)
    service = RollbackService()
    assert service.pending(context, context.active.load()) == [metadata_timeline]
    assert "is pending" in (service.schedule(context, an_owner(), dry_run=False).reason or "")
    (result,) = clean_failed_writes(context, an_owner())
    assert (result.instant, result.target) == (metadata_timeline, failed)
    assert new_instants(case.table, known) == [metadata_timeline]
    assert data_files(case.table) == data_files(after)
    assert leftovers(case.table, failed) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_hudi_4863_a_failed_write_goes_while_a_compaction_is_inflight(golden: Golden, version: str) -> None:
    """hudi#4863: rows were lost when a write was rolled back beside a running compaction. Neither plan nor inflight
    file is touched.
    """
    case = golden(version, "mor_compaction_requested")
    context = open_context(case.table)
    (compaction,) = context.active.load().pending_compactions()
    context.active.to_inflight(compaction.requested_time, Action.COMPACTION)
    newest = context.active.load().commits().last()
    assert newest is not None
    assert newest.requested_time > compaction.requested_time
    result = rollback(context, newest.requested_time, an_owner())
    assert result.target == newest.requested_time
    found = context.active.load().get(compaction.requested_time, Action.COMPACTION)
    assert found.state is State.INFLIGHT
    plan = context.active.read_plan(compaction.requested_time)
    for operation in plan.operations:
        for name in (*operation.log_files, *([operation.base_file] if operation.base_file else [])):
            assert (case.table / operation.partition / name).exists()
    assert_rows(case.table, read_rows(case.table, "off"))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_commit_that_a_plan_was_made_on_does_not_go(golden: Golden, version: str) -> None:
    context = open_context(golden(version, "mor_compaction_requested_only").table)
    newest = context.active.load().commits().last()
    assert newest is not None
    with pytest.raises(TimelineError, match="was planned on"):
        rollback(context, newest.requested_time, an_owner())


@pytest.mark.parametrize("version", VERSIONS)
def test_an_attempt_at_a_compaction_goes_back_to_requested(golden: Golden, version: str) -> None:
    case = golden(version, "compaction_inflight")
    context = open_context(case.table)
    (compaction,) = context.active.load().pending_compactions()
    written = {path for path in data_files(case.table) if path.endswith(f"_{compaction.requested_time}.parquet")}
    before = data_files(case.table)
    preview = rollback(context, compaction.requested_time, an_owner(), dry_run=True)
    result = rollback(context, compaction.requested_time, an_owner())
    assert set(result.removed.files) == set(preview.removed.files) == written
    assert result.removed.instants == preview.removed.instants == ()
    assert set(before) - set(data_files(case.table)) == written
    assert context.active.load().get(compaction.requested_time, Action.COMPACTION).state is State.REQUESTED
    again = rollback(context, compaction.requested_time, an_owner())
    assert (again.instant, again.removed.files) == (result.instant, {})
    if has_metadata_table(case.table):
        assert listed(case.table) == {
            path: size for path, size in data_files(case.table).items() if not path.endswith("_partition_metadata")
        }


@pytest.mark.parametrize("version", VERSIONS)
def test_a_run_of_ours_that_is_alive_keeps_its_instant(golden: Golden, version: str) -> None:
    context = open_context(golden(version, "compaction_inflight").table)
    (compaction,) = context.active.load().pending_compactions()
    with (
        claim(context.storage, compaction.requested_time, Owner.current("the compaction")),
        pytest.raises(ConflictError, match="the compaction"),
    ):
        rollback(context, compaction.requested_time, an_owner())
    assert context.active.load().get(compaction.requested_time, Action.COMPACTION).state is State.INFLIGHT


@pytest.mark.parametrize("version", VERSIONS)
def test_a_plan_that_nobody_began_is_not_rolled_back(golden: Golden, version: str) -> None:
    context = open_context(golden(version, "clustering_requested_cow").table)
    (pending,) = context.active.load().pending()
    with pytest.raises(TimelineError, match="only planned"):
        rollback(context, pending.requested_time, an_owner())


@pytest.mark.parametrize("version", VERSIONS)
def test_an_attempt_at_a_clustering_goes_back_to_requested(golden: Golden, version: str) -> None:
    case = golden(version, "clustering_requested_cow")
    context = open_context(case.table)
    (pending,) = context.active.load().pending()
    context.active.to_inflight(pending.requested_time, pending.action)
    orphan = (
        case.table / "2024-01-01" / f"00000000-0000-0000-0000-000000000000-0_0-1-0_{pending.requested_time}.parquet"
    )
    orphan.write_bytes(b"half")
    result = rollback(context, pending.requested_time, an_owner())
    assert result.instant is not None
    assert not orphan.exists()
    assert context.active.load().get(pending.requested_time, pending.action).state is State.REQUESTED
    claims = f".hoodie/.airflow_hudi/claims/{pending.requested_time}"  # the epoch that the next owner counts on from
    assert leftovers(case.table, pending.requested_time) == [f"{claims}/000001.json", f"{claims}/000001.released"]


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


@pytest.mark.parametrize("version", VERSIONS)
def test_hudi_18783_what_a_zombie_writes_after_its_rollback_is_found(
    golden: Golden, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = golden(version, "failed_inflight_mor").table
    failed = pending_write(table)
    context = open_context(table)
    rollback(context, failed, an_owner())
    before = data_files(table)
    late = table / "2024-01-02" / f"00000000-0000-0000-0000-000000000000-0_9-1-9_{failed}.parquet"
    late.write_bytes(b"late")
    with monkeypatch.context() as without_guard:
        without_guard.setattr(RollbackJob, "_delete_late_files", lambda self: None)
        rollback(context, failed, an_owner())
        assert data_files(table) != before
    rollback(context, failed, an_owner())
    assert data_files(table) == before


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("name", "refused"),
    [("clean_requested_versions_cow", True), ("cleaned_versions_cow", False), ("clean_requested_mor", False)],
)
def test_a_clean_that_takes_what_it_would_go_back_to(golden: Golden, version: str, name: str, refused: bool) -> None:
    """Whether it has run or is planned: real Hudi rolls back, and the rows are gone with the next clean."""
    case = golden(version, name)
    context = open_context(case.table)
    newest = context.active.load().commits().last()
    assert newest is not None
    before = data_files(case.table)
    if refused:
        with pytest.raises(TimelineError, match="removes what its file groups held before"):
            rollback(context, newest.requested_time, an_owner())
        assert data_files(case.table) == before
    else:
        assert rollback(context, newest.requested_time, an_owner()).target == newest.requested_time


@pytest.mark.parametrize("version", VERSIONS)
def test_a_write_that_only_was_requested(golden: Golden, version: str) -> None:
    table = golden(version, "cow_basic").table
    context = open_context(table)
    failed = context.new_instant(context.active.load())
    context.active.create_requested(failed, Action.COMMIT)
    before = data_files(table)
    assert rollback(context, failed, an_owner()).removed.instants == (failed,)
    assert data_files(table) == before
    assert not context.active.load().contains(failed)


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


@pytest.mark.parametrize("version", VERSIONS)
def test_of_many_at_once_one_rolls_back(golden: Golden, version: str) -> None:
    case = golden(version, "failed_after_metadata_mor")
    failed, known, after = pending_write(case.table), known_times(case.table), case.after()

    def act(number: int) -> str | None:
        try:
            return rollback(open_context(case.table), failed, Owner.current(f"process {number}")).instant
        except ConflictError:
            return None

    with ThreadPoolExecutor(8) as pool:
        answers = set(pool.map(act, range(8))) - {None}
    assert len(answers) == 1
    assert new_instants(case.table, known) == list(answers)
    rollback(open_context(case.table), failed, an_owner())
    assert data_files(case.table) == data_files(after)
    assert shown(case.table, known) == shown(after, known)
    assert shown(case.table, known, METADATA) == shown(after, known, METADATA)
    assert leftovers(case.table, failed) == []


def test_unknown_and_foreign_instants(golden: Golden) -> None:
    context = open_context(golden("6", "cleaned_commits_cow").table)
    with pytest.raises(ConfigError, match="holds no instant"):
        rollback(context, "20200101000000000", an_owner())
    clean = context.active.load().of_actions(Action.CLEAN).last()
    assert clean is not None
    with pytest.raises(ConfigError, match="cannot be rolled back"):
        rollback(context, clean.requested_time, an_owner())


@pytest.mark.parametrize("version", VERSIONS)
def test_the_service_plans_and_runs(golden: Golden, version: str) -> None:
    case = golden(version, "failed_inflight_mor")
    failed, after = pending_write(case.table), case.after()
    context = open_context(case.table)
    service = RollbackService()
    preview = service.schedule(context, an_owner(), dry_run=True)
    assert preview.instant is None
    assert preview.plan is not None
    scheduled = service.schedule(context, an_owner(), dry_run=False)
    assert scheduled.plan == preview.plan
    assert scheduled.instant is not None
    path = context.active.path(scheduled.instant, Action.ROLLBACK, State.REQUESTED)
    assert decode_rollback_plan(context.storage.read(path), path=path).instant == failed
    assert service.pending(context, context.active.load()) == [scheduled.instant]
    for _ in range(2):
        result = service.run(context, scheduled.instant, NO_ENGINE, an_owner(), None)
        assert (result.instant, result.action, result.state) == (scheduled.instant, "rollback", "completed")
    assert data_files(case.table) == data_files(after)
    assert "no rollback is pending" in (service.schedule(context, an_owner(), dry_run=False).reason or "")


class _NoEngine:
    def run(self, *args: object, **options: object) -> object:
        raise AssertionError("a rollback has no units")


NO_ENGINE = _NoEngine()


def test_a_command_block_of_an_earlier_attempt_is_not_written_again(golden: Golden) -> None:
    """Table version 6; its marker under the rollback's instant tells of it, also when real Hudi wrote it."""
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


@pytest.mark.parametrize(
    ("version", "name"), [("6", "cow_basic"), ("6", "mor_basic"), ("8", "mor_basic"), ("9", "mor_basic")]
)
def test_a_write_that_completes_after_its_rollback_was_planned_stays(golden: Golden, version: str, name: str) -> None:
    """Its writer was only slow: what it acknowledged must not be taken back by whoever finishes the pending
    rollback.
    """
    table = golden(version, name).table
    context = open_context(table)
    rows = read_rows(table)
    last = context.active.load().commits().last()
    assert last is not None
    completed = table / context.active.path_of(last)
    content = completed.read_bytes()
    completed.unlink()
    (pending,) = context.active.load().pending()
    metadata_timeline = request_rollback(context, pending, an_owner())
    completed.write_bytes(content)
    with pytest.raises(ConflictError, match="completed after its rollback"):
        rollback(context, None, an_owner())
    assert context.active.load().find(metadata_timeline, Action.ROLLBACK) is None
    assert read_rows(table).equals(rows)
    assert rollback(context, None, an_owner()).target is None


def test_with_nothing_pending_an_eager_policy_is_not_advised_again(golden: Golden) -> None:
    table = golden("8", "cow_basic").table
    eager = rollback(open_context(table, {"hoodie.cleaner.policy.failed.writes": "EAGER"}), None, an_owner())
    assert eager.reason == "no rollback is pending, and no write is pending"
    assert "EAGER" in str(rollback(open_context(table), None, an_owner()).reason)
