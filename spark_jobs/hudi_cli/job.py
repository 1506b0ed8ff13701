"""A job without Spark: `python -m hudi_cli.job`, started by Airflow with the job on stdin.

It looks whether there is anything to do, and runs what the local engine is to run. It ends when the process is gone
that holds the other end of stdin, and its processes with it. Its other end is airflow_hudi/jobs/local_process.py;
airflow_hudi/jobs/engine_job.py says which mode it has.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from hudi_core.config.options import check_options
from hudi_core.config.table_config import PROPERTIES
from hudi_core.driver import Mode, drive, run_on_target
from hudi_core.errors import EXIT_BAD_INPUT, ConfigError, HudiError
from hudi_core.request.results import RESULT, JobResult, Result, print_line, print_progress, result_line
from hudi_core.request.secrets import merge_storage_options
from hudi_core.request.texts import parse_object
from hudi_core.storage.registry import scheme_of
from hudi_core.table import HudiTable
from hudi_core.verbs.batch import BatchRequest, JobRequest, interrupted, parse_job, result_of, run_job
from hudi_core.verbs.request import Request
from hudi_spark.signals import EXIT_TERMINATED, start_process

_WHAT = "the job"


@dataclass(frozen=True, slots=True)
class LocalJob:
    """What comes on stdin: the job, the mode, credentials of its storage, which no argument may hold, and how many
    seconds it may take to end when the task is gone.
    """

    request: JobRequest
    mode: Mode
    credentials: Mapping[str, str]
    grace_seconds: int = 20

    @staticmethod
    def parse(text: bytes) -> LocalJob:
        """Reads one line of JSON. Raises ConfigError; what it held is never shown."""
        value = parse_object(text, what=_WHAT)
        mode, credentials, grace = value.get("mode"), value.get("credentials", {}), value.get("grace_seconds", 20)
        if mode not in {item.value for item in Mode} or not isinstance(credentials, dict) or not isinstance(grace, int):
            raise ConfigError(f"{_WHAT} has no mode of {', '.join(item.value for item in Mode)}, or wrong fields")
        return LocalJob(parse_job(json.dumps(value.get("request"))), Mode(mode), credentials, grace)

    @property
    def at_once(self) -> int:
        """Among how many requests the machine is shared."""
        if not isinstance(self.request, BatchRequest):
            return 1
        return min(self.request.at_once, len({request.table for request in self.request.requests}))

    def run(self, request: Request) -> Result:
        """One request's result, or why it is for Spark. An error before anything was done is for Spark to report,
        unless the input is bad wherever it is read.
        """
        try:
            check_options(request.options)
        except HudiError as error:
            return Result.of_error(error)
        if self.mode is Mode.LOCAL:
            run = partial(self._drive, request)
            return result_of(lambda: run_on_target(request, self._storage_options(request), run), request)
        if not request.needs_table:
            return Result(left="it shows what the storage does where jobs use it")
        try:
            table = HudiTable.open(request.table, self._storage_options(request), request.options)
        except (HudiError, OSError) as error:
            # A local path may exist on the cluster's machines alone.
            if isinstance(error, ConfigError) and error.path == PROPERTIES and scheme_of(request.table) != "file":
                return Result.of_error(error)
            return Result(left=f"the table cannot be opened here: {error}")
        if self.mode is Mode.AUTO:
            return result_of(lambda: self._drive(request, table), request)
        try:
            return self._drive(request, table)
        except HudiError as error:
            if error.exit_code == EXIT_BAD_INPUT:
                return Result.of_error(error)
            return Result(left=f"nothing could be found out here: {error}")

    def _drive(self, request: Request, table: HudiTable) -> Result:
        return drive(table, request, self.mode, at_once=self.at_once, progress=print_progress)

    def _storage_options(self, request: Request) -> dict[str, str]:
        return {**self.credentials, **merge_storage_options(request.storage_options, request.storage_options_file)}


def main(stdin: int) -> int:
    """Runs the job that comes on the descriptor `stdin`, and returns its exit code.

    Prints `HUDI_PROGRESS` lines and at last `HUDI_RESULT {…}`, as a Spark job does; what is for Spark has the member
    `submit` with the reason.
    """
    termination = start_process(sys.stdout, "%(levelname)s %(name)s: %(message)s")
    try:
        job = LocalJob.parse(_line(stdin))
    except HudiError as error:
        result: JobResult = Result.of_error(error)
    else:
        try:
            threading.Thread(target=_end_with, args=(stdin, job.grace_seconds), daemon=True).start()
            result = run_job(job.request, job.run)
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
