"""Runs DAGs for real, in a process with an Airflow of its own, and shows what they did to a table."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from hudi_core.table import HudiTable
from hudi_core.timeline.timeline import Timeline
from tests.airflow.airflow_forks import RESULT, ROOT, run_program
from tests.support.job_server import job_server
from tests.support.tiers import tiered

SHIPPED = ROOT / "dags"
FOLDER = "AIRFLOW__CORE__DAGS_FOLDER"

engines = pytest.mark.parametrize("engine", tiered(["local", "spark"], ["local"]))


def environment_for(airflow_environment: dict[str, str], table: Path, engine: str | None = None) -> dict[str, str]:
    """With an engine for what names none."""
    fields = {"conn_type": "hudi", "host": str(table.parent), "extra": {"engine": engine} if engine else {}}
    connection = json.dumps(fields)
    return {**airflow_environment, "AIRFLOW_CONN_HUDI_DEFAULT": connection, "AIRFLOW_HUDI_TABLE": table.name}


def timeline(table: Path) -> Timeline:
    return HudiTable.open(str(table)).timeline()


def pending(table: Path, action: str) -> list[str]:
    return [instant.requested_time for instant in timeline(table).pending() if instant.pending_action == action]


def run_dag(
    environment: Mapping[str, str],
    dag_id: str,
    confs: Sequence[Mapping[str, Any]] = ({},),
    *,
    when: Mapping[str, Callable[[], object]] | None = None,
    forked_jobs: bool = True,
) -> tuple[list[dict[str, Any]], str]:
    """The result of each run of one DAG; see run_dags."""
    return run_dags(environment, [(dag_id, conf) for conf in confs], when=when, forked_jobs=forked_jobs)


def run_dags(
    environment: Mapping[str, str],
    runs: Sequence[tuple[str, Mapping[str, Any]]],
    *,
    when: Mapping[str, Callable[[], object]] | None = None,
    forked_jobs: bool = True,
) -> tuple[list[dict[str, Any]], str]:
    """The result of each run (DAG, conf) and the output of `run_dag.py`; each function of `when` is called once its
    text is in the output. With `forked_jobs` the processes beside the tasks are forks of one that has imported their
    code; spark-submit is what it is.
    """
    words = [json.dumps(list(runs)), *([job_server()] if forked_jobs else [])]
    with tempfile.TemporaryDirectory(prefix="dags-") as folder:
        given = dict(environment)
        if given[FOLDER] == str(SHIPPED):  # Airflow parses and stores the whole folder before each run.
            given[FOLDER] = folder
            for name in {dag_id for dag_id, _ in runs}:
                shutil.copy(SHIPPED / f"{name}.py", folder)
        output = run_program(given, "tests.airflow.run_dag", words, when=when)
    results = [json.loads(line.removeprefix(RESULT)) for line in output.splitlines() if line.startswith(RESULT)]
    assert len(results) == len(runs), output[-8000:]
    return results, output
