"""`metadata create`, `update` and `drop` are killed at every operation that changes the storage; another process runs
them again.

What the properties list at any moment is whole, and when the second run is over nothing is left of the first. Reads are
not counted: a kill at a read leaves the state that the change before it left. `make test` kills an update and a
drop at some points, `make conformance` each verb, `make soak` at all of them.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.metadata_table.indexed_table import load_index_definitions, put_index_definitions
from hudi_core.metadata_table.initialize import exchange as exchange
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.services import merge_group as group_task
from hudi_core.metadata_table.write import staged_logs
from hudi_core.metadata_table.write.lifetime import is_drop_unfinished
from hudi_core.metadata_table.write.staged_logs import STAGING
from hudi_core.services.context import TableContext
from hudi_core.services.metadata.index_drop import drop_metadata
from hudi_core.services.metadata.maintain import create_metadata, update_metadata
from hudi_core.storage.local import LocalStorage
from hudi_core.table import HudiTable
from hudi_core.transaction.owner import Owner
from hudi_health.table import validate_metadata
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, InjectedCrash
from tests.support.golden_cleans import context_of
from tests.support.golden_data import open_case
from tests.support.metadata_records import Table
from tests.support.tiers import tiered
from tests.unit.hudi_core.services.metadata.test_catch_up import OF_9, forget
from tests.unit.hudi_core.services.metadata.test_catch_up_partition_ranges import narrow

Timing = Literal["before", "after"]
Act = Callable[[TableContext, Owner, int], object]
OPTIONS = {"spark.sql.session.timeZone": "UTC", "hoodie.metadata.compact.max.delta.commits": "1"}
READS = {"airflow_hudi.read.zone": "UTC"}
WRITERS = (exchange, staged_logs, group_task)
"""Modules whose tasks open the table by its address."""
SOME = 4
"""Points of `make test` and `make conformance`, spread over all."""


@dataclass(frozen=True)
class Subject:
    """A table, what is done to it, the partitions that it has then, and whether all that it lists holds meanwhile."""

    source: Path
    act: Act
    listed: frozenset[str]
    always_true: bool = True

    def run(self, path: Path, owner: Owner, epoch: int, plan: FaultPlan | None = None) -> None:
        """Runs the act; `plan` is over all of its storage, that of the tasks as well."""
        storage = LocalStorage(path) if plan is None else FaultStorage(LocalStorage(path), plan)
        options = OPTIONS | (OF_9 if Table(path).config.raw["hoodie.table.version"] == "9" else {})
        with tasks_under(plan):
            self.act(context_of(path, options, storage), owner, epoch)


@contextmanager
def tasks_under(plan: FaultPlan | None) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in WRITERS if plan is not None else ():
            patch.setattr(module, "open_data_storage", lambda uri, options: FaultStorage(LocalStorage(uri), plan))  # type: ignore[arg-type]
        yield


def created(path: Path) -> Subject:
    """All partitions of a table that has none any more; the definitions of its indexes stay."""
    table = Table(path)
    listed = table.config.metadata_partitions
    defined = load_index_definitions(table.storage, table.config)
    drop_metadata(context_of(path), ["files"], Owner.current("test"))
    put_index_definitions(
        table.storage,
        table.config,
        [item for name, item in defined.items() if name.startswith(("secondary_", "expr_"))],
    )
    return Subject(
        path, lambda context, owner, epoch: create_metadata(context, listed, LocalEngine(1), owner, epoch), listed
    )


def updated(path: Path) -> Subject:
    """Rollback of what failed, cleaning, compaction and archival of a metadata table that holds everything."""
    listed = Table(path).config.metadata_partitions
    return Subject(path, lambda context, owner, epoch: update_metadata(context, LocalEngine(1), owner, epoch), listed)


def caught_up(path: Path) -> Subject:
    """As updated, and the last commit is missing, which later commits hide, where the metadata table has ranges of
    partitions.
    """
    table = Table(path)
    forget(table, 1)
    if "partition_stats" in table.config.metadata_partitions:
        narrow(table, "partition_stats")
    return replace(updated(path), always_true=False)


def dropped(path: Path) -> Subject:
    """The whole metadata table."""
    return Subject(path, lambda context, owner, epoch: drop_metadata(context, ["files"], owner), frozenset())


def lessened(path: Path) -> Subject:
    """All indexes, one after the other file."""
    listed = Table(path).config.metadata_partitions
    gone = [name for name in listed if name not in ("files", "partition_stats")]
    return Subject(path, lambda context, owner, epoch: drop_metadata(context, gone, owner), frozenset({"files"}))


ACTS: dict[str, Callable[[Path], Subject]] = {
    "create": created,
    "update": updated,
    "catch up": caught_up,
    "drop": dropped,
    "drop indexes": lessened,
}
QUICK = {("create", "9"), ("update", "8"), ("catch up", "9"), ("drop", "6"), ("drop indexes", "8")}


@pytest.fixture
def subject(request: pytest.FixtureRequest, tmp_path: Path) -> Subject:
    name, version = request.param
    return ACTS[name](open_case(version, "mdt_all_mor", tmp_path).table)


def findings(path: Path) -> list[Any]:
    return list(validate_metadata(HudiTable.open(str(path), options=READS)).differences)


def dead_process() -> Owner:
    """An owner of this machine whose process is provably gone: its PID belongs to a process that started at another
    time.
    """
    return replace(Owner.current("the process that dies"), process_start="1")


def assert_over(path: Path, subject: Subject) -> None:
    """The end of an undisturbed run, with nothing left over."""
    table = Table(path)
    assert table.config.metadata_partitions == subject.listed
    assert table.config.metadata_partitions_inflight == frozenset()
    assert not is_drop_unfinished(table.storage, table.config)
    assert list((path / ".hoodie").glob("lock*")) == []
    assert [item for item in (path / STAGING).rglob("*") if item.is_file()] == []
    if not subject.listed:
        assert not (path / ROOT).exists()
        return
    assert {item.name for item in (path / ROOT).iterdir() if item.name != ".hoodie"} == subject.listed
    assert not table.metadata_timeline.load().pending().instants
    assert findings(path) == []


def killed(subject: Subject, path: Path, number: int, timing: Timing) -> None:
    """One point: the first run dies there, another process runs again, and once more."""
    shutil.copytree(subject.source, path)
    with pytest.raises(InjectedCrash):
        subject.run(path, dead_process(), 1, FaultPlan(kill_at=number, timing=timing, counts=MUTATIONS))
    if subject.always_true and "files" in Table(path).config.metadata_partitions:
        assert findings(path) == [], number
    subject.run(path, Owner.current("another process"), 2)
    assert_over(path, subject)
    shutil.rmtree(path)


def changes_of(subject: Subject, path: Path) -> int:
    """How many changes an undisturbed run makes."""
    shutil.copytree(subject.source, path)
    plan = FaultPlan(counts=MUTATIONS)
    subject.run(path, Owner.current("test"), 1, plan)
    assert_over(path, subject)
    assert plan.counted == len(plan.mutations())
    return plan.counted


@pytest.mark.slow
@pytest.mark.parametrize(
    "subject",
    tiered([pytest.param(item, id="-".join(item)) for item in sorted(QUICK)], ["catch up-9", "drop-6"]),
    indirect=True,
)
def test_killed_at_some_changes(subject: Subject, tmp_path: Path) -> None:
    total = changes_of(subject, tmp_path / "undisturbed")
    points = sorted({round(at * (total - 1) / SOME) for at in range(SOME + 1)})
    for number in points:
        killed(subject, tmp_path / f"killed-{number}", number, "after" if number % 2 else "before")
    assert len(points) > 3


@pytest.mark.soak
@pytest.mark.parametrize("timing", ["before", "after"])
@pytest.mark.parametrize(
    "subject", [(name, version) for name in ACTS for version in ("6", "8", "9")], indirect=True, ids="-".join
)
def test_killed_at_every_change(subject: Subject, timing: Timing, tmp_path: Path) -> None:
    total = changes_of(subject, tmp_path / "undisturbed")
    for number in range(total):
        killed(subject, tmp_path / f"killed-{number}", number, timing)
    assert total > 6
