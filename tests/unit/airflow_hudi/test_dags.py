"""The DAG files, parsed as a DAG processor would: no connection, no Variable, no network."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

PROGRAM = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("dag_file", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
dag = module.dag
assert dag.task_ids == ["wait_for_compaction", "compact"], dag.task_ids
assert dag.get_task("compact").upstream_task_ids == {"wait_for_compaction"}
assert dag.get_task("wait_for_compaction").deferrable
assert dag.max_active_runs == 1
print("pyarrow" in sys.modules, "pyspark" in sys.modules, dag.params["table"], dag.get_task("wait_for_compaction").poke_interval)
"""


def test_the_ready_to_use_dag_parses(tmp_path: Path) -> None:
    environment = {**os.environ, "AIRFLOW_HOME": str(tmp_path), "AIRFLOW_HUDI_TABLE": "s3://b/t", "AIRFLOW_HUDI_POLL_SECONDS": "5"}
    command = [sys.executable, "-c", PROGRAM, str(ROOT / "dags" / "hudi_compaction.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-4:] == ["False", "False", "s3://b/t", "5.0"]
