"""A clean is killed before and after every operation that changes the storage, planned or run; the next process must
bring it to the same end.

Reads are excluded: a kill at a read leaves the state that the change before it left. Of the changes of one table each
version takes a third: `make test` kills after those of version 9, `make conformance` after the others. Each change on
each version, the other tables and forms of death run in `make soak`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest

from hudi_core.errors import StorageError
from hudi_core.services.clean import job as execute
from hudi_core.services.clean.planner import CleanService
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.instant import Action
from hudi_core.transaction.owner import Owner
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, InjectedCrash
from tests.support.golden_cleans import before_clean, cleans, context_of, data_files, run_clean
from tests.support.golden_data import open_case
from tests.support.independent_reader import assert_valid
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import assert_metadata_true, has_metadata_table, pending_instants, read_rows
from tests.support.tiers import tiered
from tests.unit.hudi_core.services.clean.test_job import clean_of, listed, metadata_of, timeline_names

Timing = Literal["before", "after"]
VERSIONS = ("6", "8", "9")
CASES = [(folder, name) for folder in VERSIONS for name in ("clean_requested_cow", "insert_overwrite_clean_requested")]
"""With a metadata table and without one; the second deletes whole partitions."""
REPRESENTATIVE = [case for case in CASES if case[1] == "clean_requested_cow"]
EVERY_TABLE = pytest.mark.parametrize("table", CASES, indirect=True, ids="-".join)


@dataclass(frozen=True)
class Golden:
    """A table with a pending clean, and what real Hudi made of it. `turn` is its version's number."""

    source: Path
    after: Path
    instant: str
    rows: pa.Table
    turn: int = 0

    def copy(self, target: Path) -> Path:
        shutil.copytree(self.source, target, symlinks=True)
        return target


@pytest.fixture(scope="module")
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Golden:
    case = open_case(*request.param, tmp_path_factory.mktemp("source"))
    return Golden(
        case.table, case.after(), clean_of(case.table), read_rows(case.table), VERSIONS.index(request.param[0])
    )


def dead_process() -> Owner:
    """An owner of this machine whose process is provably gone: its PID belongs to a process that started at another
    time.
    """
    return replace(Owner.current("the process that dies"), process_start="1")


def run_killed(path: Path, instant: str, plan: FaultPlan) -> None:
    """Runs until the plan kills the process; the tasks' data storage is under the same plan."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(execute, "open_deleting_storage", lambda uri, options: FaultStorage(LocalStorage(uri), plan))
        run_clean(path, instant, owner=dead_process(), storage=FaultStorage(LocalStorage(path), plan), threads=1)


def assert_readable(path: Path, golden: Golden) -> None:
    """A reader of the latest state sees its rows at every moment, with and without the metadata table."""
    assert_same_rows(read_rows(path, "off"), golden.rows)
    if has_metadata_table(path):
        assert_same_rows(read_rows(path, "on"), golden.rows)
    assert_valid(path, golden.rows)


def assert_cleaned(path: Path, golden: Golden) -> None:
    """The end is that of real Hudi's own execution, and nothing is left over."""
    assert_readable(path, golden)
    assert data_files(path) == data_files(golden.after)
    assert timeline_names(path) == timeline_names(golden.after)
    assert metadata_of(path, golden.instant) == metadata_of(golden.after, golden.instant)
    assert pending_instants(path) == set()
    if has_metadata_table(path):
        assert listed(path) == listed(golden.after)
    assert_metadata_true(path)
    assert leftovers(path) == []


def leftovers(path: Path) -> list[str]:
    names = (file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file())
    return sorted(
        name
        for name in names
        if name.startswith((".hoodie/.airflow_hudi/claims", ".hoodie/.heartbeat", ".hoodie/lock")) or ".tmp" in name
    )


def changes_of(golden: Golden, tmp_path: Path) -> int:
    """How many changes an undisturbed run makes."""
    plan = FaultPlan(counts=MUTATIONS)
    path = golden.copy(tmp_path / "undisturbed")
    run_killed(path, golden.instant, plan)
    assert_cleaned(path, golden)
    assert plan.counted == len(plan.mutations()) > 12
    return plan.counted


@pytest.mark.parametrize(
    ("table", "timing", "versions"),
    [
        *tiered(
            [
                pytest.param(case, "after", len(VERSIONS), id=f"{'-'.join(case)}-by turns", marks=pytest.mark.slow)
                for case in REPRESENTATIVE
            ],
            ["9-clean_requested_cow-by turns"],
        ),
        *(
            pytest.param(case, timing, 1, id=f"{'-'.join(case)}-{timing}", marks=pytest.mark.soak)
            for case in CASES
            for timing in ("before", "after")
        ),
    ],
    indirect=["table"],
)
def test_killed_at_every_change(table: Golden, timing: Timing, versions: int, tmp_path: Path) -> None:
    """`versions` share the changes among them."""
    for number in range(table.turn % versions, changes_of(table, tmp_path), versions):
        path = table.copy(tmp_path / f"killed-{number}")
        with pytest.raises(InjectedCrash):
            run_killed(path, table.instant, FaultPlan(kill_at=number, timing=timing, counts=MUTATIONS))
        assert_readable(path, table)
        assert run_clean(path, table.instant, owner=Owner.current("another process")) == "completed"
        assert_cleaned(path, table)
        assert run_clean(path, table.instant, owner=Owner.current("a third process")) == "completed"
        assert_cleaned(path, table)
        shutil.rmtree(path)


POINTS: dict[str, Callable[[str, str], bool]] = {
    "claimed": lambda kind, path: "/claims/" in path and path.endswith(".json"),
    "inflight": lambda kind, path: path.endswith(".clean.inflight"),
    "a file deleted": lambda kind, path: kind == "delete" and path.endswith(".parquet"),
    "lock taken": lambda kind, path: path == ".hoodie/lock",
    "decided": lambda kind, path: path.endswith(".decision"),
    "completed": lambda kind, path: path.endswith(".clean"),
}


@pytest.mark.parametrize("point", list(POINTS))
@pytest.mark.parametrize(
    ("table", "timing"),
    [
        *tiered(
            [pytest.param(case, "after", id=f"{'-'.join(case)}-after") for case in CASES],
            ["6-clean_requested_cow-after", "8-insert_overwrite_clean_requested-after"],
        ),
        *(pytest.param(case, "before", id=f"{'-'.join(case)}-before", marks=pytest.mark.soak) for case in CASES),
    ],
    indirect=["table"],
)
def test_killed_when(point: str, timing: Timing, table: Golden, tmp_path: Path) -> None:
    path = table.copy(tmp_path / "table")
    plan = FaultPlan(
        when=lambda operation: operation.kind in MUTATIONS and POINTS[point](operation.kind, operation.path),
        timing=timing,
    )
    with pytest.raises(InjectedCrash):
        run_killed(path, table.instant, plan)
    assert_readable(path, table)
    run_clean(path, table.instant, owner=Owner.current("another process"))
    assert_cleaned(path, table)


@EVERY_TABLE
def test_killed_three_times_in_a_row(table: Golden, tmp_path: Path) -> None:
    path = table.copy(tmp_path / "table")
    for number in (3, 5, 9):
        with pytest.raises(InjectedCrash):
            run_killed(path, table.instant, FaultPlan(kill_at=number, timing="after", counts=MUTATIONS))
    run_clean(path, table.instant)
    assert_cleaned(path, table)


@pytest.mark.soak
@EVERY_TABLE
def test_an_error_at_every_change_leaves_a_run_that_the_same_process_can_repeat(table: Golden, tmp_path: Path) -> None:
    for number in range(changes_of(table, tmp_path)):
        path = table.copy(tmp_path / f"failed-{number}")
        plan = FaultPlan(
            kill_at=number, counts=MUTATIONS, error=lambda operation: StorageError("injected", path=operation.path)
        )
        with pytest.raises(StorageError, match="injected"):
            run_killed(path, table.instant, plan)
        assert_readable(path, table)
        run_clean(path, table.instant)
        assert_cleaned(path, table)
        shutil.rmtree(path)


@pytest.mark.parametrize("folder", ["6", "8", "9"])
@pytest.mark.parametrize("timing", ["before", "after"])
def test_killed_while_planning(folder: str, timing: Timing, tmp_path: Path) -> None:
    """However the planner died, the next one requests one clean, or finds the one that is there."""
    case = open_case(folder, "clean_requested_mor", tmp_path)
    (item,) = cleans(case.table)
    source = before_clean(case, item.requested_time).table
    undisturbed = FaultPlan(counts=MUTATIONS)
    CleanService().schedule(
        context_of(
            shutil.copytree(source, tmp_path / "undisturbed"),
            case.info["write_options"],
            FaultStorage(LocalStorage(tmp_path / "undisturbed"), undisturbed),
        ),
        dead_process(),
        dry_run=False,
    )
    assert undisturbed.counted >= 3
    for number in range(undisturbed.counted):
        path = shutil.copytree(source, tmp_path / f"killed-{number}")
        plan = FaultPlan(kill_at=number, timing=timing, counts=MUTATIONS)
        with pytest.raises(InjectedCrash):
            CleanService().schedule(
                context_of(path, case.info["write_options"], FaultStorage(LocalStorage(path), plan)),
                dead_process(),
                dry_run=False,
            )
        context = context_of(path, case.info["write_options"])
        again = CleanService().schedule(context, Owner.current("another process"), dry_run=False)
        pending = CleanService().pending(context, context.active.load())
        assert len(pending) == 1
        assert again.instant == pending[0] or f"clean {pending[0]} is pending" in (again.reason or "")
        run_clean(path, pending[0])
        assert data_files(path) == data_files(case.after())


@EVERY_TABLE
def test_a_completed_clean_whose_files_are_not_gone_is_caught(table: Golden, tmp_path: Path) -> None:
    """Null control: with the completion before the deletes, a kill between the two must not pass the check."""
    path = table.copy(tmp_path / "table")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(execute, "open_deleting_storage", lambda uri, options: _KeepsFiles(uri))
        run_clean(path, table.instant)
    assert context_of(path).active.load().get(table.instant, Action.CLEAN).is_completed
    with pytest.raises(AssertionError):
        assert_cleaned(path, table)


class _KeepsFiles(LocalStorage):
    def delete(self, path: str) -> bool:
        return True
