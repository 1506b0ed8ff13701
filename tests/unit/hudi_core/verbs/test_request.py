"""From the verb of a request to the function that does it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConfigError
from hudi_core.verbs.examine import DoctorRequest, ProbeStoreRequest
from hudi_core.verbs.metadata import MetadataValidateRequest
from hudi_core.verbs.repair import UnscheduleRequest
from hudi_core.verbs.request import Request
from hudi_core.verbs.run import RunRequest
from hudi_core.verbs.savepoint import SavepointCreateRequest, SavepointDeleteRequest
from hudi_core.verbs.schedule import schedule
from hudi_core.verbs.undo import RestoreRequest, RollbackRequest
from tests.support.changed_tables import an_owner, open_context
from tests.support.golden_data import GoldenCase
from tests.support.memory_storage import MemoryStorage
from tests.support.table_invariants import assert_readable, read_rows
from tests.support.table_requests import perform

Golden = Callable[[str, str], GoldenCase]


def performed(table: Path, verb: type[Request], **request: Any) -> dict[str, Any]:
    result = perform(open_context(table), verb(str(table), **request), LocalEngine(1), an_owner())
    assert result.document is not None
    return dict(result.document)


def pending(table: Path) -> list[str]:
    return [item.requested_time for item in open_context(table).active.load().pending()]


def test_a_savepoint_is_created_and_deleted(golden: Golden) -> None:
    table = golden("9", "cow_basic").table
    made = performed(table, SavepointCreateRequest, comment="keep")
    assert (made["comment"], made["existed"]) == ("keep", False)
    assert performed(table, SavepointDeleteRequest, instant=made["instant"])["deleted"]


def test_a_failed_write_is_rolled_back(golden: Golden) -> None:
    table = golden("8", "failed_inflight_cow").table
    (failed,) = pending(table)
    shown = performed(table, RollbackRequest, instant=failed, dry_run=True)
    assert (shown["instant"], shown["target"], pending(table)) == (None, failed, [failed])
    assert performed(table, RollbackRequest, instant=failed)["target"] == failed
    assert pending(table) == []


def test_a_restore_without_an_instant_lists(golden: Golden) -> None:
    table = golden("9", "cow_basic").table
    listed = performed(table, RestoreRequest, dry_run=True)
    commits = open_context(table).active.load().commits().requested_times
    assert {item["instant"] for item in listed["restorable"]} == commits
    assert listed["target"] is None


def test_a_plan_is_dropped(golden: Golden) -> None:
    table = golden("9", "mor_compaction_requested_only").table
    (plan,) = pending(table)
    performed(table, UnscheduleRequest, instant=plan, dry_run=True)
    assert pending(table) == [plan]
    performed(table, UnscheduleRequest, instant=plan)
    assert pending(table) == []


def test_the_metadata_table_is_validated(golden: Golden) -> None:
    table = golden("9", "cow_basic").table
    assert performed(table, MetadataValidateRequest)["differences"] == []


def test_the_doctor_needs_no_data_files(golden: Golden) -> None:
    assert performed(golden("9", "cow_basic").table, DoctorRequest, timeline_only=True)


def test_a_store_is_probed_without_a_table() -> None:
    storage = MemoryStorage()
    result = ProbeStoreRequest("memory://folder", writers=2, rounds=1).run_on_storage(storage)
    assert result.document
    assert storage.list_folders("") == [], "nothing is left behind"


def test_a_run_without_work_says_why(golden: Golden) -> None:
    table = golden("9", "mor_basic").table
    result = RunRequest(str(table), service="clean").plan(open_context(table), an_owner())
    assert result is not None
    assert "no clean is pending" in (result.reason or "")
    assert RunRequest(str(table), service="archive").plan(open_context(table), an_owner()) is None
    work = golden("9", "mor_compaction_requested_only").table
    assert RunRequest(str(work), "compaction").plan(open_context(work), an_owner()) is None


def test_a_run_with_a_deadline_plans_what_it_can_end(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file group in any case; what is left is due at once."""
    monkeypatch.setattr("hudi_core.services.rewriting.planning._ASSUMED_RATE", 1)
    due = {"hoodie.compact.inline.max.delta.commits": "1"}
    given: list[dict[str, Any]] = [{"max_minutes": 1}, {"starts_until": int(time.time()) + 60}, {}]
    sizes = []
    for limits in given:
        table = golden("9", "mor_basic").table
        context = open_context(table, due)
        request = RunRequest(str(table), "compaction", schedule=True, all_pending=True, **limits)
        assert request.plan(context, an_owner()) is None
        (planned,) = context.active.load().pending_compactions()
        sizes.append(len(context.active.read_plan(planned.requested_time).operations))
    assert sizes == [1, 1, 3]


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_run_of_one_instant_plans_what_its_whole_time_is_enough_for(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    """It is planned before the run, which takes it as it is. What is left is due at once, to the next run. Behind its
    time a run plans nothing.
    """
    monkeypatch.setattr("hudi_core.services.rewriting.planning._ASSUMED_RATE", 1)
    table = golden(version, "mor_basic").table
    rows = read_rows(table)
    options = {"hoodie.compact.inline.max.delta.commits": "4"}
    request = RunRequest(str(table), "compaction", schedule=True, starts_until=int(time.time()) - 60)
    over = request.plan(open_context(table, options), an_owner())
    assert (over.reason if over else None, pending(table)) == ("the time of the run is over", [])
    written = []
    for limits in ({"max_minutes": 1}, {"max_bytes": 1}, {"max_minutes": 10**6, "max_bytes": 10**9}):
        limited = replace(request, starts_until=None, **limits)
        assert limited.plan(open_context(table, options), an_owner()) is None
        (planned,) = pending(table)
        (done,) = perform(open_context(table, options), limited, LocalEngine(1), an_owner()).instants
        assert (done.instant, done.state) == (planned, "completed")
        written.append(done.files_written)
    assert written == [1, 1, 1]
    assert_readable(table, rows)
    assert limited.plan(open_context(table, options), an_owner()) is not None


def test_schedule_plans_or_says_why_not(golden: Golden) -> None:
    table = golden("9", "mor_basic").table
    late = {"hoodie.compact.inline.max.delta.commits": "100"}
    early = schedule(open_context(table, late), "compaction", an_owner(), dry_run=False)
    assert (early.instant, early.plan) == (None, None)
    assert "hoodie.compact.inline.max.delta.commits" in (early.reason or "")
    due = open_context(table, {"hoodie.compact.inline.max.delta.commits": "1"})
    shown = schedule(due, "compaction", an_owner(), dry_run=True)
    assert (shown.instant, pending(table)) == (None, [])
    planned = schedule(due, "compaction", an_owner(), dry_run=False)
    assert (planned.plan, pending(table)) == (shown.plan, [planned.instant])
    assert schedule(due, "archive", an_owner(), dry_run=True).instant is None


def test_a_savepoint_of_an_instant_that_is_gone_is_refused(golden: Golden) -> None:
    with pytest.raises(ConfigError):
        performed(golden("9", "mor_basic").table, SavepointCreateRequest, instant="20200101000000000")
