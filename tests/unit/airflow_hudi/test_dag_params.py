"""What the ready-to-use DAGs have in common."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG, CronDataIntervalTimetable
from airflow.sdk.exceptions import AirflowSkipException

from airflow_hudi.dag_params import (
    interval_schedule,
    looks_once_where_scheduled,
    number_in,
    required_text,
    runs_at_once,
)
from airflow_hudi.sensors import HudiInstantSensor
from hudi_core.errors import ConfigError


def parsed(dag_id: str) -> Any:
    """The module of a DAG file, by the environment as it is now."""
    spec = importlib.util.spec_from_file_location(dag_id, Path(__file__).parents[3] / "dags" / f"{dag_id}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_numbers_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for text, otherwise, number in (("", 30.0, 30.0), ("0.5", 30.0, 0.5), ("7", 0, 7), ("", 0, 0)):
        monkeypatch.setenv("NUMBER", text)
        assert number_in("NUMBER", otherwise) == number
    whole = "a whole number from 0 on, without a unit"
    for text, wanted, remedy in (
        ("30m", 0, whole),
        ("0.5", 0, whole),
        ("-1", 0.5, "a number"),
        ("inf", 0.5, "a number"),
    ):
        monkeypatch.setenv("NUMBER", text)
        with pytest.raises(ConfigError, match=rf"NUMBER is '{text}' \(give {remedy}"):
            number_in("NUMBER", wanted)


@pytest.mark.parametrize(
    ("dag_id", "variable"),
    [
        ("hudi_insert_overwrite", "AIRFLOW_HUDI_OVERWRITE_WAIT_MINUTES"),
        ("hudi_insert_overwrite", "AIRFLOW_HUDI_POLL_SECONDS"),
        ("hudi_merge_day", "AIRFLOW_HUDI_MERGE_WAIT_MINUTES"),
        ("hudi_merge_day", "AIRFLOW_HUDI_POLL_SECONDS"),
        ("hudi_clean", "AIRFLOW_HUDI_POLL_SECONDS"),
        ("hudi_compaction", "AIRFLOW_HUDI_POLL_SECONDS"),
        ("hudi_table_maintenance", "AIRFLOW_HUDI_COMMITS_RETAINED"),
        ("hudi_services_on_events", "AIRFLOW_HUDI_POLL_SECONDS"),
        ("hudi_services_on_events", "AIRFLOW_HUDI_REPEAT_SECONDS"),
    ],
)
def test_a_number_that_is_none_is_named_by_its_variable(
    monkeypatch: pytest.MonkeyPatch, dag_id: str, variable: str
) -> None:
    monkeypatch.setenv("AIRFLOW_HUDI_WATCHED_TABLE", "s3://lake/orders")
    monkeypatch.setenv(variable, "30m")
    with pytest.raises(ConfigError, match=f"{variable} is '30m'"):
        parsed(dag_id)


def test_cron_text_has_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Airflow 3.3 makes a CronTriggerTimetable of it, whose interval is empty: `ds` would be the day that begins."""
    for text, expression in (("@daily", "0 0 * * *"), ("30 2 * * *", "30 2 * * *")):
        monkeypatch.setenv("SCHEDULE", text)
        assert interval_schedule("SCHEDULE") == CronDataIntervalTimetable(expression, timezone="UTC")


@pytest.mark.parametrize(("text", "schedule"), [("", None), ("@once", "@once"), ("@continuous", "@continuous")])
def test_what_is_no_cron_stays(monkeypatch: pytest.MonkeyPatch, text: str, schedule: str | None) -> None:
    monkeypatch.setenv("SCHEDULE", text)
    assert interval_schedule("SCHEDULE") == schedule
    monkeypatch.delenv("SCHEDULE")
    assert interval_schedule("SCHEDULE") is None


@pytest.mark.parametrize("dag_id", ["hudi_clean", "hudi_compaction"])
@pytest.mark.parametrize(
    ("schedule", "runs", "looks_once"),
    [("", 1000, False), ("@once", 1000, False), ("@continuous", 1, False), ("@hourly", 1000, True)],
)
def test_a_waiting_run_keeps_no_other_table_waiting(
    monkeypatch: pytest.MonkeyPatch, dag_id: str, schedule: str, runs: int, looks_once: bool
) -> None:
    """Airflow allows a continuous DAG one run. Those of a cron schedule, all of one table, would pile up."""
    monkeypatch.setenv("AIRFLOW_HUDI_SCHEDULE", schedule)
    module = parsed(dag_id)
    wait = module.wait
    assert module.dag.max_active_runs == runs_at_once(schedule or None) == runs
    assert (wait._pre_execute_hook is not None) == looks_once


def test_a_scheduled_run_looks_once(table: Path, put: Callable[..., None]) -> None:
    hook = looks_once_where_scheduled("@hourly")["pre_execute"]
    sensor = HudiInstantSensor(task_id="wait", table=str(table), hudi_conn_id=None, action="clean")

    def look(kind: str) -> None:
        context: Any = {"dag_run": SimpleNamespace(run_type=kind), "task": sensor}
        hook(context)

    look("manual")
    with pytest.raises(AirflowSkipException, match="the next run of the schedule looks again"):
        look("scheduled")
    put("20260102000000000.clean.requested")
    look("scheduled")
    sensor = HudiInstantSensor(task_id="wait", table="/nowhere", hudi_conn_id=None)
    look("scheduled")  # what the sensor itself fails for


def test_what_an_environment_variable_gives_need_not_be_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    needed = required_text("Rows", "MY_SOURCE", "those of the day", is_scheduled=False)
    assert (needed.schema["type"], needed.schema["minLength"], needed.description) == ("string", 1, "Rows")
    scheduled = required_text("Rows", "MY_SOURCE", "those of the day", is_scheduled=True)
    DAG("d", schedule="@daily", params={"source": scheduled})  # which refuses a param that is required
    assert scheduled.description == "Rows; scheduled runs need MY_SOURCE"
    monkeypatch.setenv("MY_SOURCE", "s3://b/{{ ds }}")
    given = required_text("Rows", "MY_SOURCE", "those of the day", is_scheduled=True)
    assert (given.schema["type"], given.description) == (["null", "string"], "Rows; empty: those of the day")
