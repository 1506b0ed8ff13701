"""The process of the local engine (hudi_cli/job.py) beside the task. Whether it is started at all: engine_job.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from typing import IO, Any

from airflow_hudi.jobs.job_log import JobLog
from airflow_hudi.jobs.submit_process import end_group
from hudi_core.config.engine_config import NEEDED_MODULES
from hudi_core.errors import EXIT_FAILED, ConfigError
from hudi_core.request.results import JobResult
from hudi_core.verbs.batch import JobRequest

LOOK, AUTO, LOCAL = "look", "auto", "local"
"""What the process does: it only looks; it does what is small enough; it does everything."""
COMMAND = (sys.executable, "-m", "hudi_cli.job")


def missing_wheels() -> list[str]:
    """What the local engine needs and this Python lacks; nothing is imported."""
    return [name for name in NEEDED_MODULES if find_spec(name) is None]


def require_wheels() -> None:
    if missing := missing_wheels():
        raise ConfigError(
            f"the local engine cannot run where this task runs: no Python module {', '.join(missing)}",
            remedy="pip install 'airflow-hudi[engine]' on the workers, or set engine='spark'",
        )


def _send(pipe: IO[bytes], call: bytes) -> None:
    """Sends the call. A process that ended before it read it says why by its exit code and its lines."""
    try:
        pipe.write(call)
        pipe.flush()
    except BrokenPipeError:
        with suppress(BrokenPipeError):  # what is buffered is sent once more
            pipe.close()


class LocalProcess:
    """One run of a job in a process group, which ends with this process: it holds the other end of a pipe."""

    def __init__(self, log: Any, *, grace_seconds: int = 20) -> None:
        self._output = JobLog(log)
        self._grace_seconds = grace_seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False
        self._code = EXIT_FAILED

    @property
    def result(self) -> JobResult | None:
        return self._output.result(self._code)

    def run(self, job: JobRequest, mode: str, credentials: Mapping[str, str], environment: Mapping[str, str]) -> int:
        """Logs its lines, and returns its exit code. `credentials` may be secret: they go through the pipe."""
        if self._stopped:
            return 1
        call = {
            "request": json.loads(job.to_json()),
            "mode": mode,
            "credentials": dict(credentials),
            "grace_seconds": self._grace_seconds,
        }
        process = subprocess.Popen(
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            start_new_session=True,
        )
        self._watch(process)
        assert process.stdin is not None
        assert process.stdout is not None
        with process:
            try:
                _send(process.stdin, json.dumps(call).encode() + b"\n")
                for line in process.stdout:
                    self._output.info(line.decode("utf-8", "replace").rstrip("\n"))
            except BaseException:
                self.stop()
                raise
        self._code = process.returncode
        return self._code

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        """Makes the process the one that `stop` ends, also where it was called while the process was being started."""
        self._process = process
        if self._stopped:
            end_group(process.pid, grace_seconds=self._grace_seconds)

    def stop(self) -> None:
        """Requests the end of the job and does not wait for it: called from a signal handler. Idempotent."""
        first, self._stopped = not self._stopped, True
        if first and self._process is not None:
            end_group(self._process.pid, grace_seconds=self._grace_seconds)
