"""The ready-to-use DAG, for real: deferred sensor, trigger, operator, spark-submit with the job zip, timeline."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_core.table import HudiTable
from tests.airflow.dag_runs import run_dag
from tests.support.golden_data import GoldenCase

pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.slow]

WAITING = "shows no pending compaction yet"


def rows(table: Path, query: Any) -> int:
    return sum(batch.num_rows for batch in HudiTable.open(str(table)).read(query).batches)


def test_a_planned_compaction_is_seen_and_run(
    golden: Callable[[str, str], GoldenCase], airflow_environment: dict[str, str], tmp_path: Path
) -> None:
    case = golden("6", "mor_compaction_requested")
    expected = {query: rows(case.after(), query) for query in ("snapshot", "read_optimized")}
    (planned,) = case.table.glob(".hoodie/*.compaction.requested")
    instant = planned.name.split(".")[0]
    held = planned.rename(tmp_path / planned.name)
    environment = {
        **airflow_environment,
        "AIRFLOW_CONN_HUDI_DEFAULT": json.dumps({"conn_type": "hudi", "host": str(case.table.parent)}),
        "AIRFLOW_HUDI_TABLE": case.table.name,
    }

    (result,), output = run_dag(
        environment, "hudi_compaction", when={WAITING: lambda: held.rename(planned)}, forked_jobs=False
    )

    assert result["state"] == "success", output[-8000:]
    assert result["tasks"] == {"wait_for_compaction": "success", "compact": "success"}
    assert "running trigger in line" in output, "the sensor did not defer"
    seen, done = result["xcom"]["wait_for_compaction"], result["xcom"]["compact"]
    assert seen == {"table": case.table.name, "instant": instant, "action": "compaction", "state": "requested"}
    assert (done["instant"], done["state"], done["files_written"]) == (instant, "completed", 3)
    assert "units done" in output
    assert (case.table / ".hoodie" / f"{instant}.commit").is_file()
    assert {query: rows(case.table, query) for query in expected} == expected
