"""A job without Spark: `python -m hudi_cli.job`, started by Airflow with the job on stdin.

It looks whether there is anything to do, and runs what the local engine is to run. It ends when the process is gone
that holds the other end of stdin, and its processes with it. The other end, and what comes by it, is in
hudi_submit/local_process.py; airflow_hudi/jobs/engine_job.py says which mode it has.
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
from hudi_core.errors import EXIT_BAD_INPUT, ConfigError, HudiError
from hudi_core.request.results import RESULT, JobResult, Result, print_line, print_progress, result_line
from hudi_core.request.secrets import merge_storage_options
from hudi_core.storage.registry import scheme_of
from hudi_core.table import HudiTable
from hudi_core.verbs.batch import interrupted, result_of, run_job
from hudi_core.verbs.request import Request
from hudi_spark.signals import EXIT_TERMINATED, start_process
from hudi_submit.local_process import LocalCall


def run_call(call: LocalCall, request: Request) -> Result:
    """The result of one request of the call, or why it is for Spark. An error before anything was done is for Spark to
    report, unless the input is bad wherever it is read.
    """
    try:
        check_options(request.options)
    except HudiError as error:
        return Result.of_error(error)
    run = partial(_drive, call, request)
    if call.mode is Mode.LOCAL:
        return result_of(lambda: run_on_target(request, _storage_options(call, request), run), request)
    if not request.needs_table:
        return Result(left="it shows what the storage does where jobs use it")
    try:
        table = HudiTable.open(request.table, _storage_options(call, request), request.options)
    except (HudiError, OSError) as error:
        # A local path may exist on the cluster's machines alone.
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


def _drive(call: LocalCall, request: Request, table: HudiTable) -> Result:
    return drive(table, request, call.mode, at_once=call.at_once, progress=print_progress)


def _storage_options(call: LocalCall, request: Request) -> dict[str, str]:
    return {**call.credentials, **merge_storage_options(request.storage_options, request.storage_options_file)}


def main(stdin: int) -> int:
    """Runs the job that comes on the descriptor `stdin`, and returns its exit code.

    Prints `HUDI_PROGRESS` lines and at last `HUDI_RESULT {…}`, as a Spark job does; what is for Spark has the member
    `submit` with the reason.
    """
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
    """Not by a stream, whose lock the thread that waits for the end would hold when the interpreter ends."""
    text = b""
    while not text.endswith(b"\n") and (piece := os.read(stdin, 1 << 16)):
        text += piece
    return text


def _end_with(stdin: int, grace_seconds: int) -> None:
    """Ends this process when the other end of stdin is closed: the process that started it is gone. First in order, and
    after some seconds as it is, since threads that work are not interrupted.
    """
    while os.read(stdin, 1 << 16):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(grace_seconds)
    os._exit(EXIT_TERMINATED)


if __name__ == "__main__":
    sys.exit(main(sys.stdin.fileno()))
