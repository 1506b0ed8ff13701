"""The Spark job: runs a request or batch, prints progress lines and a result line, and has hudictl's exit codes."""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn

from hudi_core.config.table_config import PROPERTIES
from hudi_core.driver import run_on_target
from hudi_core.errors import EXIT_FAILED, ConfigError, HudiError
from hudi_core.request.results import RESULT, JobResult, Result, print_line, print_progress, result_line
from hudi_core.request.secrets import merge_storage_options
from hudi_core.storage.registry import open_storage
from hudi_core.table import HudiTable
from hudi_core.verbs.batch import (
    BatchRequest,
    JobRequest,
    interrupted,
    parse_job,
    places_of_result,
    requests_of,
    result_of,
    run_job,
)
from hudi_core.verbs.request import RESULTS, Request
from hudi_spark.engine import SessionEngine
from hudi_spark.signals import Termination, start_process

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

_KEPT_SECONDS = 7 * 86_400


def main(arguments: Sequence[str]) -> int:
    """Runs the request in `arguments` in this process's Spark session and returns the exit code.

    Prints `HUDI_PROGRESS {"instant", "done", "total"}` lines, and at the end `HUDI_RESULT {…}`: a Result, or `{"error":
    {"type", "message", "path", "remedy"}}` if the whole run failed. For a batch it is `{"results": […]}`, with one such
    object for each request, and with `error` if a signal stopped the batch. If the job names a result, the document is
    also written to a file.
    """
    termination = start_process(sys.stderr, "%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        job = read_request(arguments)
    except HudiError as error:
        log.error("%s", error)
        print_line(RESULT, result_line(Result.of_error(error)))
        return error.exit_code
    result = _result(job, termination)
    exit_code = termination.exit_code if termination.happened and result.exit_code else result.exit_code
    print_line(RESULT, result_line(result))
    if job.result_name:
        deliver(job, result, exit_code)
    return exit_code


def _result(job: JobRequest, termination: Termination) -> JobResult:
    try:
        return run_requests(job, submitted_session)
    except KeyboardInterrupt as error:
        return interrupted(error, termination.exit_code)
    except Exception as error:  # The end of the session failed.
        log.exception("the job broke down")
        return Result.broken(type(error).__name__, str(error), EXIT_FAILED)


def run_requests(job: JobRequest, open_session: Callable[[], SparkSession]) -> JobResult:
    """Runs the requests of a job in one session. A single request opens its table before the session, so that bad input
    is refused before executors are requested.
    """
    is_alone = not any(request.asks_session for request in requests_of(job))
    with SessionEngine(open_session, log.warning, is_alone=is_alone) as engine:
        if isinstance(job, Request):
            return result_of(lambda: _run(job, engine), job)
        # The session is opened before the threads of the tables, which share it.
        opened = result_of(lambda: _opened(engine, job), job.requests[0])
        if opened.exit_code:
            return opened
        return run_job(job, lambda request: result_of(lambda: _run(request, engine), request))


def _opened(engine: SessionEngine, batch: BatchRequest) -> Result:
    if any(request.needs_executors for request in batch.requests):
        engine.start()
    else:
        engine.open()
    return Result()


def _run(request: Request, engine: SessionEngine) -> Result:
    def run(table: HudiTable) -> Result:
        # Always open a session: in YARN's cluster mode, a driver that ends without a session counts as failed.
        if not request.needs_executors:
            engine.open()
            return table.run(request, engine, progress=print_progress)
        engine.start()
        return table.run(engine.with_zone(request), engine, progress=print_progress)

    if not request.needs_table:
        engine.open()
    return run_on_target(request, merge_storage_options(request.storage_options, request.storage_options_file), run)


def deliver(job: JobRequest, result: JobResult, exit_code: int) -> None:
    """Writes the result to the file that the job names, and deletes results there that are older than a week. For a
    batch, the file is at the first table where the write succeeds.

    The document has the members of the result line and `exit_code`. A failure of the storage is only logged, because
    the timeline shows whether the job succeeded.
    """
    text = json.dumps({**result_line(result), "exit_code": exit_code}, sort_keys=True).encode()
    for request in places_of_result(job):
        try:
            storage = open_storage(
                request.table, merge_storage_options(request.storage_options, request.storage_options_file)
            )
            if request.results_folder == RESULTS and not storage.exists(PROPERTIES):
                continue  # There is no table, so nothing is written there.
            old = time.time() - _KEPT_SECONDS
            for info in storage.list_files(request.results_folder):
                if info.modified < old:
                    storage.delete(info.path)
            storage.write(f"{request.results_folder}/{job.result_name}.json", text)
            return
        except HudiError:
            log.exception("the result could not be written")


def read_request(arguments: Sequence[str]) -> JobRequest:
    """Reads the request from `--request JSON` or from `--request-file`, a path or URI. Raises ConfigError."""
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
    """Returns the session of the spark-submit that started this process."""
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate()


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ConfigError(message, remedy="give --request JSON or --request-file FILE")
