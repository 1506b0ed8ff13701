"""Rollbacks of compactions and clusterings beside a writer of Hudi that runs whatever service is pending (inline
services), and beside zombies.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConflictError
from hudi_core.services.compaction.planner import CompactionService
from hudi_core.services.rollback.verb import RollbackResult, request_rollback, rollback
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.pending_plans import read_clustering_plans
from hudi_core.transaction.claim_file import current_claim
from hudi_core.transaction.owner import Owner
from tests.support.changed_tables import (
    an_owner,
    assert_rows,
    data_files,
    known_times,
    leftovers,
    listed,
    new_instants,
    open_context,
    shown,
)
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, InjectedCrash, Operation
from tests.support.golden_data import GoldenCase
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import has_metadata_table, read_rows

Golden = Callable[[str, str], GoldenCase]
COMPLETED = [("6", "mor_compacted"), ("6", "clustered_cow"), ("8", "mor_compacted"), ("9", "clustered_cow")]
PLANNED = (Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING)


def the_service(table: Path) -> Instant:
    """The newest completed compaction or clustering, once everything newer is rolled back."""
    context = open_context(table)
    while (newest := context.active.load().commits().last()) is not None:
        if newest.pending_action in PLANNED or newest.action == Action.REPLACE_COMMIT:
            return newest
        rollback(context, newest.requested_time, an_owner())
    raise ValueError("the case has no service")


def runnable(table: Path, instant: str) -> bool:
    """Whether a writer with inline services would take the instant up."""
    context = open_context(table)
    timeline = context.active.load()
    if instant in read_clustering_plans(context.active, timeline):
        return True
    return any(item.requested_time == instant and item.pending_action in PLANNED for item in timeline.pending())


def beside(table: Path, act: Callable[[Operation], None]) -> FaultStorage:
    """The table's storage; `act` happens right before each operation."""

    def watch(operation: Operation) -> bool:
        act(operation)
        return False

    return FaultStorage(LocalStorage(table), FaultPlan(when=watch))


@pytest.mark.parametrize(("version", "name"), COMPLETED)
def test_a_completed_service_that_goes_is_never_a_plan_to_run(golden: Golden, version: str, name: str) -> None:
    table = golden(version, name).table
    service = the_service(table).requested_time
    assert not runnable(table, service)
    offered: list[Operation] = []
    storage = beside(table, lambda operation: offered.append(operation) if runnable(table, service) else None)
    rollback(open_context(table, storage=storage), service, an_owner())
    assert offered == []
    assert not open_context(table).active.load().contains(service)
    assert [path for path in data_files(table) if service in path] == []
    assert leftovers(table, service) == []


def test_rows_beside_a_writer_that_compacts_inline(golden: Golden) -> None:
    """It looks for pending compactions all the time, and would compact the one that goes a second time."""
    table = golden("6", "mor_compacted").table
    service = the_service(table).requested_time
    rows, ran = read_rows(table, "off"), []

    def compact(operation: Operation) -> None:
        if (
            operation.kind in MUTATIONS
            and not ran
            and not operation.path.startswith(".hoodie/lock")
            and runnable(table, service)
        ):
            ran.append(operation)
            CompactionService().run(open_context(table), service, LocalEngine(), an_owner(), None)

    rollback(open_context(table, storage=beside(table, compact)), service, an_owner())
    assert [path for path in data_files(table) if service in path] == []
    assert_rows(table, rows)
    if has_metadata_table(table):
        assert listed(table) == {
            path: size for path, size in data_files(table).items() if not path.endswith("_partition_metadata")
        }


KILLED = [("6", "mor_compacted"), ("6", "clustered_cow"), ("9", "clustered_cow")]
"""They take turns: each is killed before every third change."""


@pytest.mark.slow
@pytest.mark.parametrize(("version", "name"), KILLED)
def test_killed_while_a_completed_service_goes(golden: Golden, tmp_path: Path, version: str, name: str) -> None:
    source = golden(version, name).table
    service, known = the_service(source).requested_time, known_times(source)
    dead = replace(Owner.current("the process that dies"), process_start="1")
    undisturbed = Path(shutil.copytree(source, tmp_path / "undisturbed"))
    faults = FaultPlan(counts=MUTATIONS)
    rollback(open_context(undisturbed, storage=FaultStorage(LocalStorage(undisturbed), faults)), service, dead)
    rows, end = read_rows(undisturbed), (data_files(undisturbed), shown(undisturbed, known))
    paths = [item.path for item in faults.mutations() if not item.path.startswith(".hoodie/metadata")]
    numbers = {path: number for number, path in enumerate(item.path for item in faults.mutations())}
    started_at, done = (
        numbers[next(path for path in paths if path.endswith(ending))] for ending in (".rollback.inflight", ".rollback")
    )
    for number in range(started_at + 1 + KILLED.index((version, name)), min(done, started_at + 14), len(KILLED)):
        path = Path(shutil.copytree(source, tmp_path / f"killed-{number}"))
        plan = FaultPlan(kill_at=number, counts=MUTATIONS)
        with pytest.raises(InjectedCrash):
            rollback(open_context(path, storage=FaultStorage(LocalStorage(path), plan)), service, dead)
        assert not runnable(path, service)
        rollback(open_context(path), service, Owner.current("another process"))
        assert (data_files(path), shown(path, known)) == end, number
        assert_same_rows(read_rows(path), rows)
        assert leftovers(path, service) == []
        shutil.rmtree(path)


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_files_of_an_attempt_at_a_plan_that_is_requested_go_and_the_plan_stays(golden: Golden, version: str) -> None:
    """So it is where an attempt was rolled back, and its writer was alive."""
    table = golden(version, "compaction_inflight").table
    context = open_context(table)
    (plan,) = context.active.load().pending_compactions()
    context.active.roll_back_to_requested(plan.requested_time, Action.COMPACTION)
    (table / context.active.path(plan.requested_time, Action.COMPACTION, State.INFLIGHT)).write_bytes(b"")
    rollback(context, plan.requested_time, an_owner())
    (table / "2024-01-01" / f"00000000-0000-0000-0000-000000000000-0_9-9-9_{plan.requested_time}.parquet").write_bytes(
        b"late"
    )
    (requested,) = context.active.load().pending_compactions()
    assert requested.state is State.REQUESTED
    assert rollback(context, plan.requested_time, an_owner()).reason == "it was rolled back before"
    assert [path for path in data_files(table) if path.endswith(f"_{plan.requested_time}.parquet")] == []
    (stays,) = context.active.load().pending_compactions()
    assert stays == requested
    assert context.active.read_plan(plan.requested_time).operations


@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize("planned_before", [False, True])
def test_epochs_count_on_while_the_plan_waits(golden: Golden, version: str, planned_before: bool) -> None:
    """A zombie of an attempt that was rolled back must not find its number in the next owner's hands."""
    table = golden(version, "compaction_inflight").table
    context = open_context(table)
    (plan,) = context.active.load().pending_compactions()
    instant, known = plan.requested_time, known_times(table)
    zombie = context.claim(instant, replace(an_owner(), process_start="1"))
    zombie.heartbeat.stop()
    if planned_before:  # as real Hudi, or a run that died, leaves it
        request_rollback(context, plan, an_owner())
    rollback(context, instant, an_owner())
    assert len(new_instants(table, known)) == 1
    assert context.active.load().get(instant, Action.COMPACTION).state is State.REQUESTED
    left = current_claim(context.storage, instant)
    assert left is not None
    assert left.epoch > zombie.epoch
    with context.claim(instant, an_owner()) as held:
        assert held.epoch > left.epoch
        with pytest.raises(ConflictError, match="was taken over"):
            zombie.check()
        held.check()


def test_a_write_that_completed_meanwhile_is_logged_by_its_reason() -> None:
    assert RollbackResult("2", "1").outcome == "the failed write 1 was rolled back"
    assert RollbackResult(None, None, reason="commit 1 has completed").outcome == "commit 1 has completed"
