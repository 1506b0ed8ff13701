"""How a compaction gets along with what happens beside it: locks, conflicts and markers by choice, and a commit that
was cut off.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_core.config.options import check_options
from hudi_core.config.table_config import TableConfig
from hudi_core.engine.local import LocalEngine
from hudi_core.engine.protocol import Engine, UnitTask
from hudi_core.errors import ConfigError, ConflictError, HudiError, LockError, StorageError
from hudi_core.filegroup.write.markers import MarkerType, create_marker, list_markers
from hudi_core.model.names import CLAIMS, FileGroupId
from hudi_core.request.results import InstantResult
from hudi_core.services.compaction.planner import CompactionService
from hudi_core.services.context import TableContext
from hudi_core.services.rewriting.other_writers import conflict_checks
from hudi_core.storage.base import Storage
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, State
from hudi_core.transaction import commit
from hudi_core.transaction.claim import claim
from hudi_core.transaction.concurrent_operations import operation_start_at
from hudi_core.transaction.conflict import OperationStart
from hudi_core.transaction.file_group_locks import FOLDER, FileGroupLocks
from hudi_core.transaction.owner import Owner
from tests.support.fault_storage import FaultPlan, FaultStorage, InjectedCrash, Operation
from tests.support.golden_data import GoldenCase
from tests.support.pending_operations import Operations
from tests.support.table_invariants import assert_compacted, pending_instants, read_rows

Golden = Callable[[str, str], GoldenCase]
YIELDS = {
    "airflow_hudi.compaction.yields": "true",
    "hoodie.write.lock.conflict.resolution.strategy": "PreferWriterConflictResolutionStrategy",
}
LOCKS = {"airflow_hudi.lock.file_groups": "true"}
EARLY = {"hoodie.write.concurrency.early.conflict.detection.enable": "true"}
WRITER, EARLIER_WRITER = "20301120000000000", "20261101000000000"


class CountingEngine:
    """A local engine that counts its runs."""

    name = "counting"

    def __init__(self) -> None:
        self.runs = 0

    def run(
        self,
        task: UnitTask[Any, Any],
        units: list[Any],
        *,
        run_epoch: int,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[Any]:
        self.runs += 1
        return LocalEngine(2).run(task, units, run_epoch=run_epoch, progress=progress)


class Table:
    """A golden table whose one compaction is to be run."""

    def __init__(self, case: GoldenCase) -> None:
        self.path: Path = case.table
        self.storage = LocalStorage(self.path)
        self.active = self.context({}).active
        (pending,) = self.active.load().pending_compactions()
        self.instant = pending.requested_time
        self.groups = sorted(operation.file_group for operation in self.active.read_plan(self.instant).operations)
        self.rows, self.pending = read_rows(self.path), pending_instants(self.path)
        self.engine = CountingEngine()

    def context(self, options: dict[str, str], storage: Storage | None = None) -> TableContext:
        mine = storage or self.storage
        config = TableConfig.load(mine)
        quick = {"hoodie.index.bloom.num_entries": "100", "hoodie.time.generator.max_expected_clock_skew_ms": "0"}
        return TableContext(str(self.path), mine, config, ActiveTimeline(mine, config), {**quick, **options}, {})

    def compact(
        self, options: dict[str, str] | None = None, storage: Storage | None = None, engine: Engine | None = None
    ) -> InstantResult:
        context = self.context(options or {}, storage)
        return CompactionService().run(context, self.instant, engine or self.engine, Owner.current("tester"), None)

    def state(self) -> State:
        return self.active.load().get(self.instant, Action.COMPACTION).state

    def assert_compacted(self) -> None:
        assert_compacted(self.path, self.instant, self.rows, self.pending)
        assert self.storage.list_files(f"{CLAIMS}/{self.instant}") == []


@pytest.fixture
def table(golden: Golden) -> Table:
    return Table(golden("6", "mor_compaction_requested"))


@pytest.fixture
def quiet(golden: Golden) -> Table:
    """A table without a write since its compaction was requested."""
    return Table(golden("6", "mor_compaction_requested_only"))


def test_file_groups_are_locked_by_choice_while_they_are_rewritten(table: Table) -> None:
    with claim(table.storage, WRITER, Owner.current("dag other")) as other:
        with FileGroupLocks(table.storage, other, table.groups[1:2]):
            with pytest.raises(LockError, match="dag other") as caught:
                table.compact(LOCKS)
            assert caught.value.exit_code == 3
            assert (table.state(), table.engine.runs) == (State.REQUESTED, 0)
        table.compact(LOCKS)
    assert table.state() is State.COMPLETED
    with (
        claim(table.storage, WRITER, Owner.current("dag other")) as other,
        FileGroupLocks(table.storage, other, table.groups),
    ):
        assert len(table.storage.list_files(FOLDER)) == len(table.groups)


def test_without_the_option_no_lock_of_a_group_is_made(table: Table) -> None:
    table.compact()
    assert table.storage.list_files(FOLDER) == []


def begin_write(table: Table, time: str, group: FileGroupId) -> None:
    Operations(table.active).write(time, group)
    create_marker(table.storage, time, group.partition, f"{group.file_id}_0-1-2_{time}.parquet", MarkerType.MERGE)


@pytest.mark.parametrize("group", [0, -1])
def test_a_compaction_gives_way_to_a_writer_by_choice_and_can_be_run_again(quiet: Table, group: int) -> None:
    begin_write(quiet, WRITER, quiet.groups[group])
    with pytest.raises(ConflictError, match=f"inflight deltacommit {WRITER}"):
        quiet.compact(YIELDS)
    assert (quiet.state(), quiet.engine.runs) == (State.INFLIGHT, 1)
    quiet.active.delete_instant(WRITER, Action.DELTA_COMMIT)
    quiet.storage.delete_folder(f".hoodie/.temp/{WRITER}")
    quiet.compact(YIELDS)
    quiet.assert_compacted()


def test_a_writer_elsewhere_in_the_table_is_no_conflict(quiet: Table) -> None:
    begin_write(quiet, WRITER, FileGroupId(quiet.groups[0].partition, "another-0"))
    quiet.compact(YIELDS)
    assert quiet.state() is State.COMPLETED


def test_preferred_writers_are_all_that_wrote_since_the_plan_and_by_the_simple_strategy_those_that_committed(
    table: Table,
) -> None:
    """Hudi's class looks at everything that completed after the request; so a table that is written to keeps such a
    compaction waiting.
    """
    with pytest.raises(ConflictError, match="completed deltacommit 20261120214916658"):
        table.compact(YIELDS)
    table.compact({"airflow_hudi.compaction.yields": "true"})
    table.assert_compacted()


@pytest.mark.parametrize("options", [{}, {**YIELDS, "airflow_hudi.compaction.yields": "false"}])
def test_as_in_hudi_writes_beside_a_compaction_are_no_conflict(table: Table, options: dict[str, str]) -> None:
    begin_write(table, WRITER, table.groups[0])
    table.compact(options)
    assert table.state() is State.COMPLETED


def test_a_live_writer_is_found_before_the_work_by_choice(table: Table) -> None:
    begin_write(table, EARLIER_WRITER, table.groups[0])
    heartbeat = f".hoodie/.heartbeat/{EARLIER_WRITER}"
    table.storage.write(heartbeat, b"")
    with pytest.raises(ConflictError, match=f"{EARLIER_WRITER} is writing to file group"):
        table.compact(EARLY)
    assert (table.state(), table.engine.runs) == (State.REQUESTED, 0)
    table.storage.delete(heartbeat)
    table.compact(EARLY)
    assert table.state() is State.COMPLETED


def test_what_is_checked_follows_the_options(table: Table) -> None:
    groups, operation_start = table.groups, operation_start_at(table.active.load(), table.instant)

    def checks(
        action: str, operation_type: str, options: dict[str, str], operation_start: OperationStart = operation_start
    ) -> int:
        return len(conflict_checks(table.context(options), WRITER, action, operation_type, groups, operation_start))

    assert checks(Action.COMPACTION, "COMPACT", {}) == 0
    assert checks(Action.COMPACTION, "COMPACT", {"airflow_hudi.compaction.yields": "true"}) == 1
    assert checks(Action.CLUSTERING, "CLUSTER", {}) == 0
    assert checks(Action.CLUSTERING, "CLUSTER", YIELDS) == 1
    assert checks(Action.DELTA_COMMIT, "UPSERT", {}) == 1
    assert checks(Action.DELTA_COMMIT, "UPSERT", {"hoodie.write.concurrency.mode": "single_writer"}) == 0


@pytest.mark.parametrize(
    "options",
    [
        {"hoodie.write.lock.conflict.resolution.strategy": "com.example.Evil"},
        {"hoodie.write.concurrency.mode": "HOPE"},
        {"hoodie.time.generator.max_expected_clock_skew_ms": "-1"},
        {"airflow_hudi.lock.file_groups": "maybe"},
    ],
)
def test_options_that_mean_nothing_are_refused_with_their_name(options: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        check_options(options)


def completion(table: Table) -> Callable[[Operation], bool]:
    return lambda operation: operation.kind == "create_exclusive" and operation.path.endswith(f"{table.instant}.commit")


def cut_off(table: Table, *, kill: bool) -> None:
    """A run whose decision is on record and whose put does not happen: it is killed, or the storage does not answer."""
    plan = FaultPlan(when=completion(table), error=None if kill else lambda _: StorageError("no answer"))
    with pytest.raises(InjectedCrash if kill else StorageError):
        table.compact(storage=FaultStorage(table.storage, plan))
    assert (table.state(), table.engine.runs) == (State.INFLIGHT, 1)


@pytest.mark.parametrize("kill", [False, True])
def test_a_run_that_is_cut_off_before_its_put_is_completed_without_doing_the_work_again(
    table: Table, kill: bool
) -> None:
    cut_off(table, kill=kill)
    if kill:
        expire(table)
    result = table.compact()
    assert (result.state, table.engine.runs) == ("completed", 1)
    table.assert_compacted()
    assert list_markers(table.storage, table.instant) == []


@pytest.mark.parametrize("kill", [False, True])
def test_a_run_that_is_cut_off_before_its_put_and_whose_files_were_deleted_is_done_again(
    table: Table, kill: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_off(table, kill=kill)
    if kill:
        expire(table)
    (path, *_) = sorted(table.path.rglob(f"*_{table.instant}.parquet"))
    path.unlink()
    with pytest.raises(ConflictError, match="may still arrive"):
        table.compact()
    monkeypatch.setattr(commit, "LATE_SECONDS", 0)
    table.compact()
    assert table.engine.runs == 2
    table.assert_compacted()


def expire(table: Table) -> None:
    """The killed run was this process: make its claim look like that of a process elsewhere that is silent for long."""
    folder = table.path / CLAIMS / table.instant
    text = (folder / "000001.json").read_text()
    (folder / "000001.json").write_text(text.replace('"process_start": "', '"process_start": "1'))
    lock = table.path / ".hoodie" / "lock"
    if lock.exists():
        lock.write_text(lock.read_text().replace('"process_start": "', '"process_start": "1'))


def test_a_zombie_does_not_delete_the_files_that_its_successor_completed_with(table: Table) -> None:
    """Stopped between decision and put, it comes back when its successor has done that for it, and finds that it is
    completed.
    """
    seen: list[str] = []

    def succeed(operation: Operation) -> bool:
        if completion(table)(operation) and not seen:
            seen.append(operation.path)
            (table.path / ".hoodie" / "lock").unlink()
            held = claim(table.storage, table.instant, Owner.current("the second"), now=lambda: 2.0**40)
            assert held.decided is not None
            assert (
                table.context({}).completer(held, Owner.current("the second")).finish_decided(table.instant) is not None
            )
            held.release()
        return False

    try:
        table.compact(storage=FaultStorage(table.storage, FaultPlan(when=succeed)))
    except HudiError as error:
        pytest.fail(f"the instant is completed with its bytes: {error}")
    assert (len(seen), table.engine.runs) == (1, 1)
    table.assert_compacted()


def test_a_run_that_lost_its_instant_after_its_decision_leaves_its_files_to_the_successor(table: Table) -> None:
    """It gets no answer to its put, and the instant has a new owner by then: which completes it with these very
    files.
    """
    successors = []

    def taken_over(operation: Operation) -> bool:
        if completion(table)(operation):
            successors.append(claim(table.storage, table.instant, Owner.current("the second"), now=lambda: 2.0**40))
            return True
        return False

    with pytest.raises(StorageError, match="no answer"):
        table.compact(
            storage=FaultStorage(table.storage, FaultPlan(when=taken_over, error=lambda _: StorageError("no answer")))
        )
    assert table.state() is State.INFLIGHT
    successors[0].release()
    table.compact()
    assert table.engine.runs == 1
    table.assert_compacted()
