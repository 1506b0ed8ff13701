"""The job over Spark Connect, run by the real BashOperator as far as it gets without executors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk.exceptions import AirflowException

from airflow_hudi.submission.spark_connect import REQUEST as VARIABLE
from airflow_hudi.submission.spark_connect import main, spark_connect_arguments
from hudi_core.errors import ConfigError
from hudi_core.verbs.run import RunRequest
from hudi_spark.job import read_request
from hudi_submit.zip import entry_file, publish_zip
from tests.support.artifact_server import artifact_server
from tests.support.golden_data import GoldenCase
from tests.support.submissions import BATCH, RENDERED_BATCH, REQUEST, RUN_ID, long_request

ROOT = Path(__file__).parents[4]
ENTRY = [sys.executable, str(entry_file())]


@pytest.fixture(autouse=True)
def _packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(ROOT / "spark_jobs")]))
    monkeypatch.delenv("SPARK_REMOTE", raising=False)


def run(arguments: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """The result line, which is the last that the process prints."""
    operator = BashOperator(task_id="submit", **arguments)
    operator.render_template_fields(context)
    line = operator.execute(context)
    assert line.startswith("HUDI_RESULT ")
    return dict(json.loads(line.removeprefix("HUDI_RESULT ")))


@pytest.mark.slow
def test_the_driver_runs_beside_the_task_and_the_server_gets_the_zip(
    golden: Callable[[str, str], GoldenCase],
) -> None:
    job = RunRequest("{{ results['table'] }}", "rollback", owner="airflow:{{ run_id }}")
    with artifact_server() as server:
        given = spark_connect_arguments(job, remote="{{ results['server'] }}/;user_id={{ results['user'] }}")
        context = {
            "run_id": RUN_ID,
            "results": {
                "table": str(golden("8", "mor_basic").table),
                "server": server.address,
                "user": "airflow",
            },
        }
        result = run(given, context)
    assert result["instants"] == []
    assert result["reason"]
    job_zip = publish_zip()
    assert server.artifacts == {f"pyfiles/{job_zip.name}": job_zip.read_bytes()}


@pytest.mark.slow
def test_a_server_that_refuses_is_reported_as_the_job_does() -> None:
    command = [*ENTRY, "--py-files", str(publish_zip()), "--request", RunRequest("/gone", "rollback").to_json()]
    with artifact_server(refuses="no artifacts today") as server:
        environment = {**os.environ, "SPARK_REMOTE": server.address}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("HUDI_RESULT ")]
    error = json.loads(line.removeprefix("HUDI_RESULT "))["error"]
    assert done.returncode == 1
    assert sorted(error) == ["message", "path", "remedy", "type"]
    assert "no artifacts today" in error["message"]


@pytest.mark.conformance
def test_bad_input_fails_the_task(tmp_path: Path) -> None:
    with artifact_server() as server:
        given = spark_connect_arguments(RunRequest(str(tmp_path), "rollback"), remote=server.address)
        with pytest.raises(AirflowException, match="exit code 2"):
            run(given, {})


@pytest.mark.slow
def test_without_a_remote_main_takes_no_zip() -> None:
    done = subprocess.run(
        [*ENTRY, "--py-files", "jobs.zip", "--request", "{}"], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 2
    assert "unrecognized arguments: --py-files" in done.stdout


def test_without_a_request_nothing_is_started(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(SystemExit) as end:
        main()
    assert (end.value.code, capsys.readouterr().err) == (2, f"the environment has no {VARIABLE}\n")


def test_what_a_template_becomes_is_no_part_of_a_command() -> None:
    given = spark_connect_arguments(BATCH, remote="sc://spark:15002")
    operator = BashOperator(task_id="submit", **given)
    operator.render_template_fields({"run_id": f"{RUN_ID}'; touch here; '"})
    assert operator.bash_command == f"exec {sys.executable} -m airflow_hudi.submission.spark_connect"
    operator = BashOperator(task_id="submit", **given)
    operator.render_template_fields({"run_id": RUN_ID})
    assert operator.env is not None
    assert read_request(["--request", operator.env[VARIABLE]]) == RENDERED_BATCH
    assert operator.env["SPARK_REMOTE"] == "sc://spark:15002"
    assert operator.append_env


@pytest.mark.parametrize(
    ("remote", "message"),
    [
        ("sc://spark:15002/;use_ssl=true;token=hunter2", "holds a token"),
        ("sc://user:hunter2@spark:15002", "must not hold secrets"),
        ("spark://spark:7077", "no address of a Spark Connect server"),
        ("local[2]", "no address of a Spark Connect server"),
    ],
)
def test_what_is_no_address_is_refused(remote: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        spark_connect_arguments(REQUEST, remote=remote)
    assert "hunter2" not in str(caught.value)


def test_what_does_not_fit_an_argument_is_refused() -> None:
    with pytest.raises(ConfigError, match="longer than an argument"):
        spark_connect_arguments(long_request(400_000), remote="sc://spark:15002")
