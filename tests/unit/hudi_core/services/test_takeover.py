"""Freeing instants of dead owners on tables of real Hudi."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConfigError, ConflictError
from hudi_core.services.rollback.verb import request_rollback
from hudi_core.services.runner import ServiceRunner
from hudi_core.services.takeover import takeover
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.actions.rollback import RestoredInstant, RestorePlan, encode_restore_plan
from hudi_core.timeline.instant import State
from hudi_core.transaction.claim_file import forget_claims
from hudi_core.transaction.owner import Owner
from hudi_core.verbs.run import RunRequest
from tests.support.changed_tables import (
    an_owner,
    data_files,
    known_times,
    leftovers,
    new_instants,
    open_context,
    shown,
)
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, InjectedCrash
from tests.support.golden_data import GoldenCase, open_case
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import read_rows

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["6", "8", "9"]


def dead_process() -> Owner:
    return replace(Owner.current("the process that died"), process_start="1")


def the_compaction(path: Path) -> str:
    (plan,) = open_context(path).active.load().pending_compactions()
    return plan.requested_time


@pytest.mark.parametrize("version", VERSIONS)
def test_an_attempt_goes_back_to_its_plan(golden: Golden, version: str) -> None:
    table = golden(version, "compaction_inflight").table
    context = open_context(table)
    instant, known, rows, files = the_compaction(table), known_times(table), read_rows(table, "off"), data_files(table)
    done = takeover(context, instant, an_owner())
    assert (done.action, done.state, done.previous_owner) == ("compaction", "requested", None)
    assert instant in done.next
    assert done.unblocks == {"file_groups": 0, "partitions": [], "work": []}, (
        "all of that waits until the plan is run or dropped"
    )
    assert done.after_the_run["file_groups"] > 0
    assert done.reason is None
    assert (
        data_files(table).items()
        >= {path: size for path, size in files.items() if path not in done.removed.files}.items()
    )
    assert not set(done.removed.files) & set(data_files(table))
    assert len(new_instants(table, known)) == (1 if done.removed.files else 0)
    assert context.active.load().get(instant, "compaction").state is State.REQUESTED
    assert_same_rows(read_rows(table), rows)


def test_the_old_owner_is_named_and_the_next_run_begins_at_once(golden: Golden) -> None:
    table = golden("6", "mor_compaction_requested").table
    context = open_context(table)
    instant = the_compaction(table)
    far = replace(an_owner(), text="a lost machine", boot_id="elsewhere")
    claimed = context.claim(instant, far)
    with pytest.raises(ConflictError, match="a lost machine"):
        takeover(context, instant, an_owner())
    claimed.release()
    done = takeover(context, instant, an_owner())
    assert (done.previous_owner, done.reason is None) == (None, False)
    claimed = context.claim(instant, dead_process())
    claimed.heartbeat.stop()
    done = takeover(context, instant, an_owner())
    assert "the process that died" in str(done.previous_owner)
    assert done.reason is None
    claims = sorted(info.path for info in context.storage.list_files(f".hoodie/.airflow_hudi/claims/{instant}"))
    again = takeover(context, instant, an_owner())
    assert (again.previous_owner, "nothing to free" in str(again.reason)) == (None, True)
    assert sorted(info.path for info in context.storage.list_files(f".hoodie/.airflow_hudi/claims/{instant}")) == claims
    (result,) = (
        ServiceRunner(context, LocalEngine(2), an_owner())
        .run(RunRequest(str(table), "compaction", instant=instant))
        .instants
    )
    assert result.state == "completed"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_plan_that_was_never_inflight_stays_as_it_is(golden: Golden, version: str) -> None:
    table = golden(version, "clean_requested_mor").table
    context = open_context(table)
    (plan,) = context.active.load().pending().of_actions("clean")
    known, files = known_times(table), data_files(table)
    before = shown(table, known)
    done = takeover(context, plan.requested_time, an_owner())
    assert (done.action, done.state, done.removed.files) == ("clean", "requested", {})
    assert "nothing to free" in str(done.reason)
    assert not (table / ".hoodie" / ".airflow_hudi" / "claims" / plan.requested_time).exists()
    assert done.next == f"hudictl run clean TABLE --instant {plan.requested_time}"
    assert (shown(table, known), data_files(table)) == (before, files)


@pytest.mark.parametrize("version", VERSIONS)
def test_writes_and_completed_instants_are_refused(golden: Golden, version: str) -> None:
    table = golden(version, "failed_inflight_mor").table
    context = open_context(table)
    (write,) = context.active.load().pending()
    with pytest.raises(ConfigError, match="is a write") as refused:
        takeover(context, write.requested_time, an_owner())
    assert f"hudictl rollback TABLE --instant {write.requested_time}" in str(refused.value.remedy)
    assert refused.value.path == context.active.path_of(write)
    with pytest.raises(ConfigError, match="is completed"):
        takeover(context, context.active.load().commits().instants[0].requested_time, an_owner())


@pytest.mark.parametrize("timing", [pytest.param("before", marks=pytest.mark.conformance), "after"])
@pytest.mark.parametrize("version", ["6", "9", pytest.param("8", marks=pytest.mark.slow)])
def test_killed_at_any_change_and_run_again(tmp_path: Path, version: str, timing: str) -> None:
    source = open_case(version, "compaction_inflight", tmp_path).table
    instant, known, rows = the_compaction(source), known_times(source), read_rows(source, "off")
    undisturbed = Path(shutil.copytree(source, tmp_path / "undisturbed"))
    faults = FaultPlan(counts=MUTATIONS)
    takeover(
        open_context(undisturbed, storage=FaultStorage(LocalStorage(undisturbed), faults)), instant, dead_process()
    )
    end = (data_files(undisturbed), shown(undisturbed, known))
    assert faults.counted == len(faults.mutations()) > 5
    versions = len(VERSIONS) if timing == "after" else 1  # in make test, the versions share the changes among them
    for number in range(VERSIONS.index(version) % versions, faults.counted, versions):
        path = Path(shutil.copytree(source, tmp_path / f"killed-{number}"))
        storage = FaultStorage(LocalStorage(path), FaultPlan(kill_at=number, timing=timing, counts=MUTATIONS))  # type: ignore[arg-type]
        with pytest.raises(InjectedCrash):
            takeover(open_context(path, storage=storage), instant, dead_process())
        assert_same_rows(read_rows(path), rows)
        takeover(open_context(path), instant, Owner.current("another process"))
        assert (data_files(path), shown(path, known)) == end, number
        live = [
            name for name in leftovers(path, instant) if not name.startswith(f".hoodie/.airflow_hudi/claims/{instant}/")
        ]
        assert live == [], "only the released claims of the pending instant may stay"
        shutil.rmtree(path)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_next_command_finishes_what_was_freed(golden: Golden, version: str) -> None:
    failed = open_context(golden(version, "failed_inflight_mor").table)
    (write,) = failed.active.load().pending()
    rollback = request_rollback(failed, write, an_owner())
    assert takeover(failed, rollback, an_owner()).next == f"hudictl run rollback TABLE --instant {rollback}"
    basic = golden(version, "mor_basic").table
    context = open_context(basic)
    *_, target, newest = context.active.load().commits()
    plan = RestorePlan(target.requested_time, (RestoredInstant(newest.requested_time, newest.action),))
    context.active.create_requested("20300101000000000", "restore", encode_restore_plan(plan))
    assert (
        takeover(context, "20300101000000000", an_owner()).next
        == f"hudictl restore TABLE --instant {target.requested_time}"
    )
    context.active.remove("20300101000000000", "restore", State.REQUESTED)
    forget_claims(context.storage, "20300101000000000")
    context.active.to_inflight(newest.requested_time, "savepoint")
    assert (
        takeover(context, newest.requested_time, an_owner()).next
        == f"hudictl savepoint create TABLE --instant {newest.requested_time}"
    )
