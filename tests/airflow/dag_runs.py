"""Runs DAGs for real, in a process with an Airflow of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.airflow.conftest import ROOT

TIMEOUT_SECONDS = 600


def run_dag(
    environment: Mapping[str, str],
    dag_id: str,
    confs: Sequence[Mapping[str, Any]] = ({},),
    *,
    when: Mapping[str, Callable[[], object]] | None = None,
) -> tuple[list[dict[str, Any]], str]:
    """The result of each run of one DAG; see run_dags."""
    return run_dags(environment, [(dag_id, conf) for conf in confs], when=when)


def run_dags(
    environment: Mapping[str, str],
    runs: Sequence[tuple[str, Mapping[str, Any]]],
    *,
    when: Mapping[str, Callable[[], object]] | None = None,
) -> tuple[list[dict[str, Any]], str]:
    """The result of each run (DAG, conf) and the output of `run_dag.py`; each function of `when` is called once its
    text is in the output.
    """
    command = [sys.executable, "-m", "tests.airflow.run_dag", json.dumps(list(runs))]
    output: list[str] = []
    deadline = time.monotonic() + TIMEOUT_SECONDS
    waiting = dict(when or {})
    with subprocess.Popen(
        command, cwd=ROOT, env=dict(environment), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            output.append(line)
            for text in [text for text in waiting if text in line]:
                waiting.pop(text)()
            if time.monotonic() > deadline:
                process.kill()
    text = "".join(output)
    results = [json.loads(line.removeprefix("RESULT ")) for line in output if line.startswith("RESULT ")]
    assert process.returncode == 0, text[-8000:]
    assert len(results) == len(runs), text[-8000:]
    return results, text
