"""The verb: what a dry run names, and what a restore refuses before it writes."""

from __future__ import annotations

import os

import pytest

from hudi_core.errors import ConfigError, ConflictError, TimelineError
from hudi_core.services.restore.candidates import Restorable, restorable_instants
from hudi_core.services.restore.verb import RestoreResult, restore
from hudi_core.timeline.actions.rollback import RestoredInstant, RestorePlan, encode_restore_plan
from hudi_core.timeline.instant import Action, State
from tests.support.changed_tables import an_owner, data_files, leftovers, open_context
from tests.support.tiers import tiered
from tests.unit.hudi_core.services.restore.test_job import VERSIONS, Golden


@pytest.mark.parametrize("version", VERSIONS)
def test_the_dry_run_lists_what_can_be_restored(golden: Golden, version: str) -> None:
    case = golden(version, "savepoint_mor")
    context = open_context(case.table)
    newest = restorable_instants(context)[-1].instant
    document = restore(context, newest, an_owner(), dry_run=True).to_dict()
    assert document["instant"] is None
    assert document["removed"] == {"files": 0, "bytes": 0, "instants": []}
    assert document["reason"] == "nothing was written after it"
    assert [set(item) for item in document["restorable"]] == [{"instant", "action", "savepoint", "reason"}] * 4
    assert [item["reason"] is None for item in document["restorable"]] == [False, True, True, True]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_dry_run_names_what_the_restore_removes(golden: Golden, version: str) -> None:
    """Not the log files of command blocks, which the restore writes and deletes itself."""
    table = golden(version, "mor_compacted").table
    target = next(item.instant for item in restorable_instants(open_context(table)) if item.reason is None)
    would = restore(open_context(table), target, an_owner(), dry_run=True).removed.to_dict()
    assert restore(open_context(table), target, an_owner()).removed.to_dict() == would


@pytest.mark.parametrize("version", VERSIONS)
def test_a_live_writer_stops_a_restore(golden: Golden, version: str) -> None:
    case = golden(version, "failed_inflight_mor")
    context = open_context(case.table)
    failed = context.active.load().pending().instants[-1].requested_time
    target = restorable_instants(context)[-1].instant
    beat = case.table / ".hoodie" / ".heartbeat" / failed
    beat.parent.mkdir(exist_ok=True)
    beat.write_bytes(b"")
    before = data_files(case.table)
    with pytest.raises(ConflictError, match="a writer is at work"):
        restore(context, target, an_owner())
    assert data_files(case.table) == before
    os.utime(beat, (1, 1))
    assert restore(context, target, an_owner()).removed.instants == (failed,)
    assert leftovers(case.table, failed) == []


def test_an_instant_without_a_commit_is_refused_and_nothing_is_written(golden: Golden) -> None:
    context = open_context(golden("9", "mor_basic").table)
    before = context.active.names()
    with pytest.raises(ConfigError, match="no completed commit at instant 20200101000000000"):
        restore(context, "20200101000000000", an_owner())
    assert context.active.names() == before


@pytest.mark.parametrize("version", VERSIONS)
def test_a_pending_restore_of_an_old_hudi_is_for_that_hudi_to_finish(golden: Golden, version: str) -> None:
    """A plan of version 1 has no savepointToRestoreTimestamp."""
    context = open_context(golden(version, "mor_basic").table)
    *_, target, last = context.active.load().commits()
    plan = RestorePlan("", (RestoredInstant(last.requested_time, last.action),))
    pending = context.new_instant(context.active.load())
    context.active.create_requested(pending, Action.RESTORE, encode_restore_plan(plan))
    with pytest.raises(TimelineError, match=f"restore {pending} is not finished, and its plan does not say"):
        restore(context, target.requested_time, an_owner())


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
@pytest.mark.parametrize("left", [100, None])
def test_a_restore_whose_requested_file_was_damaged_later_is_in_nothings_way(
    golden: Golden, version: str, left: int | None
) -> None:
    """It is completed. `left`: how many bytes of the file are there, None where it is gone."""
    context = open_context(golden(version, "mor_basic").table)
    target = context.active.load().commits().instants[2].requested_time
    done = restore(context, target, an_owner())
    path = context.active.path(str(done.instant), Action.RESTORE, State.REQUESTED)
    content = context.storage.read(path)
    context.storage.delete(path)
    if left is not None:
        context.storage.write(path, content[:left])
    again = restore(context, target, an_owner())
    assert (again.instant, again.reason) == (None, "nothing was written after it")


def test_the_document_lists_instants_in_a_dry_run_only() -> None:
    listed = Restorable("001", "commit", savepoint=True, reason=None)
    assert "restorable" not in RestoreResult("003", "001").to_dict()
    assert RestoreResult(None, None).to_dict()["restorable"] == []
    assert RestoreResult(None, "001", restorable=(listed,)).to_dict() == {
        "instant": None,
        "target": "001",
        "removed": {"files": 0, "bytes": 0, "instants": []},
        "reason": None,
        "restorable": [{"instant": "001", "action": "commit", "savepoint": True, "reason": None}],
    }
