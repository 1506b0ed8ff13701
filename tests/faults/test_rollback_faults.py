"""A rollback, a restore and a savepoint, killed at every change of the storage: the next run gets to the same end.

The end is compared with that of an undisturbed run, times aside. `make test` and `make conformance` kill one scenario
of each service after every second change, of which each version takes a third, one of them in `make test`; and the
others after some. The rest of the cross product (each change on each version, deaths before a change, errors, deaths in
a row) runs in `make soak`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

from hudi_core.errors import StorageError
from hudi_core.model.names import CLAIMS
from hudi_core.services.context import TableContext
from hudi_core.services.restore.candidates import restorable_instants
from hudi_core.services.restore.savepoint import savepoint_create, savepoint_delete
from hudi_core.services.restore.verb import restore
from hudi_core.services.rollback.verb import rollback
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.instant import Action
from hudi_core.transaction.owner import Owner
from tests.support.changed_tables import (
    METADATA,
    data_files,
    decoded,
    known_times,
    leftovers,
    listed,
    open_context,
    shown,
)
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, InjectedCrash
from tests.support.golden_data import open_case
from tests.support.independent_reader import assert_complete, assert_nothing_forgotten, assert_valid
from tests.support.rows import assert_same_rows, rows_of
from tests.support.table_invariants import assert_metadata_true, has_metadata_table, read_rows
from tests.support.tiers import tiered

Timing = Literal["before", "after"]
Act = Callable[[TableContext, Owner], object]


def newest_failed(context: TableContext) -> str:
    return [instant.requested_time for instant in context.active.load().pending()][-1]


def newest_commit(context: TableContext) -> str:
    return [instant.requested_time for instant in context.active.load().commits()][-1]


def oldest_restorable(context: TableContext) -> str:
    return next(item.instant for item in restorable_instants(context) if item.reason is None)


SCENARIOS: dict[str, tuple[str, Callable[[TableContext], str], Callable[[TableContext, str, Owner], object]]] = {
    "failed write, markers": ("failed_inflight_mor", newest_failed, rollback),
    "failed write, listing, in the metadata table": ("failed_after_metadata_mor", newest_failed, rollback),
    "attempt at a compaction": ("compaction_inflight", newest_failed, rollback),
    "completed commit": ("mor_basic", newest_commit, rollback),
    "restore to a savepoint": ("savepoint_mor", oldest_restorable, restore),
    "restore with a metadata table": ("mor_basic", oldest_restorable, restore),
    "restore without its metadata table": ("mdt_all_mor", oldest_restorable, restore),
    "savepoint created": ("mor_basic", newest_commit, savepoint_create),
}


REPRESENTATIVE = (
    "failed write, markers",
    "attempt at a compaction",
    "completed commit",
    "restore to a savepoint",
    "savepoint created",
)
"""One scenario of each kind of service."""
VERSIONS = ("6", "8", "9")


@dataclass
class Subject:
    """A table, what is done to it, and what it is like when no process is killed."""

    version: str
    source: Path
    act: Act
    known: set[str]
    changes: int
    end: dict[str, Any]
    instants: list[str]


def dead_process() -> Owner:
    return replace(Owner.current("the process that dies"), process_start="1")


def state_of(table: Path, known: set[str], instants: list[str]) -> dict[str, Any]:
    rows: pa.Table = read_rows(table, "off")
    columns = [name for name in rows.column_names if name not in ("_hoodie_file_name", "_hoodie_commit_seqno")]
    state: dict[str, Any] = {
        "files": data_files(table),
        "timeline": shown(table, known),
        "rollbacks": decoded(table, Action.ROLLBACK),
        "restores": decoded(table, Action.RESTORE),
        "savepoints": [{**found, "savepointedBy": ""} for found in decoded(table, Action.SAVEPOINT)],
        "leftovers": left_by_the_dead(table, instants),
        "rows": rows_of(rows, columns),
    }
    if has_metadata_table(table):
        state["metadata timeline"] = shown(table, known, METADATA)
        state["listed"] = listed(table)
        state["rows by metadata"] = rows_of(read_rows(table, "on"), columns)
    return state


def left_by_the_dead(table: Path, instants: list[str]) -> list[str]:
    """What must not stay. Of an instant that is pending again the released claims stay: epochs are counted on."""
    pending = {instant.requested_time for instant in open_context(table).active.load().pending()}
    return [
        name
        for name in leftovers(table, *instants)
        if not any(name.startswith(f"{CLAIMS}/{instant}/") for instant in pending)
    ]


def run(path: Path, act: Act, owner: Owner, plan: FaultPlan | None = None) -> None:
    storage = LocalStorage(path)
    act(open_context(path, storage=storage if plan is None else FaultStorage(storage, plan)), owner)


@pytest.fixture(scope="module")
def subject(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Subject:
    version, name = request.param
    case, pick, verb = SCENARIOS[name]
    scratch = tmp_path_factory.mktemp("subject")
    source = open_case(version, case, scratch).table
    context = open_context(source)
    instant = pick(context)

    def act(held: TableContext, owner: Owner) -> object:
        return verb(held, instant, owner)

    known = known_times(source)
    instants = [item.requested_time for item in context.active.load()]
    undisturbed = Path(shutil.copytree(source, scratch / "undisturbed"))
    plan = FaultPlan(counts=MUTATIONS)
    run(undisturbed, act, dead_process(), plan)
    end = state_of(undisturbed, known, instants)
    assert end["leftovers"] == []
    assert plan.counted == len(plan.mutations()) > 10
    return Subject(version, source, act, known, plan.counted, end, instants)


def assert_readable_by_both_listings(path: Path) -> None:
    """Whatever rows the table has at this moment, the metadata table leads to the same."""
    if has_metadata_table(path):
        assert_same_rows(read_rows(path, "on"), read_rows(path, "off"))
    assert_valid(path)
    assert_nothing_forgotten(path)


def assert_ends_alike(path: Path, subject: Subject, owner: Owner) -> None:
    run(path, subject.act, owner)
    found = state_of(path, subject.known, subject.instants)
    for name, value in subject.end.items():
        assert found[name] == value, name
    assert_complete(path)
    assert_metadata_true(path)


THINNED = 10
"""The quick sweep kills after each change whose number leaves the remainder that the scenario has drawn; the others
leave none out.
"""


def on(names: Iterable[str], *marks: pytest.MarkDecorator) -> list[Any]:
    """The scenarios on every version."""
    return [
        pytest.param((version, name), id=f"{version}-{name}", marks=marks) for version in VERSIONS for name in names
    ]


OTHERS = [name for name in SCENARIOS if name not in REPRESENTATIVE]
EVERYTHING = pytest.mark.parametrize("subject", on(SCENARIOS, pytest.mark.soak), indirect=True)


def sweep(subject: Subject, points: range, timing: Timing, tmp_path: Path) -> None:
    for number in points:
        path = Path(shutil.copytree(subject.source, tmp_path / f"killed-{number}"))
        with pytest.raises(InjectedCrash):
            run(path, subject.act, dead_process(), FaultPlan(kill_at=number, timing=timing, counts=MUTATIONS))
        assert_readable_by_both_listings(path)
        assert_ends_alike(path, subject, Owner.current("another process"))
        shutil.rmtree(path)


@pytest.mark.parametrize(
    "subject", tiered(on(OTHERS), ["9-failed write, listing, in the metadata table"]), indirect=True
)
def test_killed_after_some_changes(subject: Subject, tmp_path: Path) -> None:
    sweep(subject, range(subject.changes % THINNED, subject.changes, THINNED), "after", tmp_path)


@pytest.mark.parametrize(
    "subject",
    tiered(
        on(REPRESENTATIVE, pytest.mark.slow),
        [
            "8-failed write, markers",
            "9-attempt at a compaction",
            "6-completed commit",
            "9-restore to a savepoint",
            "6-savepoint created",
        ],
    ),
    indirect=True,
)
def test_killed_after_each_change_by_turns(subject: Subject, tmp_path: Path) -> None:
    """The versions make the same changes, but for the places of files: all meet every second of them, by turns."""
    sweep(subject, range(2 * VERSIONS.index(subject.version), subject.changes, 2 * len(VERSIONS)), "after", tmp_path)


@EVERYTHING
def test_killed_at_every_change(subject: Subject, tmp_path: Path) -> None:
    """Before each, which is what a kill after the one before it leaves, and after the last."""
    sweep(subject, range(subject.changes), "before", tmp_path)
    sweep(subject, range(subject.changes - 1, subject.changes), "after", tmp_path)


@EVERYTHING
def test_storage_errors_and_the_same_owner_again(subject: Subject, tmp_path: Path) -> None:
    """An operation fails once; the process lives, reports the error, and tries again."""
    owner = Owner.current("the same process")
    for number in range(subject.changes):
        path = Path(shutil.copytree(subject.source, tmp_path / f"failed-{number}"))
        plan = FaultPlan(
            kill_at=number, counts=MUTATIONS, error=lambda operation: StorageError("injected", path=operation.path)
        )
        with pytest.raises(StorageError, match="injected"):
            run(path, subject.act, owner, plan)
        assert_ends_alike(path, subject, owner)
        shutil.rmtree(path)


@EVERYTHING
def test_killed_three_times(subject: Subject, tmp_path: Path) -> None:
    """The process that takes over dies as well, each a little further on."""
    for number in range(0, subject.changes, 5):
        path = Path(shutil.copytree(subject.source, tmp_path / f"killed-{number}"))
        for step in range(3):
            try:
                run(path, subject.act, dead_process(), FaultPlan(kill_at=number + 2 * step, counts=MUTATIONS))
            except InjectedCrash:
                continue
        assert_ends_alike(path, subject, Owner.current("another process"))
        shutil.rmtree(path)


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_savepoint_is_deleted_whatever_dies(version: str, tmp_path: Path) -> None:
    source = open_case(version, "savepoint_mor", tmp_path).table
    (saved,) = open_context(source).active.load().of_actions(Action.SAVEPOINT).requested_times
    act: Act = lambda held, owner: savepoint_delete(held, saved, owner)  # noqa: E731
    plan = FaultPlan(counts=MUTATIONS)
    run(Path(shutil.copytree(source, tmp_path / "undisturbed")), act, dead_process(), plan)
    for number in range(plan.counted):
        path = Path(shutil.copytree(source, tmp_path / f"killed-{number}"))
        with pytest.raises(InjectedCrash):
            run(path, act, dead_process(), FaultPlan(kill_at=number, timing="after", counts=MUTATIONS))
        context = open_context(path)
        if context.active.load().of_actions(Action.SAVEPOINT).instants:
            savepoint_delete(context, saved, Owner.current("another process"))
        assert context.active.load().of_actions(Action.SAVEPOINT).instants == ()
        shutil.rmtree(path)
