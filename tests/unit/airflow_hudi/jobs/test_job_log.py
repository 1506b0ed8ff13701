from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_hudi.jobs.job_log import JobLog


class Lines:
    """A logger that keeps its lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def info(self, message: str, *arguments: Any) -> None:
        self.lines.append(message % arguments if arguments else message)

    debug = info


def test_progress_is_logged_in_words() -> None:
    lines = Lines()
    JobLog(lines).info('HUDI_PROGRESS {"done": 3, "instant": "002", "total": 8}')
    assert lines.lines == ["Instant 002: 3 of 8 units done"]


def test_everything_else_passes_through() -> None:
    lines = Lines()
    log = JobLog(lines)
    log.info("100%s done")
    log.info("Spark-Submit cmd: %s", "x")
    log.debug("quiet")
    log.info("HUDI_PROGRESS torn")
    assert lines.lines == ["100%s done", "Spark-Submit cmd: x", "quiet", "HUDI_PROGRESS torn"]
    assert log.failure is None


@pytest.mark.parametrize(
    ("result", "failure"),
    [
        (
            {"error": {"type": "ConfigError", "message": "no table", "path": "/t", "remedy": "look"}},
            "/t ConfigError: no table (look)",
        ),
        (
            {"error": {"type": "ExecutionError", "message": "broke", "path": None, "remedy": None}},
            "ExecutionError: broke",
        ),
        ({"instants": [{"instant": "002", "error": "held by x"}, {"instant": "003"}]}, "held by x"),
        ({"instants": [{"instant": "002", "state": "completed"}]}, None),
        ({"instants": 7}, None),
    ],
)
def test_the_reason_of_a_failure_is_remembered(result: dict[str, Any], failure: str | None) -> None:
    lines = Lines()
    log = JobLog(lines)
    line = f"HUDI_RESULT {json.dumps(result)}"
    log.info(line)
    assert log.failure == failure
    assert lines.lines == [line]
