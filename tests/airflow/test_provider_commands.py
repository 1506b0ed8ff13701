"""What Airflow's own commands show of this provider."""

from __future__ import annotations

import json

import pytest

from tests.airflow.airflow_forks import RESULT, run_program

pytestmark = [pytest.mark.airflow, pytest.mark.slow]


def test_airflow_shows_what_the_provider_has(airflow_environment: dict[str, str]) -> None:
    commands = ["list", "get airflow-hudi --full", "links", "notifications"]
    words = [f"providers {command} --output json" for command in commands]
    output = run_program(airflow_environment, "tests.airflow.run_commands", words)
    listed, (whole,), links, notifications = (
        json.loads(line.removeprefix(RESULT)) for line in output.splitlines() if line.startswith(RESULT)
    )
    assert "airflow-hudi" in {entry["package_name"] for entry in listed}
    text = json.dumps(whole)
    for expected in (
        "airflow_hudi.hooks.HudiHook",
        "airflow_hudi.operators.table_services",
        "airflow_hudi.sensors",
        "airflow_hudi.triggers.wait",
        "airflow_hudi.links.HudiTableLink",
        "airflow_hudi.notifier.HudiNotifier",
        "airflow_hudi.assets.create_asset",
        "storage_conn_id",
        "Base path",
    ):
        assert expected in text
    assert "airflow_hudi.links.HudiSparkLink" in json.dumps(links)
    assert "airflow_hudi.notifier.HudiNotifier" in json.dumps(notifications)
