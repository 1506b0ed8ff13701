"""A clustering is killed after every operation that changes the storage; another process must bring it to the same end.

`make test` kills one run of each version after one operation of each class, `make soak` before every change, unsorted
and sorted, on tables with every index.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.services.clustering import copied_groups, sorted_groups
from hudi_core.services.clustering.planner import ClusteringService
from hudi_core.storage.local import LocalStorage
from hudi_core.transaction.owner import Owner
from tests.support.changed_tables import open_context
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, Operation
from tests.support.golden_clusterings import SORT_COLUMNS, cluster, commit_of, new_files, plan_of_all
from tests.support.golden_data import open_case
from tests.support.kill_points import kill_at
from tests.support.rows import assert_same_rows
from tests.support.service_calls import Timing, dead_process, one_of_each_class
from tests.support.table_invariants import assert_metadata_true, leftovers, pending_instants, read_rows

OPTIONS = {
    "hoodie.index.bloom.num_entries": "100",
    "hoodie.bloom.index.filter.dynamic.max.entries": "100",
    "spark.sql.session.timeZone": "UTC",
}
IGNORED = ("_hoodie_file_name",)
SORTED = {"": {}, "sorted": {SORT_COLUMNS: "id"}}
STEPS = 6
"""The sweep of one table in `make soak` is cut into so many tests."""


@dataclass(frozen=True)
class Table:
    """A table with a planned clustering, and what its readers must always see."""

    source: Path
    instant: str
    rows: pa.Table

    def copy(self, target: Path) -> Path:
        return Path(shutil.copytree(self.source, target, symlinks=True))


def table_of(version: str, case: str, order: str, scratch: Path) -> Table:
    path = open_case(version, case, scratch).table
    rows = read_rows(path)
    instant = plan_of_all(path, SORTED[order], 2)
    assert instant is not None
    return Table(path, instant, rows)


def run_killed(path: Path, instant: str, plan: FaultPlan, owner: Owner | None = None) -> None:
    """Runs until the plan kills the process; the tasks' data storage is under the same plan."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (copied_groups, sorted_groups):
            patch.setattr(module, "open_data_storage", lambda uri, _: FaultStorage(LocalStorage(uri), plan))
        context = open_context(path, OPTIONS, FaultStorage(LocalStorage(path), plan))
        ClusteringService().run(context, instant, LocalEngine(1), owner or dead_process(), None)


def changes_of(table: Table, scratch: Path) -> list[Operation]:
    """All changes of an undisturbed run, in order."""
    plan = FaultPlan(counts=MUTATIONS)
    path = table.copy(scratch / "undisturbed")
    run_killed(path, table.instant, plan)
    assert_clustered(path, table)
    return plan.mutations()


def assert_clustered(path: Path, table: Table) -> None:
    for listing in ("off", "auto"):
        assert_same_rows(read_rows(path, listing), table.rows, ignore=IGNORED)
    assert_metadata_true(path)
    stats = commit_of(path, table.instant).write_stats()
    assert sorted(file.name for file in new_files(path, table.instant)) == sorted(stat.name for stat in stats)
    assert leftovers(path, table.instant) == []
    assert all(instant != table.instant for _, instant in pending_instants(path))


def assert_survives(table: Table, number: int, timing: Timing, scratch: Path) -> None:
    path = table.copy(scratch / f"killed-{number}")
    kill_at(number, timing, lambda plan: run_killed(path, table.instant, plan))
    for listing in ("off", "auto"):
        assert_same_rows(read_rows(path, listing), table.rows, ignore=IGNORED)
    cluster(path, table.instant, OPTIONS)
    assert_clustered(path, table)
    shutil.rmtree(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "case", "order"),
    [("6", "mdt_all_mor", ""), ("8", "mdt_all_cow", "sorted"), ("9", "mdt_all_mor", "sorted")],
)
def test_killed_after_one_operation_of_each_class(version: str, case: str, order: str, tmp_path: Path) -> None:
    table = table_of(version, case, order, tmp_path)
    points = one_of_each_class(changes_of(table, tmp_path))
    assert len(points) > 20
    for number in list(points.values())[::4]:
        assert_survives(table, number, "after", tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(STEPS))
@pytest.mark.parametrize("order", list(SORTED))
@pytest.mark.parametrize("case", ["mdt_all_mor", "mdt_all_cow", "clustered_mor"])
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_killed_at_every_change(version: str, case: str, order: str, part: int, tmp_path: Path) -> None:
    """Before each, which is what a kill after the one before it leaves, and after the last."""
    table = table_of(version, case, order, tmp_path)
    points = range(len(changes_of(table, tmp_path)))
    for number in points[part::STEPS]:
        assert_survives(table, number, "before", tmp_path)
    if part == 0:
        assert_survives(table, points[-1], "after", tmp_path)
