from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from airflow_hudi.exceptions import HudiInstantBusy, HudiJobFailed, HudiJobKilled
from airflow_hudi.jobs.attempts import Patience
from airflow_hudi.operators.unnamed_instant import run_until_done
from hudi_core.errors import ConfigError

PATIENCE = Patience(poll_interval=10, timeout=35)


class ScriptedJob:
    """Ends with each of the codes in turn."""

    def __init__(self, *codes: int) -> None:
        self.codes = list(codes)
        self.runs = 0
        self.stopped = False
        self.failure: str | None = "somebody holds the lock"
        self.result: dict[str, Any] | None = {"reason": "no old files"}

    def run(self) -> int:
        self.runs += 1
        return self.codes.pop(0)


class Time:
    def __init__(self, during: Callable[[], None] = lambda: None) -> None:
        self.now = 0.0
        self._during = during

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self._during()


def drive(job: ScriptedJob, time: Time | None = None, **more: Any) -> dict[str, Any]:
    time = time or Time()
    return run_until_done(job, PATIENCE, clock=lambda: time.now, sleep=time.sleep, **more)


def test_the_result_is_what_the_job_says() -> None:
    assert drive(ScriptedJob(0)) == {"reason": "no old files"}
    silent = ScriptedJob(0)
    silent.result = None
    assert drive(silent) == {}


def test_a_conflict_is_tried_again_until_the_wait_is_over() -> None:
    time = Time()
    job = ScriptedJob(3, 3, 0)
    assert drive(job, time) == {"reason": "no old files"}
    assert (job.runs, time.now) == (3, 20)
    with pytest.raises(HudiInstantBusy, match="somebody holds the lock"):
        drive(ScriptedJob(3, 3, 3, 3, 3, 3))


def test_a_conflict_is_enough_when_the_timeline_has_what_was_wanted() -> None:
    job = ScriptedJob(3)
    assert drive(job, enough=lambda: True) == {}
    assert job.runs == 1


def test_failures_are_told_apart() -> None:
    with pytest.raises(ConfigError, match="refused its input: somebody"):
        drive(ScriptedJob(2))
    with pytest.raises(HudiJobFailed, match="exit code 137"):
        drive(ScriptedJob(137))


def test_a_stopped_job_is_killed_not_failed() -> None:
    job = ScriptedJob(143)
    job.stopped = True
    with pytest.raises(HudiJobKilled):
        drive(job)
    waiting = ScriptedJob(3, 0)
    with pytest.raises(HudiJobKilled):
        drive(waiting, Time(lambda: setattr(waiting, "stopped", True)))
    assert waiting.runs == 1
