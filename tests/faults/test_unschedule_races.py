"""A compaction's plan of layout 1 is dropped while a writer begins that has seen it: its rows are neither lost now nor
by the compaction.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConflictError, CorruptFileError, TimelineError
from hudi_core.model.names import CLAIMS
from hudi_core.services.compaction.planner import CompactionService
from hudi_core.services.context import TableContext
from hudi_core.services.unschedule import unschedule
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.instant import Action, State
from hudi_core.transaction.owner import Owner
from tests.support.changed_tables import an_owner, data_files, leftovers, open_context
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, InjectedCrash, Operation
from tests.support.golden_data import GoldenCase
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import read_rows

Golden = Callable[[str, str], GoldenCase]
CASE = "mor_compaction_requested"
"""Behind the compaction real Hudi has written: its deltacommit and log files can be taken away and be put back."""


@dataclass
class Behind:
    """The writes behind the compaction: `take_away` removes them, `request`, `append` and `complete` do them
    again.
    """

    table: Path
    plan: str
    writes: list[str]
    files: dict[str, bytes]

    def request(self) -> None:
        self._put(lambda name: name.endswith((".deltacommit.requested", ".deltacommit.inflight")))

    def append(self) -> None:
        self._put(lambda name: not name.startswith(".hoodie/"))

    def complete(self) -> None:
        self._put(lambda name: True)

    def take_away(self) -> None:
        for name in self.files:
            (self.table / name).unlink(missing_ok=True)

    def _put(self, requested: Callable[[str], bool]) -> None:
        for name, data in self.files.items():
            if requested(name):
                (self.table / name).write_bytes(data)

    @property
    def logs(self) -> list[str]:
        return [name for name in self.files if ".log." in name]


@pytest.fixture
def behind(golden: Golden) -> Behind:
    table = golden("6", CASE).table
    context = open_context(table)
    timeline = context.active.load()
    (plan,) = timeline.pending_compactions()
    later = [item.requested_time for item in timeline.commits() if item.requested_time > plan.requested_time]
    names = [
        path.relative_to(table).as_posix()
        for path in table.rglob("*")
        if path.is_file() and not path.name.endswith(".crc")
    ]
    endings = (*(f"_{time}.parquet" for time in later), f"_{plan.requested_time}.log.")
    mine = [
        name
        for name in names
        if name.startswith(tuple(f".hoodie/{time}." for time in later)) or any(ending in name for ending in endings)
    ]
    found = Behind(table, plan.requested_time, later, {name: (table / name).read_bytes() for name in mine})
    assert found.logs
    return found


def dropping(table: Path, matches: Callable[[Operation], bool], act: Callable[[], None]) -> TableContext:
    """The table's context; `act` happens once, right before the first operation that matches."""
    waiting = [act]

    def watch(operation: Operation) -> bool:
        if waiting and matches(operation):
            waiting.pop()()
        return False

    return open_context(table, storage=FaultStorage(LocalStorage(table), FaultPlan(when=watch)))


def removes_the_plan(operation: Operation) -> bool:
    return operation.kind == "delete" and operation.path.endswith(".compaction.requested")


@pytest.mark.parametrize("how_far", ["requested", "appended", "completed"])
def test_a_writer_that_saw_the_plan_gets_it_back(behind: Behind, how_far: str) -> None:
    rows = read_rows(behind.table, "off")
    behind.take_away()
    content = (behind.table / ".hoodie" / f"{behind.plan}.compaction.requested").read_bytes()

    def write() -> None:
        behind.request()
        if how_far != "requested":
            behind.append()
        if how_far == "completed":
            behind.complete()

    with pytest.raises(ConflictError, match="the plan is back"):
        unschedule(dropping(behind.table, removes_the_plan, write), behind.plan, an_owner())
    assert (behind.table / ".hoodie" / f"{behind.plan}.compaction.requested").read_bytes() == content
    assert not list((behind.table / CLAIMS / behind.plan).glob("*.plan"))
    behind.complete()
    assert_same_rows(read_rows(behind.table, "off"), rows)
    with pytest.raises(TimelineError, match="rows would be lost"):
        unschedule(open_context(behind.table), behind.plan, an_owner())
    CompactionService().run(open_context(behind.table), behind.plan, LocalEngine(), an_owner(), None)
    assert_same_rows(read_rows(behind.table, "off"), rows)
    assert leftovers(behind.table, behind.plan) == []


def test_a_writer_that_found_no_plan_is_in_the_one_that_is_restored(behind: Behind) -> None:
    """Of two writers in the same moment one saw the plan, the other did not and appended to the slices that the plan
    compacts.
    """
    behind.take_away()
    context = open_context(behind.table)
    operation = context.active.read_plan(behind.plan).operations[0]
    newer = f".{operation.file_id}_{operation.base_instant}.log.9_9-9-9"
    folder = behind.table / operation.partition
    some = (folder / operation.log_files[0]).read_bytes()

    def write() -> None:
        behind.request()
        behind.append()
        (folder / newer).write_bytes(some)

    with pytest.raises(ConflictError, match="the plan is back"):
        unschedule(dropping(behind.table, removes_the_plan, write), behind.plan, an_owner())
    again = open_context(behind.table).active.read_plan(behind.plan)
    assert again.operations[0] == replace(operation, log_files=(*operation.log_files, newer))
    assert len(again.operations) > 1


@pytest.mark.parametrize("timing", [pytest.param("before", marks=pytest.mark.soak), "after"])
@pytest.mark.parametrize("writes", [True, False])
def test_killed_anywhere_the_next_run_looks_again(behind: Behind, tmp_path: Path, timing: str, writes: bool) -> None:
    rows = read_rows(behind.table, "off")
    behind.take_away()
    before = read_rows(behind.table, "off")
    dead = replace(Owner.current("the process that dies"), process_start="1")
    undisturbed = Path(shutil.copytree(behind.table, tmp_path / "undisturbed"))
    faults = FaultPlan(counts=MUTATIONS)
    unschedule(open_context(undisturbed, storage=FaultStorage(LocalStorage(undisturbed), faults)), behind.plan, dead)
    assert leftovers(undisturbed, behind.plan) == []
    paths = [item.path for item in faults.mutations()]
    begin = next(number for number, path in enumerate(paths) if path.endswith("dropped.plan"))
    gone = next(number for number, path in enumerate(paths) if path.endswith(".compaction.requested"))
    for number in range(begin, len(paths)):
        path = Path(shutil.copytree(behind.table, tmp_path / f"killed-{number}"))
        copy = replace(behind, table=path)
        plan = FaultPlan(kill_at=number, timing=timing, counts=MUTATIONS)  # type: ignore[arg-type]
        storage = FaultStorage(LocalStorage(path), plan)
        with pytest.raises(InjectedCrash):
            unschedule(open_context(path, storage=storage), behind.plan, dead)
        context = open_context(path)
        kept = bool(list((path / CLAIMS).glob(f"{behind.plan}/dropped.plan")))
        if writes and kept:  # it had seen the plan before
            copy.complete()
            with pytest.raises((ConflictError, TimelineError), match=r"put .* log files behind|rows would be lost"):
                unschedule(context, behind.plan, an_owner())
            assert context.active.load().get(behind.plan, Action.COMPACTION).state is State.REQUESTED
            assert_same_rows(read_rows(path, "off"), rows)
        elif number >= gone or context.active.load().contains(behind.plan):
            if context.active.load().contains(behind.plan) or list((path / CLAIMS).glob(f"{behind.plan}/*")):
                unschedule(context, behind.plan, an_owner())
            assert not context.active.load().contains(behind.plan)
            assert_same_rows(read_rows(path, "off"), before)
            assert leftovers(path, behind.plan) == []
        shutil.rmtree(path)


def test_behind_a_run_that_died_a_pending_writer_is_waited_for(behind: Behind) -> None:
    """It may have started long after, so the plan does not come back for it; when it completed without log files behind
    the plan, all is done.
    """
    behind.take_away()
    table = behind.table
    dead = replace(Owner.current("the process that dies"), process_start="1")
    plan = FaultPlan(when=removes_the_plan, timing="after")
    with pytest.raises(InjectedCrash):
        unschedule(open_context(table, storage=FaultStorage(LocalStorage(table), plan)), behind.plan, dead)
    behind.request()
    context = open_context(table)
    with pytest.raises(ConflictError, match=f"deltacommit {behind.writes[0]} began while"):
        unschedule(context, behind.plan, an_owner())
    assert not context.active.load().contains(behind.plan)
    for write in behind.writes:
        context.active.delete_instant(write, Action.DELTA_COMMIT)
    unschedule(context, behind.plan, an_owner())
    assert leftovers(table, behind.plan) == []


def test_a_damaged_plan_comes_back_as_it_was(behind: Behind) -> None:
    behind.take_away()
    path = behind.table / ".hoodie" / f"{behind.plan}.compaction.requested"
    path.write_bytes(b"junk")
    with pytest.raises(ConflictError, match="the plan is back"):
        unschedule(dropping(behind.table, removes_the_plan, behind.append), behind.plan, an_owner())
    assert path.read_bytes() == b"junk"
    with pytest.raises((TimelineError, CorruptFileError)):
        unschedule(open_context(behind.table), behind.plan, an_owner())
    assert [name for name in data_files(behind.table) if name in behind.logs]
