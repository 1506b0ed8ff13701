from __future__ import annotations

from typing import Any

from hudi_submit.job_log import JobLog


class Lines:
    """A logger that keeps its lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.loud: list[tuple[str, str]] = []
        """Those above INFO, each with its level."""

    def info(self, message: str, *arguments: Any) -> None:
        self.lines.append(message % arguments if arguments else message)

    def warning(self, message: str, *arguments: Any) -> None:
        self.info(message, *arguments)
        self.loud.append(("warning", self.lines[-1]))

    def error(self, message: str, *arguments: Any) -> None:
        self.info(message, *arguments)
        self.loud.append(("error", self.lines[-1]))

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
    assert log.result(0) is None


def test_lines_that_spark_logs_at_info_are_left_out_and_counted() -> None:
    spark = ["26/11/24 01:30:14 INFO SparkContext: Running Spark version 3.5.3", "26/11/24 01:30:14 DEBUG a: b"]
    kept = [
        "26/11/24 01:30:15 WARN NativeCodeLoader: Unable to load native-hadoop library",
        "26/11/24 01:30:16 ERROR TaskSetManager: Task 0 failed",
        "\tat org.apache.spark.Main",
    ]
    quiet, whole = Lines(), Lines()
    log = JobLog(quiet)
    for line in spark + kept:
        log.info(line)
    log.info("%s", spark[0])
    assert (quiet.lines, log.omitted) == (kept, 3)
    assert quiet.loud == [("warning", kept[0]), ("error", kept[1]), ("error", kept[2])]
    asked = JobLog(whole, spark_log=True)
    for line in spark + kept:
        asked.info(line)
    assert (whole.lines, asked.omitted) == (spark + kept, 0)


def test_lines_of_the_job_come_at_their_own_level_without_its_name_in_them() -> None:
    lines = Lines()
    log = JobLog(lines)
    for line in (
        "WARNING hudi_core.services.runner: clean 1 failed: it is cut",
        "  in the middle",
        "INFO hudi_core.services.lifecycle: compaction 1 completed",
        "  and behind it",
        "2026-11-24 01:30:14,734 ERROR hudi_core.verbs.batch: it broke",
        "Traceback of nobody",
        "ERROR is a word",
    ):
        log.info("%s", line)
    assert lines.lines == [
        "hudi_core.services.runner: clean 1 failed: it is cut",
        "  in the middle",
        "hudi_core.services.lifecycle: compaction 1 completed",
        "  and behind it",
        "hudi_core.verbs.batch: it broke",
        "Traceback of nobody",
        "ERROR is a word",
    ]
    assert lines.loud == [("warning", lines.lines[0]), ("warning", lines.lines[1]), ("error", lines.lines[4])]
