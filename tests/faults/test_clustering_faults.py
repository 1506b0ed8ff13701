"""A clustering is killed after every operation that changes the storage; another process must bring it to the same end.

`make test` kills two runs after some operations of each class, `make conformance` some more, `make soak` each before
every change: unsorted and sorted, by an exchange or by one task as on Spark, with records of the metadata table made by
the driver or staged by executors, on tables with every index.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.services.clustering import sorted_groups, units
from hudi_core.services.clustering.planner import ClusteringService
from hudi_core.storage.local import LocalStorage
from tests.faults.test_compaction_faults import quick_points
from tests.support.changed_tables import open_context
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, Operation
from tests.support.golden_clusterings import SORT_COLUMNS, cluster, commit_of, new_files, plan_of_all
from tests.support.golden_data import PARTITIONED, open_table
from tests.support.kill_points import executors_make_records, kill_at, stages_statistics, tasks_under
from tests.support.rows import assert_same_rows
from tests.support.service_calls import Timing, dead_process, one_of_each_class
from tests.support.table_invariants import assert_metadata_true, leftovers, pending_instants, read_rows
from tests.support.tiers import tiered

OPTIONS = {
    "hoodie.index.bloom.num_entries": "100",
    "hoodie.bloom.index.filter.dynamic.max.entries": "100",
    "spark.sql.session.timeZone": "UTC",
}
IGNORED = ("_hoodie_file_name",)
STEPS = 6
"""The sweep of one table in `make soak` is cut into so many tests."""


class RemoteEngine(LocalEngine):
    """One task sorts a small group, as with Spark; of two attempts at the first one the second wins."""

    is_remote = True

    def run(self, task: Any, units: Sequence[Any], **given: Any) -> list[Any]:
        return super().run(task, [*units[:1], *units], **given)[1:]


@dataclass(frozen=True)
class Way:
    """How a clustering is done. `stages`: executors make the records of the new files."""

    params: Mapping[str, str] = field(default_factory=dict)
    engine: Callable[[int], LocalEngine] = LocalEngine
    stages: bool = False


WAYS = {
    "copied": Way(),
    "copied, staged": Way(stages=True),
    "exchanged": Way({SORT_COLUMNS: "id"}),
    "sorted in tasks": Way({SORT_COLUMNS: "id"}, RemoteEngine),
}
NO_STATISTICS = "clustered_mor"
CASES = ("mdt_all_mor", "mdt_all_cow", NO_STATISTICS)
TABLES = [*((version, case) for version in ("6", "8", "9") for case in CASES), ("9", PARTITIONED)]
SWEPT = [(*table, way) for table in TABLES for way in WAYS if not (WAYS[way].stages and table[1] == NO_STATISTICS)]


@dataclass(frozen=True)
class Table:
    """A table with a planned clustering, how that is done, and what its readers must always see."""

    source: Path
    instant: str
    way: Way
    rows: pa.Table

    def copy(self, target: Path) -> Path:
        return Path(shutil.copytree(self.source, target, symlinks=True))


def table_of(version: str, case: str, way: Way, scratch: Path) -> Table:
    path = open_table(version, case, scratch)
    rows = read_rows(path)
    instant = plan_of_all(path, way.params, 2)
    assert instant is not None
    return Table(path, instant, way, rows)


def run_killed(path: Path, instant: str, plan: FaultPlan, way: Way = WAYS["copied"]) -> None:
    """Runs until the plan kills the process; the tasks' data storage is under the same plan."""
    with tasks_under(plan, units, sorted_groups), executors_make_records(way.stages):
        context = open_context(path, OPTIONS, FaultStorage(LocalStorage(path), plan))
        ClusteringService().run(context, instant, way.engine(1), dead_process(), None)


def changes_of(table: Table, scratch: Path) -> list[Operation]:
    """All changes of an undisturbed run, in order."""
    plan = FaultPlan(counts=MUTATIONS)
    path = table.copy(scratch / "undisturbed")
    run_killed(path, table.instant, plan, table.way)
    assert_clustered(path, table)
    assert any(map(stages_statistics, plan.mutations())) is table.way.stages
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
    kill_at(number, timing, lambda plan: run_killed(path, table.instant, plan, table.way))
    for listing in ("off", "auto"):
        assert_same_rows(read_rows(path, listing), table.rows, ignore=IGNORED)
    with executors_make_records(table.way.stages):
        cluster(path, table.instant, OPTIONS, table.way.engine(1))
    assert_clustered(path, table)
    shutil.rmtree(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "case", "way"),
    tiered(
        [
            ("6", "mdt_all_mor", "copied"),
            ("8", "mdt_all_mor", "copied, staged"),
            ("8", "mdt_all_cow", "exchanged"),
            ("9", "mdt_all_mor", "sorted in tasks"),
            ("9", PARTITIONED, "copied, staged"),
        ],
        [("6", "mdt_all_mor", "copied"), ("9", "mdt_all_mor", "sorted in tasks")],
    ),
)
def test_killed_after_one_operation_of_each_class(version: str, case: str, way: str, tmp_path: Path) -> None:
    """Of each eighth class."""
    table = table_of(version, case, WAYS[way], tmp_path)
    points = one_of_each_class(changes_of(table, tmp_path))
    assert len(points) > 20
    for number in list(points.values())[::8]:
        assert_survives(table, number, "after", tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(STEPS))
@pytest.mark.parametrize(("version", "case", "way"), SWEPT)
def test_killed_at_every_change(version: str, case: str, way: str, part: int, tmp_path: Path) -> None:
    """Before each, which is what a kill after the one before it leaves, and after the last; on further tables without
    the middles of the writes into one file.
    """
    table = table_of(version, case, WAYS[way], tmp_path)
    changes = changes_of(table, tmp_path)
    points = range(len(changes)) if case in ("mdt_all_mor", PARTITIONED) else quick_points(changes)
    for number in points[part::STEPS]:
        assert_survives(table, number, "before", tmp_path)
    if part == 0:
        assert_survives(table, points[-1], "after", tmp_path)
