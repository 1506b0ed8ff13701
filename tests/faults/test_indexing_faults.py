"""Indexing is killed before and after every operation that changes the storage: planned, run, resized, dropped; what
comes next brings it to its end.

At every moment `validate` finds nothing: what is listed is whole, and what is not listed is not used. Reads are
left out: a kill at a read leaves the state that the change before it left. `make test` kills some runs at some of the
classes of operations (service_calls.class_of), `make conformance` the others; all changes, and those that the same
process runs again, are in `make soak`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.errors import HudiError, StorageError
from hudi_core.metadata_table.initialize import exchange as exchange
from hudi_core.services.indexing.build import group_counts
from hudi_core.services.indexing.planner import IndexingService
from hudi_core.services.metadata.index_drop import drop_metadata
from hudi_core.services.unschedule import unschedule
from hudi_core.storage.local import LocalStorage
from hudi_core.table import HudiTable
from hudi_core.timeline.instant import Action
from hudi_core.transaction.claim_file import current_claim
from hudi_core.transaction.owner import Owner
from hudi_health.table import validate_metadata
from tests.faults.test_clean_faults import leftovers
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, InjectedCrash
from tests.support.golden_cleans import context_of
from tests.support.golden_data import open_case
from tests.support.metadata_records import Records, Table, comparable
from tests.support.rows import assert_same_rows
from tests.support.service_calls import dead_process, one_of_each_class
from tests.support.table_invariants import pending_instants, read_rows
from tests.support.tiers import tiered

Timing = Literal["before", "after"]
SOME = 8
"""Kills in one sweep of `make test` and `make conformance`, spread over the classes of operations."""
ROWS = {"hoodie.metadata.record.index.enable": "true", "airflow_hudi.indexing.file_groups": "3"}
SECONDARY = {"hoodie.metadata.index.secondary.column": "name", "hoodie.index.name": "by_name"}
EVERY = {
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    **ROWS,
}


@dataclass(frozen=True)
class Case:
    """A table and what is done to it; `act` may be repeated by a later process, and makes of every state the same
    end.
    """

    source: Path
    act: Callable[[Path, LocalStorage | FaultStorage, Owner], object]
    settled: Callable[[Path], bool] = field(default=lambda path: True)
    forgets: bool = True
    """Whether the next run finds the claim of a dead one: that of a plan which is gone altogether is left to
    archival.
    """

    def copy(self, target: Path) -> Path:
        return Path(shutil.copytree(self.source, target, symlinks=True))

    def do(self, path: Path, owner: Owner, plan: FaultPlan | None = None) -> None:
        """Does it under `plan`; the files that tasks write are under it, too."""
        storage = LocalStorage(path)
        with pytest.MonkeyPatch.context() as patch:
            if plan is not None:
                patch.setattr(exchange, "open_data_storage", lambda uri, options: FaultStorage(LocalStorage(uri), plan))
            self.act(path, storage if plan is None else FaultStorage(storage, plan), owner)


@dataclass(frozen=True)
class End:
    """What a table is like at the end."""

    listed: frozenset[str]
    inflight: frozenset[str]
    records: Records
    metadata_timeline: list[str]
    pending: set[str]

    @classmethod
    def of(cls, path: Path) -> End:
        table = Table(path)
        return cls(
            table.config.metadata_partitions,
            table.config.metadata_partitions_inflight,
            comparable(table.live()),
            table.metadata_instants(),
            {str(item) for item in pending_instants(path)},
        )


def differences(path: Path) -> list[str]:
    return [f"{item.partition_type}: {item.what}" for item in validate_metadata(HudiTable.open(str(path))).differences]


def schedule(path: Path, options: Mapping[str, str]) -> str:
    instant = IndexingService().schedule(context_of(path, options), Owner.current("a planner"), dry_run=False).instant
    assert instant is not None
    return instant


def run_act(instant: str, options: Mapping[str, str]) -> Callable[[Path, LocalStorage | FaultStorage, Owner], object]:
    def act(path: Path, storage: LocalStorage | FaultStorage, owner: Owner) -> None:
        assert (
            IndexingService().run(context_of(path, options, storage), instant, LocalEngine(1), owner, None).state
            == "completed"
        )

    return act


def scratch_of(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    return folder


def build_of(version: str, scratch: Path) -> Case:
    """What real Hudi planned: column statistics; with version 9 bloom filters beside them."""
    table = open_case(version, "indexing_requested", scratch).table
    (planned,) = HudiTable.open(str(table)).timeline().pending().of_actions(Action.INDEXING)
    return Case(table, run_act(planned.requested_time, {}))


def every_of(version: str, scratch: Path) -> Case:
    """Indexes of files and of rows in one plan."""
    table = open_case(version, "mor_basic", scratch).table
    drop_metadata(context_of(table), Table(table).config.metadata_partitions - {"files"}, Owner.current("a tester"))
    options = EVERY | ({} if version == "6" else SECONDARY)
    return Case(table, run_act(schedule(table, options), options))


def resize_of(version: str, scratch: Path) -> Case:
    table = open_case(version, "mdt_record_index_lookup", scratch).table
    instant = schedule(table, ROWS)
    return Case(
        table,
        run_act(instant, ROWS),
        lambda path: group_counts(LocalStorage(path), "record_index") == {"record-index": 3},
    )


def half_built(version: str, scratch: Path) -> tuple[Path, str]:
    """A table whose indexing was killed when the base files were written."""
    made = build_of(version, scratch)
    (planned,) = HudiTable.open(str(made.source)).timeline().pending().of_actions(Action.INDEXING)
    plan = FaultPlan(
        when=lambda operation: operation.kind == "output.close" and operation.path.endswith(".hfile"), timing="after"
    )
    with pytest.raises(InjectedCrash):
        made.do(made.source, dead_process(), plan)
    assert Table(made.source).config.metadata_partitions_inflight
    return made.source, planned.requested_time


def drop_of(version: str, scratch: Path) -> Case:
    """An index that is half built is dropped, and its plan with it."""
    table, _ = half_built(version, scratch)
    names = sorted(Table(table).config.metadata_partitions_inflight)
    return Case(
        table,
        lambda path, storage, owner: drop_metadata(context_of(path, storage=storage), names, owner),
        forgets=False,
    )


def unschedule_of(version: str, scratch: Path) -> Case:
    table, instant = half_built(version, scratch)

    def act(path: Path, storage: LocalStorage | FaultStorage, owner: Owner) -> None:
        context = context_of(path, storage=storage)
        if context.active.load().contains(instant) or current_claim(storage, instant) is not None:
            unschedule(context, instant, owner)

    return Case(table, act)


CASES: dict[str, Callable[[str, Path], Case]] = {
    "build": build_of,
    "every": every_of,
    "resize": resize_of,
    "drop": drop_of,
    "unschedule": unschedule_of,
}


def points_of(case: Case, tmp_path: Path, timing: Timing, *, whole: bool) -> tuple[End, list[int]]:
    """The end of an undisturbed run, and the numbers of the changes to kill it at."""
    path, counting = case.copy(tmp_path / "undisturbed"), FaultPlan(counts=MUTATIONS)
    case.do(path, Owner.current("undisturbed"), counting)
    assert (differences(path), leftovers(path), case.settled(path)) == ([], [], True)
    operations = counting.mutations()
    assert len(operations) == counting.counted > 5
    points = range(counting.counted) if whole or timing == "before" else one_of_each_class(operations).values()
    return End.of(path), sorted(points)


def sweep(case: Case, tmp_path: Path, timing: Timing, who: str, *, whole: bool, some: int | None = None) -> None:
    """Kills at all points (points_of), or at `some`, the last one among them."""
    end, points = points_of(case, tmp_path, timing, whole=whole)
    rows = read_rows(case.source)
    for number in points[:: -max(1, len(points) // (some or len(points)))]:
        path = case.copy(tmp_path / f"killed-{number}")
        plan = FaultPlan(kill_at=number, timing=timing, counts=MUTATIONS)
        same = Owner.current("the same")
        with pytest.raises(InjectedCrash):
            case.do(path, same if who == "the same" else dead_process(), plan)
        assert differences(path) == [], plan.fired
        assert_same_rows(read_rows(path, "on"), rows)
        case.do(path, same if who == "the same" else Owner.current("another process"))
        assert End.of(path) == end, plan.fired
        assert (differences(path), case.settled(path)) == ([], True), plan.fired
        assert not case.forgets or leftovers(path) == [], plan.fired
        shutil.rmtree(path)


SWEPT = [("build", "6"), ("build", "9"), ("resize", "8"), ("drop", "6"), ("unschedule", "9"), ("every", "8")]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "version"), tiered(SWEPT, [("build", "9"), ("unschedule", "9")]))
def test_killed_at_some_changes(name: str, version: str, tmp_path: Path) -> None:
    sweep(CASES[name](version, scratch_of(tmp_path)), tmp_path, "after", "another", whole=False, some=SOME)


@pytest.mark.soak
@pytest.mark.parametrize("timing", ["after", "before"])
@pytest.mark.parametrize(("name", "version"), [("build", "6"), ("resize", "6"), ("resize", "8"), ("build", "9")])
def test_the_same_process_runs_again(name: str, version: str, timing: Timing, tmp_path: Path) -> None:
    sweep(CASES[name](version, scratch_of(tmp_path)), tmp_path, timing, "the same", whole=False)


@pytest.mark.soak
@pytest.mark.parametrize("timing", ["after", "before"])
@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize("name", list(CASES))
def test_killed_at_every_change(name: str, version: str, timing: Timing, tmp_path: Path) -> None:
    sweep(CASES[name](version, scratch_of(tmp_path)), tmp_path, timing, "another", whole=True)


POINTS: dict[str, Callable[[str], bool]] = {
    "delisted": lambda path: path == ".hoodie/hoodie.properties",
    "half deleted": lambda path: "record-index-0004-0" in path,
    "decided": lambda path: path.endswith(".decision"),
}


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_killed_three_times_in_a_row(version: str, tmp_path: Path) -> None:
    case = resize_of(version, scratch_of(tmp_path))
    end, _ = points_of(case, tmp_path, "after", whole=True)
    path = case.copy(tmp_path / "table")
    for point in POINTS.values():
        plan = FaultPlan(
            when=lambda operation, point=point: operation.kind in MUTATIONS and point(operation.path), timing="after"
        )
        with pytest.raises(InjectedCrash):
            case.do(path, dead_process(), plan)
        assert differences(path) == [], plan.fired
    case.do(path, Owner.current("another process"))
    assert (End.of(path), differences(path), leftovers(path)) == (end, [], [])


@pytest.mark.soak
@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize("name", ["build", "resize"])
def test_an_error_at_every_change_leaves_a_run_that_the_same_process_can_repeat(
    name: str, version: str, tmp_path: Path
) -> None:
    case = CASES[name](version, scratch_of(tmp_path))
    end, points = points_of(case, tmp_path, "after", whole=True)
    for number in points:
        path = case.copy(tmp_path / f"failed-{number}")
        plan = FaultPlan(
            kill_at=number, counts=MUTATIONS, error=lambda operation: StorageError("injected", path=operation.path)
        )
        # An error of a clean-up behind the completion is only logged.
        with suppress(StorageError):
            case.do(path, Owner.current("a process"), plan)
        assert plan.fired is not None
        assert differences(path) == [], plan.fired
        case.do(path, Owner.current("a process"))
        assert (End.of(path), differences(path)) == (end, []), plan.fired
        shutil.rmtree(path)


@pytest.mark.parametrize(
    ("version", "timing"), tiered([("6", "after"), ("8", "before"), ("9", "after")], [("8", "before")])
)
def test_killed_while_planning(version: str, timing: Timing, tmp_path: Path) -> None:
    """However the planner died, the next one plans, or finds the plan, and there is one."""
    source = open_case(version, "mdt_record_index_lookup", scratch_of(tmp_path)).table

    def plan_it(path: Path, owner: Owner, plan: FaultPlan | None = None) -> str | None:
        storage = LocalStorage(path)
        context = context_of(path, ROWS, storage if plan is None else FaultStorage(storage, plan))
        return IndexingService().schedule(context, owner, dry_run=False).instant

    counting = FaultPlan(counts=MUTATIONS)
    plan_it(Path(shutil.copytree(source, tmp_path / "undisturbed")), Owner.current("undisturbed"), counting)
    assert counting.counted >= 3
    for number in range(counting.counted):
        path = Path(shutil.copytree(source, tmp_path / f"killed-{number}"))
        with pytest.raises(InjectedCrash):
            plan_it(path, dead_process(), FaultPlan(kill_at=number, timing=timing, counts=MUTATIONS))
        again = plan_it(path, Owner.current("another process"))
        (pending,) = HudiTable.open(str(path)).timeline().pending().of_actions(Action.INDEXING)
        assert again in (None, pending.requested_time)
        run_act(pending.requested_time, ROWS)(path, LocalStorage(path), Owner.current("a third process"))
        assert group_counts(LocalStorage(path), "record_index") == {"record-index": 3}
        assert differences(path) == []


def test_an_index_that_was_listed_before_it_was_whole_is_caught(tmp_path: Path) -> None:
    """Null control: listed before its base files are there, the check of a kill in between must fail."""
    case = resize_of("8", scratch_of(tmp_path))
    path = case.copy(tmp_path / "table")
    plan = FaultPlan(
        when=lambda operation: operation.kind == "open_output" and operation.path.endswith(".hfile"), timing="before"
    )
    with pytest.raises(InjectedCrash):
        case.do(path, dead_process(), plan)
    properties = path / ".hoodie" / "hoodie.properties"
    text = properties.read_text()
    assert differences(path) == []
    properties.write_text(
        text.replace("partitions.inflight=record_index", "partitions.inflight=").replace(
            "partitions=column", "partitions=record_index,column"
        )
    )
    with pytest.raises((AssertionError, HudiError)):
        assert differences(path) == []
