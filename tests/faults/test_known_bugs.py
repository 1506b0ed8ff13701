"""Bugs of real Hudi that lost or doubled rows, as far as locks, timeline, rollback, restore, cleaning and archival go
(ids are Hudi's).

Each test holds with the guard in place, and shows the loss when the named guard is taken away. Where a scenario has a
test of its own elsewhere, it is called, not copied.
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.errors import ConflictError, FormatError, HudiError
from hudi_core.history import archiving
from hudi_core.metadata_table.write.delta_writer import DeltaWriter
from hudi_core.model.names import parse_data_file
from hudi_core.services import context as service_context
from hudi_core.services.clean import kept_files as guard
from hudi_core.services.clean import retention as policies
from hudi_core.services.context import TableContext
from hudi_core.services.rewriting import job as rewrite
from hudi_core.services.rollback import checks as rollback_checks
from hudi_core.services.rollback import failed_attempt as attempt
from hudi_core.services.rollback.execution import RollbackExecution
from hudi_core.services.rollback.verb import rollback
from hudi_core.services.takeover import takeover
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.table import HudiTable
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.instant_time import new_instant
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction import claim, claim_file, conflict
from hudi_core.transaction import instant_generator as instants
from hudi_core.transaction.instant_generator import InstantClock
from hudi_core.transaction.owner import Owner
from hudi_core.transaction.reconcile import FindFiles, list_partitions
from hudi_core.view.file_group import FileGroup, FileSlice
from hudi_core.view.slicing import Slicing
from tests.faults import test_archive_faults, test_clean_faults
from tests.support.changed_tables import open_context
from tests.support.fault_storage import FaultPlan, InjectedCrash, Operation
from tests.support.golden_archives import active_of, history_of
from tests.support.golden_cleans import context_of, run_clean
from tests.support.golden_data import GoldenCase, open_case
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import assert_compacted, pending_instants, read_rows
from tests.support.tiers import tiered
from tests.unit.hudi_core.services.archive import test_listing as test_orphans
from tests.unit.hudi_core.services.clean import test_kept_files_checks as test_guard
from tests.unit.hudi_core.services.clean import test_retention_slices as test_policies
from tests.unit.hudi_core.services.clean.test_job import clean_of
from tests.unit.hudi_core.services.compaction import test_job as test_run
from tests.unit.hudi_core.services.compaction.test_job import HookedEngine, compact, pending_instant
from tests.unit.hudi_core.services.rollback import test_job as test_rollback_run
from tests.unit.hudi_core.transaction import test_concurrent_operations as test_conflict_facts

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["6", "8", "9"]
DID_NOT_RAISE = pytest.fail.Exception


@pytest.mark.parametrize("version", VERSIONS)
def test_hudi_19290_a_clean_leaves_what_a_pending_compaction_needs(
    golden: Golden, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards: the planner looks for the files that plans name, and a plan of real Hudi is checked before it is run."""
    scenario = test_guard.test_hudi_19290_a_clean_that_real_hudi_planned_waits_for_the_plan_that_needs_its_file
    scenario(version, Action.COMPACTION, golden)
    with monkeypatch.context() as unguarded:
        unguarded.setattr(guard, "_REQUESTED", ())
        with pytest.raises(DID_NOT_RAISE):
            scenario(version, Action.COMPACTION, golden)
    for policy in test_policies.POLICIES:
        test_policies.test_hudi_19290_a_file_of_a_pending_plan_stays_wherever_the_view_has_it(policy)
        with monkeypatch.context() as unguarded:
            test_policies.test_hudi_19290_happens_without_the_guard(policy, unguarded)


@pytest.mark.parametrize("version", VERSIONS)
def test_hudi_4863_a_rollback_takes_no_file_of_a_pending_compaction(
    golden: Golden, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write that came after the plan goes, one that the plan was made on does not; a failed compaction goes without
    the logs of later writes.

    Guards: services.rollback.checks, and in version 6 which log files attempt_files takes for the compaction's own.
    """
    if version == "6":
        _a_failed_compaction_goes_without_the_logs_of_later_writes(golden, monkeypatch)
    test_rollback_run.test_hudi_4863_a_failed_write_goes_while_a_compaction_is_inflight(golden, version)
    test_rollback_run.test_a_commit_that_a_plan_was_made_on_does_not_go(golden, version)
    monkeypatch.setattr(rollback_checks, "check_may_roll_back", lambda *_: None)
    with pytest.raises(DID_NOT_RAISE):
        test_rollback_run.test_a_commit_that_a_plan_was_made_on_does_not_go(golden, version)
    table = golden(version, "mor_compaction_requested_only").table
    instant = pending_instant(table)
    newest = context_of(table).active.load().commits().last()
    assert newest is not None
    rollback(context_of(table), newest.requested_time, Owner.current("test"))
    operations = context_of(table).active.read_plan(instant).operations
    planned = [table / operation.partition / name for operation in operations for name in operation.log_files]
    # In version 6 a command block rolls the rows back, which our compaction, unlike Hudi's, sees although the plan does
    # not name it.
    assert version == "6" or not all(path.exists() for path in planned), "the compaction cannot be run any more"


def _a_failed_compaction_goes_without_the_logs_of_later_writes(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    """In version 6 writers' log files bear the compaction's instant."""

    def run() -> tuple[Path, str, pa.Table, set[tuple[str, str]]]:
        table = golden("6", "mor_compaction_requested").table
        instant, rows, pending = pending_instant(table), read_rows(table), pending_instants(table)
        context_of(table).active.to_inflight(instant, Action.COMPACTION)
        half_written(table, instant)
        compact(table)
        return table, instant, rows, pending

    assert_compacted(*run())
    with monkeypatch.context() as unguarded:
        unguarded.setattr(attempt, "attempt_files", _whatever_bears_the_instant)
        with pytest.raises(FormatError, match="holds rows of a completed instant"):
            run()
        unguarded.setattr(RollbackExecution, "check", lambda *_: None)
        table, _, rows, _ = run()
    assert not _same(read_rows(table, "off"), rows), "the rows of later writes went with the compaction"


def _whatever_bears_the_instant(
    context: TableContext, instant: str, action: str, partitions: frozenset[str]
) -> list[FileInfo]:
    found = (info for _, files in list_partitions(context.storage, partitions) for info in files)
    return [info for info in found if (name := parse_data_file(info.name)) is not None and name.instant == instant]


def half_written(table: Path, instant: str) -> Path:
    """A base file of an attempt at a pending compaction, with the first row of the slice that it compacts; whole as a
    Parquet file.
    """
    (operation, *_) = [item for item in context_of(table).active.read_plan(instant).operations if item.base_file]
    source = table / operation.partition / str(operation.base_file)
    target = source.with_name(f"{operation.file_id}_7-1-7_{instant}.parquet")
    pq.write_table(pq.read_table(source, partitioning=None).slice(0, 1), target)
    return target


def _same(one: pa.Table, other: pa.Table) -> bool:
    try:
        assert_same_rows(one, other)
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize("version", VERSIONS)
def test_hudi_18783_a_late_put_after_its_rollback_never_shows(
    golden: Golden, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards: a rollback that is run again looks for files that came later; archival refuses to pass an instant that
    left files.
    """
    test_rollback_run.test_hudi_18783_what_a_zombie_writes_after_its_rollback_is_found(golden, version, monkeypatch)
    test_orphans.test_hudi_18783_a_late_file_of_a_rolled_back_instant(golden, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_hudi_4163_hudi_2892_hudi_5728_archival_waits_for_a_pending_clustering(
    golden: Golden, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guard: holds._pending, which the scenario itself removes."""
    for state in (State.REQUESTED, State.INFLIGHT):
        with monkeypatch.context() as metadata_timeline:
            test_orphans.test_hudi_4163_no_archival_passes_a_pending_write(
                golden, version, state, "clustering", metadata_timeline
            )


def test_hudi_7503_no_process_rolls_back_what_a_live_run_is_writing(
    golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two executors of one compaction. Guard: the claim's signs of life."""
    table = golden("6", "mor_compaction_requested").table
    instant, rows, pending = pending_instant(table), read_rows(table), pending_instants(table)

    def refused() -> None:
        with pytest.raises(ConflictError, match="is run by"):
            compact(table, owner="the second", instant=instant)

    compact(table, HookedEngine(after=refused), owner="the first")
    assert_compacted(table, instant, rows, pending)

    table = golden("6", "mor_compaction_requested").table
    written: list[Path] = []

    def takes_over() -> None:
        written.extend(table.glob(f"*/*_{instant}.parquet"))
        compact(table, owner="the second", instant=instant)

    for module in (claim, claim_file):
        monkeypatch.setattr(module, "silence", lambda *_: None)
    with pytest.raises(ConflictError):
        compact(table, HookedEngine(after=takes_over), owner="the first")
    assert written
    assert not any(path.exists() for path in written), "the live run's output was rolled back under its hands"
    assert_compacted(table, instant, rows, pending)  # and still no row is lost: its completion is fenced besides


@pytest.mark.parametrize("version", tiered(VERSIONS, ["9"]))
def test_hudi_7503_an_attempt_of_a_live_writer_stays(
    golden: Golden, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hudi 1.2 runs the plan, and its heartbeat is fresh. Guard: TableContext.claim looks at that first."""
    table = golden(version, "mor_compaction_requested").table
    instant, rows, pending = pending_instant(table), read_rows(table), pending_instants(table)
    context, owner = open_context(table), Owner.current("ours")
    context.active.to_inflight(instant, Action.COMPACTION)
    (theirs, *_) = table.glob("20*/*.parquet")
    name = parse_data_file(theirs.name)
    assert name is not None
    theirs = shutil.copyfile(theirs, theirs.with_name(f"{name.file_id}_0-901-902_{instant}.parquet"))
    heartbeat = table / ".hoodie" / ".heartbeat" / instant
    heartbeat.parent.mkdir(exist_ok=True)
    heartbeat.touch()
    doings = (
        lambda: compact(table, owner="ours", instant=instant),
        lambda: takeover(context, instant, owner),
    )
    for do in doings:
        with pytest.raises(ConflictError, match=f"a writer is at work on instant {instant}"):
            do()
    assert theirs.exists()
    with monkeypatch.context() as unguarded:
        unguarded.setattr(service_context, "refuse_live_writer", lambda *_: None)
        doings[1]()
    assert not theirs.exists()
    heartbeat.touch()
    dead = heartbeat.stat().st_mtime - 300
    os.utime(heartbeat, (dead, dead))
    doings[0]()
    assert_compacted(table, instant, rows, pending)


@pytest.mark.parametrize("version", VERSIONS)
def test_hudi_18830_hudi_19771_hudi_6828_replaced_file_groups_and_their_clustering(
    golden: Golden, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An overwrite beside a clustering conflicts; an archival keeps a replacecommit while files that it replaced are
    there.
    """
    scenarios = (
        test_conflict_facts.test_an_overwrite_that_replaced_the_file_group,
        test_conflict_facts.test_a_clustering_that_is_planned_for_the_file_group,
        test_conflict_facts.test_an_overwrite_that_is_under_way_says_what_it_writes,
    )
    layout = 1 if version == "6" else 2
    for scenario in scenarios:
        scenario(test_conflict_facts.Timeline(layout))
        with monkeypatch.context() as unguarded:
            unguarded.setattr(conflict, "_shared", lambda *_: frozenset())
            with pytest.raises(AssertionError):
                scenario(test_conflict_facts.Timeline(layout))
    test_orphans.test_files_of_replaced_groups_hold_their_replacecommit(golden, version, monkeypatch)


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6"]))
def test_hudi_7207_completed_files_leave_the_timeline_oldest_first(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed at every third change of an archival. Guard: the order in ActiveTimeline.forget."""
    monkeypatch.setattr(archiving, "ROUND_INSTANTS", test_archive_faults.ROUND)
    source = open_case(version, "archived_timeline_mor", tmp_path).table
    table = test_archive_faults.Golden(source, active_of(source), history_of(source), read_rows(source))
    assert test_archive_faults.damaged(table, tmp_path) == []
    test_archive_faults.test_null_control_hudi_7207_newest_first(table, tmp_path, monkeypatch)


def test_hudi_7226_by_hours_the_slice_that_a_query_reads_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guard: the slice before the earliest commit to retain is kept by hours as well."""
    test_policies.test_hudi_7226_by_hours_keeps_the_slice_that_a_query_is_reading()
    monkeypatch.setattr(policies, "_before", _all_but_the_newest_before)
    with pytest.raises(AssertionError):
        test_policies.test_hudi_7226_by_hours_keeps_the_slice_that_a_query_is_reading()


def _all_but_the_newest_before(group: FileGroup, operations: tuple[str, ...], earliest: str) -> Iterator[FileSlice]:
    return (item for item in group.slices[1:] if item.base_instant < earliest)


@pytest.mark.parametrize("version", VERSIONS)
def test_hudi_4308_read_optimized_rows_stay_while_a_compaction_is_inflight(
    golden: Golden, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attempt has written a base file already. Guard: files of a pending compaction are invisible
    (view.slicing).
    """
    table = golden(version, "mor_compaction_requested").table
    rows = read_optimized(table)
    instant = pending_instant(table)
    context_of(table).active.to_inflight(instant, Action.COMPACTION)
    half_written(table, instant)
    assert_same_rows(read_optimized(table), rows)
    monkeypatch.setattr(Slicing, "file_visible", lambda self, instant: True)
    monkeypatch.setattr(Slicing, "slice_visible", lambda self, instant: True)
    assert read_optimized(table).num_rows < rows.num_rows


def read_optimized(table: Path) -> pa.Table:
    result = HudiTable.open(str(table)).read("read_optimized", metadata="off")
    return pa.Table.from_batches(list(result.batches), result.schema)


def test_hudi_7507_hudi_6541_hudi_9127_instants_rise_whatever_clocks_and_zones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writers whose clocks are behind, that read the same millisecond, that live in another zone. Guard: no time that
    is not after the timeline's.
    """
    assert rising(drawn_in_turn())
    assert len(set(drawn_in_turn())) == 4
    monkeypatch.setattr(instants, "new_instant", _by_the_clock_alone)
    unguarded = drawn_in_turn()
    assert not rising(unguarded), "HUDI-7507, HUDI-9127: the later write has the older instant, and loses against it"
    assert len(set(unguarded)) < 4, "HUDI-6541: two writes have one instant"


def drawn_in_turn() -> list[str]:
    """Four writers begin one after the other: what each draws is on the timeline before the next one draws."""
    noon = datetime(2026, 11, 20, 12, tzinfo=timezone.utc)
    clocks = [
        InstantClock("UTC", 0, now=lambda: noon),
        InstantClock("UTC", 0, now=lambda: noon),
        InstantClock("UTC", 0, now=lambda: noon - timedelta(seconds=30)),
        InstantClock("America/New_York", 0, now=lambda: noon + timedelta(seconds=30)),
    ]
    drawn: list[str] = []
    for clock in clocks:
        drawn.append(clock.next(Timeline(Instant(time, Action.COMMIT, State.COMPLETED) for time in drawn)))
    return drawn


def rising(times: list[str]) -> bool:
    return all(earlier < later for earlier, later in itertools.pairwise(times))


def _by_the_clock_alone(
    after: Iterable[str], zone: str = "LOCAL", *, clock: Callable[[], datetime] | None = None
) -> str:
    return new_instant((), zone, clock=clock)


@pytest.mark.parametrize("version", VERSIONS)
def test_hudi_3556_a_rollback_that_died_goes_on_under_its_own_instant(
    golden: Golden, version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guard: pending_rollback_of, taken away in the scenario itself."""
    test_rollback_run.test_hudi_3556_a_rollback_that_died_is_finished_under_its_own_instant(
        golden, version, tmp_path, monkeypatch
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_hudi_9026_a_kill_in_the_metadata_table_doubles_no_records(
    golden: Golden, version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clean dies as it updates the metadata table. Guard: what an earlier attempt logged is not logged again."""
    case = golden(version, "clean_requested_cow")
    before = metadata_logs(case.table)
    assert len(metadata_logs(killed_and_run_again(case, tmp_path / "guarded")) - before) == 1
    monkeypatch.setattr(DeltaWriter, "_with_written", lambda self, parts, instant: parts)
    with pytest.raises((AssertionError, HudiError)):
        assert len(metadata_logs(killed_and_run_again(case, tmp_path / "unguarded")) - before) == 1


def killed_and_run_again(case: GoldenCase, path: Path) -> Path:
    """A clean that dies as soon as its first log file is in the metadata table, and is run again by another process."""
    shutil.copytree(case.table, path, symlinks=True)
    instant = clean_of(path)
    with pytest.raises(InjectedCrash):
        test_clean_faults.run_killed(path, instant, FaultPlan(when=_logs_metadata, timing="after"))
    assert run_clean(path, instant) == "completed"
    return path


def _logs_metadata(operation: Operation) -> bool:
    return operation.kind == "create_exclusive" and operation.path.startswith(".hoodie/metadata/files/")


def metadata_logs(table: Path) -> set[str]:
    return {
        path.name
        for path in (table / ".hoodie" / "metadata" / "files").glob(".*.log.*")
        if not path.name.endswith(".crc")
    }


def test_hudi_9244_hudi_697_hudi_9615_files_of_retried_and_speculative_tasks_go(
    golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A losing attempt left a parquet file of 4 bytes and a double. Guard: remove_losers, before the commit and after
    it.
    """
    test_run.test_files_of_losing_attempts_are_deleted(golden)

    def run() -> tuple[Path, str, pa.Table, set[tuple[str, str]]]:
        table = golden("6", "mor_compaction_requested").table
        instant, rows, pending = pending_instant(table), read_rows(table), pending_instants(table)

        def stray() -> None:
            (winner, *_) = sorted(table.glob(f"*/*_{instant}.parquet"))
            winner.with_name(f"{winner.name.split('_')[0]}_9-1-9_{instant}.parquet").write_bytes(b"PAR1")
            shutil.copy(winner, winner.with_name(f"00000000-0000-0000-0000-000000000000-0_9-1-9_{instant}.parquet"))

        compact(table, HookedEngine(after=stray))
        return table, instant, rows, pending

    assert_compacted(*run())
    monkeypatch.setattr(rewrite, "remove_losers", keeps_losers)
    table, _, rows, _ = run()
    with pytest.raises((AssertionError, HudiError)):
        assert_same_rows(read_rows(table, "off"), rows)


def keeps_losers(
    storage: Storage,
    instant: str,
    partitions: Iterable[str],
    winners: Mapping[str, int],
    find: FindFiles,
    *,
    check: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    return dict(winners)
