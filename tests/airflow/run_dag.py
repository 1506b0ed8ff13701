"""Runs DAG files in this process with `dag.test()`, one after another, and prints what came of each run as one line of
JSON after RESULT.

A param keeps the value of the DAG's earlier run in this process where the conf does not name it: `dag.test()` puts it
into the DAG itself.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from tests.airflow.airflow_forks import RESULT

LINK = "_link_HudiTableLink"
"""The XCom that Airflow makes of a link."""


def main(given: str, jobs: str | None = None) -> None:
    """Prints `{"state", "tasks": {id: state}, "seconds": {id: duration}, "run_seconds", "xcom": {id: value},
    "links": {id: address of the table}}` lines for a JSON array of runs [DAG, conf]. `jobs` is the socket of a server
    of the jobs beside the tasks, tests/support/job_server.py.
    """
    from airflow.dag_processing.dagbag import DagBag

    if jobs is not None:
        from hudi_submit import local_process
        from tests.support.job_server import CLIENT

        local_process.COMMAND = (sys.executable, "-S", "-E", "-c", CLIENT, jobs, "local")  # type: ignore[assignment]
    bag = DagBag()
    if bag.import_errors:
        raise SystemExit(f"import errors: {bag.import_errors}")
    runs: list[tuple[str, dict[str, Any]]] = json.loads(given)
    for dag_id, conf in runs:
        started = time.monotonic()
        run = bag.dags[dag_id].test(run_conf=conf)
        run_seconds = time.monotonic() - started
        tasks = {ti.task_id: ti for ti in run.get_task_instances()}
        xcom = {task_id: ti.xcom_pull(task_ids=task_id) for task_id, ti in tasks.items()}
        result = {
            "state": str(run.state),
            "tasks": {task_id: str(ti.state) for task_id, ti in tasks.items()},
            "seconds": {task_id: ti.duration for task_id, ti in tasks.items()},
            "run_seconds": run_seconds,
            "xcom": xcom,
            "links": {task_id: ti.xcom_pull(task_ids=task_id, key=LINK) for task_id, ti in tasks.items()},
        }
        print(RESULT + json.dumps(result), flush=True)


if __name__ == "__main__":
    from airflow.utils.db import initdb

    initdb()  # of AIRFLOW_HOME, where it is not there
    main(sys.argv[1])
