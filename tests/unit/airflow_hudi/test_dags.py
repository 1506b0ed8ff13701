"""The DAG files, parsed as a DAG processor would: no connection, no Variable, no network."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]

PROGRAM = """
import importlib.util, json, sys
for number, path in enumerate(sys.argv[1:]):
    spec = importlib.util.spec_from_file_location(f"dag_file_{number}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    dag = module.dag
    heavy = [name for name in ("pyarrow", "pyspark") if name in sys.modules]
    upstream = {task.task_id: sorted(task.upstream_task_ids) for task in dag.tasks}
    intervals = [task.poke_interval for task in dag.tasks if getattr(task, "deferrable", False)]
    params = {name: dag.params[name] for name in dag.params}
    print("FOUND", json.dumps([dag.dag_id, heavy, dag.max_active_runs, upstream, intervals, params]))
"""
UPSTREAM = {
    "hudi_compaction": {"wait_for_compaction": [], "compact": ["wait_for_compaction"]},
    "hudi_clean": {"wait_for_clean": [], "clean": ["wait_for_clean"]},
    "hudi_table_maintenance": {
        "roll_back_failed_writes": [],
        "clean": ["roll_back_failed_writes"],
        "archive": ["clean"],
    },
    "hudi_doctor": {"doctor": [], "probe_wanted": [], "probe_store": ["probe_wanted"]},
    "hudi_indexing": {"build": [], "validate": ["build"]},
    "hudi_metadata": {"update": [], "validate": ["update"]},
    "hudi_repair": {
        "choose": [],
        **{
            verb: ["choose"]
            for verb in ("rollback", "restore", "savepoint", "delete_savepoint", "unschedule", "takeover")
        },
    },
}


def test_every_dag_file_is_known() -> None:
    assert {path.stem for path in (ROOT / "dags").glob("*.py")} == set(UPSTREAM)


@pytest.fixture(scope="module")
def parsed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """What each file's DAG is, by its id: all are parsed by one process, as Airflow takes seconds to import."""
    mine = {"AIRFLOW_HUDI_TABLE": "s3://b/t", "AIRFLOW_HUDI_POLL_SECONDS": "5", "AIRFLOW_HUDI_COMMITS_RETAINED": "7"}
    environment = {**os.environ, "AIRFLOW_HOME": str(tmp_path_factory.mktemp("airflow")), **mine}
    command = [sys.executable, "-c", PROGRAM, *(str(ROOT / "dags" / f"{name}.py") for name in UPSTREAM)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line.removeprefix("FOUND ")) for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    return {line[0]: line[1:] for line in lines}


@pytest.mark.parametrize("name", UPSTREAM)
def test_a_ready_to_use_dag_parses(parsed: dict[str, list[Any]], name: str) -> None:
    heavy, runs, upstream, intervals, params = parsed[name]
    assert (heavy, runs, upstream) == ([], 1, UPSTREAM[name])
    assert intervals == ([5.0] if name in ("hudi_compaction", "hudi_clean") else [])
    assert params["table"] == "s3://b/t"
    if name == "hudi_table_maintenance":
        assert (params["commits_retained"], params["min_commits"], params["max_commits"]) == (7, 20, 30)
