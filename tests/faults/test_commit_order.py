"""Every service is killed once after each class of its changes, and an independent reader looks at what is left.

At every such moment Hudi-rs reads the rows due by listing and by metadata table; no file is there of an instant that
the timeline has lost; and where the service's completed file is on the timeline, all that it completes is done. The
null controls turn that order round.

The log of operations is held against the disk: a service that changed a file past the storage under test fails here.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.services.clean import job as clean_execute
from hudi_core.services.context import TableContext
from hudi_core.services.restore.candidates import restorable_instants
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.instant import Action
from hudi_core.transaction.owner import Owner
from tests.support.changed_tables import data_files, known_times, open_context
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, Operation
from tests.support.golden_archives import TIGHT
from tests.support.golden_data import open_case
from tests.support.independent_reader import (
    assert_complete,
    assert_nothing_forgotten,
    assert_valid,
    completed_files,
    rows_by_another_reader,
)
from tests.support.service_calls import (
    Act,
    archive_act,
    clean_act,
    delete_savepoint_act,
    failed_writes_act,
    killed,
    one_of_each_class,
    perform,
    restore_act,
    rollback_act,
    savepoint_act,
    takeover_act,
    unschedule_act,
)
from tests.support.table_files import contents
from tests.support.table_invariants import assert_metadata_true
from tests.support.tiers import tiered

VERSIONS = ["6", "8", "9"]
Pick = Callable[[TableContext], str]


def pending(context: TableContext) -> str:
    return [item.requested_time for item in context.active.load().pending()][-1]


def newest_commit(context: TableContext) -> str:
    return [item.requested_time for item in context.active.load().commits()][-1]


def saved(context: TableContext) -> str:
    (instant,) = context.active.load().of_actions(Action.SAVEPOINT).requested_times
    return str(instant)


def oldest_restorable(context: TableContext) -> str:
    return next(item.instant for item in restorable_instants(context) if item.reason is None)


@dataclass(frozen=True)
class Service:
    """A golden table, what is done to it, and the action that completes on its timeline, if any does."""

    case: str
    pick: Pick
    act: Callable[[str], Act]
    completes: str | None = None
    rows_change: bool = False
    options: Mapping[str, str] = field(default_factory=dict)


SERVICES = {
    "clean": Service("clean_requested_cow", pending, clean_act, Action.CLEAN),
    "clean of whole partitions": Service("insert_overwrite_clean_requested", pending, clean_act, Action.CLEAN),
    "rollback by markers": Service("failed_inflight_mor", pending, rollback_act, Action.ROLLBACK),
    "rollback by listing": Service("failed_after_metadata_mor", pending, rollback_act, Action.ROLLBACK),
    "rollback of an attempt": Service("compaction_inflight", pending, rollback_act, Action.ROLLBACK),
    "rollback of a commit": Service("mor_basic", newest_commit, rollback_act, Action.ROLLBACK, rows_change=True),
    "failed writes": Service("failed_inflight_cow", pending, lambda _: failed_writes_act(), Action.ROLLBACK),
    "restore": Service("savepoint_mor", saved, restore_act, Action.RESTORE, rows_change=True),
    "restore with metadata": Service("mor_basic", oldest_restorable, restore_act, Action.RESTORE, rows_change=True),
    "savepoint": Service("mor_basic", newest_commit, savepoint_act, Action.SAVEPOINT),
    "savepoint deleted": Service("savepoint_mor", saved, delete_savepoint_act),
    "archive": Service("archived_timeline_mor", newest_commit, lambda _: archive_act(), options=TIGHT),
    "unschedule": Service("clustering_requested_mor", pending, unschedule_act),
    "takeover": Service("compaction_inflight", pending, takeover_act),
}


@dataclass
class Subject:
    """A service on a table, and what both are like without a kill."""

    service: Service
    source: Path
    act: Act
    rows: pa.Table | None
    end: dict[str, Any]
    end_path: Path
    operations: list[Operation]
    known: set[str]


def outcome(table: Path) -> dict[str, Any]:
    """What a service has to bring about: which data files are there, and the rows that an independent reader finds."""
    rows = rows_by_another_reader(table, metadata=False)
    return {
        "files": data_files(table),
        "rows": None if rows is None else sorted(map(repr, rows.drop_columns(META).to_pylist())),
    }


META = ["_hoodie_commit_seqno", "_hoodie_file_name"]


QUICK = ("clean", "rollback by listing", "rollback of a commit", "savepoint", "archive", "unschedule")
"""Not left to `make soak`, each on the timeline of one layout, in turns."""
ON = dict(zip(QUICK, ("6", "9") * len(QUICK), strict=False))
SUBJECTS = [
    *tiered(
        [pytest.param((ON[name], name), marks=pytest.mark.slow, id=f"{ON[name]}-{name}") for name in QUICK],
        ["6-clean", "9-rollback by listing", "6-archive"],
    ),
    *(
        pytest.param((version, name), marks=pytest.mark.soak, id=f"{version}-{name}")
        for name in SERVICES
        for version in VERSIONS
        if ON.get(name) != version
    ),
]


@pytest.fixture(scope="module", params=SUBJECTS)
def subject(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Subject:
    version, name = request.param
    service, scratch = SERVICES[name], tmp_path_factory.mktemp("subject")
    source = open_case(version, service.case, scratch).table
    act = service.act(service.pick(open_context(source)))
    rows = None if service.rows_change else rows_by_another_reader(source, metadata=False)
    end = Path(shutil.copytree(source, scratch / "undisturbed", symlinks=True))
    plan = FaultPlan(counts=MUTATIONS)
    with touched_below(end) as touched:
        perform(end, act, Owner.current("the tests"), plan, service.options)
    assert unseen(source, end, touched, plan) == set()
    assert_complete(end, rows)
    assert_metadata_true(end)
    return Subject(service, source, act, rows, outcome(end), end, plan.mutations(), known_times(source))


def completed_by_it(table: Path, subject: Subject) -> list[str]:
    """The completed files of the service's action that the table did not have before."""
    before = completed_files(subject.source)
    return [
        time
        for time, action in completed_files(table)
        if action == subject.service.completes and (time, action) not in before
    ]


def assert_order(table: Path, subject: Subject) -> None:
    """What holds at every moment of a service."""
    assert_valid(table, subject.rows)
    assert_nothing_forgotten(table)
    if completed_by_it(table, subject):
        assert outcome(table) == subject.end, "completed before it was done"


def test_at_every_moment_an_independent_reader_finds_what_is_due(subject: Subject, tmp_path: Path) -> None:
    points = one_of_each_class(subject.operations)
    assert len(points) > 3, points
    for name, number in points.items():
        table = Path(shutil.copytree(subject.source, tmp_path / f"killed-{number}", symlinks=True))
        killed(table, subject.act, FaultPlan(kill_at=number, timing="after", counts=MUTATIONS), subject.service.options)
        try:
            assert_order(table, subject)
        except AssertionError as error:
            raise AssertionError(f"killed after {name}") from error
        shutil.rmtree(table)


# Null controls.


def test_a_completion_before_the_work_is_caught(subject: Subject, tmp_path: Path) -> None:
    """The completed file of the undisturbed run is there before the first data file goes."""
    if subject.service.completes is None or outcome(subject.source) == subject.end:
        assert completed_by_it(subject.end_path, subject) == [] or subject.service.completes in (
            Action.SAVEPOINT,
            Action.ROLLBACK,
        )
        return
    table = Path(shutil.copytree(subject.source, tmp_path / "table", symlinks=True))
    killed(table, subject.act, FaultPlan(when=_changes_data, timing="before"), subject.service.options)
    assert_order(table, subject)
    context, end = open_context(table), open_context(subject.end_path)
    (started_at,) = [item for item in context.active.load().pending() if item.action == subject.service.completes]
    (done,) = completed_by_it(subject.end_path, subject)
    path = end.active.path_of(end.active.load().get(done, subject.service.completes))
    (table / path.replace(done, started_at.requested_time)).write_bytes((subject.end_path / path).read_bytes())
    with pytest.raises(AssertionError, match="completed before it was done"):
        assert_order(table, subject)


def _changes_data(operation: Operation) -> bool:
    return operation.kind in MUTATIONS and not operation.path.startswith(".hoodie/")


@pytest.mark.parametrize("version", VERSIONS)
def test_an_instant_that_goes_before_its_files_is_caught(version: str, tmp_path: Path) -> None:
    """A rollback, and the dropping of a plan, that took the instant off the timeline first."""
    for case in ("failed_after_metadata_cow", "compaction_inflight"):
        table = open_case(version, case, tmp_path).table
        instant = pending(open_context(table))
        assert_nothing_forgotten(table)
        folder = table / open_context(table).active.folder
        for path in [*folder.glob(f"{instant}.*")]:
            path.unlink()
        with pytest.raises(AssertionError, match="not on the timeline"):
            assert_nothing_forgotten(table)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_change_past_the_storage_is_caught(version: str, tmp_path: Path) -> None:
    """The tasks of a clean delete by a storage of their own: here one that is not under the plan."""
    source = open_case(version, "clean_requested_cow", tmp_path).table
    table = Path(shutil.copytree(source, tmp_path / "table", symlinks=True))
    plan = FaultPlan(counts=MUTATIONS)
    act = clean_act(pending(open_context(table)))
    with touched_below(table) as touched, pytest.MonkeyPatch.context() as patch:
        patch.setattr(clean_execute, "open_deleting_storage", lambda uri, _: LocalStorage(uri))
        act(open_context(table, {}, FaultStorage(LocalStorage(table), plan)), Owner.current("the tests"))
    gone = data_files(source).keys() - data_files(table).keys()
    assert gone <= unseen(source, table, touched, plan)
    assert gone


# What changed on the disk.

_WATCHED: list[tuple[str, set[str]]] = []
_EVENTS = {"os.remove": 0, "os.rename": 1, "os.link": 1, "os.truncate": 0}
"""Python's audit events of changes to files, and which argument names the file that a storage's caller knows."""


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if _WATCHED and event in _EVENTS and isinstance(arguments[_EVENTS[event]], (str, bytes, Path)):
        path = str(arguments[_EVENTS[event]])
        for root, found in _WATCHED:
            if path.startswith(f"{root}/"):
                found.add(path[len(root) + 1 :])


sys.addaudithook(_watch)


@contextmanager
def touched_below(table: Path) -> Iterator[set[str]]:
    """The files below a folder that Python removes, renames to or links to meanwhile, also those that are gone at the
    end.
    """
    watched: tuple[str, set[str]] = (str(table), set())
    _WATCHED.append(watched)
    try:
        yield watched[1]
    finally:
        _WATCHED.remove(watched)


def unseen(before: Path, after: Path, touched: set[str], plan: FaultPlan) -> set[str]:
    """The files that changed and that no operation of the plan names; Hadoop's side files go with their files."""
    old, new = contents(before), contents(after)
    changed = {path for path in old.keys() | new.keys() if old.get(path) != new.get(path)}
    known = {operation.path for operation in plan.mutations()}
    return {path for path in changed | touched if not path.endswith((".crc", ".tmp")) and path not in known}
