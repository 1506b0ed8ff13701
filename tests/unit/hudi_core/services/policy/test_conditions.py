"""Conditions on tables: what counts, and what a service is planned with."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.request.requests import RunRequest
from hudi_core.services.policy.conditions import always_planned, answer, file_sizes
from hudi_core.table import HudiTable
from hudi_core.timeline.instant_time import parse_instant
from tests.support.changed_tables import open_context
from tests.support.golden_clusterings import cluster, plan_of_all
from tests.support.golden_compactions import OPTIONS
from tests.support.golden_data import GoldenCase

Golden = Callable[[str, str], GoldenCase]
MIB = 1 << 20


@pytest.fixture(params=["6", "8", "9"])
def table(request: pytest.FixtureRequest, golden: Golden) -> Path:
    return golden(request.param, "mor_basic").table


def due(table: Path, service: str, now: datetime | None = None, **when: object) -> bool:
    found = answer(open_context(table), service, {name: str(value) for name, value in when.items()}, now)
    assert found is not None
    assert found.why
    return found.due


def test_without_conditions_the_service_decides(table: Path) -> None:
    assert answer(open_context(table), "compaction", {}) is None


def test_delta_commits_make_a_compaction_due(table: Path) -> None:
    context = open_context(table)
    deltas = [item for item in context.active.load().commits() if item.action == "deltacommit"]
    assert due(table, "compaction", commits=len(deltas))
    assert not due(table, "compaction", commits=len(deltas) + 1)
    found = answer(context, "compaction", {"commits": str(len(deltas) + 1)})
    assert found is not None
    assert found.why == f"{len(deltas)} commits since the beginning of the timeline, due at {len(deltas) + 1}"


def test_the_age_is_that_of_the_oldest_commit_that_was_not_seen(table: Path) -> None:
    context = open_context(table)
    first = min(item.completed_at for item in context.active.load().commits() if item.action == "deltacommit")
    since = parse_instant(first, context.zone).astimezone(timezone.utc)
    assert due(table, "compaction", since + timedelta(seconds=61), age="60s")
    assert not due(table, "compaction", since + timedelta(seconds=59), age="60s")
    assert not due(table, "compaction", since - timedelta(days=1), age="1s")


def test_bytes_and_shares_of_log_files(table: Path) -> None:
    context = open_context(table)
    sizes = file_sizes(context, context.active.load())
    assert sizes.logs > 0
    assert sizes.base > 0
    assert due(table, "compaction", bytes=sizes.logs)
    assert not due(table, "compaction", bytes=sizes.logs + 1)
    ratio = sizes.logs / sizes.base
    assert due(table, "compaction", log_ratio=f"{ratio - 0.001:.6f}")
    assert not due(table, "compaction", log_ratio=f"{ratio + 0.001:.6f}")


def test_one_condition_of_several_is_enough(table: Path) -> None:
    assert due(table, "compaction", commits=10_000, bytes=1)
    found = answer(open_context(table), "compaction", {"commits": "10000", "bytes": "1"})
    assert found is not None
    assert "commits" not in found.why


def test_small_files_until_they_are_clustered(table: Path) -> None:
    context = open_context(table)
    sizes = file_sizes(context, context.active.load())
    assert sizes.small == sizes.base
    assert due(table, "clustering", small_files=sizes.small_files)
    assert not due(table, "clustering", small_files=sizes.small_files + 1)
    assert due(table, "clustering", bytes=sizes.small)
    cluster(table, plan_of_all(table, {}))
    found = answer(open_context(table), "clustering", {"small_files": "1"})
    assert found is not None
    assert not found.due
    assert found.why.startswith("no commit since")


def test_a_compaction_that_has_run_starts_again_at_nothing(table: Path) -> None:
    request = RunRequest(
        str(table), service="compaction", owner="test", options=OPTIONS, schedule=True, when={"commits": "1"}
    )
    opened = HudiTable.open(str(table))
    assert [item.state for item in opened.run(request, LocalEngine(1)).instants] == ["completed"]
    again = opened.run(request, LocalEngine(1))
    assert again.instants == ()
    assert "no commit since" in str(again.reason)


def test_what_a_condition_makes_due_is_planned_whatever_the_triggers_are(table: Path) -> None:
    context = open_context(table)
    options = always_planned(context, "compaction", {"commits": "1"}).options
    assert options["hoodie.compact.inline.max.delta.commits"] == "1"
    assert always_planned(context, "compaction", {}) is context
    own = open_context(table, {"hoodie.compact.inline.max.delta.commits": "7"})
    assert always_planned(own, "compaction", {"commits": "1"}).options["hoodie.compact.inline.max.delta.commits"] == "7"


def test_what_did_not_fit_into_a_plan_is_due(table: Path) -> None:
    options = {**OPTIONS, "airflow_hudi.plan.max.bytes": "1"}
    request = RunRequest(
        str(table), service="compaction", owner="test", options=options, schedule=True, when={"commits": "1"}
    )
    assert len(HudiTable.open(str(table)).run(request, LocalEngine(1)).instants) == 1
    found = answer(open_context(table), "compaction", {"commits": "1000"})
    assert found is not None
    assert found.due
    assert "left out what did not fit" in found.why


def test_commits_make_a_clean_due(table: Path) -> None:
    commits = len(open_context(table).active.load().commits())
    assert due(table, "clean", commits=commits)
    assert not due(table, "clean", commits=commits + 1)


def test_a_commit_at_a_time_that_is_no_date_is_long_ago(golden: Golden) -> None:
    """As those of a table that was written with numbers; layout 1 has no other time of a commit."""
    table = golden("6", "mor_basic").table
    first = open_context(table).active.load().commits().instants[0].requested_time
    for path in (table / ".hoodie").glob(f"{first}.*"):
        path.rename(path.with_name("001" + path.name.removeprefix(first)))
    assert due(table, "compaction", age="1000d")
    found = answer(open_context(table), "compaction", {"age": "1000d"})
    assert found is not None
    assert "001, which is no date" in found.why
