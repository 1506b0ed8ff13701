"""The one wait of a task for others: attempt after attempt, until one comes to something or its patience is over.

run_until_completed.py says what an attempt at an instant is, and one at any other request; rounds.py one at many of
them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from airflow_hudi.exceptions import HudiInstantBusy, HudiJobKilled
from hudi_core.errors import Reminder
from hudi_core.request.results import JobResult

T = TypeVar("T")
log = logging.getLogger(__name__)


class Job(Protocol):
    """A job that can be run again; it decides itself whether it may take the instant over."""

    @property
    def subject(self) -> str:
        """What it does on which table, for messages."""
        ...

    @property
    def stopped(self) -> bool:
        """Whether this task was requested to stop."""
        ...

    @property
    def result(self) -> JobResult | None:
        """What the last run reported; None when it did not report."""
        ...

    def run(self) -> int:
        """Runs the job to its end and returns its exit code."""
        ...


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait for another process, in seconds.

    Every `poll_interval` it is found out whether another attempt is worth it. Where an instant is waited for, it is
    when the owner releases it, or shows no sign of life for `takeover_after`: the job takes it over, or finds the owner
    alive. `timeout`, from the beginning of the first wait, ends all of them.
    """

    poll_interval: float = 15.0
    takeover_after: float = 180.0
    timeout: float = 7200.0


@dataclass(frozen=True, slots=True)
class Held:
    """An attempt that others kept from its work. `who` is waited for, `says` is what the log says of it, by the seconds
    that are left, `is_over` whether another attempt is worth it, and `too_long` is raised when the patience is over.
    """

    who: str
    says: Callable[[float], str]
    too_long: HudiInstantBusy
    is_over: Callable[[], bool] = lambda: True


def wait_for_others(
    attempt: Callable[[], T | Held],
    is_stopped: Callable[[], bool],
    patience: Patience,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> T:
    """What the first attempt came to that others did not hold up. Raises HudiJobKilled where the task is stopped while
    it waits, and HudiInstantBusy.
    """
    deadline: float | None = None
    reminder = Reminder(clock)
    while isinstance(result := attempt(), Held):
        # From here, and not from the first attempt: its work may have taken longer than a task waits.
        deadline = clock() + patience.timeout if deadline is None else deadline
        is_over = False
        while not is_over:
            if clock() >= deadline:
                raise result.too_long
            if reminder.is_due():
                log.info("%s", result.says(deadline - clock()))
            sleep(patience.poll_interval)
            if is_stopped():
                raise HudiJobKilled(f"stopped while waiting for {result.who}")
            is_over = result.is_over()
    return result
