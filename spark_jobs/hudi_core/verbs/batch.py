"""Several requests, of several tables or services, as one job. Runs the requests of a job: those of one table in their
order, several tables side by side. request/results.py has their results.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import KW_ONLY, asdict
from typing import Any, ClassVar, Final, TypeAlias

from hudi_core.errors import EXIT_FAILED, ConfigError, HudiError
from hudi_core.frozen import dataclass
from hudi_core.request.policy import Policy
from hudi_core.request.results import REQUEST_VERSION, BatchItem, BatchResult, JobResult, Result
from hudi_core.request.texts import parse_object
from hudi_core.transaction.heartbeat_thread import stop_with
from hudi_core.verbs.request import Request, parse_request, request_of
from hudi_core.verbs.run import RunRequest

AT_ONCE: Final = 4
MAX_AT_ONCE: Final = 64
_WHAT: Final = "batch request"


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """Requests that one job runs: those of one table one after the other, up to `at_once` tables side by side. The
    failure of one request stops no other. `result_name` is as in a Request (places_of_result).
    """

    verb: ClassVar[str] = "batch"

    requests: tuple[Request, ...]
    _: KW_ONLY
    at_once: int = AT_ONCE
    result_name: str = ""

    def __post_init__(self) -> None:
        """Raises ConfigError for values that mean nothing."""
        if not self.requests:
            raise ConfigError(f"{_WHAT}: there is no request in it", remedy="name a table")
        if not 1 <= self.at_once <= MAX_AT_ONCE:
            raise ConfigError(
                f"{_WHAT}: at_once must be between 1 and {MAX_AT_ONCE}",
                remedy="set it to such a number, or leave it out",
            )

    def to_json(self) -> str:
        """Returns one line of JSON, which parse_job reads. Fields that all requests share are in it once."""
        fields = [{"verb": request.verb, **asdict(request)} for request in self.requests]
        first = fields[0]
        shared = {
            name: first[name] for name in first if all(item.get(name, self) == first[name] for item in fields[1:])
        }
        value = {
            "version": REQUEST_VERSION,
            "verb": self.verb,
            "at_once": self.at_once,
            "result_name": self.result_name,
            "shared": shared,
            "requests": [{name: item[name] for name in item if name not in shared} for item in fields],
        }
        return json.dumps(value, sort_keys=True)


JobRequest: TypeAlias = Request | BatchRequest
"""What one job is asked to do."""


def requests_of(job: JobRequest) -> tuple[Request, ...]:
    return job.requests if isinstance(job, BatchRequest) else (job,)


def requests_of_policy(policy: Policy, table: str, **shared: Any) -> list[RunRequest]:
    """Returns what a policy runs on a table: all pending and due instants. `shared` are fields of each request."""
    options = shared.pop("options", {})
    return [
        RunRequest(
            table,
            service=item.service,
            schedule=True,
            all_pending=True,
            max_minutes=policy.minutes,
            when=item.when,
            options=policy.options_of(item, options),
            **shared,
        )
        for item in policy.services
    ]


def batch_result(batch: BatchRequest, results: Sequence[Result], stopped: Result | None = None) -> BatchResult:
    named = zip(batch.requests, results, strict=True)
    items = (BatchItem(one.table, one.verb, getattr(one, "service", None), result) for one, result in named)
    return BatchResult(tuple(items), stopped)


def places_of_result(job: JobRequest) -> tuple[Request, ...]:
    """Returns each table's first request. A named result is in the first `results_folder` that can be written."""
    first: dict[str, Request] = {}
    for request in requests_of(job):
        first.setdefault(request.table, request)
    return tuple(first.values())


def parse_job(text: str | bytes) -> JobRequest:
    """Returns the request, or the batch, that `to_json` wrote. Raises the ConfigError of parse_request."""
    value = parse_object(text, what=_WHAT)
    if value.get("verb") != BatchRequest.verb:
        return parse_request(text)
    if value.get("version") != REQUEST_VERSION or isinstance(value["version"], bool):
        raise ConfigError(
            f"{_WHAT} has version {value.get('version')}, this release reads {REQUEST_VERSION}",
            remedy="use the same release on both sides",
        )
    unknown = sorted(value.keys() - {"version", "verb", "at_once", "result_name", "shared", "requests"})
    if unknown:
        raise ConfigError(
            f"{_WHAT} has unknown fields: {', '.join(unknown)}", remedy="use the same release on both sides"
        )
    shared, items = value.get("shared", {}), value.get("requests")
    at_once, result_name = value.get("at_once", AT_ONCE), value.get("result_name", "")
    if not isinstance(shared, dict) or not isinstance(items, list) or not all(isinstance(one, dict) for one in items):
        raise ConfigError(f"{_WHAT}: requests must be a list of objects, and shared an object")
    if not isinstance(at_once, int) or isinstance(at_once, bool) or not isinstance(result_name, str):
        raise ConfigError(f"{_WHAT}: at_once must be a whole number, and result_name text")
    found = tuple(request_of({"version": REQUEST_VERSION, **shared, **one}) for one in items)
    return BatchRequest(found, at_once=at_once, result_name=result_name)


log = logging.getLogger(__name__)

INTERRUPTED = "Interrupted"
"""The error type in the document of work that a signal stopped."""
_LOOK_SECONDS: Final = 1.0
"""Seconds of one wait for the others. A signal that comes right before a wait of the main thread does not end it."""


class InterruptedBatchError(KeyboardInterrupt):
    """A signal stopped a batch. `results` are those that there are, by the number of their request."""

    def __init__(self, batch: BatchRequest, results: Mapping[int, Result]) -> None:
        super().__init__()
        self.batch = batch
        self.results = results


def run_job(job: JobRequest, run: Callable[[Request], Result]) -> JobResult:
    """Returns the result of a request, or of all requests of a batch. Calls `run` once for each request that is in
    time. An interruption of a batch raises InterruptedBatchError: no further request starts, and running work ends.
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
    """Returns the result of `run`, or its error, which is logged where it is a failure. An interruption passes."""
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
    """Returns the result of a job that a signal stopped; requests of a batch without a result get it, too."""
    stopped = Result.broken(INTERRUPTED, "stopped by a signal", exit_code, remedy="run it again")
    if not isinstance(error, InterruptedBatchError):
        return stopped
    numbers = range(len(error.batch.requests))
    return batch_result(error.batch, [error.results.get(number, stopped) for number in numbers], stopped)
