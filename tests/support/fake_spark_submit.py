"""A stand-in for spark-submit, and what an operator sees of Airflow."""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import stat
import sys
import tempfile
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from hudi_core.verbs.request import Request, parse_request
from hudi_submit import local_process
from hudi_submit.zip import publish_zip
from tests.support.job_server import CLIENT, job_server

# Notes its request, then does to the timeline what the test says.
FAKE_SUBMIT = """#!/bin/sh
for argument; do request="$argument"; done
printf '%s\\n' "$request" >> "$FAKE_OUTPUT"
FAKE_REQUEST="$request" sh -c "$FAKE_ACTION"
"""


RENDERED: dict[str, Any] = {"_airflow_from_mapped": True}
"""For an operator whose arguments are known when it runs, as Airflow makes a mapped task in the worker: literals are
checked by then, not when it is made.
"""


@dataclass
class Ti:
    """What the operators read of a task instance."""

    dag_id: str = "maintenance"
    task_id: str = "compact"
    run_id: str = "r1"
    map_index: int = -1
    try_number: int = 2
    pushed: dict[str, Any] = field(default_factory=dict)

    def xcom_push(self, key: str, value: Any) -> None:
        self.pushed[key] = value


@dataclass
class Store:
    """A task state store."""

    values: dict[str, Any] = field(default_factory=dict)

    def get(self, key: str) -> Any:
        return self.values.get(key)

    def set(self, key: str, value: Any) -> None:
        self.values[key] = value

    def delete(self, key: str) -> None:
        self.values.pop(key, None)


def context(store: Store | None = None) -> Any:
    return {"ti": Ti(), "task_state_store": store}


@lru_cache(maxsize=1)
def job_cache() -> Path:
    """A folder for job zips, one for all tests of this process: to make a zip takes half a second."""
    folder = tempfile.mkdtemp(prefix="job-cache-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


@lru_cache(maxsize=1)
def job_zip() -> Path:
    """The zip of all jobs that the stand-in is given."""
    return publish_zip(job_cache())


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, connection: str) -> Path:
    """Puts the stand-in on PATH; returns the file of requests."""
    binary = folder / "bin" / "spark-submit"
    binary.parent.mkdir()
    binary.write_text(FAKE_SUBMIT)
    binary.chmod(binary.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{binary.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_OUTPUT", str(folder / "requests"))
    monkeypatch.setattr("airflow_hudi.jobs.spark_job.publish_zip", job_zip)
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", connection)
    return folder / "requests"


def requests(output: Path) -> list[Request]:
    return [parse_request(line) for line in output.read_text().splitlines()] if output.exists() else []


def quick_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process beside a task as a fork of one that has imported its code."""
    monkeypatch.setattr(local_process, "COMMAND", (sys.executable, "-S", "-E", "-c", CLIENT, job_server(), "local"))


def real_job(monkeypatch: pytest.MonkeyPatch, *, before: str = "", after: str = "", lost_race: bool = False) -> None:
    """The job's own code without Spark, on the local engine; `before` and `after` are shell commands around it. With
    `lost_race` another process runs the same request right before.
    """
    job = f"{sys.executable} -S -E -c {shlex.quote(CLIENT)} {job_server()} spark"
    before = f"{job} > /dev/null" if lost_race else before
    monkeypatch.setenv("FAKE_ACTION", f"{before or ':'}; {job}; code=$?; {after or ':'}; exit $code")
