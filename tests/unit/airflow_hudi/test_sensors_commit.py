from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowSensorTimeout, TaskDeferred

from airflow_hudi.sensors import HudiCommitSensor
from tests.support.commit_files import commit_file
from tests.support.golden_data import GoldenCase


def sensor_on(table: Path, **arguments: Any) -> HudiCommitSensor:
    return HudiCommitSensor(**{"task_id": "wait", "table": str(table), "hudi_conn_id": None, **arguments})


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_each_run_waits_behind_the_write_of_the_last(golden: Callable[[str, str], GoldenCase], version: str) -> None:
    table = golden(version, "cow_basic").table
    first = sensor_on(table).execute({})
    assert set(first) == {
        *("table", "instant", "action", "state", "completed", "operation", "partitions", "rows"),
    }
    assert (first["table"], first["operation"]) == (str(table), "INSERT")
    assert sensor_on(table, completed_after=first["completed"]).execute({})["operation"] == "UPSERT"
    with pytest.raises(TaskDeferred):
        sensor_on(table, completed_after=datetime(2100, 1, 1, tzinfo=timezone.utc)).execute({})


def test_poke_mode(table: Path, put: Callable[..., None]) -> None:
    first = sensor_on(table).execute({})
    waits = {"completed_after": first["completed"], "deferrable": False, "poke_interval": 0.01, "timeout": 0.05}
    with pytest.raises(AirflowSensorTimeout, match=f"has shown no write completed after {first['completed']} for 0 s"):
        sensor_on(table, **waits).execute({})
    put("20260102000000000.deltacommit", commit_file({"day=1": 3}))
    assert sensor_on(table, **waits).execute({})["rows"] == 3
