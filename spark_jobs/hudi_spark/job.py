"""The Spark job: a request or a batch in, progress lines and one result line out, hudictl's exit codes."""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from hudi_core.config.table_config import PROPERTIES
from hudi_core.engine.protocol import Json
from hudi_core.errors import EXIT_FAILED, ConfigError, HudiError, LogFormatter
from hudi_core.request.batch import BatchRequest, JobRequest, parse_job, places_of_result
from hudi_core.request.outcome import PROGRESS, RESULT, Outcome
from hudi_core.request.requests import ProbeStoreRequest, Request
from hudi_core.request.results import RunResult
from hudi_core.request.secrets import merge_storage_options
from hudi_core.services.batch import interrupted, outcome_of, run_job
from hudi_core.services.verbs import probe_store
from hudi_core.storage.registry import open_storage
from hudi_core.table import HudiTable
from hudi_spark.engine import SessionEngine
from hudi_spark.signals import Termination

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

_KEPT_SECONDS = 7 * 86_400


def main(arguments: Sequence[str]) -> int:
    """Runs the request in `arguments` in this process's Spark session and returns the exit code.

    Prints `HUDI_PROGRESS {"instant", "done", "total"}` lines and at last `HUDI_RESULT {…}`: a RunResult, or `{"error":
    {"type", "message", "path", "remedy"}}` when the run as a whole failed; of a batch `{"results": […]}`, one such
    object for each request, with `error` when a signal stopped it. A job that names a result gets that document as a
    file, too.
    """
    termination = Termination()
    termination.install()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("hudi_core").setLevel(logging.INFO)
    try:
        job = read_request(arguments)
    except HudiError as error:
        log.error("%s", error)
        _print(RESULT, Outcome.of_error(error).to_json())
        return error.exit_code
    outcome = _outcome(job, termination)
    _print(RESULT, outcome.to_json())
    if job.result_name:
        deliver(job, outcome)
    return outcome.exit_code


def _outcome(job: JobRequest, termination: Termination) -> Outcome:
    """That of the job; after a signal its exit code says so."""
    try:
        outcome = run_requests(job, submitted_session)
    except KeyboardInterrupt as error:
        return interrupted(error, termination.exit_code)
    except Exception as error:  # of the session's end
        log.exception("the job broke down")
        outcome = Outcome.broken(type(error).__name__, str(error), EXIT_FAILED)
    return replace(outcome, exit_code=termination.exit_code) if termination.happened and outcome.exit_code else outcome


def run_requests(job: JobRequest, open_session: Callable[[], SparkSession]) -> Outcome:
    """Runs the requests of a job in one session. Tables are opened first, so that bad input is refused before executors
    are requested.
    """
    with SessionEngine(open_session, log.warning) as engine:
        if isinstance(job, Request):
            return outcome_of(lambda: _run(job, engine), job)
        # Before the threads of the tables, which share it.
        outcome = outcome_of(lambda: _opened(engine, job), job.requests[0])
        if outcome.exit_code:
            return outcome
        return run_job(job, lambda request: outcome_of(lambda: _run(request, engine), request))


def _opened(engine: SessionEngine, batch: BatchRequest) -> RunResult:
    if any(request.needs_executors for request in batch.requests):
        engine.start()
    else:
        engine.open()
    return RunResult()


def _run(request: Request, engine: SessionEngine) -> RunResult:
    storage_options = merge_storage_options(request.storage_options, request.storage_options_file)
    if isinstance(request, ProbeStoreRequest):
        storage = open_storage(request.table, storage_options)
        engine.open()
        return probe_store(storage, request)
    table = HudiTable.open(request.table, storage_options, request.options)
    # A session always: in YARN's cluster mode a driver that ends without one counts as failed.
    if request.needs_executors:
        engine.start()
    else:
        engine.open()
    return table.run(engine.with_zone(request) if request.needs_executors else request, engine, progress=_report)


def deliver(job: JobRequest, outcome: Outcome) -> None:
    """Writes the result where the job says, of a batch at the first table where that can be done, and removes results
    there that were not fetched for a week.

    The document has `exit_code` beside the members of the result line. A failure of the storage is logged: the timeline
    shows success.
    """
    text = json.dumps({**outcome.to_json(), "exit_code": outcome.exit_code}, sort_keys=True).encode()
    for request in places_of_result(job):
        try:
            storage = open_storage(
                request.table, merge_storage_options(request.storage_options, request.storage_options_file)
            )
            if request.needs_table and not storage.exists(PROPERTIES):
                continue  # no table: nothing is put there
            old = time.time() - _KEPT_SECONDS
            for info in storage.list_files(request.results_folder):
                if info.modified < old:
                    storage.delete(info.path)
            storage.write(f"{request.results_folder}/{job.result_name}.json", text)
            return
        except HudiError:
            log.exception("the result could not be written")


def read_request(arguments: Sequence[str]) -> JobRequest:
    """`--request JSON`, or `--request-file` with a path or URI that the storage layer reads. Raises ConfigError."""
    parser = _Parser(prog="main.py", add_help=False)
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--request")
    group.add_argument("--request-file")
    parsed = parser.parse_args(list(arguments))
    if parsed.request is not None:
        return parse_job(parsed.request)
    folder, _, name = parsed.request_file.rpartition("/")
    if not name:
        raise ConfigError(
            "--request-file names no file", path=parsed.request_file, remedy="give the path or the URI of a file"
        )
    return parse_job(open_storage(folder or ("/" if parsed.request_file.startswith("/") else ".")).read(name))


def submitted_session() -> SparkSession:
    """The session of the spark-submit that started this process."""
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate()


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ConfigError(message, remedy="give --request JSON or --request-file FILE")


def _report(instant: str, done: int, total: int) -> None:
    _print(PROGRESS, {"instant": instant, "done": done, "total": total})


def _print(label: str, document: Json) -> None:
    sys.stdout.write(f"{label} {json.dumps(document, sort_keys=True)}\n")
    sys.stdout.flush()
