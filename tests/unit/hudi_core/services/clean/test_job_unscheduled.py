"""A clean died inflight, and something needs a file of its plan by now, so that no run finishes it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hudi_core.errors import ConflictError, TimelineError
from hudi_core.services.clean.planner import CleanService
from hudi_core.services.restore.candidates import restorable_instants
from hudi_core.services.restore.savepoint import savepoint_create
from hudi_core.services.unschedule import unschedule
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.actions.clean import CleanPlan, decode_removed_files
from hudi_core.timeline.actions.rollback import SavepointMetadata, encode_savepoint
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.pending_plans import read_clean_plan
from hudi_core.transaction.owner import Owner
from hudi_core.verbs.instants import UnscheduleRequest
from tests.support.changed_tables import an_owner, data_files, leftovers, open_context
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, InjectedCrash
from tests.support.golden_cleans import run_clean, without_metadata_table
from tests.support.golden_data import GoldenCase
from tests.support.hudictl_runner import hudictl
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import assert_metadata_true, read_rows
from tests.support.table_requests import nothing_to_do
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["6", "8", "9"]


def inflight_clean(table: Path) -> tuple[str, CleanPlan]:
    """A clean of all but the newest slices, whose run died before its first delete."""
    context = open_context(table, {"hoodie.clean.commits.retained": "1"})
    instant = CleanService().schedule(context, an_owner(), dry_run=False).instant
    assert instant is not None
    context.active.to_inflight(instant, Action.CLEAN)
    found = read_clean_plan(context.active, instant)
    assert found is not None
    return instant, found[0]


def roll_newest_back(table: Path) -> None:
    """The newest two commits, one after the other, as real Hudi does, which does not look at cleans."""
    context = open_context(table)
    for newest in reversed(context.active.load().commits().instants[-2:]):
        for stat in list(context.active.read_commit(newest).write_stats()):
            context.storage.delete(stat.path)
        context.active.delete_instant(newest.requested_time, newest.action)


def save(table: Path, partition: str, name: str) -> None:
    """A savepoint of the newest commit that keeps one file."""
    active = open_context(table).active
    newest = active.load().commits().instants[-1].requested_time
    active.to_inflight(newest, Action.SAVEPOINT)
    active.complete(
        newest,
        Action.SAVEPOINT,
        encode_savepoint(SavepointMetadata("a tester", 1, "", {partition: (name,)})),
        str(int(newest) + 1),
    )


def delete_one(table: Path, plan: CleanPlan) -> tuple[str, str]:
    """Partition and name of the oldest file of the plan, which the run deleted before it died."""
    partition, name = min(
        ((partition, name) for partition, names in plan.files.items() for name in names),
        key=lambda found: found[1].rpartition("_")[2],
    )
    (table / partition / name).unlink()
    return partition, name


@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_clean_has_deleted_stays_on_record(golden: Golden, version: str) -> None:
    """Else the table could be restored to, and a savepoint be made of, a commit without its files."""
    table = without_metadata_table(golden(version, "cow_basic").table)
    instant, plan = inflight_clean(table)
    partition, name = delete_one(table, plan)
    roll_newest_back(table)
    with pytest.raises(ConflictError, match="readers of the latest state need"):
        run_clean(table, instant)
    context, files, rows = open_context(table), data_files(table), read_rows(table)
    would = unschedule(context, instant, an_owner(), dry_run=True)
    assert context.active.load().get(instant, Action.CLEAN).state is State.INFLIGHT
    did = unschedule(context, instant, an_owner())
    assert (would.removed.instants, did.removed.instants) == ((), ())
    assert "would be completed with these" in str(would.reason)
    assert "was completed with these" in str(did.reason)
    done = context.active.load().get(instant, Action.CLEAN)
    removed = decode_removed_files(context.active.read_details(done), path="")
    assert removed.files == {partition: (name,)}
    assert plan.earliest is not None
    assert removed.earliest == plan.earliest.timestamp
    assert data_files(table) == files
    assert leftovers(table, instant) == []
    assert_same_rows(read_rows(table), rows)
    assert all(item.reason is not None for item in restorable_instants(context))
    for commit in context.active.load().commits():
        with pytest.raises(TimelineError, match="cannot be kept"):
            savepoint_create(context, commit.requested_time, an_owner())


@pytest.mark.parametrize("version", VERSIONS)
def test_a_clean_that_has_deleted_nothing_is_dropped(golden: Golden, version: str) -> None:
    table = without_metadata_table(golden(version, "cow_basic").table)
    restorable = restorable_instants(open_context(table))[:-2]
    instant, _ = inflight_clean(table)
    roll_newest_back(table)
    rows = read_rows(table)
    for dry_run in (True, False):
        done = unschedule(open_context(table), instant, an_owner(), dry_run=dry_run)
        assert (done.removed.instants, done.reason) == ((instant,), None)
    assert not open_context(table).active.load().contains(instant)
    assert leftovers(table, instant) == []
    assert restorable_instants(open_context(table)) == restorable
    assert_same_rows(read_rows(table), rows)


def needed(golden: Golden, version: str) -> tuple[Path, str]:
    """A table with its metadata table, and its clean: one file of the plan is gone, a savepoint keeps another."""
    table = golden(version, "cow_basic").table
    instant, plan = inflight_clean(table)
    gone = delete_one(table, plan)
    partition, name = next(
        (partition, name) for partition, names in plan.files.items() for name in names if (partition, name) != gone
    )
    save(table, partition, name)
    return table, instant


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_the_metadata_table_has_what_is_gone(golden: Golden, version: str) -> None:
    table, instant = needed(golden, version)
    rows = read_rows(table)
    request = UnscheduleRequest(str(table), instant=instant)
    assert nothing_to_do(open_context(table), request) is None, "a job is not spared"
    people = hudictl("unschedule", table, instant)
    assert people.out.splitlines()[0].startswith(f"clean {instant} has deleted files of its plan")
    assert_metadata_true(table)
    assert_same_rows(read_rows(table), rows)


@pytest.mark.slow
@pytest.mark.parametrize("version", tiered(VERSIONS, ["9"]))
def test_killed_at_any_change_and_run_again(golden: Golden, version: str, tmp_path: Path) -> None:
    source, instant = needed(golden, version)
    rows, files = read_rows(source), data_files(source)
    dead = replace(Owner.current("the process that dies"), process_start="1")

    def drop(table: Path, owner: Owner, plan: FaultPlan) -> None:
        storage = FaultStorage(LocalStorage(table), plan)
        unschedule(open_context(table, storage=storage), instant, owner)

    counting = FaultPlan(counts=MUTATIONS)
    drop(Path(shutil.copytree(source, tmp_path / "undisturbed")), dead, counting)
    assert counting.counted > 5
    for number in range(counting.counted):
        table = Path(shutil.copytree(source, tmp_path / f"killed-{number}"))
        with pytest.raises(InjectedCrash):
            drop(table, dead, FaultPlan(kill_at=number, timing="after", counts=MUTATIONS))
        if not open_context(table).active.load().get(instant, Action.CLEAN).is_completed:
            drop(table, Owner.current("another process"), FaultPlan(counts=MUTATIONS))
        assert open_context(table).active.load().get(instant, Action.CLEAN).is_completed
        assert data_files(table) == files
        assert_metadata_true(table)
        assert_same_rows(read_rows(table), rows)
