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

from hudi_core.errors import ConfigError, ConflictError, TimelineError
from hudi_core.services.rollback import verb as run
from hudi_core.services.rollback.job import RollbackJob
from hudi_core.services.rollback.verb import RollbackService, clean_failed_writes, rollback
from hudi_core.storage.local import LocalStorage
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
from tests.support.service_calls import eager
from tests.support.table_invariants import assert_metadata_true, has_metadata_table, read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["6", "8", "9"]
NEWEST = ["mor_basic", "cow_basic", "mor_compacted", "mdt_all_mor", "insert_overwrite_partition_mor", "clustered_cow"]
ONE_BY_ONE = [("6", "mor_basic"), ("6", "clustered_cow"), *(("9", name) for name in NEWEST if name != "mor_basic")]


def heartbeat(table: Path, instant: str, age: float = 0.0) -> Path:
    path = table / ".hoodie" / ".heartbeat" / instant
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"")
    moment = time.time() - age
    os.utime(path, (moment, moment))
    return path


def dead_process() -> Owner:
    return replace(Owner.current("the process that dies"), process_start="1")


@pytest.mark.parametrize(
    ("version", "name"), tiered([(version, name) for version in VERSIONS for name in NEWEST], ONE_BY_ONE)
)
def test_the_newest_commits_go_one_by_one(golden: Golden, version: str, name: str) -> None:
    """After each the table is what time travel to the commit before showed; every index of the metadata table has the
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
def test_a_live_writer_is_left_alone(golden: Golden, version: str) -> None:
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
    assert [result.target for result in clean_failed_writes(eager(context), an_owner(), dry_run=True)] == [failed]
    assert [result.target for result in clean_failed_writes(eager(context), an_owner())] == [failed]
    assert clean_failed_writes(eager(context), an_owner()) == []


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
        without_guard.setattr(run, "pending_rollback_of", lambda active, timeline, instant: None)
        with pytest.raises(
            ConfigError, match="holds no instant"
        ):  # it went before the rollback completed, which no run finishes any more
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


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
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


def test_with_nothing_pending_an_eager_policy_is_not_advised_again(golden: Golden) -> None:
    table = golden("8", "cow_basic").table
    none_pending = rollback(open_context(table, {"hoodie.cleaner.policy.failed.writes": "EAGER"}), None, an_owner())
    assert none_pending.reason == "no rollback is pending, and no write is pending"
    assert "EAGER" in str(rollback(open_context(table), None, an_owner()).reason)
