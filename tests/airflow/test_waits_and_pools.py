"""On a whole Airflow: deferred sensors that a write and a service wake, mapped tasks of tables in a pool, and runs that
wait beside one that works.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from demo.rest import Airflow
from demo.run import connections, environment
from demo.stack import Stack
from hudi_core.engine.local import LocalEngine
from hudi_core.table import HudiTable
from hudi_core.verbs.run import ScheduleRequest
from tests.airflow.airflow_forks import ROOT, TIMEOUT_SECONDS
from tests.airflow.test_events import wait_until
from tests.support.changed_tables import QUICK_CLOCK
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import overwrite, own_rows, put_source, within
from tests.support.table_invariants import read_rows

pytestmark = [pytest.mark.airflow, pytest.mark.slow, pytest.mark.conformance]

POOL = "large tables"
DAGS = """
import json, os
from datetime import datetime, timezone
from airflow.sdk import DAG
from airflow_hudi.maintenance_dag import hudi_maintenance_dag
from airflow_hudi.sensors import HudiCommitSensor, HudiNoPendingSensor, HudiPartitionSensor

given = json.loads(os.environ["GIVEN"])
later = {"poke_interval": 2, "completed_after": given["now"], "table": given["written"]}
with DAG("waits", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=timezone.utc)):
    HudiCommitSensor(task_id="commit", **later)
    HudiPartitionSensor(task_id="partition", partitions=given["partition"], **later)
    HudiNoPendingSensor(task_id="idle", table=given["planned"], action="compaction", poke_interval=2)
fleet = hudi_maintenance_dag(
    "fleet", policy={"pool": given["pool"], "services": {"compaction": None}}, schedule=None, one_task_per_table=True,
    tables=[given["written"], given["planned"]], operator_args={"engine": "local"},
)
"""


def states(api: Airflow, dag: str) -> dict[str, str]:
    return {name: task["state"] for name, task in api.tasks(dag, "r1").items()}


def mapped(api: Airflow) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = api.get("/api/v2/dags/fleet/dagRuns/r1/taskInstances")["task_instances"]
    return sorted(found, key=lambda task: str(task["start_date"]))


def test_sensors_are_woken_and_tables_take_turns_in_a_pool(
    golden: Callable[[str, str], GoldenCase], tmp_path: Path
) -> None:
    written, planned = golden("9", "cow_basic").table, golden("9", "mor_basic").table
    rows = read_rows(written)
    partition = min(rows.column("_hoodie_partition_path").to_pylist())
    source = put_source(own_rows(written, within(rows, partition)), tmp_path / "rows")
    options = {**QUICK_CLOCK, "hoodie.compact.inline.max.delta.commits": "1"}
    request = ScheduleRequest(str(planned), service="compaction", owner="a writer", options=options)
    compaction = (HudiTable.open(str(planned)).run(request, LocalEngine(1)).document or {})["instant"]
    newest = max(item.completed_at for item in HudiTable.open(str(written)).timeline().completed())
    given = {"written": str(written), "planned": str(planned), "partition": partition, "now": newest, "pool": POOL}
    folder = tmp_path / "dags"
    folder.mkdir()
    (folder / "waits.py").write_text(DAGS)
    variables = {f"AIRFLOW_CONN_{name.upper()}": json.dumps(fields) for name, fields in connections(written).items()}
    variables |= {**environment(tmp_path, written), "GIVEN": json.dumps(given)}
    variables["AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION"] = "False"
    with Stack(tmp_path / "airflow", folder, variables) as stack:
        stack.wait_until_healthy(TIMEOUT_SECONDS)
        api = stack.api
        airflow = [str(Path(sys.executable).with_name("airflow")), "pools", "set", POOL, "1", "one at a time"]
        subprocess.run(airflow, env={**os.environ, **stack.environment}, timeout=TIMEOUT_SECONDS, check=True)
        wait_until(lambda: {"waits", "fleet"} <= api.dag_ids(), "the DAGs are not parsed")

        api.trigger("waits", "r1")
        wait_until(lambda: set(states(api, "waits").values()) == {"deferred"}, "the sensors do not defer")
        overwrite(written, source)
        wait_until(lambda: states(api, "waits")["commit"] == states(api, "waits")["partition"] == "success", "no wake")
        assert states(api, "waits")["idle"] == "deferred"

        api.trigger("fleet", "r1")
        wait_until(lambda: api.run_state("fleet", "r1") == "success", "the services did not run")
        wait_until(lambda: api.run_state("waits", "r1") == "success", "the end of the compaction wakes no sensor")
        tasks = mapped(api)
        commit, days, idle = (api.xcom("waits", "r1", name) for name in ("commit", "partition", "idle"))

    assert [task["state"] for task in tasks] == ["success"] * 2
    assert [task["pool"] for task in tasks] == [POOL] * 2
    assert {task["rendered_map_index"] for task in tasks} == {str(written), str(planned)}
    first, second = tasks
    assert datetime.fromisoformat(first["end_date"]) <= datetime.fromisoformat(second["start_date"]), "of one slot"
    last = HudiTable.open(str(written)).timeline().commits().last()
    assert last is not None
    assert (commit["instant"], commit["partitions"]) == (last.requested_time, [partition])
    assert [(day["partition"], day["instant"]) for day in days["partitions"]] == [(partition, last.requested_time)]
    assert (idle["pending"], idle["oldest"]) == (0, None)
    done = {item.requested_time: item.is_completed for item in HudiTable.open(str(planned)).timeline()}
    assert done[compaction]


def test_runs_that_wait_for_one_table_hold_up_no_run_for_another(
    golden: Callable[[str, str], GoldenCase], tmp_path: Path
) -> None:
    """There are more of them than Airflow allows of a DAG that does not say otherwise, and than the pool has slots."""
    waiting, planned = golden("9", "mor_basic").table, golden("9", "clean_requested_mor").table
    folder = tmp_path / "dags"
    folder.mkdir()
    shutil.copy(ROOT / "dags" / "hudi_clean.py", folder)
    variables = {f"AIRFLOW_CONN_{name.upper()}": json.dumps(fields) for name, fields in connections(waiting).items()}
    variables |= environment(tmp_path, waiting)
    variables |= {
        f"AIRFLOW__CORE__{name}": "2"
        for name in ("MAX_ACTIVE_RUNS_PER_DAG", "MAX_ACTIVE_TASKS_PER_DAG", "DEFAULT_POOL_TASK_SLOT_COUNT")
    }
    runs = ("w1", "w2", "w3")
    with Stack(tmp_path / "airflow", folder, variables) as stack:
        stack.wait_until_healthy(TIMEOUT_SECONDS)
        api = stack.api
        wait_until(lambda: "hudi_clean" in api.dag_ids(), "the DAG is not parsed")

        def waits(run: str) -> str:
            return str(api.tasks("hudi_clean", run)["wait_for_clean"]["state"])

        for run in runs:
            api.trigger("hudi_clean", run, {"table": str(waiting)})
        wait_until(lambda: {waits(run) for run in runs} == {"deferred"}, "the runs do not wait")
        api.trigger("hudi_clean", "works", {"table": str(planned), "engine": "local"})
        wait_until(lambda: api.run_state("hudi_clean", "works") == "success", "the other table is not cleaned")
        assert {waits(run) for run in runs} == {"deferred"}
        done = api.xcom("hudi_clean", "works", "clean")
    assert (done["state"], done["engine"]) == ("completed", "local")
