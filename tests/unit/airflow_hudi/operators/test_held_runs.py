"""Runs of many tables that other processes hold, on tables of real Hudi."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from airflow_hudi.jobs import rounds, waiting
from airflow_hudi.jobs.engine_job import EngineJob
from airflow_hudi.task_fate import HudiInstantBusy
from hudi_core.table import HudiTable
from hudi_core.transaction.claim import Claim, claim
from hudi_core.transaction.owner import Owner
from tests.support.fake_spark_submit import Store, context
from tests.support.golden_data import GoldenCase
from tests.support.pending_operations import cut_plan
from tests.unit.airflow_hudi.operators.test_table_services import of, operator_on, states

Golden = Callable[[str, str], GoldenCase]


def pending_instant(table: Path) -> str:
    """The table's one pending compaction."""
    (instant,) = (item.requested_time for item in HudiTable.open(str(table)).timeline().pending_compactions())
    return instant


def held_by_another(table: Path, instant: str) -> Claim:
    """A live claim on the instant."""
    storage = HudiTable.open(str(table)).context.storage
    return claim(storage, instant, Owner.current("another"), interval_ms=60_000, tolerable_misses=2)


def let_go_meanwhile(held: Claim, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other process releases its claim while the task waits for the first time."""
    clock = SimpleNamespace(time=time.time, monotonic=time.monotonic, sleep=lambda _: held.release())
    monkeypatch.setattr(waiting, "time", clock)


def test_who_waits_for_another_runner_says_so_and_ends(
    golden: Golden, submitted: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    busy, free = golden("9", "mor_compaction_requested").table, golden("8", "mor_compaction_requested").table
    instant = pending_instant(busy)
    patient = {"conflict_poll_interval": 0.01, "conflict_timeout": 0.0, "services": "compaction", "engine": "local"}
    with (
        held_by_another(busy, instant),
        pytest.raises(HudiInstantBusy, match="others have held 1 of the runs"),
    ):
        operator_on(busy, free, **patient).execute(context())
    assert states(free, "compaction") == {"completed"}
    caplog.set_level("INFO")
    caplog.clear()
    let_go_meanwhile(held_by_another(busy, instant), monkeypatch)
    operator_on(busy, **{**patient, "conflict_timeout": 60.0}).execute(context())
    (said,) = [text for text in caplog.messages if text.startswith("Waiting to run")]
    assert re.match(
        rf"Waiting to run compaction of {busy}: .*instant {instant} is run by another \(process .* since", said
    )
    result = operator_on(busy, free, nothing_to_do="succeed", **patient).execute(context())
    assert (result["done"], result["nothing"]) == (0, 2)


def test_what_is_held_for_too_long_is_reported_with_what_was_done(golden: Golden, submitted: Path) -> None:
    """The wait counts from its beginning, however long the work took."""
    busy, free = golden("9", "mor_compaction_requested").table, golden("8", "mor_compaction_requested").table
    instant = pending_instant(busy)
    run = context(Store())
    with (
        held_by_another(busy, instant),
        pytest.raises(HudiInstantBusy, match=rf"others have held 1 of the runs(.|\n)*{busy}: .*is run by another"),
    ):
        operator_on(busy, free, services="compaction", engine="local", conflict_timeout=0.0).execute(run)
    found = run["ti"].pushed["return_value"]
    assert (found["done"], found["failed"]) == (1, 1)
    assert of(found, free, "compaction")["instants"][0]["state"] == "completed"


def test_a_run_that_others_hold_is_waited_for_after_work_that_took_longer(
    golden: Golden, submitted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = golden("9", "mor_compaction_requested").table
    held = held_by_another(busy, pending_instant(busy))
    run = EngineJob.run

    def slow(job: EngineJob) -> int:
        code = run(job)
        clock[0] += 1000.0
        return code

    clock = [0.0]
    monkeypatch.setattr(EngineJob, "run", slow)
    waits = SimpleNamespace(time=time.time, monotonic=lambda: clock[0], sleep=lambda _: held.release())
    monkeypatch.setattr(waiting, "time", waits)
    result = operator_on(busy, services="compaction", engine="local", conflict_timeout=999.0).execute(context())
    assert (result["done"], states(busy, "compaction")) == (1, {"completed"})


def test_the_minutes_of_a_policy_go_on_while_others_hold_a_run(
    golden: Golden, submitted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = golden("9", "mor_compaction_requested").table
    held = held_by_another(busy, pending_instant(busy))
    earlier = SimpleNamespace(time=lambda: time.time() - 60, monotonic=time.monotonic, sleep=lambda _: held.release())
    for module in (rounds, waiting):
        monkeypatch.setattr(module, "time", earlier)
    policy = {"services": {"compaction": None}, "budget": {"minutes": 1}}
    result = operator_on(busy, policy=policy, engine="local", nothing_to_do="succeed").execute(context())
    assert of(result, busy, "compaction")["reason"] == "the time until which work may be started is over"
    assert states(busy, "compaction") == {"requested"}


def test_what_another_runner_holds_is_waited_for_though_the_rest_is_done(
    golden: Golden, submitted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = golden("6", "mor_compaction_requested_only").table
    opened = HudiTable.open(str(table))
    instants = cut_plan(opened.context.active, table)
    let_go_meanwhile(held_by_another(table, instants[1]), monkeypatch)
    patient = {"conflict_poll_interval": 0.05, "conflict_timeout": 60.0, "services": "compaction", "engine": "local"}
    result = operator_on(table, mode="execute", **patient).execute(context())
    # What was held is run last.
    assert [item["instant"] for item in of(result, table, "compaction")["instants"]] == [
        *(instants[:1] + instants[2:]),
        instants[1],
    ]
    assert states(table, "compaction") == {"completed"}


def test_a_run_that_others_hold_is_waited_for_though_the_bytes_are_spent(
    golden: Golden, submitted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy, free = golden("9", "mor_compaction_requested").table, golden("8", "mor_compaction_requested").table
    let_go_meanwhile(held_by_another(busy, pending_instant(busy)), monkeypatch)
    patient = {"conflict_poll_interval": 0.05, "conflict_timeout": 60.0, "services": "compaction", "engine": "local"}
    result = operator_on(busy, free, max_bytes=1, **patient).execute(context())
    assert (result["done"], states(busy, "compaction"), states(free, "compaction")) == (
        2,
        {"completed"},
        {"completed"},
    )
