"""Restores beyond the golden ones: to any commit, with every index of the metadata table, and killed in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.errors import FormatError, TimelineError
from hudi_core.services.compaction.planner import CompactionService
from hudi_core.services.lifecycle import Run, run_instant
from hudi_core.services.restore.candidates import restorable_instants
from hudi_core.services.restore.job import RestoreJob
from hudi_core.services.restore.savepoint import savepoint_create
from hudi_core.services.restore.verb import restore
from hudi_core.services.rollback.failed_writes import pending_rollbacks
from hudi_core.services.rollback.verb import rollback
from hudi_core.storage.local import LocalStorage
from hudi_core.table import HudiTable
from hudi_core.timeline.actions.rollback import (
    RestoredInstant,
    RestorePlan,
    RollbackStep,
    encode_restore_plan,
    encode_rollback_plan,
)
from hudi_core.timeline.instant import WRITE_ACTIONS, Action, Instant, State
from hudi_core.transaction.owner import Owner
from hudi_health.table import validate_metadata
from tests.support.changed_tables import an_owner, assert_rows, data_files, leftovers, listed, open_context
from tests.support.fault_storage import FaultPlan, FaultStorage, InjectedCrash, Operation
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import put_source
from tests.support.rows import assert_same_rows, read_parquet
from tests.support.table_invariants import assert_metadata_true, has_metadata_table, read_rows
from tests.support.tiers import tiered
from tests.support.writes import changed, own_columns, write

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["6", "8", "9"]
TABLES = [
    "mor_basic",
    "cow_basic",
    "mor_compacted",
    "mdt_all_cow",
    "mdt_all_mor",
    "insert_overwrite_partition_mor",
    "clustered_mor",
    "mor_compaction_requested",
    "clustering_requested_cow",
    "compaction_inflight",
    "failed_inflight_mor",
    "rolled_back_mor",
    "restored_then_written",
    "log_compaction_requested",
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "name"),
    tiered(
        [(version, name) for name in TABLES for version in VERSIONS],
        [
            ("6", "mor_basic"),
            ("9", "mor_compacted"),
            ("8", "mdt_all_mor"),
            ("9", "insert_overwrite_partition_mor"),
            ("6", "clustered_mor"),
            ("8", "mor_compaction_requested"),
            ("6", "compaction_inflight"),
            ("8", "failed_inflight_mor"),
            ("6", "restored_then_written"),
            ("8", "log_compaction_requested"),
        ],
    ),
)
def test_every_commit_that_can_be_restored(golden: Golden, version: str, name: str) -> None:
    """From the newest on, one after the other: the rows are those that time travel showed before, and nothing is left
    of what went.
    """
    case = golden(version, name)
    for item in reversed([item for item in restorable_instants(open_context(case.table)) if item.reason is None]):
        before = time_travel(case.table, item.instant)
        restore(open_context(case.table), item.instant, an_owner())
        rows = read_rows(case.table, "off")
        if before is not None:
            assert_same_rows(rows, before)
        expected = case.expected / f"as_of_{item.instant}.parquet"
        if expected.exists():
            assert_same_rows(rows, read_parquet(expected))
        assert_rows(case.table, rows)
        assert_metadata_true(case.table)
        timeline = open_context(case.table).active.load()
        assert timeline.pending().instants == () or all(
            found.requested_time < item.instant for found in timeline.pending()
        )
        newest = timeline.commits().last()
        assert newest is not None
        assert newest.requested_time == item.instant
        assert leftovers(case.table) == []
        if has_metadata_table(case.table):
            found = {
                path: size for path, size in data_files(case.table).items() if not path.endswith("_partition_metadata")
            }
            # Hudi 0.15 lists log files whose blocks were rolled back with a size of 1.
            assert {path: found[path] if size == 1 else size for path, size in listed(case.table).items()} == found


@pytest.mark.parametrize(("version", "name"), [("6", "mdt_all_mor"), ("9", "mdt_all_cow")])
def test_the_files_of_a_commit_with_an_unfinished_savepoint_stay_listed(
    golden: Golden, version: str, name: str
) -> None:
    table = golden(version, name).table
    context = open_context(table)
    *_, target, _ = (item.instant for item in restorable_instants(context) if item.reason is None)
    context.active.to_inflight(target, Action.SAVEPOINT)  # its creation was killed
    restore(context, target, an_owner())
    assert has_metadata_table(table)
    assert_same_rows(read_rows(table, "auto"), read_rows(table, "off"))
    assert_metadata_true(table)
    assert validate_metadata(HudiTable.open(str(table))).is_clean
    on_disk = {path for path in data_files(table) if not path.endswith("_partition_metadata")}
    assert listed(table).keys() == on_disk


@pytest.mark.parametrize("version", ["8", "9"])
def test_a_commit_that_stays_and_was_recorded_late(golden: Golden, version: str) -> None:
    """The metadata table would lose its rows: it is dropped. Else, or where the commit goes, it stays."""
    table = golden(version, "mdt_all_cow").table
    *_, early, target, _ = (item.instant for item in restorable_instants(open_context(table)))
    folder = table / ".hoodie/metadata/.hoodie/timeline"
    (recorded,) = folder.glob(f"{early}_*.deltacommit")
    (last,) = sorted(folder.glob("*.deltacommit"), key=lambda path: path.name.rpartition("_")[2])[-1:]
    late = int(last.name.rpartition("_")[2].removesuffix(".deltacommit")) + 1
    recorded.rename(recorded.with_name(f"{early}_{late}.deltacommit"))
    restore(open_context(table), target, an_owner())
    assert not has_metadata_table(table)
    assert not table.joinpath(".hoodie/metadata").exists()
    assert [item.instant for item in restorable_instants(open_context(table))][-2:] == [early, target]


def time_travel(table: Path, instant: str) -> pa.Table | None:
    """What a query of that time reads before anything is touched; None where a compaction was planned since, whose
    slices it leaves out.
    """
    if any(found.pending_action == Action.COMPACTION for found in open_context(table).active.load().after(instant)):
        return None
    result = HudiTable.open(str(table)).read(as_of=instant)
    return pa.Table.from_batches(list(result.batches), result.schema)


def dead_process() -> Owner:
    return replace(Owner.current("the process that dies"), process_start="1")


def killed_restore(table: Path, target: str, when: Callable[[Operation], bool]) -> None:
    plan = FaultPlan(when=when, timing="after")
    with pytest.raises(InjectedCrash):
        restore(open_context(table, storage=FaultStorage(LocalStorage(table), plan)), target, dead_process())


@pytest.mark.parametrize("version", VERSIONS)
def test_a_restore_that_died_blocks_everything_but_itself(golden: Golden, version: str) -> None:
    case = golden(version, "mor_basic")
    context = open_context(case.table)
    first, second, *_ = [item.instant for item in restorable_instants(context)]
    killed_restore(
        case.table,
        first,
        lambda operation: operation.kind == "create_exclusive" and operation.path.endswith(".rollback.inflight"),
    )
    timeline = context.active.load()
    (pending,) = timeline.pending().of_actions(Action.RESTORE)
    assert pending.state is State.INFLIGHT
    assert pending_rollbacks(context.active, timeline) == {}
    with pytest.raises(TimelineError, match="is not finished"):
        restore(context, second, an_owner())
    (metadata_timeline,) = timeline.pending().of_actions(Action.ROLLBACK)
    with pytest.raises(TimelineError, match="is not finished"):
        rollback(context, metadata_timeline.requested_time, an_owner())
    assert restore(context, first, an_owner()).instant == pending.requested_time
    assert context.active.load().of_actions(Action.ROLLBACK).instants == ()


@pytest.mark.parametrize("dies", [False, True], ids=["", "dies"])
@pytest.mark.parametrize("version", VERSIONS)
def test_two_compactions_of_a_file_group_are_restored_with_an_older_write(
    golden: Golden, tmp_path: Path, version: str, dies: bool
) -> None:
    """Both are pending while the older write is rolled back."""
    table = golden(version, "mor_basic").table
    rows, target = read_rows(table), open_context(table).active.load().commits().instants[-1].requested_time
    for step in range(3):
        few = changed(own_columns(rows).slice(0, 3), ts=lambda ts, step=step: ts + 1 + step)
        write(table, "upsert", put_source(few, tmp_path, name=str(step)))
        if step:
            context = open_context(table, {"hoodie.compact.inline.max.delta.commits": "1"})
            planned = CompactionService().schedule(context, an_owner(), dry_run=False).instant
            assert planned is not None
            CompactionService().run(open_context(table), planned, LocalEngine(1), an_owner(), None)
    *_, older = [item for item in open_context(table).active.load().commits() if item.requested_time > target][:1]
    if dies:
        name = f"{older.requested_time}.{older.action}.inflight"
        killed_restore(table, target, lambda operation: operation.path.endswith(name) and operation.kind != "read")
    restore(open_context(table), target, an_owner())
    assert_rows(table, rows)
    assert_metadata_true(table)
    assert leftovers(table) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_a_pending_rollback_that_cannot_be_followed_stops_a_restore_before_it_deletes(
    golden: Golden, version: str
) -> None:
    """The plan of the older commit is wrong, which comes second: nothing of the newer one may have gone by then."""
    table = golden(version, "mor_basic").table
    context = open_context(table)
    target, middle, newest = [item.requested_time for item in context.active.load().commits()][-3:]
    plan = RestorePlan(target, tuple(RestoredInstant(time, Action.DELTA_COMMIT) for time in (newest, middle)))
    now = context.new_instant(context.active.load())
    context.active.create_requested(now, Action.RESTORE, encode_restore_plan(plan))
    wrong = RollbackStep("2024-01-01", "../f", "001", (), {"a": 1})
    pending = context.new_instant(context.active.load())
    context.active.create_requested(
        pending, Action.ROLLBACK, encode_rollback_plan(middle, Action.DELTA_COMMIT, [wrong])
    )
    before = {path: path.is_dir() or path.read_bytes() for path in table.rglob("*")}
    with pytest.raises(FormatError, match="no file slice") as caught:
        run_instant(RestoreJob(Run(context, now, an_owner())))
    assert pending in str(caught.value.path)
    assert {path: path.is_dir() or path.read_bytes() for path in table.rglob("*")} == before


def test_a_restore_that_takes_its_own_target_away_is_refused(golden: Golden) -> None:
    table = golden("9", "mor_basic").table
    context = open_context(table)
    target = max(item.requested_time for item in context.active.load().commits())
    plan = RestorePlan(target, (RestoredInstant(target, Action.DELTA_COMMIT),))
    now = context.new_instant(context.active.load())
    context.active.create_requested(now, Action.RESTORE, encode_restore_plan(plan))
    before = data_files(table)
    with pytest.raises(FormatError, match="to which it restores"):
        run_instant(RestoreJob(Run(context, now, an_owner())))
    assert data_files(table) == before


class Archive:
    """An archive of which only the list of instants is read."""

    def __init__(self, *instants: Instant) -> None:
        self._instants = instants

    def instants(self, after: str | None = None, up_to: str | None = None) -> list[Instant]:
        return [instant for instant in self._instants if after is None or instant.requested_time > after]


def request_restore(table: Path, target: str, times: Sequence[str]) -> str:
    """A restore that some process planned; its instant."""
    active = open_context(table).active
    timeline = active.load()
    when = str(int(max(item.completed_at for item in timeline)) + 1)
    going = (timeline.of_actions(*WRITE_ACTIONS).filter(lambda item: item.requested_time in times)).instants
    named = tuple(RestoredInstant(item.requested_time, item.action) for item in reversed(going))
    active.create_requested(when, Action.RESTORE, encode_restore_plan(RestorePlan(target, named)))
    return when


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("kept", "match"),
    [(0, "is not after"), (1, "to which it restores"), (2, "leaves deltacommit"), (-1, "leaves deltacommit")],
)
def test_a_plan_that_does_not_go_back_to_its_target_is_refused(
    golden: Golden, version: str, kept: int, match: str
) -> None:
    """It would take rows of the target, or leave a later commit on top of it. Nothing is written."""
    table = golden(version, "mor_basic").table
    times = [item.requested_time for item in open_context(table).active.load().commits()]
    target = times[1]
    extra = times[kept : kept + 1] if kept in (0, 1) else []
    going = [time for time in times[2:] if extra or time != times[kept]]
    restore_at = request_restore(table, target, [*extra, *going])
    before = {path: path.read_bytes() for path in table.rglob("*") if path.is_file()}
    with pytest.raises(FormatError, match=match) as caught:
        restore(open_context(table), target, an_owner())
    assert (caught.value.path or "").endswith(f"{restore_at}.restore.requested")
    assert {path: path.read_bytes() for path in table.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("version", VERSIONS)
def test_a_savepoint_is_found_before_anything_is_rolled_back(golden: Golden, version: str) -> None:
    table = golden(version, "mor_basic").table
    context = open_context(table)
    first, second, *rest = [item.requested_time for item in context.active.load().commits()]
    savepoint_create(context, second, an_owner())
    request_restore(table, first, [second, *rest])
    before = {path: path.read_bytes() for path in table.rglob("*") if path.is_file()}
    with pytest.raises(TimelineError, match="was savepointed"):
        restore(open_context(table), first, an_owner())
    assert {path: path.read_bytes() for path in table.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("version", VERSIONS)
def test_a_requested_plan_that_fits_is_run(golden: Golden, version: str) -> None:
    table = golden(version, "mor_basic").table
    first, *rest = [item.requested_time for item in open_context(table).active.load().commits()]
    restore_at = request_restore(table, first, rest)
    assert restore(open_context(table), first, an_owner()).instant == restore_at
    assert [item.requested_time for item in open_context(table).active.load().commits()] == [first]
