"""Runs the requests of a job: those of one table in their order, several tables side by side."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from hudi_core.errors import EXIT_FAILED, HudiError
from hudi_core.request.batch import BatchRequest, JobRequest
from hudi_core.request.outcome import Outcome, outcome_of_all
from hudi_core.request.requests import Request, RunRequest
from hudi_core.request.results import RunResult

log = logging.getLogger(__name__)

INTERRUPTED = "Interrupted"
"""The type in the document of what a signal stopped."""


def run_job(job: JobRequest, run: Callable[[Request], Outcome]) -> Outcome:
    """The outcome of a request, or of all requests of a batch. `run` is called once for each that is in time, in the
    order of a table's requests; after an interruption no further one is started, and those that run are waited for.
    """
    if not isinstance(job, BatchRequest):
        return _run_in_time(job, run)
    stopped = threading.Event()
    outcomes: dict[int, Outcome] = {}
    by_table: dict[str, list[int]] = {}
    for number, request in enumerate(job.requests):
        by_table.setdefault(request.table.rstrip("/"), []).append(number)

    def run_table(numbers: list[int]) -> None:
        for number in numbers:
            if stopped.is_set():
                return
            outcomes[number] = _run_in_time(job.requests[number], run)

    if min(job.at_once, len(by_table)) == 1:
        for numbers in by_table.values():
            run_table(numbers)
    else:
        with ThreadPoolExecutor(job.at_once, thread_name_prefix="table") as pool:
            try:
                list(pool.map(run_table, by_table.values()))
            finally:
                stopped.set()  # before the pool waits for its threads
    return outcome_of_all(job.requests, [outcomes[number] for number in range(len(job.requests))])


def _run_in_time(request: Request, run: Callable[[Request], Outcome]) -> Outcome:
    if isinstance(request, RunRequest) and request.starts_until is not None and time.time() >= request.starts_until:
        return Outcome.of(RunResult((), "the time until which work may be started is over"))
    return run(request)


def outcome_of(run: Callable[[], RunResult], request: Request) -> Outcome:
    """What `run` comes to: its result, or its error, which is logged. An interruption passes."""
    try:
        return Outcome.of(run())
    except HudiError as error:
        log.error("%s", error, exc_info=error.exit_code == EXIT_FAILED)
        return Outcome.of_error(error)
    except Exception as error:  # the last boundary: the result reports a defect, too
        log.exception("%s of %s broke down", request.verb, request.table)
        return Outcome.broken(type(error).__name__, str(error), EXIT_FAILED)


def interrupted(exit_code: int) -> Outcome:
    """That of a job that a signal stopped."""
    return Outcome.broken(INTERRUPTED, "stopped by a signal", exit_code, remedy="run it again")
