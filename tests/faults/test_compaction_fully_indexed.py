"""A compaction of a table whose metadata table has all partition types is killed at every operation that changes the
storage, as in test_compaction_faults.

Another process brings it to the same end, and the metadata table is valid then: whether the driver makes its records,
or executors stage them before the lock (`prepared`).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.metadata_table.write.staged_logs import STAGING, staged_instants
from hudi_core.services.compaction import merge_slice as execute
from hudi_core.services.compaction.planner import CompactionService
from hudi_core.storage.local import LocalStorage
from hudi_core.transaction.owner import Owner
from tests.faults.test_compaction_faults import Table, Timing, dead_process, under
from tests.support.damaged_tables import DamagedTable
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, InjectedCrash, Operation
from tests.support.golden_compactions import context_of
from tests.support.golden_data import PARTITIONED, open_table
from tests.support.independent_reader import assert_complete
from tests.support.kill_points import executors_make_records, tasks_under
from tests.support.table_invariants import assert_compacted, assert_readable
from tests.support.tiers import tiered
from tests.unit.hudi_core.services.compaction.test_job_metadata import plan_all

CASES = {
    **{f"{how} {version}": (version, "mdt_all_mor") for version in ("6", "8", "9") for how in ("reported", "prepared")},
    "prepared, an index of each partition": ("9", PARTITIONED),
}
STEPS = 6
"""The sweep of one table in `make soak` is cut into so many tests."""


class FullyIndexedTable(Table):
    """A golden table of all partition types, and a plan over all its file groups."""

    def __init__(self, name: str, scratch: Path) -> None:
        source = open_table(*CASES[name], scratch)
        plan_all(source)
        super().__init__(source)
        self.prepares = name.startswith("prepared")


@pytest.fixture(scope="module")
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FullyIndexedTable]:
    found = FullyIndexedTable(request.param, tmp_path_factory.mktemp("source"))
    with executors_make_records(found.prepares):
        yield found


def compacted(path: Path, instant: str, owner: Owner, plan: FaultPlan | None = None) -> None:
    """Runs the compaction; with a plan, the tasks' storage is under it as well."""
    storage = LocalStorage(path) if plan is None else FaultStorage(LocalStorage(path), plan)
    with nullcontext() if plan is None else tasks_under(plan, execute):
        CompactionService().run(context_of(path, storage=storage), instant, LocalEngine(1), owner, None)


def changes_of(table: FullyIndexedTable, tmp_path: Path) -> list[Operation]:
    """All changes of an undisturbed run, in order."""
    path, plan = table.copy(tmp_path / "undisturbed"), FaultPlan(counts=MUTATIONS)
    compacted(path, table.instant, dead_process(), plan)
    assert_compacted(path, table.instant, table.rows, table.pending)
    changes = plan.mutations()
    assert any(map(is_staged, changes)) is table.prepares
    return changes


def is_staged(change: Operation) -> bool:
    """Whether it puts something there; in the end the folder goes, which may not be there."""
    return change.path.startswith(STAGING) and change.kind != "delete_folder"


def sweep(table: FullyIndexedTable, points: list[int], timing: Timing, tmp_path: Path) -> None:
    for number in points:
        path = table.copy(tmp_path / f"killed-{number}")
        with pytest.raises(InjectedCrash):
            compacted(path, table.instant, dead_process(), FaultPlan(kill_at=number, timing=timing, counts=MUTATIONS))
        recover_and_check(path, table)
        shutil.rmtree(path)


def recover_and_check(path: Path, table: FullyIndexedTable) -> None:
    assert_readable(path, table.rows)
    compacted(path, table.instant, Owner.current("another process"))
    assert_compacted(path, table.instant, table.rows, table.pending)
    assert_complete(path, None if table.source.name == PARTITIONED else table.rows)
    assert DamagedTable(path).found() == []
    assert staged_instants(LocalStorage(path)) == frozenset()


def of_the_metadata(change: Operation) -> bool:
    """What is staged, and what is written into the metadata table, but for the middles of rollbacks of it."""
    return change.path.startswith((STAGING, ".hoodie/metadata/"))


@pytest.mark.slow
@pytest.mark.parametrize("table", ["prepared 9"], indirect=True)
def test_killed_while_the_metadata_table_is_written(table: FullyIndexedTable, tmp_path: Path) -> None:
    """After each eighth change, and after the last one staged."""
    changes = changes_of(table, tmp_path)
    reported = [number for number, change in enumerate(changes) if of_the_metadata(change)]
    assert len(reported) > 12
    sweep(
        table,
        sorted({*reported[::8], max(number for number in reported if is_staged(changes[number]))}),
        "after",
        tmp_path,
    )


@pytest.mark.soak
@pytest.mark.parametrize("table", list(CASES), indirect=True)
@pytest.mark.parametrize("part", range(STEPS))
def test_killed_at_every_change(table: FullyIndexedTable, part: int, tmp_path: Path) -> None:
    """Before each, which is what a kill after the one before it leaves, and after the last."""
    points = range(len(changes_of(table, tmp_path)))
    sweep(table, list(points[part::STEPS]), "before", tmp_path)
    if part == 0:
        sweep(table, [points[-1]], "after", tmp_path)


@pytest.mark.parametrize("table", tiered(["prepared 6", "prepared 8"], ["prepared 6"]), indirect=True)
def test_killed_twice_with_staged_blocks(table: FullyIndexedTable, tmp_path: Path) -> None:
    """The second process finds what the first one staged, and dies after it published half of it; the third ends it."""
    path = table.copy(tmp_path / "table")
    for when in (under(STAGING, "write"), under(".hoodie/metadata/column_stats/")):
        with pytest.raises(InjectedCrash):
            compacted(path, table.instant, dead_process(), FaultPlan(when=when, timing="after"))
        assert staged_instants(LocalStorage(path)) == {table.instant}
    recover_and_check(path, table)
