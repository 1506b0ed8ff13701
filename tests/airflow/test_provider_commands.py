"""What Airflow's own commands show of this provider."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.airflow, pytest.mark.slow]


def shown(environment: dict[str, str], *arguments: str) -> Any:
    """The JSON of `airflow providers …`."""
    command = [str(Path(sys.executable).parent / "airflow"), "providers", *arguments, "--output", "json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout[done.stdout.index("[") :])


def test_airflow_shows_what_the_provider_has(airflow_environment: dict[str, str]) -> None:
    (whole,) = shown(airflow_environment, "get", "airflow-hudi", "--full")
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
    assert "airflow_hudi.links.HudiSparkLink" in json.dumps(shown(airflow_environment, "links"))
    assert "airflow_hudi.notifier.HudiNotifier" in json.dumps(shown(airflow_environment, "notifications"))
