from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowSensorTimeout, TaskDeferred

from airflow_hudi.sensors import HudiPartitionSensor
from hudi_core.errors import ConfigError
from tests.support.commit_files import commit_file
from tests.support.golden_data import GoldenCase


def sensor_on(table: Path, **arguments: Any) -> HudiPartitionSensor:
    return HudiPartitionSensor(**{"task_id": "wait", "table": str(table), "hudi_conn_id": None, **arguments})


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_partitions_as_a_list_or_a_text(golden: Callable[[str, str], GoldenCase], version: str) -> None:
    table = golden(version, "cow_basic").table
    for given in (["2024-01-01", "2024-01-03"], "2024-01-01, 2024-01-03", "2024-01-01\n2024-01-03\n"):
        found = sensor_on(table, partitions=given).execute({})
        assert [item["partition"] for item in found["partitions"]] == ["2024-01-01", "2024-01-03"]
        assert all(item["instant"] and item["completed"] for item in found["partitions"])
    with pytest.raises(TaskDeferred):
        sensor_on(table, partitions="2024-01-01, 2024-01-09").execute({})
    assert len(sensor_on(table, partitions="2024-01-01, 2024-01-09", match="any").execute({})["partitions"]) == 1


def test_partitions_of_a_list_are_taken_as_they_are(golden: Callable[[str, str], GoldenCase]) -> None:
    """A template that renders empty does not take a partition off the list."""
    table = golden("9", "cow_basic").table
    for given in (["2024-01-01", ""], [" 2024-01-01"]):
        with pytest.raises(TaskDeferred):
            sensor_on(table, partitions=given).execute({})
    whole = golden("9", "non_partitioned_cow").table
    (found,) = sensor_on(whole, partitions=[""]).execute({})["partitions"]
    assert found["partition"] == ""
    assert found["instant"]


def test_poke_mode(table: Path, put: Callable[..., None]) -> None:
    waits = {"partitions": "day=1", "deferrable": False, "poke_interval": 0.01, "timeout": 0.05}
    with pytest.raises(AirflowSensorTimeout, match="has shown no write to day=1 for 0 s"):
        sensor_on(table, **waits).execute({})
    put("20260102000000000.deltacommit", commit_file({"day=1": 3}))
    (found,) = sensor_on(table, **waits).execute({})["partitions"]
    assert (found["partition"], found["instant"]) == ("day=1", "20260102000000000")


@pytest.mark.parametrize("partitions", ["../other", "/day=1", ".hoodie", ""])
def test_what_is_no_partition_is_refused(table: Path, partitions: str) -> None:
    with pytest.raises(ConfigError):
        sensor_on(table, partitions=partitions).execute({})
