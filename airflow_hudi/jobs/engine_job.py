"""A job on the engine that its task names: with `spark` a process beside the task (local_process.py, hudi_cli/job.py)
looks whether there is work before a JVM is started, with `auto` it also does what is small enough
(hudi_core/services/engine_choice.py), with `local` everything.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from airflow_hudi.jobs.job_arguments import parts_of
from airflow_hudi.jobs.local_process import AUTO, LOCAL, LOOK, LocalProcess, missing_wheels, require_wheels
from airflow_hudi.task_fate import is_permanent
from hudi_core.errors import EXIT_BAD_INPUT, EXIT_FAILED, HudiError
from hudi_core.request.results import BatchResult, JobResult, Result
from hudi_core.request.texts import check_choice
from hudi_core.verbs.batch import BatchRequest, JobRequest, batch_result, requests_of

if TYPE_CHECKING:
    from airflow_hudi.jobs.spark_job import SparkJob

log = logging.getLogger(__name__)

SPARK: Final = "spark"
ENGINES: Final = (SPARK, AUTO, LOCAL)
_OUT_OF_REACH = "the job ended well and its result is out of reach: see the driver's log"
_NO_REPORT = "it ended with exit code {code} and did not report why; see its output above"


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """`name` is one of ENGINES; `looks`: whether there may be nothing to do. `credentials` opens the tables beside the
    task, `environment` is added to that process's, and it gets `grace_seconds` to end when it is stopped.
    """

    name: str
    looks: bool
    credentials: Callable[[], Mapping[str, str]]
    environment: Mapping[str, str]
    grace_seconds: int

    def __post_init__(self) -> None:
        """Raises ConfigError for an engine that does not exist, or cannot run here."""
        check_choice("engine", self.name, ENGINES)
        if self.name == LOCAL:
            require_wheels()

    @property
    def mode(self) -> str | None:
        """What the process beside the task does; None without one."""
        if self.name == SPARK and not self.looks:
            return None
        if missing := missing_wheels():
            log.info("No look before the submit: this Python lacks %s ('airflow-hudi[engine]')", ", ".join(missing))
            return None
        return LOOK if self.name == SPARK else self.name


class EngineJob:
    """Runs a request or a batch, any number of times; it decides itself whether it may take an instant over."""

    def __init__(
        self, job: JobRequest, settings: EngineSettings, spark: Callable[[JobRequest], SparkJob], log: Any
    ) -> None:
        self._job = job
        self._settings = settings
        self._spark = spark
        self._log = log
        self._running: LocalProcess | SparkJob | None = None
        self.stopped = False
        """Whether stop was called, perhaps by a signal handler meanwhile."""
        self._result: JobResult | None = None
        self.tracking_url: str | None = None

    @property
    def subject(self) -> str:
        first, *more = requests_of(self._job)
        what = " ".join([*first.verb.split("_"), *filter(None, [getattr(first, "service", None)])])
        return f"{what} of {first.table}" + (f" and {len(more)} more runs" if more else "")

    @property
    def result(self) -> JobResult | None:
        """What the last run reported; None when it did not report."""
        return self._result

    def run(self) -> int:
        """Runs the job where it belongs, and returns its exit code. Raises ConfigError and AirflowException."""
        self._result = None
        mode = self._settings.mode
        if mode is None:
            return self._submit(self._job)
        since = time.time()
        process = LocalProcess(self._log, grace_seconds=self._settings.grace_seconds)
        self._run_now(process)
        code = process.run(self._job, mode, self._settings.credentials(), self._settings.environment)
        result = process.result
        if self.stopped or (result is None and mode != LOOK):
            self._result = result
            return code or EXIT_FAILED
        if result is None:
            self._log.warning("The look %s; submitting the job", _NO_REPORT.format(code=code))
            return self._submit(self._job)
        if isinstance(self._job, BatchRequest):
            if isinstance(result, BatchResult):
                return self._submit_rest(self._job, [item.result for item in result.items], since)
        elif isinstance(result, Result) and result.left is not None:
            self._log.info("Spark runs this: %s", result.left)
            code = self._submit(self._job.rest(since, result))
            if isinstance(self.result, Result):
                self._result = result.then(self.result)
            return code
        self._result = result
        return code

    def stop(self) -> None:
        self.stopped = True
        if self._running is not None:
            self._running.stop()

    def _run_now(self, running: LocalProcess | SparkJob) -> None:
        self._running = running
        if self.stopped:
            running.stop()

    def _submit(self, job: JobRequest) -> int:
        if isinstance(job, BatchRequest):
            return self._submit_rest(job, [Result(left="nothing was looked at")] * len(job.requests), time.time())
        return self._run_on_spark(job)

    def _run_on_spark(self, job: JobRequest) -> int:
        remote = self._spark(job)
        self._run_now(remote)
        code = remote.run()
        self._result = remote.result
        self.tracking_url = remote.tracking_url
        return code

    def _submit_rest(self, batch: BatchRequest, results: list[Result], since: float) -> int:
        """What was left to Spark runs as one job or, where the request is too long, several; joins the results."""
        left = [place for place, result in enumerate(results) if result.left is not None]
        if left:
            for place in left:
                self._log.info("Spark runs %s: %s", batch.requests[place].table, results[place].left)
            requests = tuple(batch.requests[place].rest(since, results[place]) for place in left)
            rest = replace(batch, requests=requests)
            later = [result for part in parts_of(rest) for result in self._results_on_spark(part)]
            for place, result in zip(left, later, strict=True):
                results[place] = results[place].then(result)
        self._result = batch_result(batch, results)
        return self._result.exit_code

    def _results_on_spark(self, batch: BatchRequest) -> list[Result]:
        """One result for each request, also where the job cannot be started."""
        try:
            code = self._run_on_spark(batch)
        except HudiError as error:
            same = Result.of_error(error)
        except Exception as error:  # noqa: BLE001 (what others did must not be lost by it)
            self._log.exception("Spark did not run %d runs", len(batch.requests))
            code = EXIT_BAD_INPUT if is_permanent(error) else EXIT_FAILED
            same = Result.broken(type(error).__name__, str(error), code)
        else:
            return _results_of(batch, self._result, code)
        return [same] * len(batch.requests)


def _results_of(batch: BatchRequest, result: JobResult | None, code: int) -> list[Result]:
    """One result for each request, also where the job as a whole failed or its result was not received."""
    if isinstance(result, BatchResult) and len(result.items) == len(batch.requests):
        return [item.result for item in result.items]
    whole = result.stopped if isinstance(result, BatchResult) else result
    if whole is not None and whole.error is not None:
        same = replace(whole, error_code=code)
    elif code == 0:
        # Which of them did something is not known: none may count as one that had nothing to do.
        same = Result.broken("HudiJobFailed", _OUT_OF_REACH, EXIT_FAILED, remedy="a retry does what is left")
    else:
        same = Result.broken("HudiJobFailed", f"the job failed: {_NO_REPORT.format(code=code)}", code)
    return [same] * len(batch.requests)
