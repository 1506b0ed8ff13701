"""Programs of an Airflow, each in a fork of one process that has imported Airflow, as the imports take seconds. Each
finds an Airflow that nobody has used: its database in AIRFLOW_HOME is empty.

As a program it serves until its standard input ends: it reads a line of JSON for each program, and writes the program's
output and a line with its exit code.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import multiprocessing
import os
import runpy
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from tests.support.line_server import LineServer

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_SECONDS = 600
RESULT = "RESULT "
"""Begins a line of JSON for the caller."""
ENDED = "PROGRAM ENDED "


def run_program(
    environment: Mapping[str, str],
    program: str,
    words: Sequence[str] = (),
    *,
    when: Mapping[str, Callable[[], object]] | None = None,
) -> str:
    """The output of the function `main` of a module, which gets the words, in that environment. It must end well. Each
    function of `when` is called once its text is in the output.
    """
    answer = _server(environment["AIRFLOW_HOME"]).ask(json.dumps([program, list(words), dict(environment)]))
    output: list[str] = []
    waiting = dict(when or {})
    for line in answer:
        if line.startswith(ENDED):
            assert line == f"{ENDED}0\n", "".join([*output, line])[-8000:]
            return "".join(output)
        output.append(line)
        for text in [text for text in waiting if text in line]:
            waiting.pop(text)()
    raise AssertionError("the process of the Airflow has ended: " + "".join(output)[-8000:])


@lru_cache
def _server(home: str) -> LineServer:
    """The process of the Airflow of that home."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW_")}
    environment = {**clean, "AIRFLOW_HOME": home, "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
    return LineServer("tests.airflow.airflow_forks", environment, stderr=subprocess.STDOUT)


def _serve() -> None:
    database = Path(os.environ["AIRFLOW_HOME"]) / "airflow.db"
    if code := _forked(_make_database):
        sys.exit(code)
    empty = database.rename(database.with_name("empty.db"))
    _import_airflow()
    for line in sys.stdin:
        for left in database.parent.glob(f"{database.name}*"):
            left.unlink()
        shutil.copy(empty, database)
        code = _forked(_run, *json.loads(line))
        print(f"\n{ENDED}{code}", flush=True)


def _forked(function: Callable[..., None], *arguments: object) -> int | None:
    """The exit code."""
    process = multiprocessing.get_context("fork").Process(target=function, args=arguments)
    process.start()
    process.join(TIMEOUT_SECONDS)
    if process.is_alive():
        process.kill()
        process.join()
    return process.exitcode


def _make_database() -> None:
    from airflow import settings
    from airflow.utils.db import initdb

    initdb()
    settings.dispose_orm()


def _import_airflow() -> None:
    """Does what every DAG run would do once in its process, and that starts no thread and connects to no database."""
    from airflow.dag_processing.dagbag import DagBag
    from airflow.observability import stats
    from airflow.sdk.execution_time.supervisor import in_process_api_server
    from httpx import ASGITransport, AsyncClient
    from sqlalchemy.orm import configure_mappers

    async def first_request() -> None:
        async with AsyncClient(transport=ASGITransport(in_process_api_server().app), base_url="http://here") as client:
            await client.get("/nothing")

    DagBag(ROOT / "dags")
    configure_mappers()
    stats.incr("forks")  # reads the names of the metrics
    asyncio.run(first_request())  # makes the routes


def _run(program: str, words: Sequence[str], environment: Mapping[str, str]) -> None:
    """Does with the environment what the start of Python and of Airflow does."""
    from airflow import settings

    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    new = [folder for folder in environment["PYTHONPATH"].split(os.pathsep) if folder and folder not in sys.path]
    sys.path[:0] = new
    for folder in new:
        if os.path.isfile(f"{folder}/sitecustomize.py"):
            runpy.run_path(f"{folder}/sitecustomize.py")
    settings.configure_vars()
    importlib.import_module(program).main(*words)


if __name__ == "__main__":
    _serve()
