from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowSensorTimeout, TaskDeferred

from airflow_hudi.sensors import HudiNoPendingSensor
from hudi_core.errors import ConfigError
from hudi_core.timeline.instant_time import format_instant
from tests.support.golden_data import GoldenCase

PLANNED = "20260102000000000.compaction.requested"


def sensor_on(table: Path, **arguments: Any) -> HudiNoPendingSensor:
    return HudiNoPendingSensor(**{"task_id": "wait", "table": str(table), "hudi_conn_id": None, **arguments})


def test_nothing_is_pending(table: Path) -> None:
    assert sensor_on(table).execute({}) == {"table": str(table), "pending": 0, "oldest": None}


@pytest.mark.parametrize("age", [0, 60, "30m", timedelta(hours=1)])
def test_waits_for_what_is_old(table: Path, put: Callable[..., None], age: Any) -> None:
    put(PLANNED)
    with pytest.raises(TaskDeferred):
        sensor_on(table, pending_age=age).execute({})
    assert sensor_on(table, pending_age=age, action="clean").execute({})["pending"] == 0


def test_what_is_young_may_be_pending(table: Path, put: Callable[..., None]) -> None:
    time = format_instant((datetime.now(timezone.utc) - timedelta(minutes=5)).astimezone())
    put(f"{time}.compaction.requested")
    found = sensor_on(table, pending_age="1h").execute({})
    assert found["pending"] == 1
    assert (found["oldest"]["instant"], found["oldest"]["action"]) == (time, "compaction")
    assert 299 <= found["oldest"]["age_seconds"] <= 420


def test_poke_mode_goes_on_once_it_is_completed(table: Path, put: Callable[..., None]) -> None:
    put(PLANNED)
    with pytest.raises(AirflowSensorTimeout, match="has shown a pending instant for longer than 60 s for 0 s"):
        sensor_on(table, pending_age=60, deferrable=False, poke_interval=0.01, timeout=0.05).execute({})
    put("20260102000000000.commit", b"{}")
    assert sensor_on(table, pending_age=60, deferrable=False).execute({})["pending"] == 0


@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize("action", ["", "clustering"])
def test_real_tables(golden: Callable[[str, str], GoldenCase], version: str, action: str) -> None:
    case = golden(version, "clustering_requested_cow")
    with pytest.raises(TaskDeferred):
        sensor_on(case.table, action=action).execute({})
    assert sensor_on(case.table, action="compaction").execute({})["pending"] == 0
    assert sensor_on(case.after(), action=action).execute({})["pending"] == 0


def test_what_is_no_age_is_refused(table: Path) -> None:
    with pytest.raises(ConfigError, match="'soon' is no duration"):
        sensor_on(table, pending_age="soon").execute({})
