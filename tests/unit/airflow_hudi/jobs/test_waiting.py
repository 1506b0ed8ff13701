"""The one wait of a task: attempts, the log, and the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from unittest.mock import patch

import pytest

from airflow_hudi.jobs import waiting
from airflow_hudi.jobs.waiting import Held, Patience, wait_for_others
from airflow_hudi.task_fate import HudiInstantBusy, HudiJobKilled

PATIENCE = Patience(poll_interval=10, timeout=35)


class Clock:
    """Moves by sleeping."""

    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def held(is_over: Callable[[], bool] = lambda: True) -> Held:
    return Held("others", lambda seconds: f"{seconds:.0f} s more", HudiInstantBusy("too long"), is_over)


def wait(
    attempts: Iterator[str | Held], clock: Clock, is_stopped: Callable[[], bool] = lambda: False
) -> tuple[str, float]:
    with patch.object(waiting, "time", SimpleNamespace(monotonic=lambda: clock.now, sleep=clock.sleep)):
        done = wait_for_others(lambda: next(attempts), is_stopped, PATIENCE)
    return done, clock.now


def test_an_attempt_that_nobody_holds_up_is_the_last() -> None:
    assert wait(iter(["done"]), Clock()) == ("done", 0)


def test_another_attempt_is_made_when_it_is_worth_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    looks = iter([False, True])
    assert wait(iter([held(lambda: next(looks)), held(), "done"]), Clock()) == ("done", 30)
    assert caplog.messages == ["35 s more"]


def test_the_patience_counts_from_the_first_wait() -> None:
    clock = Clock()
    clock.sleep(1000)
    attempts = iter([held(), held(), held(), held(), held()])
    with pytest.raises(HudiInstantBusy, match="too long"):
        wait(attempts, clock)
    assert clock.now == 1040


def test_a_task_that_is_stopped_makes_no_further_attempt() -> None:
    clock = Clock()
    with pytest.raises(HudiJobKilled, match="stopped while waiting for others"):
        wait(iter([held()]), clock, lambda: clock.now > 0)
    assert clock.now == 10
