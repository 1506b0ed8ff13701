"""Runs a job on its task's engine. A process beside the task (hudi_submit/local_process.py) first looks for work,
before a JVM starts. With `auto` it also runs small work (hudi_core/services/engine_choice.py), with `local` all.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import Any

from airflow_hudi.jobs.spark_job import JobSettings, SparkJob
from airflow_hudi.task_fate import is_permanent
from hudi_core.config.engine_config import ENGINES, SPARK, Mode
from hudi_core.errors import EXIT_BAD_INPUT, EXIT_FAILED, HudiError
from hudi_core.request.results import BatchResult, JobResult, Result
from hudi_core.request.texts import check_choice
from hudi_core.verbs.batch import BatchRequest, JobRequest, batch_result, requests_of
from hudi_submit.local_process import LocalProcess, StartedJob, missing_wheels, require_wheels
from hudi_submit.spark_submit import parts_of

log = logging.getLogger(__name__)

_OUT_OF_REACH = "the job ended well and its result is out of reach: see the driver's log"
_NO_REPORT = "it ended with exit code {code} and did not report why; see its output above"


class EngineJob:
    """Runs a request or a batch, any number of times. The job itself decides whether it may take over an instant.
    `looks` says whether there may be nothing to do. Raises ConfigError for an engine that does not exist, or cannot run
    here.
    """

    def __init__(self, job: JobRequest, settings: JobSettings, log: Any, *, looks: bool = True) -> None:
        check_choice("engine", settings.engine, ENGINES)
        if settings.engine == Mode.LOCAL.value:
            require_wheels()
        self._job = job
        self._settings = settings
        self._log = log
        self._looks = looks
        self._running: StartedJob | None = None
        self.stopped = False
        """Whether stop was called. A signal handler may call stop at any time."""
        self.result: JobResult | None = None
        """The result that the last run reported, or None if it did not report."""
        self.tracking_url: str | None = None

    @property
    def subject(self) -> str:
        first, *more = requests_of(self._job)
        what = " ".join([*first.verb.split("_"), *filter(None, [getattr(first, "service", None)])])
        return f"{what} of {first.table}" + (f" and {len(more)} more runs" if more else "")

    @property
    def _mode(self) -> Mode | None:
        """The mode of the process beside the task; None without such a process."""
        if self._settings.engine == SPARK and not self._looks:
            return None
        if missing := missing_wheels():
            log.info("No look before the submit: this Python lacks %s (airflow-hudi-engine)", ", ".join(missing))
            return None
        return Mode.LOOK if self._settings.engine == SPARK else Mode(self._settings.engine)

    def run(self) -> int:
        """Runs the job on its engine, and returns the exit code. Raises ConfigError and AirflowException."""
        mode, since = self._mode, time.time()
        if mode is None:
            return self._submit()
        code = self._run(LocalProcess(self._job, mode, self._settings, self._log))
        result = self.result
        if self.stopped or (result is None and mode is not Mode.LOOK):
            return code or EXIT_FAILED
        if result is None:
            self._log.warning("The look %s; submitting the job", _NO_REPORT.format(code=code))
            return self._submit()
        if isinstance(self._job, BatchRequest):
            if isinstance(result, BatchResult):
                return self._submit_rest(self._job, [item.result for item in result.items], since)
        elif isinstance(result, Result) and result.left is not None:
            self._log.info("Spark runs this: %s", result.left)
            code = self._run(SparkJob(self._job.rest(since, result), self._settings))
            if isinstance(self.result, Result):
                self.result = result.then(self.result)
        return code

    def stop(self) -> None:
        self.stopped = True
        if self._running is not None:
            self._running.stop()

    def _run(self, started: StartedJob) -> int:
        self.result, self._running = None, started
        if self.stopped:
            started.stop()
        code = started.run()
        self.result = started.result
        self.tracking_url = started.tracking_url or self.tracking_url
        return code

    def _submit(self) -> int:
        if isinstance(self._job, BatchRequest):
            unseen = [Result(left="nothing was looked at")] * len(self._job.requests)
            return self._submit_rest(self._job, unseen, time.time())
        return self._run(SparkJob(self._job, self._settings))

    def _submit_rest(self, batch: BatchRequest, results: list[Result], since: float) -> int:
        """Runs the requests that were left to Spark, as one job, or as several if the request is too long. Joins the
        results, and returns the exit code.
        """
        left = [place for place, result in enumerate(results) if result.left is not None]
        if left:
            for place in left:
                self._log.info("Spark runs %s: %s", batch.requests[place].table, results[place].left)
            requests = tuple(batch.requests[place].rest(since, results[place]) for place in left)
            rest = replace(batch, requests=requests)
            later = [result for part in parts_of(rest) for result in self._results_on_spark(part)]
            for place, result in zip(left, later, strict=True):
                results[place] = results[place].then(result)
        self.result = batch_result(batch, results)
        return self.result.exit_code

    def _results_on_spark(self, batch: BatchRequest) -> list[Result]:
        """Runs a batch on Spark and returns one result for each request, also if the job cannot be started."""
        try:
            code = self._run(SparkJob(batch, self._settings))
        except HudiError as error:
            same = Result.of_error(error)
        except Exception as error:  # noqa: BLE001 (the results of the other jobs must not be lost)
            self._log.exception("Spark did not run %d runs", len(batch.requests))
            code = EXIT_BAD_INPUT if is_permanent(error) else EXIT_FAILED
            same = Result.broken(type(error).__name__, str(error), code)
        else:
            return _results_of(batch, self.result, code)
        return [same] * len(batch.requests)


def _results_of(batch: BatchRequest, result: JobResult | None, code: int) -> list[Result]:
    """Returns one result for each request, also if the whole job failed or its result was not received."""
    if isinstance(result, BatchResult) and len(result.items) == len(batch.requests):
        return [item.result for item in result.items]
    whole = result.stopped if isinstance(result, BatchResult) else result
    if whole is not None and whole.error is not None:
        same = replace(whole, error_code=code)
    elif code == 0:
        # Nobody knows which requests did something: none may count as a request with nothing to do.
        same = Result.broken("HudiJobFailed", _OUT_OF_REACH, EXIT_FAILED, remedy="a retry does what is left")
    else:
        same = Result.broken("HudiJobFailed", f"the job failed: {_NO_REPORT.format(code=code)}", code)
    return [same] * len(batch.requests)
