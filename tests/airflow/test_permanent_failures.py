"""What the log of a task shows that no retry can repair, and of a job's own lines, on a real Airflow."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.airflow.dag_runs import run_dags
from tests.support.golden_data import GoldenCase

pytestmark = [pytest.mark.airflow, pytest.mark.slow]

DAGS = """
import json, os
from datetime import datetime, timedelta, timezone
from airflow.sdk import DAG
from airflow_hudi.operators.service import HudiCompactionOperator
from airflow_hudi.operators.overwrite import HudiDeletePartitionOperator
from airflow_hudi.sensors import HudiCommitSensor

given = json.loads(os.environ["GIVEN"])
again = {"retries": 3, "retry_delay": timedelta(minutes=5), "hudi_conn_id": None}
with DAG("permanent", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=timezone.utc)):
    HudiCommitSensor(task_id="sensor", table=given["none"], **again)
    HudiCommitSensor(task_id="poke", table="sales/orders", deferrable=False, **{**again, "hudi_conn_id": "nowhere"})
    HudiCompactionOperator(task_id="operator", table=given["none"], engine="local", **again)
    HudiDeletePartitionOperator(task_id="partition", table=given["table"], engine="local", **again)
with DAG("compacts", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=timezone.utc)):
    HudiCompactionOperator(task_id="compact", table=given["table"], engine="local", **again)
"""


def test_a_permanent_error_is_a_line_of_its_own_and_no_retry(
    airflow_environment: dict[str, str], golden: Callable[[str, str], GoldenCase], tmp_path: Path
) -> None:
    (tmp_path / "dags").mkdir()
    (tmp_path / "dags" / "permanent.py").write_text(DAGS)
    none, table = tmp_path / "none", golden("9", "mor_compaction_requested").table
    none.mkdir()
    environment = {
        **airflow_environment,
        "AIRFLOW__CORE__DAGS_FOLDER": str(tmp_path / "dags"),
        "GIVEN": json.dumps({"none": str(none), "table": str(table)}),
    }
    (failed, done), log = run_dags(environment, [("permanent", {}), ("compacts", {})])
    assert set(failed["tasks"].values()) == {"failed"}
    lines = log.splitlines()
    for said in (
        f"{none} is not a Hudi table: the folder does not exist or is empty: .hoodie/hoodie.properties (check",
        "The conn_id `nowhere` isn't defined",
        "delete_partition needs a partition (name them in `partitions`",
    ):
        first = next(number for number, line in enumerate(lines) if said in line)
        assert "[error" in lines[first], "before the traceback"
    assert "direct cause of" not in log
    assert "During handling of" not in log
    assert "correct the option" not in log
    assert done["state"] == "success"
    assert "HUDI_RESULT" not in log
    assert any("hudi_core.services.lifecycle: compaction" in line and "INFO hudi" not in line for line in lines)
