"""A job in its own process group, which a task starts and may stop; and the process of the local engine
(hudi_cli/job.py) beside the task. The process of spark-submit is in airflow_hudi/jobs/spark_job.py. engine_job.py there
decides which of the two is started.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.util import find_spec
from typing import IO, Any

from hudi_core.config.engine_config import NEEDED_MODULES, Mode
from hudi_core.errors import EXIT_FAILED, ConfigError
from hudi_core.frozen import dataclass
from hudi_core.request.results import JobResult
from hudi_core.request.texts import parse_object
from hudi_core.verbs.batch import BatchRequest, JobRequest, parse_job
from hudi_submit.job_log import JobLog

COMMAND = (sys.executable, "-m", "hudi_cli.job")
_WHAT = "the job"
# Waits until the process group $1 has ended, and kills its remaining processes after $2 seconds. It is a separate
# process: Airflow's supervisor gives a killed task 5 s before SIGKILL, and Spark's shutdown may take longer.
_REAPER = (
    'n=0; while kill -0 "-$1" 2>/dev/null; do [ "$n" -ge "$2" ] && { kill -KILL "-$1"; exit; }; sleep 1; '
    "n=$((n+1)); done"
)


@dataclass(frozen=True, slots=True)
class LocalCall:
    """The first line of standard input of the process beside a task: the job, the mode, the credentials of its storage,
    which no argument may contain, and the seconds that the process may take to end when the task is gone.
    """

    request: JobRequest
    mode: Mode
    credentials: Mapping[str, str]
    grace_seconds: int = 20

    def line(self) -> bytes:
        document = {
            "request": json.loads(self.request.to_json()),
            "mode": self.mode.value,
            "credentials": dict(self.credentials),
            "grace_seconds": self.grace_seconds,
        }
        return json.dumps(document).encode() + b"\n"

    @staticmethod
    def parse(line: bytes) -> LocalCall:
        """Parses the line. Raises ConfigError, which never shows the contents of the line."""
        value = parse_object(line, what=_WHAT)
        mode, credentials, grace = value.get("mode"), value.get("credentials", {}), value.get("grace_seconds", 20)
        modes = [known.value for known in Mode]
        if mode not in modes or not isinstance(credentials, dict) or not isinstance(grace, int):
            raise ConfigError(f"{_WHAT} has no mode of {', '.join(modes)}, or wrong fields")
        return LocalCall(parse_job(json.dumps(value.get("request"))), Mode(mode), credentials, grace)

    @property
    def at_once(self) -> int:
        """The number of requests that share the machine at the same time."""
        if not isinstance(self.request, BatchRequest):
            return 1
        return min(self.request.at_once, len({request.table for request in self.request.requests}))


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    """The settings of the processes of jobs. `env_vars` are added to the environment. A stopped process may take
    `grace_seconds` to end. `credentials` returns the credentials for the tables of the process beside the task.
    """

    env_vars: Mapping[str, str]
    grace_seconds: int
    credentials: Callable[[], Mapping[str, str]]


class StartedJob(ABC):
    """One run of a job in a process group. `stop` stops the job by SIGTERM, and by SIGKILL after `grace_seconds`."""

    def __init__(self, job: JobRequest, settings: ProcessSettings) -> None:
        self._job = job
        self._settings = settings
        self._signalled = False
        self.stopped = False
        self.result: JobResult | None = None
        self.tracking_url: str | None = None

    def run(self) -> int:
        """Starts the job, waits for its end, and returns its exit code. Returns EXIT_FAILED if the job was stopped
        before. Raises ConfigError if the job cannot be started.
        """
        return EXIT_FAILED if self.stopped else self.start()

    @abstractmethod
    def start(self) -> int:
        """Does the work of `run` for a job that is not stopped yet."""

    @property
    @abstractmethod
    def process(self) -> subprocess.Popen[Any] | None:
        """The process, or None before it is started."""

    def stop(self) -> None:
        """Requests the end of the job, and does not wait for it, because signal handlers call it. Idempotent."""
        self.stopped = True
        process = self.process
        if process is not None and not self._signalled:
            self._signalled = True
            self.end_group(process.pid)

    def end_group(self, group: int) -> None:
        """Stops the process group."""
        try:
            os.killpg(group, signal.SIGTERM)
        except ProcessLookupError:
            return  # The process group has ended.
        subprocess.Popen(
            ["/bin/sh", "-c", _REAPER, "reaper", str(group), str(self._settings.grace_seconds)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


class LocalProcess(StartedJob):
    """The process of the local engine. It also ends when this process ends, because a pipe connects them."""

    process: subprocess.Popen[bytes] | None = None

    def __init__(self, job: JobRequest, mode: Mode, settings: ProcessSettings, log: Any) -> None:
        super().__init__(job, settings)
        self._mode = mode
        self._output = JobLog(log)

    def start(self) -> int:
        """Runs the process and logs its lines. Credentials may be secret, so they go through the pipe."""
        settings = self._settings
        call = LocalCall(self._job, self._mode, settings.credentials(), settings.grace_seconds).line()
        self.process = process = subprocess.Popen(
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **settings.env_vars},
            start_new_session=True,
        )
        if self.stopped:  # Stop was called while the process was being started.
            self.stop()
        assert process.stdin is not None
        assert process.stdout is not None
        with process:
            try:
                _send(process.stdin, call)
                for line in process.stdout:
                    self._output.info(line.decode("utf-8", "replace").rstrip("\n"))
            except BaseException:
                self.stop()
                raise
        self.result = self._output.result(process.returncode)
        return process.returncode


def _send(pipe: IO[bytes], call: bytes) -> None:
    """Sends the call. If the process ended before it read the call, its exit code and its lines say why."""
    try:
        pipe.write(call)
        pipe.flush()
    except BrokenPipeError:
        with suppress(BrokenPipeError):  # close sends the buffer once more.
            pipe.close()


def missing_wheels() -> list[str]:
    """Returns the modules that the local engine needs and this Python lacks. Imports nothing."""
    return [name for name in NEEDED_MODULES if find_spec(name) is None]


def require_wheels() -> None:
    if missing := missing_wheels():
        raise ConfigError(
            f"the local engine cannot run where this task runs: no Python module {', '.join(missing)}",
            remedy="pip install airflow-hudi-engine on the workers, or set engine='spark'",
        )
