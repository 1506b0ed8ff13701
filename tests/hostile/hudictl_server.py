"""Runs hudictl for tests, each run a fork with limits: `python -m tests.hostile.hudictl_server` answers each line of
its standard input, a JSON document `[arguments, environment]`, with one of how it ended.

A process of its own, since that of the tests has threads, which a fork would cut off in the middle of their work.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from tests.hostile.forked import Ended, prepare, run_forked
from tests.support.line_server import LineServer

ROOT = Path(__file__).parents[2]


def hudictl(*arguments: str | Path, environment: Mapping[str, str] | None = None) -> Ended:
    """`hudictl` with these arguments, under the limits of forked.py."""
    server = _server()
    words = [[str(argument) for argument in arguments], dict(environment or {})]
    answer = server.ask(json.dumps(words)).readline()
    assert answer, f"the server of hudictl ended with {server.process.wait(60)}"
    return Ended(**json.loads(answer))


def in_environment(**variables: str) -> dict[str, str]:
    """This process's environment with the paths of the sources, and `variables`."""
    paths = os.pathsep.join((str(ROOT / "spark_jobs"), str(ROOT)))
    return {**os.environ, "PYTHONPATH": paths, "RUST_BACKTRACE": "0", "TZ": "UTC", **variables}


@lru_cache(maxsize=1)
def _server() -> LineServer:
    return LineServer("tests.hostile.hudictl_server", in_environment())


def _serve() -> None:
    prepare()
    for line in sys.stdin:
        arguments, environment = json.loads(line)
        answer: dict[str, Any] = run_forked(arguments, environment).to_json()
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    _serve()
