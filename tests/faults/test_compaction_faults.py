"""A compaction is killed before and after every operation that changes the storage; another process must bring it to
the same end.

Reads are excluded: a kill at a read leaves the state that the change before it left. For the same reason the sweeps of
`make test` and `make conformance` kill after each change only, and of the many writes into one base file after the
first and the last. Of these changes each version takes a third, version 9 in `make test`. The sweep of `make soak`
leaves nothing out.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest

from hudi_core.config.table_config import TableConfig
from hudi_core.engine.local import LocalEngine
from hudi_core.errors import MetadataUnavailableError, StorageError
from hudi_core.request.results import Result
from hudi_core.services.compaction import merge_slice as execute
from hudi_core.services.context import TableContext
from hudi_core.services.runner import ServiceRunner
from hudi_core.storage.local import LocalStorage
from hudi_core.storage.one_look import OneLookStorage
from hudi_core.table import HudiTable
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Instant
from hudi_core.transaction import commit
from hudi_core.transaction.claim_file import Decision
from hudi_core.transaction.owner import Owner
from hudi_core.verbs.run import RunRequest
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, InjectedCrash, Operation
from tests.support.golden_data import open_case
from tests.support.independent_reader import assert_complete
from tests.support.table_invariants import (
    Pending,
    assert_compacted,
    assert_readable,
    has_metadata_table,
    pending_instants,
    read_rows,
)
from tests.support.tiers import tiered

OPTIONS = {
    "hoodie.index.bloom.num_entries": "100",
    "hoodie.bloom.index.filter.dynamic.max.entries": "100",
    "hoodie.time.generator.max_expected_clock_skew_ms": "0",
}
"""Small bloom filters, and no waits for other machines' clocks: the sweep runs the compaction hundreds of times."""
STEPS = 8
"""The sweep of one table in `make soak` is cut into so many tests."""

Timing = Literal["before", "after"]


class Table:
    """A table, what its readers must always see, and how to run its compaction on a copy."""

    def __init__(self, source: Path) -> None:
        self.source = source
        (pending,) = HudiTable.open(str(source)).timeline().pending_compactions()
        self.instant = pending.requested_time
        self.rows: pa.Table = read_rows(source)
        self.pending: Pending = pending_instants(source)

    def copy(self, target: Path) -> Path:
        shutil.copytree(self.source, target, symlinks=True)
        return target


def dead_process() -> Owner:
    """An owner of this machine whose process is provably gone: its PID belongs to a process that started at another
    time.
    """
    return replace(Owner.current("the process that dies"), process_start="1")


def run(path: Path, owner: Owner, plan: FaultPlan | None = None, instant: str | None = None) -> Result:
    storage = OneLookStorage(LocalStorage(path) if plan is None else FaultStorage(LocalStorage(path), plan))
    config = TableConfig.load(storage)
    context = TableContext(str(path), storage, config, ActiveTimeline(storage, config), OPTIONS, {})
    return ServiceRunner(context, LocalEngine(1), owner).run(RunRequest(str(path), "compaction", instant=instant))


def run_killed(path: Path, plan: FaultPlan) -> None:
    """Runs until the plan kills the process; the tasks' data storage is under the same plan."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(execute, "open_data_storage", lambda uri, options: FaultStorage(LocalStorage(uri), plan))
        run(path, dead_process(), plan)


def without_metadata_table(table: Path) -> Path:
    properties = table / ".hoodie" / "hoodie.properties"
    lines = [
        line for line in properties.read_text().splitlines() if not line.startswith("hoodie.table.metadata.partitions")
    ]
    properties.write_text("\n".join(lines) + "\n")
    (table / ".hoodie" / ".hoodie.properties.crc").unlink(missing_ok=True)
    shutil.rmtree(table / ".hoodie" / "metadata")
    return table


SOURCES: dict[str, Callable[[Path], Path]] = {
    "metadata table": lambda scratch: open_case("6", "mor_compaction_requested", scratch).table,
    "no metadata table": lambda scratch: without_metadata_table(
        open_case("6", "mor_compaction_requested", scratch).table
    ),
    "attempt of real Hudi to roll back": lambda scratch: open_case("6", "compaction_inflight", scratch).table,
    "version 8": lambda scratch: open_case("8", "mor_compaction_requested", scratch).table,
    "version 8, attempt of real Hudi to roll back": lambda scratch: (
        open_case("8", "compaction_inflight", scratch).table
    ),
    "version 9, with statistics": lambda scratch: open_case("9", "mor_compaction_requested", scratch).table,
}
QUICK = ("metadata table", "version 8", "version 9, with statistics")


@pytest.fixture(scope="module")
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Table:
    return Table(SOURCES[request.param](tmp_path_factory.mktemp("source")))


@pytest.fixture(scope="module")
def with_metadata(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return Table(SOURCES["metadata table"](tmp_path_factory.mktemp("source")))


def recover_and_check(path: Path, table: Table) -> None:
    assert_readable(path, table.rows)
    run(path, Owner.current("another process"), instant=table.instant)
    assert_compacted(path, table.instant, table.rows, table.pending)
    assert_complete(path, table.rows)
    again = run(path, Owner.current("a third process"), instant=table.instant)
    assert [(result.state, result.files_written) for result in again.instants] == [("completed", 0)]


def sweep(table: Table, points: list[int], timing: Timing, tmp_path: Path) -> None:
    for number in points:
        path = table.copy(tmp_path / f"killed-{number}")
        plan = FaultPlan(kill_at=number, timing=timing, counts=MUTATIONS)
        with pytest.raises(InjectedCrash):
            run_killed(path, plan)
        recover_and_check(path, table)
        shutil.rmtree(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "turn"),
    tiered([(name, turn) for turn, name in enumerate(QUICK)], [("version 9, with statistics", 2)]),
    indirect=["table"],
)
def test_killed_after_every_change_by_turns(table: Table, turn: int, tmp_path: Path) -> None:
    """The tables have nearly the same changes: each meets every third of them."""
    sweep(table, quick_points(changes_of(table, tmp_path))[turn :: len(QUICK)], "after", tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("table", list(SOURCES), indirect=True)
@pytest.mark.parametrize("part", range(STEPS))
def test_killed_at_every_change(table: Table, part: int, tmp_path: Path) -> None:
    """Before each, which is what a kill after the one before it leaves, and after the last."""
    points = range(len(changes_of(table, tmp_path)))
    sweep(table, list(points[part::STEPS]), "before", tmp_path)
    if part == 0:
        sweep(table, [points[-1]], "after", tmp_path)


def changes_of(table: Table, tmp_path: Path) -> list[Operation]:
    """All changes of an undisturbed run, in order."""
    plan = FaultPlan(counts=MUTATIONS)
    path = table.copy(tmp_path / "undisturbed")
    run_killed(path, plan)
    assert_compacted(path, table.instant, table.rows, table.pending)
    assert plan.counted == len(plan.mutations()) > 30
    return plan.mutations()


def quick_points(changes: list[Operation]) -> list[int]:
    """The numbers of the changes whose neighbours are not both writes into the same file."""

    def inner(number: int) -> bool:
        return all(
            change == changes[number] and change.kind == "output.write" for change in changes[number - 1 : number + 2]
        )

    return [number for number in range(len(changes)) if not inner(number)]


def under(folder: str, kind: str = "create_exclusive", ending: str = "") -> Callable[[Operation], bool]:
    return lambda operation: (
        operation.kind == kind and operation.path.startswith(folder) and operation.path.endswith(ending)
    )


POINTS: dict[str, tuple[Callable[[Operation], bool], Timing]] = {
    "claimed": (under(".hoodie/.airflow_hudi/claims/"), "after"),
    "inflight": (under(".hoodie/", ending=".compaction.inflight"), "after"),
    "marker written": (under(".hoodie/.temp/", "write"), "after"),
    "base file half written": (under("2024-", "output.write"), "after"),
    "first base file written": (under("2024-", "output.close"), "after"),
    "all base files written": (under("2024-01-03/", "output.close"), "after"),
    "lock taken": (under(".hoodie/lock"), "after"),
    "metadata deltacommit requested": (under(".hoodie/metadata/.hoodie/", ending=".deltacommit.requested"), "after"),
    "metadata deltacommit inflight": (under(".hoodie/metadata/.hoodie/", ending=".deltacommit.inflight"), "after"),
    "metadata log written": (under(".hoodie/metadata/files/"), "after"),
    "metadata deltacommit completed": (under(".hoodie/metadata/.hoodie/", ending=".deltacommit"), "after"),
    "completion decided": (under(".hoodie/.airflow_hudi/claims/", ending=".decision"), "after"),
    "data commit completed": (under(".hoodie/", ending=".commit"), "after"),
    "lock being released": (under(".hoodie/lock", "remove"), "before"),
    "markers being removed": (under(".hoodie/.temp/", "delete"), "after"),
    "claim being deleted": (under(".hoodie/.airflow_hudi/claims/", "delete"), "after"),
}

CHIEF = (
    "inflight",
    "base file half written",
    "all base files written",
    "metadata log written",
    "metadata deltacommit completed",
    "completion decided",
    "data commit completed",
)
"""After which the next process has something else to do each time."""


@pytest.mark.parametrize("point", tiered(POINTS, CHIEF))
def test_killed_when(point: str, with_metadata: Table, tmp_path: Path) -> None:
    when, timing = POINTS[point]
    path = with_metadata.copy(tmp_path / "table")
    plan = FaultPlan(when=when, timing=timing)
    with pytest.raises(InjectedCrash):
        run_killed(path, plan)
    assert plan.fired is not None
    recover_and_check(path, with_metadata)


def test_killed_twice_while_rolling_back(with_metadata: Table, tmp_path: Path) -> None:
    """The second process dies in the middle of the rollback of the first; the third resumes that rollback under its
    instant.
    """
    path = with_metadata.copy(tmp_path / "table")
    deaths: list[tuple[Callable[[Operation], bool], Timing]] = [
        (under(".hoodie/.airflow_hudi/claims/", ending=".decision"), "before"),
        (under(".hoodie/metadata/files/", ending="_1-0-1"), "after"),
    ]
    for when, timing in deaths:
        with pytest.raises(InjectedCrash):
            run_killed(path, FaultPlan(when=when, timing=timing))
        assert_readable(path, with_metadata.rows)
    recover_and_check(path, with_metadata)
    rollbacks = sorted(file.name for file in (path / ".hoodie").glob("*.rollback"))
    assert len(rollbacks) == 1
    metadata_timeline = sorted(file.name for file in (path / ".hoodie" / "metadata" / ".hoodie").glob("*.rollback"))
    assert metadata_timeline == [rollbacks[0].replace(".rollback", "006.rollback")]


@pytest.mark.soak
def test_killed_again_at_every_change_while_a_decision_is_carried_out(with_metadata: Table, tmp_path: Path) -> None:
    """The first process dies right before its put; the second only completes what the first decided, and dies at that;
    the third ends it.
    """
    decided = with_metadata.copy(tmp_path / "decided")
    with pytest.raises(InjectedCrash):
        run_killed(decided, FaultPlan(when=under(".hoodie/", ending=".commit"), timing="before"))
    bases = sorted(path.name for path in decided.rglob(f"*_{with_metadata.instant}.parquet"))
    number = 0
    while True:
        path = shutil.copytree(decided, tmp_path / f"killed-{number}", symlinks=True)
        plan = FaultPlan(kill_at=number, counts=MUTATIONS)
        try:
            run_killed(path, plan)
        except InjectedCrash:
            number += 1
        recover_and_check(path, with_metadata)
        assert sorted(file.name for file in path.rglob(f"*_{with_metadata.instant}.parquet")) == bases, (
            "the work was done again"
        )
        shutil.rmtree(path)
        if not plan.crashed:
            break
    assert number > 8


@pytest.mark.soak
def test_storage_errors_leave_a_run_that_can_be_repeated(with_metadata: Table, tmp_path: Path) -> None:
    """The same sweep with an operation that fails once instead of a kill: the process lives, reports the error, and may
    try again.
    """
    for number in quick_points(changes_of(with_metadata, tmp_path)):
        path = with_metadata.copy(tmp_path / f"failed-{number}")
        plan = FaultPlan(
            kill_at=number, counts=MUTATIONS, error=lambda operation: StorageError("injected", path=operation.path)
        )
        with pytest.raises(StorageError, match="injected"):
            run_killed(path, plan)
        recover_and_check(path, with_metadata)
        shutil.rmtree(path)


class ReversedCompleter(commit.Completer):
    """The wrong order: the data timeline's completed file before the metadata table's deltacommit."""

    def complete(
        self,
        instant: str,
        action: str,
        content: bytes,
        *,
        publish: Callable[[], None] | None = None,
        preconditions: tuple[commit.Precondition, ...] = (),
    ) -> Instant:
        with self._lock():
            completed = self._put(instant, Decision(action, None, content))
            assert publish is not None
            publish()
            return completed


def test_the_checker_catches_the_reversed_commit_order(
    with_metadata: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Null control: if this passed, the sweep would prove nothing."""
    assert has_metadata_table(with_metadata.source)
    monkeypatch.setattr("hudi_core.services.context.Completer", ReversedCompleter)
    path = with_metadata.copy(tmp_path / "table")
    with pytest.raises(InjectedCrash):
        run_killed(path, FaultPlan(when=under(".hoodie/", ending=".commit"), timing="after"))
    # A reader sees it as well: the metadata table lacks the commit.
    with pytest.raises((AssertionError, MetadataUnavailableError)):
        recover_and_check(path, with_metadata)
