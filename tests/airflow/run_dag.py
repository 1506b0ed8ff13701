"""Runs a DAG file in this process with `dag.test()`, once for each conf, and prints what came of each run as one line of JSON after RESULT."""

from __future__ import annotations

import json
import sys
from typing import Any


def main(dag_id: str, confs: list[dict[str, Any]]) -> None:
    """Prints `{"state", "tasks": {id: state}, "xcom": {id: value}}` lines. The database of AIRFLOW_HOME is made when it is not there."""
    from airflow.utils.db import initdb

    initdb()
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag()
    if bag.import_errors:
        raise SystemExit(f"import errors: {bag.import_errors}")
    for conf in confs:
        run = bag.dags[dag_id].test(run_conf=conf)
        tasks = {ti.task_id: ti for ti in run.get_task_instances()}
        xcom = {task_id: ti.xcom_pull(task_ids=task_id) for task_id, ti in tasks.items()}
        result = {"state": str(run.state), "tasks": {task_id: str(ti.state) for task_id, ti in tasks.items()}, "xcom": xcom}
        print("RESULT", json.dumps(result), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
