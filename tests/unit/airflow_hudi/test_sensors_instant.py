from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowSensorTimeout, AirflowSkipException, TaskDeferred

from airflow_hudi.sensors import HudiInstantSensor
from airflow_hudi.task_fate import HudiSensorFailed
from airflow_hudi.triggers.wait import HudiConditionTrigger
from hudi_core.errors import ConfigError
from tests.support.golden_data import GoldenCase

PLANNED = "20260102000000000.compaction.requested"
FOUND = {"instant": "20260102000000000", "action": "compaction", "state": "requested"}


def sensor_on(table: Path, **arguments: Any) -> HudiInstantSensor:
    return HudiInstantSensor(**{"task_id": "wait", "table": str(table), "hudi_conn_id": None, **arguments})


def test_is_deferrable_by_default(table: Path) -> None:
    assert sensor_on(table).deferrable


def test_does_not_defer_for_what_is_there(table: Path, put: Callable[..., None]) -> None:
    put(PLANNED)
    assert sensor_on(table).execute({}) == {"table": str(table), **FOUND}


def test_defers_to_a_trigger_with_the_same_condition(table: Path) -> None:
    with pytest.raises(TaskDeferred) as deferred:
        sensor_on(table, state="requested", after="001", poke_interval=7, timeout=90).execute({})
    trigger = deferred.value.trigger
    assert isinstance(trigger, HudiConditionTrigger)
    assert trigger.serialize()[1] == {
        "table": str(table),
        "condition": {
            "kind": "instant",
            "action": "compaction",
            "state": "requested",
            "instant": None,
            "after": "001",
            "completed_after": None,
        },
        "hudi_conn_id": None,
        "poll_interval": 7.0,
        "max_errors": 5,
    }
    assert deferred.value.timeout == timedelta(seconds=90)
    assert deferred.value.method_name == "execute_complete"


def test_goes_on_with_the_triggers_event(table: Path) -> None:
    event = {"status": "success", "table": str(table), **FOUND}
    assert sensor_on(table).execute_complete({}, event) == {"table": str(table), **FOUND}


def test_fails_with_the_triggers_error(table: Path) -> None:
    with pytest.raises(HudiSensorFailed, match="no table"):
        sensor_on(table).execute_complete({}, {"status": "error", "message": "no table"})


def test_soft_fail_holds_for_the_triggers_error(table: Path) -> None:
    sensor = sensor_on(table, soft_fail=True)
    with pytest.raises(AirflowSkipException):
        sensor.resume_execution("execute_complete", {"event": {"status": "error", "message": "x"}}, {})


def test_a_wait_that_took_too_long_says_for_what(table: Path) -> None:
    sensor = sensor_on(table, state="requested", after="001", timeout=90)
    with pytest.raises(AirflowSensorTimeout, match=f"{table} has shown no requested compaction after 001 for 90 s"):
        sensor.resume_execution("__fail__", {"error": "Trigger timeout"}, {})


def test_poke_mode(table: Path, put: Callable[..., None]) -> None:
    with pytest.raises(AirflowSensorTimeout, match=f"{table} has shown no pending compaction for 0 s"):
        sensor_on(table, deferrable=False, poke_interval=0.01, timeout=0.05).execute({})
    put(PLANNED)
    assert sensor_on(table, deferrable=False).execute({}) == {"table": str(table), **FOUND}


def test_templates_may_render_to_nothing(table: Path, put: Callable[..., None]) -> None:
    put(PLANNED)
    sensor = sensor_on(table, instant="", after="", completed_after="", hudi_conn_id="")
    assert sensor.execute({})["instant"] == FOUND["instant"]


def test_template_fields_are_arguments_kept_as_given(table: Path) -> None:
    given = {name: f"{{{{ {name} }}}}" for name in HudiInstantSensor.template_fields}
    sensor = HudiInstantSensor(task_id="wait", **given)
    assert {name: getattr(sensor, name) for name in HudiInstantSensor.template_fields} == given


@pytest.mark.parametrize(
    ("version", "name", "action", "state"),
    [(version, "clean_requested_mor", "clean", "requested") for version in ("6", "8", "9")]
    + [(version, "compaction_inflight", "compaction", "inflight") for version in ("6", "8", "9")]
    + [(version, "clustering_requested_cow", "clustering", "requested") for version in ("6", "8", "9")],
)
def test_pending_instants_of_services_are_seen(
    golden: Callable[[str, str], GoldenCase], version: str, name: str, action: str, state: str
) -> None:
    table = golden(version, name).table
    seen = sensor_on(table, action=action).execute({})
    assert (seen["action"], seen["state"]) == (action, state)
    assert seen["instant"].isdigit()


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_pending_rollback_is_seen_unless_a_restore_owns_it(
    golden: Callable[[str, str], GoldenCase], version: str
) -> None:
    table = golden(version, "mor_basic").table
    timeline = table / ".hoodie" / ("" if version == "6" else "timeline")
    (timeline / "20300101000000000.rollback.requested").write_bytes(b"")
    assert sensor_on(table, action="rollback").execute({})["instant"] == "20300101000000000"
    (timeline / "20291231000000000.restore.requested").write_bytes(b"")
    with pytest.raises(TaskDeferred):
        sensor_on(table, action="rollback").execute({})


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_waits_for_one_that_completed_later(golden: Callable[[str, str], GoldenCase], version: str) -> None:
    table = golden(version, "cleaned_commits_cow").table
    given = {"action": "clean", "state": "completed", "timeout": 60}
    assert sensor_on(table, **given, completed_after="2026-01-01").execute({})["action"] == "clean"
    later = sensor_on(table, **given, completed_after=datetime(2100, 1, 1, tzinfo=timezone.utc))
    with pytest.raises(TaskDeferred) as deferred:
        later.execute({})
    assert deferred.value.trigger.serialize()[1]["condition"]["completed_after"] == "2100-01-01T00:00:00+00:00"
    with pytest.raises(AirflowSensorTimeout, match="has shown no completed clean completed after 2100-01-01T00:00"):
        later.resume_execution("__fail__", {"error": "Trigger timeout"}, {})


def test_only_what_is_completed_has_a_completion_time(table: Path) -> None:
    with pytest.raises(ConfigError, match="that is pending has no completion time"):
        sensor_on(table, completed_after="2026-01-01").execute({})
