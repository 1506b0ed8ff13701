"""Runs the requests of a job: those of one table in their order, several tables side by side."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Final

from hudi_core.errors import EXIT_FAILED, HudiError
from hudi_core.request.results import JobResult, Result
from hudi_core.transaction.heartbeat_thread import stop_with
from hudi_core.verbs.batch import BatchRequest, JobRequest, batch_result
from hudi_core.verbs.request import Request
from hudi_core.verbs.run import RunRequest

log = logging.getLogger(__name__)

INTERRUPTED = "Interrupted"
"""The type in the document of what a signal stopped."""
_LOOK_SECONDS: Final = 1.0
"""A signal that comes right before the main thread waits for the others does not end that wait."""


class InterruptedBatchError(KeyboardInterrupt):
    """A signal stopped a batch. `results` are those that there are, by the number of their request."""

    def __init__(self, batch: BatchRequest, results: Mapping[int, Result]) -> None:
        super().__init__()
        self.batch = batch
        self.results = results


def run_job(job: JobRequest, run: Callable[[Request], Result]) -> JobResult:
    """The result of a request, or of all requests of a batch. `run` is called once for each that is in time, in the
    order of a table's requests. An interruption of a batch raises InterruptedBatchError: no further request is started,
    waits for locks and other writers end (transaction/heartbeat_thread.py), and the work that goes on is waited for.
    """
    if not isinstance(job, BatchRequest):
        return _run_in_time(job, run)
    results: dict[int, Result] = {}
    try:
        _run_tables(job, run, results)
    except KeyboardInterrupt as error:
        raise InterruptedBatchError(job, results) from error
    return batch_result(job, [results[number] for number in range(len(job.requests))])


def _run_tables(job: BatchRequest, run: Callable[[Request], Result], results: dict[int, Result]) -> None:
    """Puts the result of each request into `results`, under its number."""
    stopped = threading.Event()
    by_table: dict[str, list[int]] = {}
    for number, request in enumerate(job.requests):
        by_table.setdefault(request.table.rstrip("/"), []).append(number)

    def run_table(numbers: list[int]) -> None:
        for number in numbers:
            if stopped.is_set():
                return
            results[number] = _run_in_time(job.requests[number], run)

    if min(job.at_once, len(by_table)) == 1:
        for numbers in by_table.values():
            run_table(numbers)
        return
    with ThreadPoolExecutor(job.at_once, "table", initializer=stop_with, initargs=(stopped,)) as pool:
        try:
            for table in [pool.submit(run_table, numbers) for numbers in by_table.values()]:
                while wait([table], _LOOK_SECONDS).not_done:
                    pass
                table.result()
        finally:
            stopped.set()  # before the pool waits for its threads


def _run_in_time(request: Request, run: Callable[[Request], Result]) -> Result:
    if isinstance(request, RunRequest) and request.starts_until is not None and time.time() >= request.starts_until:
        return Result((), "the time until which work may be started is over")
    return run(request)


def result_of(run: Callable[[], Result], request: Request) -> Result:
    """What `run` comes to: its result, or its error. A failure is logged with its traceback; bad input and a conflict
    are in the result, and whoever reads that says them. An interruption passes.
    """
    try:
        return run()
    except HudiError as error:
        if error.exit_code == EXIT_FAILED:
            log.exception("%s", error)
        return Result.of_error(error)
    except Exception as error:  # the last boundary: the result reports a defect, too
        log.exception("%s of %s broke down", request.verb, request.table)
        return Result.broken(type(error).__name__, str(error), EXIT_FAILED)


def interrupted(error: BaseException | None, exit_code: int) -> JobResult:
    """That of a job that a signal stopped, which raised `error`; of a batch with the results that there are. Requests
    without one have that error.
    """
    stopped = Result.broken(INTERRUPTED, "stopped by a signal", exit_code, remedy="run it again")
    if not isinstance(error, InterruptedBatchError):
        return stopped
    numbers = range(len(error.batch.requests))
    return batch_result(error.batch, [error.results.get(number, stopped) for number in numbers], stopped)
