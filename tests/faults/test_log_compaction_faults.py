"""A log compaction is killed around every operation that changes the storage; another process must bring it to the same
end, and readers see the same rows all the time: those that know log compactions and those that do not.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest

from hudi_core.config.table_config import TableConfig
from hudi_core.engine.local import LocalEngine
from hudi_core.model.names import LogFileName, parse_data_file
from hudi_core.request.results import Result
from hudi_core.services.compaction import merge_logs as execute
from hudi_core.services.context import TableContext
from hudi_core.services.runner import ServiceRunner
from hudi_core.services.unschedule import unschedule
from hudi_core.storage.local import LocalStorage
from hudi_core.storage.one_look import OneLookStorage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action
from hudi_core.transaction.owner import Owner
from hudi_core.transaction.reconcile import OWN_ATTEMPTS
from hudi_core.verbs.run import RunRequest
from tests.faults.test_compaction_faults import dead_process, quick_points
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, InjectedCrash, Operation
from tests.support.golden_compactions import OPTIONS, context_of
from tests.support.golden_data import PARTITIONED, open_case, open_table
from tests.support.independent_reader import assert_complete
from tests.support.kill_points import tasks_under
from tests.support.log_compactions import PLANNED, compact_all, planned, reader_without_log_compaction, schedule
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import (
    assert_metadata_true,
    assert_readable,
    pending_instants,
    read_rows,
)
from tests.support.tiers import tiered

Timing = Literal["before", "after"]


@dataclass(frozen=True)
class Source:
    """A table with a planned log compaction, and what its readers must always see."""

    path: Path
    instant: str
    rows: pa.Table

    def copy(self, target: Path) -> Path:
        return Path(shutil.copytree(self.path, target, symlinks=True))


def planned_by_us(version: str, scratch: Path, case: str = "mdt_all_mor") -> Path:
    """With a metadata table of every index."""
    table = open_table(version, case, scratch)
    assert schedule(table).instant is not None
    return table


SOURCES: dict[str, Callable[[Path], Path]] = {
    "version 6": lambda scratch: open_case("6", PLANNED, scratch).table,
    "version 8": lambda scratch: open_case("8", PLANNED, scratch).table,
    "version 9": lambda scratch: open_case("9", PLANNED, scratch).table,
    "version 6, every index": lambda scratch: planned_by_us("6", scratch),
    "version 8, every index": lambda scratch: planned_by_us("8", scratch),
    "version 9, every index": lambda scratch: planned_by_us("9", scratch),
    "version 9, an index of each partition": lambda scratch: planned_by_us("9", scratch, PARTITIONED),
}
QUICK = ("version 6", "version 9")


@pytest.fixture(scope="module")
def source(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Source:
    path = SOURCES[request.param](tmp_path_factory.mktemp("source"))
    return Source(path, planned(path), read_rows(path))


def run(path: Path, instant: str, owner: Owner, plan: FaultPlan | None = None) -> Result:
    storage = OneLookStorage(LocalStorage(path) if plan is None else FaultStorage(LocalStorage(path), plan))
    config = TableConfig.load(storage)
    context = TableContext(str(path), storage, config, ActiveTimeline(storage, config), OPTIONS, {})
    return ServiceRunner(context, LocalEngine(1), owner).run(RunRequest(str(path), "log_compaction", instant=instant))


def run_killed(path: Path, instant: str, plan: FaultPlan) -> None:
    """Runs until the plan kills the process; the tasks' data storage is under the same plan."""
    with tasks_under(plan, execute):
        run(path, instant, dead_process(), plan)


def changes_of(source: Source, tmp_path: Path) -> list[Operation]:
    """All changes of an undisturbed run, in order."""
    plan, path = FaultPlan(counts=MUTATIONS), source.copy(tmp_path / "undisturbed")
    run_killed(path, source.instant, plan)
    assert_merged(path, source)
    assert plan.counted == len(plan.mutations()) > 20
    return plan.mutations()


def own_files(path: Path, instant: str) -> set[str]:
    """The log files of attempts at the instant: in version 6 by the attempt's number."""
    named = ((file, parse_data_file(file.name)) for file in path.rglob(".*.log.*") if ".hoodie" not in file.parts)
    return {
        file.relative_to(path).as_posix()
        for file, name in named
        if isinstance(name, LogFileName)
        and (name.instant == instant or (name.token is not None and name.token.attempt_id >= OWN_ATTEMPTS))
    }


def assert_merged(path: Path, source: Source) -> None:
    """It is done as if no process had ever died: the committed files and no others, and nothing left over."""
    assert_readable(path, source.rows)
    with reader_without_log_compaction():
        assert_readable(path, source.rows)
    active = context_of(path).active
    done = active.load().get(source.instant, Action.LOG_COMPACTION)
    assert done.is_completed
    stats = list(active.read_commit(done).write_stats())
    assert own_files(path, source.instant) == {stat.path for stat in stats}
    groups = sorted((stat.partition_path, stat.file_id) for stat in stats)
    plan = active.read_plan(source.instant, Action.LOG_COMPACTION)
    assert groups == sorted((item.partition, item.file_id) for item in plan.operations)
    assert pending_instants(path) == set()
    assert leftovers(path, source.instant) == []
    assert_metadata_true(path)
    assert_complete(path, None if source.path.name == PARTITIONED else source.rows)


def leftovers(path: Path, instant: str) -> list[str]:
    names = [file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file()]
    left = re.compile(rf"\.hoodie/(\.temp/{instant}|\.airflow_hudi/claims|\.heartbeat/{instant}|lock)|.*\.tmp$")
    return [name for name in names if left.match(name)]


def sweep(source: Source, points: list[int], timing: Timing, tmp_path: Path) -> None:
    for number in points:
        path = source.copy(tmp_path / f"killed-{number}")
        with pytest.raises(InjectedCrash):
            run_killed(path, source.instant, FaultPlan(kill_at=number, timing=timing, counts=MUTATIONS))
        assert_readable(path, source.rows)
        run(path, source.instant, Owner.current("another process"))
        assert_merged(path, source)
        again = run(path, source.instant, Owner.current("a third process"))
        assert [(result.state, result.files_written) for result in again.instants] == [("completed", 0)]
        shutil.rmtree(path)


@pytest.mark.parametrize(
    "source",
    [
        *tiered([pytest.param(name, marks=pytest.mark.slow) for name in QUICK], ["version 6"]),
        *(pytest.param(name, marks=pytest.mark.soak) for name in SOURCES if name not in QUICK),
    ],
    indirect=True,
)
def test_killed_after_every_change(source: Source, tmp_path: Path) -> None:
    sweep(source, quick_points(changes_of(source, tmp_path)), "after", tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("source", list(SOURCES), indirect=True)
def test_killed_before_every_change(source: Source, tmp_path: Path) -> None:
    sweep(source, list(range(len(changes_of(source, tmp_path)))), "before", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("source", tiered(SOURCES, ["version 9, every index"]), indirect=True)
def test_a_half_done_one_is_unscheduled_with_its_files(source: Source, tmp_path: Path) -> None:
    """Killed behind the second log file, and as the metadata table has it already: nothing of it stays, and what is
    planned next is run.
    """
    changes = changes_of(source, tmp_path)
    closes = [number for number, change in enumerate(changes) if change.kind == "output.close"]
    decided = [number for number, change in enumerate(changes) if change.path.endswith(".decision")]
    for number in (closes[1], decided[0] - 1):
        path = source.copy(tmp_path / f"killed-{number}")
        with pytest.raises(InjectedCrash):
            run_killed(path, source.instant, FaultPlan(kill_at=number, timing="after", counts=MUTATIONS))
        done = unschedule(context_of(path), source.instant, Owner.current("operator"))
        assert (done.action, len(done.removed.files) > 0) == ("log_compaction", True)
        assert own_files(path, source.instant) == set()
        assert pending_instants(path) == set()
        assert leftovers(path, source.instant) == []
        assert_readable(path, source.rows)
        assert_metadata_true(path)
        later = schedule(path)
        assert later.instant is not None
        run(path, later.instant, Owner.current("another process"))
        compact_all(path)
        assert_same_rows(read_rows(path), source.rows)
        assert_metadata_true(path)
