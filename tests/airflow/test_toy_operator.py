"""The operator of a verb that a module and a line made, in a DAG of a real Airflow, on the local engine."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.airflow.dag_runs import run_dags
from tests.support.golden_data import GoldenCase
from tests.support.toy_verb import register_in

pytestmark = [pytest.mark.airflow, pytest.mark.slow]

DAGS = """
from datetime import datetime, timezone
from airflow.sdk import DAG
from tests.support.toy_operator import HudiWeighOperator

given = {"table": "{{ params.table }}", "hudi_conn_id": None, "engine": "local"}
with DAG("weighs", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=timezone.utc), params={"table": ""}) as dag:
    HudiWeighOperator(task_id="bytes", **given)
    HudiWeighOperator(task_id="part", unit="{{ 500 + 500 }}", partitions=["2024-01-01"], **given)
    HudiWeighOperator(task_id="nothing", partitions="nowhere", **{**given, "engine": "spark"})
"""


def test_a_verb_of_one_line_is_an_operator(
    airflow_environment: dict[str, str], golden: Callable[[str, str], GoldenCase], tmp_path: Path
) -> None:
    register_in(tmp_path)
    (tmp_path / "dags").mkdir()
    (tmp_path / "dags" / "weighs.py").write_text(DAGS)
    table = golden("9", "mor_basic").table
    weights = {
        folder.name: sum(
            path.stat().st_size for path in folder.iterdir() if not path.name.endswith((".crc", "metadata"))
        )
        for folder in table.glob("2024-*")
    }
    environment = {
        **airflow_environment,
        "AIRFLOW__CORE__DAGS_FOLDER": str(tmp_path / "dags"),
        "PYTHONPATH": os.pathsep.join([str(tmp_path), airflow_environment["PYTHONPATH"]]),
    }
    (result,), log = run_dags(environment, [("weighs", {"table": str(table)})], forked_jobs=False)
    assert result["tasks"] == {"bytes": "success", "part": "success", "nothing": "skipped"}, log[-8000:]
    whole, part = result["xcom"]["bytes"], result["xcom"]["part"]
    assert whole == {"table": str(table), "bytes": sum(weights.values()), "reason": None}
    assert part["bytes"] == weights["2024-01-01"] // 1000
    assert "Nothing to do: the table has no partition" in log
