"""Runs a job that has no instant of its own yet, or needs none, until it is done."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from airflow_hudi.exceptions import HudiInstantBusy, HudiJobFailed, HudiJobKilled
from airflow_hudi.jobs.attempts import Job, Patience
from hudi_core.errors import EXIT_BAD_INPUT, EXIT_RETRY, ConfigError

log = logging.getLogger(__name__)


def run_until_done(
    job: Job,
    patience: Patience,
    *,
    enough: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> dict[str, Any]:
    """What the job reported: its result's JSON, `{}` when it was not received.

    While others hold what the job needs it is run again, unless `enough` says that the timeline shows the
    requested work. Raises HudiJobFailed, HudiJobKilled, HudiInstantBusy; ConfigError when the job refused its input.
    """
    deadline = clock() + patience.timeout
    while True:
        code = job.run()
        if job.stopped:
            raise HudiJobKilled("stopped while its job was running", remedy="a retry resumes what was started")
        if code == 0:
            return job.result or {}
        reason = job.failure or "it did not report why; see its output above"
        if code == EXIT_BAD_INPUT:
            raise ConfigError(f"the job refused its input: {reason}")
        if code != EXIT_RETRY:
            raise HudiJobFailed(f"the job ended with exit code {code}: {reason}")
        if enough():
            return {}
        log.info("The job gave way: %s", reason)
        if clock() >= deadline:
            raise HudiInstantBusy(
                f"others have held the table for longer than this task may wait: {reason}", remedy="a retry waits again"
            )
        sleep(patience.poll_interval)
        if job.stopped:
            raise HudiJobKilled("stopped while waiting for others")
