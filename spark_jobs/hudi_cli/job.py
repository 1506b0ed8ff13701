"""A job without Spark: `python -m hudi_cli.job`, started by Airflow with the job on stdin.

It looks whether there is anything to do, and runs what the local engine is to run. It ends when the process is gone
that holds the other end of stdin, and its processes with it.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from hudi_core.config.options import check_options
from hudi_core.config.table_config import PROPERTIES
from hudi_core.engine.protocol import Json
from hudi_core.errors import (
    EXIT_BAD_INPUT,
    ConfigError,
    CredentialsMissingError,
    HudiError,
    LogFormatter,
    ZoneUnknownError,
)
from hudi_core.request.batch import BatchRequest, JobRequest, parse_job
from hudi_core.request.json_fields import parse_object
from hudi_core.request.outcome import PROGRESS, RESULT, Outcome
from hudi_core.request.requests import ProbeStoreRequest, Request, RunRequest
from hudi_core.request.results import RunResult
from hudi_core.request.secrets import merge_storage_options
from hudi_core.services.batch import interrupted, outcome_of, run_job
from hudi_core.services.engine_choice import Choice
from hudi_core.services.verbs import probe_store
from hudi_core.storage.registry import open_storage, scheme_of
from hudi_core.table import HudiTable
from hudi_spark.signals import EXIT_TERMINATED, Termination

log = logging.getLogger("hudi_core.job")

_WHAT = "the job"
_OF_THIS_PROCESS = (ZoneUnknownError, CredentialsMissingError)
"""Bad input where this process is, and perhaps not on the cluster."""


class Mode(Enum):
    """`look` only finds out whether there is work; `auto` does what is small enough, `local` all."""

    LOOK = "look"
    AUTO = "auto"
    LOCAL = "local"


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

    def run(self, request: Request) -> Outcome:
        """One request's outcome: its result, or why it is for Spark. An error before anything was done is for Spark to
        report, unless the input is bad wherever it is read.
        """
        try:
            check_options(request.options)
        except HudiError as error:
            return Outcome.of_error(error)
        if self.mode is Mode.LOCAL:
            return outcome_of(lambda: self._run(request), request)
        if isinstance(request, ProbeStoreRequest):
            return Outcome.for_spark("it shows what the storage does where jobs use it")
        try:
            table = self._open(request)
        except (HudiError, OSError) as error:
            # A local path may exist on the cluster's machines alone.
            if isinstance(error, ConfigError) and error.path == PROPERTIES and scheme_of(request.table) != "file":
                return Outcome.of_error(error)
            return Outcome.for_spark(f"the table cannot be opened here: {error}")
        return self._look(request, table) if self.mode is Mode.LOOK else self._auto(request, table)

    def _open(self, request: Request) -> HudiTable:
        return HudiTable.open(request.table, self._storage_options(request), request.options)

    def _storage_options(self, request: Request) -> dict[str, str]:
        return {**self.credentials, **merge_storage_options(request.storage_options, request.storage_options_file)}

    def _look(self, request: Request, table: HudiTable) -> Outcome:
        try:
            nothing = table.nothing_to_do(request)
        except HudiError as error:
            if error.exit_code == EXIT_BAD_INPUT and not isinstance(error, _OF_THIS_PROCESS):
                return Outcome.of_error(error)
            return Outcome.for_spark(f"nothing could be found out here: {error}")
        return Outcome.for_spark("there is work") if nothing is None else Outcome.of(nothing)

    def _auto(self, request: Request, table: HudiTable) -> Outcome:
        """Planning is done here in either case: its instant is the one that Spark finds pending. What was done before
        an instant that is for Spark is in the outcome, too.
        """

        def run() -> RunResult:
            try:
                nothing = self._nothing(request, table)
                if nothing is not None:
                    return nothing
                choice = self._choose(request, table)
            except _OF_THIS_PROCESS as error:
                return RunResult(left=error.message)
            return self._run_on(choice, request, table) if choice.local else RunResult(left=choice.why)

        return outcome_of(run, request)

    def _nothing(self, request: Request, table: HudiTable) -> RunResult | None:
        """As `hudictl run`: where an instant is to be planned, it is, so that its plan says how much there is to do."""
        return table.nothing_to_run(request) if isinstance(request, RunRequest) else table.nothing_to_do(request)

    def _run(self, request: Request) -> RunResult:
        if isinstance(request, ProbeStoreRequest):
            return probe_store(open_storage(request.table, self._storage_options(request)), request)
        table = self._open(request)
        nothing = self._nothing(request, table) if isinstance(request, RunRequest) else None
        if nothing is not None:
            return nothing
        return self._run_on(self._choose(request, table), request, table)

    def _choose(self, request: Request, table: HudiTable) -> Choice:
        return table.choose_engine(request, at_once=self.at_once, here=self.mode is Mode.LOCAL)

    def _run_on(self, choice: Choice, request: Request, table: HudiTable) -> RunResult:
        if request.needs_executors:
            where = "processes" if choice.in_processes else "threads"
            log.info("%s: the local engine runs %s, %d %s", table.uri, choice.why, choice.width, where)
        with choice.engine() as engine:
            return table.run(request, engine, _report, lambda planned: self._choose(planned, table))


def main(stdin: int) -> int:
    """Runs the job that comes on the descriptor `stdin`, and returns its exit code.

    Prints `HUDI_PROGRESS` lines and at last `HUDI_RESULT {…}`, as a Spark job does; what is for Spark has the member
    `submit` with the reason.
    """
    termination = Termination()
    termination.install()
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(LogFormatter("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("hudi_core").setLevel(logging.INFO)
    try:
        job = LocalJob.parse(_line(stdin))
    except HudiError as error:
        outcome = Outcome.of_error(error)
    else:
        try:
            threading.Thread(target=_end_with, args=(stdin, job.grace_seconds), daemon=True).start()
            outcome = run_job(job.request, job.run)
        except KeyboardInterrupt as error:
            outcome = interrupted(error, termination.exit_code)
    _print(RESULT, outcome.to_json())
    return outcome.exit_code


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


def _report(instant: str, done: int, total: int) -> None:
    _print(PROGRESS, {"instant": instant, "done": done, "total": total})


def _print(label: str, document: Json) -> None:
    sys.stdout.write(f"{label} {json.dumps(document, sort_keys=True)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.stdin.fileno()))
