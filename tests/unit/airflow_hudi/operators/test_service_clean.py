"""The clean operator on tables of real Hudi; the job's own code runs without Spark."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from airflow_hudi.operators.service import HudiCleanOperator
from airflow_hudi.task_fate import HudiJobFailed, HudiJobKilled
from hudi_core.errors import ConfigError
from hudi_core.table import HudiTable
from hudi_submit import local_process
from tests.support.fake_spark_submit import RENDERED, Store, context, real_job, requests
from tests.support.golden_data import GoldenCase
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["6", "8", "9"]
ONE = {"hoodie.clean.commits.retained": "1"}
MANY = {"hoodie.clean.commits.retained": "50"}


def operator_on(table: Path, **arguments: Any) -> HudiCleanOperator:
    return HudiCleanOperator(
        **{"task_id": "clean", "table": str(table), "hudi_conn_id": None, "conflict_poll_interval": 0.1, **arguments}
    )


def cleans(table: Path, state: str) -> list[str]:
    found = HudiTable.open(str(table)).timeline().of_actions("clean")
    return [instant.requested_time for instant in found if instant.state.value == state]


@pytest.mark.parametrize("version", tiered(VERSIONS, ["9"]))
def test_both_plans_and_runs_in_one_job(golden: Golden, submitted: Path, version: str) -> None:
    table = golden(version, "mor_compacted").table
    rows = read_rows(table)
    store = Store()
    result = operator_on(table, options=ONE).execute(context(store))
    assert (result["action"], result["state"], result["already_completed"], result["reason"]) == (
        "clean",
        "completed",
        False,
        None,
    )
    assert result["files_deleted"] > 0
    assert [result["instant"]] == cleans(table, "completed")
    (request,) = requests(submitted)
    assert (request.verb, request.service, request.schedule, request.instant, request.run_id) == (
        "run",
        "clean",
        True,
        None,
        "r1",
    )
    assert set(store.values) <= {"hudi_done"}
    assert_same_rows(read_rows(table), rows)
    if version != "6":  # Hudi's clean metadata has extra metadata from 1.x on
        shown = HudiTable.open(str(table)).show(result["instant"]).metadata
        assert shown is not None
        assert shown["extraMetadata"]["airflow_hudi.run_id"] == "r1"
        assert shown["extraMetadata"]["airflow_hudi.owner"].startswith("airflow:maintenance/compact/r1/-1#2")


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6"]))
def test_a_plan_is_made_by_one_task_and_run_by_the_next(golden: Golden, submitted: Path, version: str) -> None:
    table = golden(version, "mor_compacted").table
    planned = operator_on(table, mode="schedule", options=ONE).execute(context(Store()))
    assert (planned["state"], cleans(table, "requested")) == ("requested", [planned["instant"]])
    done = operator_on(table, mode="execute", instant=planned["instant"]).execute(context(Store()))
    assert (done["instant"], done["state"]) == (planned["instant"], "completed")
    assert done["files_deleted"] > 0
    schedule, run = requests(submitted)
    assert (schedule.verb, run.verb, run.instant) == ("schedule", "run", planned["instant"])


@pytest.mark.parametrize(
    ("version", "mode"), tiered([("6", "execute"), ("8", "both"), ("9", "execute")], [("8", "both")])
)
def test_what_a_writer_planned_is_run_by_name(golden: Golden, submitted: Path, version: str, mode: str) -> None:
    table = golden(version, "clean_requested_mor").table
    (planned,) = cleans(table, "requested")
    result = operator_on(table, mode=mode).execute(context())
    assert (result["instant"], result["state"]) == (planned, "completed")
    assert [request.instant for request in requests(submitted)] == [planned]


@pytest.mark.parametrize("mode", tiered(["schedule", "both"], ["both"]))
def test_nothing_to_plan_is_a_reason(golden: Golden, submitted: Path, mode: str) -> None:
    table = golden("8", "mor_basic").table
    store = Store()
    result = operator_on(table, mode=mode, nothing_to_do="succeed", options=MANY).execute(context(store))
    assert (result["instant"], result["state"]) == (None, None)
    assert "hoodie.clean.commits.retained" in result["reason"]
    with pytest.raises(AirflowSkipException, match=r"hoodie\.clean\.commits\.retained"):
        operator_on(table, mode=mode, options=MANY).execute(context(store))
    assert store.values == {}
    assert requests(submitted) == []


@pytest.mark.parametrize("mode", tiered(["both", "schedule"], ["schedule"]))
def test_a_task_that_cleaned_stays_green_when_it_is_cleared(golden: Golden, submitted: Path, mode: str) -> None:
    table, store = golden("8", "mor_compacted").table, Store()
    result = operator_on(table, mode=mode, options=ONE).execute(context(store))
    if mode == "schedule":
        operator_on(table, mode="execute").execute(context())
    count = len(requests(submitted))
    again = operator_on(table, mode=mode, options=ONE).execute(context(store))
    assert (again["instant"], again["state"], again["already_completed"]) == (result["instant"], "completed", True)
    assert (again["seconds"], again["files_deleted"] > 0) == (0.0, True)
    assert "hoodie.clean.trigger.max.commits" in again["reason"]
    assert len(requests(submitted)) == count


def test_nothing_pending_needs_no_job(golden: Golden, submitted: Path) -> None:
    table = golden("8", "mor_basic").table
    result = operator_on(table, mode="execute", nothing_to_do="succeed").execute(context())
    assert result["reason"] == "no clean is pending on mor_basic; --schedule plans one"
    assert requests(submitted) == []


@pytest.mark.slow
def test_a_retry_runs_what_the_dead_try_planned(
    golden: Golden, submitted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = golden("9", "mor_compacted").table
    store = Store()
    kept = table.parent / "kept"
    shutil.copytree(table, kept)
    operator_on(table, options=ONE).execute(context())
    (planned,) = cleans(table, "completed")
    for path in (table / ".hoodie" / "timeline").glob(f"{planned}_*.clean"):
        path.unlink()
    shutil.copytree(table, kept, dirs_exist_ok=True)
    shutil.rmtree(table)
    golden_again = kept.rename(table)
    for path in (golden_again / ".hoodie" / "timeline").glob(f"{planned}.clean.*"):
        path.rename(table.parent / path.name)
    # The try that dies: its job plans, and is killed before it completes.
    monkeypatch.setenv("FAKE_ACTION", f"mv {table.parent}/{planned}.clean.* {table}/.hoodie/timeline/; exit 137")
    look = local_process.COMMAND
    monkeypatch.setattr(local_process, "COMMAND", ("false",))  # by the metadata table everything is deleted already
    with pytest.raises(HudiJobFailed, match="exit code 137"):
        operator_on(table, options=ONE).execute(context(store))
    monkeypatch.setattr(local_process, "COMMAND", look)
    real_job(monkeypatch)
    result = operator_on(table, options=ONE).execute(context(store))
    assert (result["instant"], result["state"], result["already_completed"]) == (planned, "completed", False)
    assert cleans(table, "completed") == [planned]
    assert set(store.values) <= {"hudi_done"}


@pytest.mark.parametrize("mode", tiered(["both", "schedule"], ["schedule"]))
def test_a_retry_whose_work_is_done_says_so(
    golden: Golden, submitted: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    table = golden("8", "mor_compacted").table
    store = Store()
    # The job does everything, and the try is killed before it receives the result.
    real_job(monkeypatch, after="kill -KILL $PPID")
    with pytest.raises(HudiJobFailed):
        operator_on(table, mode=mode, options=ONE).execute(context(store))
    assert store.values
    count = len(requests(submitted))
    real_job(monkeypatch)
    result = operator_on(table, mode=mode, options=ONE).execute(context(store))
    assert (result["state"], result["already_completed"]) == (
        ("completed", True) if mode == "both" else ("requested", False)
    )
    assert len(requests(submitted)) == count
    assert set(store.values) <= {"hudi_done"}


def test_wrong_arguments_fail_for_good(golden: Golden, submitted: Path) -> None:
    table = golden("6", "mor_basic").table
    with pytest.raises(AirflowFailException, match="mode"):
        operator_on(table, mode="plan", **RENDERED).execute(context())
    with pytest.raises(AirflowFailException, match="chooses the instant"):
        operator_on(table, mode="schedule", instant="20260101000000000", **RENDERED).execute(context())
    with pytest.raises(AirflowFailException, match=r"hoodie\.clean\.commits\.retained"):
        operator_on(table, options={"hoodie.clean.commits.retained": "many"}, **RENDERED).execute(context())
    with pytest.raises(ConfigError, match="nothing_to_do"):
        operator_on(table, nothing_to_do="fail")


def test_on_kill_ends_the_job_that_plans(golden: Golden, submitted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = golden("8", "mor_compacted").table
    ended, store = table.parent / "ended", Store()
    monkeypatch.setenv("FAKE_ACTION", f"trap 'touch {ended}; exit 143' TERM; while :; do sleep 0.05; done")
    operator = operator_on(table, options=ONE)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(operator.execute, context(store))
        while not submitted.exists():
            time.sleep(0.02)
        time.sleep(0.2)
        operator.on_kill()
        with pytest.raises(HudiJobKilled):
            running.result(20)
    assert ended.exists()
    real_job(monkeypatch)
    assert operator_on(table, options=ONE).execute(context(store))["state"] == "completed"
    assert set(store.values) <= {"hudi_done"}
