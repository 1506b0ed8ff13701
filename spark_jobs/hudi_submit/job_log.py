"""Reads a job's result: from its output, on the way into a log, or from the job's file in cluster mode, where the
output is not visible. hudi_core/request/results.py describes the form of both.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hudi_core.errors import ConfigError, CorruptFileError, HudiError, StorageNotFoundError
from hudi_core.request.results import PROGRESS, RESULT, JobResult, Result, job_result_from_json
from hudi_core.verbs.batch import JobRequest, places_of_result

if TYPE_CHECKING:
    from hudi_core.storage.base import Storage

log = logging.getLogger(__name__)

_OF_SPARK = re.compile(r"\d\d/\d\d/\d\d \d\d:\d\d:\d\d (INFO|DEBUG|TRACE|WARN|ERROR|FATAL) ")
"""Matches Spark's own log lines, by the pattern of its default log4j2.properties."""
_OF_JOB = re.compile(r"(?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} )?(DEBUG|INFO|WARNING|ERROR|CRITICAL) (?=[\w.]+: )")
"""Matches lines of our job's log (hudi_cli/job.py, hudi_spark/job.py). Further lines of a message are indented."""
_LEVELS = {"WARN": "warning", "WARNING": "warning", "ERROR": "error", "FATAL": "error", "CRITICAL": "error"}

_APPLICATION = re.compile(r"\b(?:application_\d+_\d+|app-\d{14}-\d{4}|driver-\d{14}-\d{4})\b")
"""Matches names of applications on YARN, and of applications and drivers on Spark's own cluster manager."""
_TRACKING_URL = re.compile(r"tracking URL: (https?://\S+)", re.IGNORECASE)


class JobLog:
    """A logger that passes the job's output on: each line at its own level, and progress in words. It keeps the job's
    result and the place of the job's logs. Spark's lines at INFO are only counted, unless `spark_log` shows them.
    """

    def __init__(self, log: Any, *, spark_log: bool = False) -> None:
        self._log = log
        self._spark_log = spark_log
        self._level = "info"
        self.omitted = 0
        self._result: dict[str, Any] | None = None
        self.application: str | None = None
        self.tracking_url: str | None = None

    def result(self, exit_code: int) -> JobResult | None:
        """Returns the result from the result line of a job that ended with `exit_code`; None without such a line."""
        return None if self._result is None else result_from(self._result, exit_code)

    def info(self, message: object, *arguments: Any, **details: Any) -> None:
        """Logs a line of the job's output, or a message of the code that starts the job."""
        text = message if isinstance(message, str) else ""
        progress = _document(text, PROGRESS)
        if progress is not None:
            self._log.info(
                "Instant %s: %s of %s units done", progress.get("instant"), progress.get("done"), progress.get("total")
            )
            return
        line = str(arguments[0]) if text == "%s" and arguments else text
        result = _document(text, RESULT)
        if result is not None:
            self._result = result
            return
        self._note_application(line)
        of_job, of_spark = _OF_JOB.match(line), _OF_SPARK.match(line)
        if level := of_job or of_spark:
            self._level = _LEVELS.get(level[1], "info")
        elif not line[:1].isspace():
            self._level = "info"
        if of_spark and self._level == "info" and not self._spark_log:
            self.omitted += 1
            return
        write = getattr(self._log, self._level)
        if arguments and text != "%s":
            write(message, *arguments, **details)
        else:
            # A line of output may contain percent signs, but is not a format string.
            write("%s", line[of_job.end() :] if of_job else line or message, **details)

    def _note_application(self, line: str) -> None:
        if name := _APPLICATION.search(line):
            self.application = name[0]
        if url := _TRACKING_URL.search(line):
            self.tracking_url = url[1]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


def _document(line: str, label: str) -> dict[str, Any] | None:
    if not line.startswith(f"{label} "):
        return None
    try:
        document = json.loads(line[len(label) :])
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def result_from(document: dict[str, Any], exit_code: int) -> JobResult:
    """Returns the result that a job reported. A result in another form becomes an error result: the releases differ."""
    try:
        return job_result_from_json(document, exit_code)
    except ConfigError as error:
        return Result.of_error(error)


def delivered_result(job: JobRequest, storage_of: Callable[[str], Storage]) -> dict[str, Any] | None:
    """Reads the result that a job in the cluster wrote at one of its tables; `storage_of` opens the table of an
    address. The result has `exit_code`, because spark-submit has its own exit codes. Returns None if no table has a
    result. If some table could not be read and no other has the result, raises that error.
    """
    failure: HudiError | None = None
    for request in places_of_result(job):
        path = f"{request.results_folder}/{job.result_name}.json"
        try:
            document = json.loads(storage_of(request.table).read(path))
        except StorageNotFoundError:
            continue
        except HudiError as error:
            failure = failure or error
        except ValueError as error:
            raise CorruptFileError(
                "the job's result is not JSON", path=path, remedy="see the driver's log for what it did"
            ) from error
        else:
            return document if isinstance(document, dict) else None
    if failure is not None:
        raise failure
    log.info("The job left no result in %s; the timeline shows whether it succeeded", request.results_folder)
    return None
