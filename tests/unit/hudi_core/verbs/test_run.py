"""What a run plans before it, and what it leaves."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.request.results import InstantResult, Result
from hudi_core.verbs.run import RunRequest
from tests.support.changed_tables import an_owner, open_context
from tests.support.golden_data import GoldenCase
from tests.support.table_invariants import assert_readable, read_rows
from tests.support.table_requests import perform
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]


def pending(table: Path) -> list[str]:
    return [item.requested_time for item in open_context(table).active.load().pending()]


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


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
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


def test_the_minutes_and_bytes_of_a_run_go_on_in_what_is_left_of_it() -> None:
    run = RunRequest("a", "compaction", schedule=True, max_minutes=1, starts_until=2000, max_bytes=100)
    some, most = (Result((InstantResult("1", "commit", "completed", bytes_written=size),)) for size in (30, 100))
    assert run.rest(1000.5, some) == RunRequest("a", "compaction", schedule=True, starts_until=1060, max_bytes=70)
    assert run.rest(1990, most) == RunRequest("a", "compaction", schedule=True, starts_until=2000, max_bytes=1)
    assert RunRequest("a", "compaction").rest(1000, some) == RunRequest("a", "compaction")
    assert run.rest(1000, Result(left="large")) is run
