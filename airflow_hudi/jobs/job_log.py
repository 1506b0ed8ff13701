"""Reads what our job prints out of its output, on its way into the task's log."""

from __future__ import annotations

import json
import re
from typing import Any

from airflow_hudi.permanent_errors import in_words
from hudi_core.request.outcome import error_from_json

_PROGRESS = "HUDI_PROGRESS "
_RESULT = "HUDI_RESULT "
_OF_SPARK = re.compile(r"\d\d/\d\d/\d\d \d\d:\d\d:\d\d (INFO|DEBUG|TRACE|WARN|ERROR|FATAL) ")
"""Spark's own lines, by the pattern of its default log4j2.properties."""
_OF_JOB = re.compile(r"(?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} )?(DEBUG|INFO|WARNING|ERROR|CRITICAL) (?=[\w.]+: )")
"""Lines of our job's log (hudi_cli/job.py, hudi_spark/job.py). Further lines of a message are indented."""
_LEVELS = {"WARN": "warning", "WARNING": "warning", "ERROR": "error", "FATAL": "error", "CRITICAL": "error"}
"""By the word in a line, the method that logs it; all others are INFO."""

_APPLICATION = re.compile(r"\b(?:application_\d+_\d+|app-\d{14}-\d{4}|driver-\d{14}-\d{4})\b")
"""Names of applications on YARN, and of applications and drivers on Spark's own cluster manager."""
_TRACKING_URL = re.compile(r"tracking URL: (https?://\S+)", re.IGNORECASE)


class JobLog:
    """A logger that passes everything on, each line at its own level and progress in words, and keeps the job's result,
    which is not for people, and where its logs are.

    Lines that Spark itself logs at INFO are left out and counted, unless `spark_log` asks for them.
    """

    def __init__(self, log: Any, *, spark_log: bool = False) -> None:
        self._log = log
        self._spark_log = spark_log
        self._level = "info"
        """That of the last line, which its further lines have, too."""
        self.omitted = 0
        """Lines that were left out."""
        self.result: dict[str, Any] | None = None
        """What the job's result line holds; None without such a line."""
        self.application: str | None = None
        """The cluster manager's name of the application; None when Spark did not print it."""
        self.tracking_url: str | None = None
        """Where the cluster manager shows the application; None when Spark did not print it."""

    @property
    def failure(self) -> str | None:
        """The failure in the job's result; None when it has none."""
        return None if self.result is None else failure_of(self.result)

    def info(self, message: object, *arguments: Any, **details: Any) -> None:
        """Logs a line of output, or a message of the hook's own."""
        text = message if isinstance(message, str) else ""
        progress = _document(text, _PROGRESS)
        if progress is not None:
            self._log.info(
                "Instant %s: %s of %s units done", progress.get("instant"), progress.get("done"), progress.get("total")
            )
            return
        line = str(arguments[0]) if text == "%s" and arguments else text
        result = _document(text, _RESULT)
        if result is not None:
            self.result = result
            return
        self._note_application(line)
        of_job, of_spark = _OF_JOB.match(line), _OF_SPARK.match(line)
        if found := of_job or of_spark:
            self._level = _LEVELS.get(found[1], "info")
        elif not line[:1].isspace():
            self._level = "info"
        if of_spark and self._level == "info" and not self._spark_log:
            self.omitted += 1
            return
        write = getattr(self._log, self._level)
        if arguments and text != "%s":
            write(message, *arguments, **details)
        else:
            # A line of output is no format string, whatever percent signs it has.
            write("%s", line[of_job.end() :] if of_job else line or message, **details)

    def _note_application(self, line: str) -> None:
        if found := _APPLICATION.search(line):
            self.application = found[0]
        if found := _TRACKING_URL.search(line):
            self.tracking_url = found[1]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


def _document(line: str, label: str) -> dict[str, Any] | None:
    if not line.startswith(label):
        return None
    try:
        found = json.loads(line[len(label) :])
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def failure_of(result: dict[str, Any]) -> str | None:
    """The failures in a result, in one line; None when there are none."""
    error = result.get("error")
    if isinstance(error, dict):
        return in_words(error_from_json(error))
    instants = result.get("instants")
    errors = [entry.get("error") for entry in instants if isinstance(entry, dict)] if isinstance(instants, list) else []
    return "; ".join(str(error) for error in errors if error) or None
