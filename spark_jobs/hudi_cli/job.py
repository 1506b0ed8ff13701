"""A job without Spark: Airflow starts `python -m hudi_cli.job` with the job on stdin.

The job looks for work, and runs the work that belongs to the local engine. It and its processes end when the process at
the other end of stdin is gone. hudi_submit/local_process.py is the other end, and sends the job.
airflow_hudi/jobs/engine_job.py chooses the mode.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from functools import partial

from hudi_core.config.engine_config import Mode
from hudi_core.config.options import check_options
from hudi_core.config.table_config import PROPERTIES
from hudi_core.driver import drive, run_on_target
from hudi_core.engine.hidden_pandas import hide_pandas
from hudi_core.errors import EXIT_BAD_INPUT, ConfigError, HudiError
from hudi_core.request.results import RESULT, JobResult, Result, print_line, print_progress, result_line
from hudi_core.request.secrets import merge_storage_options
from hudi_core.storage.local import local_path
from hudi_core.storage.registry import open_storage, scheme_of
from hudi_core.table import HudiTable
from hudi_core.verbs.batch import interrupted, result_of, run_job
from hudi_core.verbs.request import Request
from hudi_spark.signals import EXIT_TERMINATED, start_process
from hudi_submit.local_process import LocalCall


def run_call(call: LocalCall, request: Request) -> Result:
    """Runs one request of the call and returns its result, or the reason to leave it to Spark. An error before any work
    is left to Spark, unless the input is bad everywhere.
    """
    try:
        check_options(request.options)
    except HudiError as error:
        return Result.of_error(error)
    run = partial(_drive, call, request)
    if call.mode is Mode.LOCAL:
        return result_of(lambda: run_on_target(request, _storage_options(call, request), run), request)
    if not request.needs_table:
        return _without_table(call, request)
    try:
        table = HudiTable.open(request.table, _storage_options(call, request), request.options)
    except (HudiError, OSError) as error:
        if request.may_make_table:
            return Result(left=f"the table is not here yet: {error}")
        # A local path may exist only on the cluster's machines.
        if isinstance(error, ConfigError) and error.path == PROPERTIES and scheme_of(request.table) != "file":
            return Result.of_error(error)
        return Result(left=f"the table cannot be opened here: {error}")
    if call.mode is Mode.AUTO:
        return result_of(lambda: run(table), request)
    try:
        return run(table)
    except HudiError as error:
        if error.exit_code == EXIT_BAD_INPUT:
            return Result.of_error(error)
        return Result(left=f"nothing could be found out here: {error}")


def _without_table(call: LocalCall, request: Request) -> Result:
    """Does what run_call does for a request that needs no table. A local folder may be elsewhere on the cluster's
    machines: only where the folder around it is here, too, this process may make it.
    """
    if request.only_in_jobs:
        return Result(left=request.only_in_jobs)
    options = _storage_options(call, request)
    if call.mode is Mode.AUTO:
        if scheme_of(request.table) == "file" and not os.path.isdir(os.path.dirname(local_path(request.table))):
            return Result(left="the folder around the table is not here")
        return result_of(lambda: request.run_on_storage(open_storage(request.table, options), options), request)
    try:
        nothing = request.nothing_on_storage(open_storage(request.table, options), options)
    except HudiError as error:
        if error.exit_code == EXIT_BAD_INPUT:
            return Result.of_error(error)
        return Result(left=f"nothing could be found out here: {error}")
    return nothing or Result(left="there is work")


def _drive(call: LocalCall, request: Request, table: HudiTable) -> Result:
    return drive(table, request, call.mode, at_once=call.at_once, progress=print_progress)


def _storage_options(call: LocalCall, request: Request) -> dict[str, str]:
    return {**call.credentials, **merge_storage_options(request.storage_options, request.storage_options_file)}


def main(stdin: int) -> int:
    """Runs the job that comes on the descriptor `stdin`, and returns its exit code.

    Prints `HUDI_PROGRESS` lines and at the end `HUDI_RESULT {…}`, like a Spark job. A request that is left to Spark has
    the member `submit` with the reason.
    """
    hide_pandas()
    termination = start_process(sys.stdout, "%(levelname)s %(name)s: %(message)s")
    try:
        call = LocalCall.parse(_line(stdin))
    except HudiError as error:
        result: JobResult = Result.of_error(error)
    else:
        try:
            threading.Thread(target=_end_with, args=(stdin, call.grace_seconds), daemon=True).start()
            result = run_job(call.request, partial(run_call, call))
        except KeyboardInterrupt as error:
            result = interrupted(error, termination.exit_code)
    print_line(RESULT, result_line(result))
    return result.exit_code


def _line(stdin: int) -> bytes:
    """Reads the first line without a stream, whose lock the thread that waits for the end would hold at exit."""
    text = b""
    while not text.endswith(b"\n") and (piece := os.read(stdin, 1 << 16)):
        text += piece
    return text


def _end_with(stdin: int, grace_seconds: int) -> None:
    """Ends this process when the other end of stdin is closed, because the process that started it is gone. First it
    sends SIGTERM. After `grace_seconds` it ends the process at once, because working threads are not interrupted.
    """
    while os.read(stdin, 1 << 16):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(grace_seconds)
    os._exit(EXIT_TERMINATED)


if __name__ == "__main__":
    sys.exit(main(sys.stdin.fileno()))
