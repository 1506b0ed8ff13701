"""An archival is killed at every operation on the storage; nothing may be lost, doubled or visible in a wrong order,
and the next run ends it.

Null controls: with the guard turned round, the same sweep finds the damage. Of the changes each version takes a third:
`make test` kills after those of version 9, `make conformance` after the others. Each change on each version, deaths
before a change, and at reads, run in `make soak`.
"""

from __future__ import annotations

import io
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.history import archiving
from hudi_core.history.archived_instant import ArchivedInstant
from hudi_core.history.archiving import LogArchiveWriter
from hudi_core.history.log_archive import archive_files
from hudi_core.history.lsm_writer import LsmWriter
from hudi_core.history.manifest import read_snapshot
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import COMMIT_ACTIONS, Instant
from hudi_core.transaction.owner import Owner
from tests.golden.test_archive_writers import records
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, InjectedCrash, Operation
from tests.support.golden_archives import Key, active_of, archive, history_of
from tests.support.golden_cleans import context_of
from tests.support.golden_data import open_case
from tests.support.independent_reader import assert_valid
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import assert_metadata_true, pending_instants, read_rows
from tests.support.tiers import tiered

Timing = Literal["before", "after"]
ROUND = 3
VERSIONS = ("6", "8", "9")


@dataclass(frozen=True)
class Golden:
    """A table to archive: its completed instants on the timeline and in the archive, and its rows. `turn` is its
    version's number.
    """

    source: Path
    active: list[Key]
    history: list[Key]
    rows: pa.Table
    turn: int = 0

    def copy(self, target: Path) -> Path:
        shutil.copytree(self.source, target, symlinks=True)
        return target


@pytest.fixture(scope="module", params=VERSIONS)
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Golden:
    case = open_case(str(request.param), "archived_timeline_mor", tmp_path_factory.mktemp("source"))
    return Golden(
        case.table, active_of(case.table), history_of(case.table), read_rows(case.table), VERSIONS.index(request.param)
    )


@pytest.fixture(autouse=True)
def _small_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archiving, "ROUND_INSTANTS", ROUND)


def dead_process() -> Owner:
    """An owner of this machine whose process is provably gone: its PID belongs to a process that started at another
    time.
    """
    return replace(Owner.current("the process that dies"), process_start="1")


def run_killed(path: Path, plan: FaultPlan) -> None:
    archive(path, owner=dead_process(), storage=FaultStorage(LocalStorage(path), plan))


def assert_nothing_lost(path: Path, golden: Golden, *, rows: bool = True) -> None:
    """At every moment: each instant is on the timeline or in the archive, none turned pending, and the timeline's
    commits have no hole.
    """
    active = active_of(path)
    assert set(active) | set(history_of(path)) == set(golden.active) | set(golden.history)
    assert pending_instants(path) == set()
    commits, before = ([item for item in found if item[1] in COMMIT_ACTIONS] for found in (active, golden.active))
    assert commits == before[len(before) - len(commits) :], "HUDI-7207: oldest first"
    if rows:
        assert_same_rows(read_rows(path), golden.rows)
        assert_valid(path, golden.rows)


def archived_records(path: Path) -> Counter[tuple[Any, ...]]:
    """What the files of the archive hold, doubles included."""
    context = context_of(path)
    folder = context.config.history_folder
    if context.config.features.completion_time_in_name:
        files = (
            pq.read_table(io.BytesIO(context.storage.read(file.path))).to_pylist()
            for file in read_snapshot(context.storage, folder)
        )
        return Counter((row["instantTime"], row["action"]) for rows in files for row in rows)
    found = (
        record
        for _, file in archive_files(context.storage, folder)
        for record in records(context.storage.read(file.path), file.path)
    )
    return Counter((record["commitTime"], record["actionType"], record["actionState"]) for record in found)


def assert_archived(path: Path, golden: Golden) -> None:
    """The end: what should go is gone, everything is there once, and nothing is left over."""
    assert_nothing_lost(path, golden)
    assert not set(active_of(path)) & set(history_of(path))
    assert max(archived_records(path).values()) == 1
    assert sum(action in COMMIT_ACTIONS for _, action in active_of(path)) <= 3
    assert_metadata_true(path)
    names = (file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file())
    assert [
        name for name in names if name.startswith((".hoodie/.airflow_hudi/claims", ".hoodie/lock")) or ".tmp" in name
    ] == []


def operations_of(golden: Golden, tmp_path: Path, counts: frozenset[str] | None) -> int:
    """How many operations an undisturbed run makes."""
    plan = FaultPlan(counts=counts)
    path = golden.copy(tmp_path / "undisturbed")
    run_killed(path, plan)
    assert_archived(path, golden)
    assert active_of(path) != golden.active
    assert plan.counted == len(plan.operations if counts is None else plan.mutations()) > 20
    shutil.rmtree(path)
    return plan.counted


@pytest.mark.parametrize(
    ("table", "timing", "versions"),
    [
        *tiered(
            [
                pytest.param(version, "after", len(VERSIONS), id=f"{version}-after, by turns", marks=pytest.mark.slow)
                for version in VERSIONS
            ],
            ["9-after, by turns"],
        ),
        *(
            pytest.param(version, timing, 1, id=f"{version}-{timing}", marks=pytest.mark.soak)
            for version in VERSIONS
            for timing in ("after", "before")
        ),
    ],
    indirect=["table"],
)
def test_killed_at_every_change_and_run_again_by_another(
    table: Golden, timing: Timing, versions: int, tmp_path: Path
) -> None:
    """`versions` share the changes among them."""
    for number in range(table.turn % versions, operations_of(table, tmp_path, MUTATIONS), versions):
        path = table.copy(tmp_path / f"killed-{number}")
        with pytest.raises(InjectedCrash):
            run_killed(path, FaultPlan(kill_at=number, timing=timing, counts=MUTATIONS))
        assert_nothing_lost(path, table)
        archive(path, owner=Owner.current("another process"))
        with context_of(path).lock(Owner.current("the next owner")):
            pass  # a kill right before the release leaves the lock, which a run without anything to do does not take
        assert_archived(path, table)
        assert archive(path) == []
        shutil.rmtree(path)


@pytest.mark.soak
def test_killed_at_every_operation_reads_included(table: Golden, tmp_path: Path) -> None:
    """No call on the storage goes unseen; rows are omitted here, as a read changes none."""
    for number in range(operations_of(table, tmp_path, None)):
        path = table.copy(tmp_path / f"killed-{number}")
        with pytest.raises(InjectedCrash):
            run_killed(path, FaultPlan(kill_at=number))
        assert_nothing_lost(path, table, rows=False)
        archive(path)
        assert set(active_of(path)) | set(history_of(path)) == set(table.active) | set(table.history)
        assert max(archived_records(path).values()) == 1
        shutil.rmtree(path)


POINTS: dict[str, Callable[[Operation], bool]] = {
    "lock taken": lambda operation: operation.path == ".hoodie/lock",
    "archive written": lambda operation: (
        operation.kind == "create_exclusive" and ("_0.parquet" in operation.path or ".archive." in operation.path)
    ),
    "a pending file gone": lambda operation: operation.kind == "delete" and operation.path.endswith(".requested"),
    "a completed file gone": lambda operation: operation.kind == "delete" and operation.path.endswith("commit"),
}


@pytest.mark.parametrize("point", list(POINTS))
@pytest.mark.parametrize(
    ("table", "timing"),
    [
        *tiered([(version, "after") for version in VERSIONS], [("6", "after")]),
        *(pytest.param(version, "before", marks=pytest.mark.soak) for version in VERSIONS),
    ],
    indirect=["table"],
)
def test_killed_when(point: str, timing: Timing, table: Golden, tmp_path: Path) -> None:
    path = table.copy(tmp_path / "table")
    with pytest.raises(InjectedCrash):
        run_killed(
            path,
            FaultPlan(when=lambda operation: operation.kind in MUTATIONS and POINTS[point](operation), timing=timing),
        )
    assert_nothing_lost(path, table)
    archive(path)
    assert_archived(path, table)


@pytest.mark.parametrize("table", tiered(VERSIONS, ["8"]), indirect=True)
def test_killed_four_times_in_a_row(table: Golden, tmp_path: Path) -> None:
    path = table.copy(tmp_path / "table")
    for number in (3, 6, 9, 12):
        with pytest.raises(InjectedCrash):
            run_killed(path, FaultPlan(kill_at=number, timing="after", counts=MUTATIONS))
        assert_nothing_lost(path, table)
    archive(path)
    assert_archived(path, table)


def damaged(golden: Golden, tmp_path: Path) -> list[int]:
    """The kills, of every third change, after which something is wrong at once."""
    found = []
    for number in range(0, 60, 3):
        path = golden.copy(tmp_path / f"control-{number}")
        try:
            run_killed(path, FaultPlan(kill_at=number, timing="after", counts=MUTATIONS))
        except InjectedCrash:
            try:
                assert_nothing_lost(path, golden, rows=False)
            except AssertionError:
                found.append(number)
        shutil.rmtree(path)
    return found


@pytest.mark.parametrize("table", tiered(VERSIONS, ["6"]), indirect=True)
def test_null_control_the_timeline_first(table: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert damaged(table, tmp_path) == []
    writer: Any = LogArchiveWriter if table.source.joinpath(".hoodie/archived").exists() else LsmWriter
    write, finish = writer.write, writer.finish
    waiting: list[ArchivedInstant] = []
    monkeypatch.setattr(writer, "write", lambda self, instants: waiting.extend(instants))

    def write_at_last(self: Any) -> None:
        write(self, waiting)
        finish(self)

    monkeypatch.setattr(writer, "finish", write_at_last)
    assert damaged(table, tmp_path)


@pytest.mark.parametrize("table", tiered(VERSIONS, ["8"]), indirect=True)
def test_null_control_hudi_7207_newest_first(table: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forget = ActiveTimeline.forget

    def backwards(self: ActiveTimeline, instants: Iterable[Instant]) -> int:
        return sum(
            forget(self, [instant]) for instant in sorted(instants, key=lambda item: item.sort_key, reverse=True)
        )

    monkeypatch.setattr(ActiveTimeline, "forget", backwards)
    assert damaged(table, tmp_path)
