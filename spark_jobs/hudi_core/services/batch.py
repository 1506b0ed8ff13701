"""Runs the requests of a job: those of one table in their order, several tables side by side."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from typing import Final

from hudi_core.errors import EXIT_FAILED, HudiError
from hudi_core.request.batch import BatchRequest, JobRequest
from hudi_core.request.outcome import Outcome, outcome_of_all
from hudi_core.request.requests import Request, RunRequest
from hudi_core.request.results import RunResult
from hudi_core.transaction.heartbeat_thread import stop_with

log = logging.getLogger(__name__)

INTERRUPTED = "Interrupted"
"""The type in the document of what a signal stopped."""
_LOOK_SECONDS: Final = 1.0
"""A signal that comes right before the main thread waits for the others does not end that wait."""


class InterruptedBatchError(KeyboardInterrupt):
    """A signal stopped a batch. `outcomes` are those that there are, by the number of their request."""

    def __init__(self, batch: BatchRequest, outcomes: Mapping[int, Outcome]) -> None:
        super().__init__()
        self.batch = batch
        self.outcomes = outcomes


def run_job(job: JobRequest, run: Callable[[Request], Outcome]) -> Outcome:
    """The outcome of a request, or of all requests of a batch. `run` is called once for each that is in time, in the
    order of a table's requests. An interruption of a batch raises InterruptedBatchError: no further request is started,
    waits for locks and other writers end (transaction/heartbeat_thread.py), and the work that goes on is waited for.
    """
    if not isinstance(job, BatchRequest):
        return _run_in_time(job, run)
    outcomes: dict[int, Outcome] = {}
    try:
        _run_tables(job, run, outcomes)
    except KeyboardInterrupt as error:
        raise InterruptedBatchError(job, outcomes) from error
    return outcome_of_all(job.requests, [outcomes[number] for number in range(len(job.requests))])


def _run_tables(job: BatchRequest, run: Callable[[Request], Outcome], outcomes: dict[int, Outcome]) -> None:
    """Puts the outcome of each request into `outcomes`, under its number."""
    stopped = threading.Event()
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
        return
    with ThreadPoolExecutor(job.at_once, "table", initializer=stop_with, initargs=(stopped,)) as pool:
        try:
            for table in [pool.submit(run_table, numbers) for numbers in by_table.values()]:
                while wait([table], _LOOK_SECONDS).not_done:
                    pass
                table.result()
        finally:
            stopped.set()  # before the pool waits for its threads


def _run_in_time(request: Request, run: Callable[[Request], Outcome]) -> Outcome:
    if isinstance(request, RunRequest) and request.starts_until is not None and time.time() >= request.starts_until:
        return Outcome.of(RunResult((), "the time until which work may be started is over"))
    return run(request)


def outcome_of(run: Callable[[], RunResult], request: Request) -> Outcome:
    """What `run` comes to: its result, or its error. A failure is logged with its traceback; bad input and a conflict
    are in the result, and whoever reads that says them. An interruption passes.
    """
    try:
        return Outcome.of(run())
    except HudiError as error:
        if error.exit_code == EXIT_FAILED:
            log.exception("%s", error)
        return Outcome.of_error(error)
    except Exception as error:  # the last boundary: the result reports a defect, too
        log.exception("%s of %s broke down", request.verb, request.table)
        return Outcome.broken(type(error).__name__, str(error), EXIT_FAILED)


def interrupted(error: BaseException | None, exit_code: int) -> Outcome:
    """That of a job that a signal stopped, which raised `error`: the document of an error, of a batch with the
    `results`, too. Requests without an outcome of their own have that error.
    """
    stopped = Outcome.broken(INTERRUPTED, "stopped by a signal", exit_code, remedy="run it again")
    if not isinstance(error, InterruptedBatchError):
        return stopped
    requests = error.batch.requests
    whole = outcome_of_all(requests, [error.outcomes.get(number, stopped) for number in range(len(requests))])
    return replace(stopped, document={**stopped.document, **whole.document})
