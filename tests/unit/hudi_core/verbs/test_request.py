"""From the verb of a request to the function that does it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConfigError
from hudi_core.verbs.instants import SavepointCreateRequest, SavepointDeleteRequest, UnscheduleRequest
from hudi_core.verbs.request import Request
from hudi_core.verbs.run import schedule
from hudi_health.verbs import DoctorRequest, MetadataValidateRequest, ProbeStoreRequest
from tests.support.changed_tables import an_owner, open_context
from tests.support.golden_data import GoldenCase
from tests.support.memory_storage import MemoryStorage
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
