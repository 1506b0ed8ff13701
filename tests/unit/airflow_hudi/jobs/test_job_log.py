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


def test_lines_that_spark_logs_at_info_are_left_out_and_counted() -> None:
    spark = ["26/11/24 01:30:14 INFO SparkContext: Running Spark version 3.5.3", "26/11/24 01:30:14 DEBUG a: b"]
    kept = [
        "26/11/24 01:30:15 WARN NativeCodeLoader: Unable to load native-hadoop library",
        "26/11/24 01:30:16 ERROR TaskSetManager: Task 0 failed",
        "2026-11-24 01:30:14,734 INFO hudi_core.services.lifecycle: compaction 1 completed",
    ]
    quiet, whole = Lines(), Lines()
    log = JobLog(quiet)
    for line in spark + kept:
        log.info(line)
    log.info("%s", spark[0])
    assert (quiet.lines, log.omitted) == (kept, 3)
    asked = JobLog(whole, spark_log=True)
    for line in spark + kept:
        asked.info(line)
    assert (whole.lines, asked.omitted) == (spark + kept, 0)


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
