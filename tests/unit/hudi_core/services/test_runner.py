"""From a request to the instants that are run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from hudi_core.config.table_config import TableConfig
from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConfigError, ConflictError, StorageNotFoundError
from hudi_core.request.results import REMOVED, InstantResult, Result
from hudi_core.services.context import TableContext
from hudi_core.services.engine_choice import Choice
from hudi_core.services.runner import ServiceRunner
from hudi_core.services.service import Scheduled, Service
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action
from hudi_core.transaction.heartbeat_thread import stop_with
from hudi_core.transaction.owner import Owner
from hudi_core.verbs.run import RunRequest
from tests.support.crash_leftovers import LATE, left_file
from tests.support.golden_data import GoldenCase
from tests.support.pending_operations import cut_plan
from tests.support.table_invariants import assert_readable, read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
MIB = 1 << 20


def context_of(table: Path) -> TableContext:
    storage = LocalStorage(table)
    config = TableConfig.load(storage)
    return TableContext(
        str(table), storage, config, ActiveTimeline(storage, config), {"hoodie.index.bloom.num_entries": "100"}, {}
    )


def run(table: Path, steps: list[tuple[str, int, int]] | None = None, **request: object) -> Result:
    requested = replace(RunRequest(str(table), "compaction"), **request)  # type: ignore[arg-type]
    progress = None if steps is None else lambda instant, done, total: steps.append((instant, done, total))
    return ServiceRunner(context_of(table), LocalEngine(2), Owner.current("tester"), progress).run(requested)


@pytest.fixture
def table(golden: Golden) -> Path:
    """A table whose pending plan no writer has written behind, so that it can be cut."""
    return golden("6", "mor_compaction_requested_only").table


def test_the_oldest_pending_instant_is_run(table: Path) -> None:
    instants, rows = cut_plan(context_of(table).active, table), read_rows(table)
    steps: list[tuple[str, int, int]] = []
    result = run(table, steps)
    assert [(item.instant, item.state, item.files_written) for item in result.instants] == [
        (instants[0], "completed", 1)
    ]
    assert steps == [(instants[0], 1, 1)]
    assert [item.requested_time for item in context_of(table).active.load().pending_compactions()] == instants[1:]
    assert_readable(table, rows)


def test_all_pending_instants_are_run_in_order(table: Path) -> None:
    instants, rows = cut_plan(context_of(table).active, table), read_rows(table)
    result = run(table, all_pending=True)
    assert [item.instant for item in result.instants] == instants
    assert result.exit_code == 0
    assert run(table).instants == ()
    assert_readable(table, rows)


def test_one_failing_instant_does_not_stop_the_others(table: Path) -> None:
    instants, rows = cut_plan(context_of(table).active, table), read_rows(table)
    broken = table / ".hoodie" / f"{instants[1]}.compaction.requested"
    content = broken.read_bytes()
    broken.write_bytes(content[:-40])
    result = run(table, all_pending=True)
    assert [(item.instant, item.state, item.error is None) for item in result.instants] == [
        (instants[0], "completed", True),
        (instants[1], "requested", False),
        (instants[2], "completed", True),
    ]
    assert result.exit_code == 1
    assert result.instants[1].exit_code == 2
    assert broken.name in (result.instants[1].error or "")
    broken.write_bytes(content)
    assert_readable(table, rows)


def test_what_another_run_completed_meanwhile_has_not_failed(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two runs of all that is pending."""
    cut_plan(context_of(table).active, table)
    conflict = ConflictError("it is run by another")
    run_one = ServiceRunner._run_one

    def comes_second(self: ServiceRunner, service: Service, instant: str) -> InstantResult:
        run_one(self, service, instant)
        raise conflict

    monkeypatch.setattr(ServiceRunner, "_run_one", comes_second)
    result = run(table, all_pending=True)
    assert {(item.state, item.error, item.already_completed) for item in result.instants} == {("completed", None, True)}
    assert result.exit_code == 0


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6"]))
@pytest.mark.parametrize(
    ("service", "case"),
    [
        ("compaction", "mor_compaction_requested_only"),
        ("log_compaction", "log_compaction_requested"),
        ("clustering", "clustering_requested_cow"),
        ("clean", "clean_requested_mor"),
    ],
)
def test_a_named_instant_that_was_completed_before_says_so(
    golden: Golden, version: str, service: str, case: str
) -> None:
    table = golden(version, case).table
    (first,) = run(table, service=service).instants
    again = run(table, service=service, instant=first.instant)
    assert [(item.instant, item.state, item.files_written) for item in again.instants] == [
        (first.instant, "completed", 0)
    ]
    assert (first.already_completed, again.instants[0].to_dict()["already_completed"]) == (False, True)
    assert again.to_dict()["reason"] == (
        f"{service} {first.instant} was completed before; --schedule without --instant plans another"
    )


def test_a_named_instant_that_is_run_has_no_reason(table: Path) -> None:
    instants = cut_plan(context_of(table).active, table)
    found = run(table, instant=instants[1])
    assert ([item.instant for item in found.instants], found.reason) == ([instants[1]], None)


def test_a_single_failing_instant_is_raised(table: Path) -> None:
    (base, *_) = sorted(table.glob("2024-*/*.parquet"))
    base.unlink()
    with pytest.raises(StorageNotFoundError, match=base.name):
        run(table)


def test_nothing_pending_is_an_empty_result_with_a_reason(golden: Golden) -> None:
    found = run(golden("6", "cow_basic").table)
    assert (found.instants, found.reason) == (
        (),
        "no compaction is pending on cow_basic; --schedule plans one",
    )


def test_an_unknown_instant_is_bad_input(table: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        run(table, instant="20000101000000000")
    assert caught.value.exit_code == 2


def test_no_instant_is_started_after_the_time_is_over(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    instants = cut_plan(context_of(table).active, table)
    clock = iter(range(0, 10**6, 61))
    monkeypatch.setattr("hudi_core.services.runner.time.monotonic", lambda: next(clock))
    result = run(table, all_pending=True, max_minutes=2)
    assert [item.instant for item in result.instants] == instants[:1]


def test_no_instant_is_started_from_a_moment_on(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    instants = cut_plan(context_of(table).active, table)
    clock = iter(range(0, 10**6, 61))
    monkeypatch.setattr("hudi_core.services.runner.time.monotonic", lambda: next(clock))
    monkeypatch.setattr("hudi_core.services.runner.time.time", lambda: 1000.0)
    result = run(table, all_pending=True, max_minutes=1000, starts_until=1120)
    assert [item.instant for item in result.instants] == instants[:1]


def test_no_instant_is_started_after_the_job_was_stopped(table: Path) -> None:
    """It is stopped while the first one is at work, whose result is kept."""
    instants, stopped = cut_plan(context_of(table).active, table), threading.Event()

    def run_all() -> Result:
        stop_with(stopped)
        request = RunRequest(str(table), "compaction", all_pending=True)
        runner = ServiceRunner(context_of(table), LocalEngine(2), Owner.current("t"), lambda *_: stopped.set())
        return runner.run(request)

    with ThreadPoolExecutor(1) as pool:
        assert [item.instant for item in pool.submit(run_all).result().instants] == instants[:1]
        with pytest.raises(KeyboardInterrupt):
            pool.submit(run_all).result()
    assert [item.requested_time for item in context_of(table).active.load().pending_compactions()] == instants[1:]


def test_no_instant_is_started_when_the_bytes_are_written(table: Path) -> None:
    """What is pending is run as it is; what fails writes nothing, and stops no younger instant."""
    instants = cut_plan(context_of(table).active, table)
    broken = table / ".hoodie" / f"{instants[0]}.compaction.requested"
    content = broken.read_bytes()
    broken.write_bytes(content[:-40])
    result = run(table, all_pending=True, schedule=True, max_bytes=1)
    assert [(item.instant, item.state) for item in result.instants] == [
        (instants[0], "requested"),
        (instants[1], "completed"),
    ]
    broken.write_bytes(content)
    assert [item.instant for item in run(table, all_pending=True, max_bytes=1 << 40).instants] == [
        instants[0],
        instants[2],
    ]


@pytest.mark.parametrize(
    ("limits", "budgets"),
    [
        ({"max_bytes": 500 * MIB}, [500 * MIB, 300 * MIB, 100 * MIB]),
        ({"max_bytes": 500 * MIB, "max_minutes": 5}, [500 * MIB, 150 * MIB, 100 * MIB]),
        ({"max_minutes": 10}, [1200 * MIB, *[300 * MIB] * 4, 200 * MIB]),
        ({"starts_until": 1600}, [1200 * MIB, *[300 * MIB] * 4, 200 * MIB]),
        ({}, [None] * 7),
    ],
)
def test_plans_are_cut_to_what_is_left(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, limits: dict[str, int], budgets: list[int | None]
) -> None:
    """To a quarter of it: at 8 MiB a second first, then at the 2 MiB a second that the instants came to; and to the
    bytes that are left.
    """
    table, found = golden("6", "cow_basic").table, list[str | None]()
    clock = [0.0]

    def plan_due(context: TableContext, *_: object, dry_run: bool) -> Scheduled:
        found.append(context.options.get("airflow_hudi.plan.max.bytes"))
        return Scheduled(str(len(found)), {}) if len(found) < 7 else Scheduled(None, None, "nothing is due")

    def run_one(self: ServiceRunner, service: object, instant: str) -> InstantResult:
        clock[0] += 100
        return InstantResult(instant, "compaction", "completed", bytes_written=200 * MIB, seconds=100)

    monkeypatch.setattr("hudi_core.services.runner.time.monotonic", lambda: clock[0])
    monkeypatch.setattr("hudi_core.services.runner.time.time", lambda: 1000.0)
    monkeypatch.setattr("hudi_core.services.runner.plan_due", plan_due)
    monkeypatch.setattr(ServiceRunner, "_run_one", run_one)
    assert len(run(table, schedule=True, all_pending=True, **limits).instants) == min(6, len(budgets))
    assert [budget and int(budget) for budget in found] == budgets


@pytest.mark.parametrize(
    ("limits", "budget"),
    [
        ({"max_minutes": 10}, 4800 * MIB),
        ({"starts_until": 1600}, 4800 * MIB),
        ({"max_bytes": 500 * MIB}, 500 * MIB),
        ({"max_minutes": 1, "max_bytes": 500 * MIB}, 480 * MIB),
        ({}, None),
    ],
)
def test_the_one_plan_of_a_run_is_cut_to_all_of_its_time(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, limits: dict[str, int], budget: int | None
) -> None:
    table, found = golden("6", "cow_basic").table, list[str | None]()

    def plan_due(context: TableContext, *_: object, dry_run: bool) -> Scheduled:
        found.append(context.options.get("airflow_hudi.plan.max.bytes"))
        return Scheduled(None, None, "nothing is due")

    monkeypatch.setattr("hudi_core.services.runner.time.monotonic", lambda: 0.0)
    monkeypatch.setattr("hudi_core.services.runner.time.time", lambda: 1000.0)
    monkeypatch.setattr("hudi_core.services.runner.plan_due", plan_due)
    assert run(table, schedule=True, **limits).reason == "nothing is due"
    assert found == [budget and str(budget)]


@pytest.mark.parametrize("chosen", [False, True])
def test_what_the_run_has_just_planned_is_run_whatever_the_time(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, chosen: bool
) -> None:
    """Planning takes longer than the run has: the plan would hold its file groups until the next run."""
    table, clock = golden("6", "cow_basic").table, [0.0]

    def plan_due(*_: object, dry_run: bool) -> Scheduled:
        clock[0] += 61
        return Scheduled("1", {})

    def run_one(self: ServiceRunner, service: object, instant: str) -> InstantResult:
        return InstantResult(instant, "compaction", "completed")

    monkeypatch.setattr("hudi_core.services.runner.time.monotonic", lambda: clock[0])
    monkeypatch.setattr("hudi_core.services.runner.plan_due", plan_due)
    monkeypatch.setattr(ServiceRunner, "_run_one", run_one)
    request = RunRequest(str(table), "compaction", schedule=True, all_pending=True, max_minutes=1)
    choose = (lambda _: Choice(True, "small", 1)) if chosen else None
    found = ServiceRunner(context_of(table), LocalEngine(1), Owner.current("tester"), None, choose).run(request)
    assert [item.instant for item in found.instants] == ["1"]


@pytest.mark.parametrize("schedule", [False, True])
def test_a_run_whose_time_is_over_says_so(table: Path, schedule: bool) -> None:
    instants = cut_plan(context_of(table).active, table)
    found = run(table, all_pending=True, schedule=schedule, starts_until=int(time.time()) - 1)
    assert (found.instants, found.reason) == ((), "the time of the run is over")
    assert [item.requested_time for item in context_of(table).active.load().pending_compactions()] == instants


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_rollback_that_was_taken_off_the_timeline_does_not_end_the_run(golden: Golden, version: str) -> None:
    """Nothing failed: the write that died is rolled back behind it."""
    table = golden(version, "failed_inflight_mor").table
    context = context_of(table)
    left_file(table, context.active)
    context = replace(context, options={**context.options, "hoodie.cleaner.policy.failed.writes": "EAGER"})
    request = RunRequest(str(table), "rollback", schedule=True, all_pending=True)
    found = ServiceRunner(context, LocalEngine(1), Owner.current("tester")).run(request)
    assert [(item.instant == LATE, item.state) for item in found.instants] == [(True, REMOVED), (False, "completed")]
    assert not context.active.load().pending().instants


def test_a_run_plans_nothing_behind_an_instant_that_failed(table: Path) -> None:
    instants = cut_plan(context_of(table).active, table)
    for instant in instants:
        broken = table / ".hoodie" / f"{instant}.compaction.requested"
        broken.write_bytes(broken.read_bytes()[:-40])
    found = run(table, all_pending=True, schedule=True)
    assert [(item.instant, item.exit_code) for item in found.instants] == [(instant, 2) for instant in instants]


def test_with_schedule_instants_are_planned_until_nothing_is_left(golden: Golden) -> None:
    table = golden("8", "mor_compacted").table
    context = context_of(table)
    context = replace(
        context,
        options={**context.options, "hoodie.clean.commits.retained": "1", "hoodie.clean.max.commits.to.clean": "1"},
    )
    runner = ServiceRunner(context, LocalEngine(2), Owner.current("tester"))
    request = RunRequest(table=str(table), service="clean", schedule=True, all_pending=True)
    found = runner.run(request)
    assert {item.state for item in found.instants} == {"completed"}
    assert len(found.instants) >= 1
    again = runner.run(request)
    assert again.instants == ()
    assert again.reason


def test_with_schedule_an_instant_is_planned_only_when_none_is_pending(golden: Golden) -> None:
    table = golden("9", "clean_requested_mor").table
    (planned,) = context_of(table).active.load().of_actions(Action.CLEAN).requested_times
    found = run(table, service="clean", schedule=True)
    assert [item.instant for item in found.instants] == [planned]


def test_each_plan_is_for_the_engine_that_is_chosen_for_it(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine for each that is local; behind one that is for Spark nothing is planned."""
    table, asked, widths, plans = golden("6", "cow_basic").table, list[str](), list[int](), list[str]()
    choices = iter([Choice(True, "small", 3), Choice(True, "small", 1), Choice(False, "large")])

    def plan_due(*_: object, dry_run: bool) -> Scheduled:
        plans.append(str(len(plans) + 1))
        return Scheduled(plans[-1], {})

    def choose(instant: str) -> Choice:
        asked.append(instant)
        return next(choices)

    def run_one(self: ServiceRunner, service: object, instant: str) -> InstantResult:
        widths.append(self._engine._width)  # type: ignore[attr-defined]
        return InstantResult(instant, "compaction", "completed")

    monkeypatch.setattr("hudi_core.services.runner.plan_due", plan_due)
    monkeypatch.setattr(ServiceRunner, "_run_one", run_one)
    request = RunRequest(str(table), "compaction", schedule=True, all_pending=True)
    found = ServiceRunner(context_of(table), LocalEngine(2), Owner.current("tester"), None, choose).run(request)
    assert [(item.instant, width) for item, width in zip(found.instants, widths, strict=True)] == [("1", 3), ("2", 1)]
    assert (found.left, plans) == ("large", ["1", "2", "3"])
    assert asked == plans
