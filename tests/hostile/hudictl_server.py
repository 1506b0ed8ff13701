"""Runs hudictl for tests, each run a fork with limits: `python -m tests.hostile.hudictl_server` answers each line of
its standard input, a JSON document `[arguments, environment]`, with one of how it ended.

A process of its own, since that of the tests has threads, which a fork would cut off in the middle of their work.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from tests.hostile.forked import Ended, prepare, run_forked

ROOT = Path(__file__).parents[2]


def hudictl(*arguments: str | Path, environment: Mapping[str, str] | None = None) -> Ended:
    """`hudictl` with these arguments, under the limits of forked.py."""
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps([[str(argument) for argument in arguments], dict(environment or {})]) + "\n")
    server.stdin.flush()
    answer = server.stdout.readline()
    assert answer, f"the server of hudictl ended with {server.wait(60)}"
    return Ended(**json.loads(answer))


def in_environment(**variables: str) -> dict[str, str]:
    """This process's environment with the paths of the sources, and `variables`."""
    paths = os.pathsep.join((str(ROOT / "spark_jobs"), str(ROOT)))
    return {**os.environ, "PYTHONPATH": paths, "RUST_BACKTRACE": "0", "TZ": "UTC", **variables}


@lru_cache(maxsize=1)
def _server() -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.hostile.hudictl_server"]
    server = subprocess.Popen(
        command, cwd=ROOT, env=in_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(_end, server)
    return server


def _end(server: subprocess.Popen[str]) -> None:
    assert server.stdin is not None
    server.stdin.close()
    server.wait(60)


def _serve() -> None:
    prepare()
    for line in sys.stdin:
        arguments, environment = json.loads(line)
        answer: dict[str, Any] = run_forked(arguments, environment).to_json()
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    _serve()
