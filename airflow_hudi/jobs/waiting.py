"""The one place where a task waits for others: it makes attempts until one is not held up, or its time is over. An
attempt runs an instant (done when the timeline shows it completed, by any process), another request (the job decides
when it is done), or many requests (rounds.py). hudi_core/transaction/claim.py takes over from a dead owner.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable
from typing import TypeVar

from airflow_hudi.jobs.engine_job import EngineJob
from airflow_hudi.results import found_completed
from airflow_hudi.task_fate import (
    UNSAID,
    Fate,
    HudiInstantBusy,
    HudiInstantNotFound,
    HudiJobFailed,
    HudiJobKilled,
    failure_of,
    fate_of,
    refused,
)
from airflow_hudi.timeline_reader import TimelineReader
from hudi_core.errors import Reminder
from hudi_core.frozen import dataclass
from hudi_core.model.names import HUDI_HEARTBEATS, ClaimFolder, is_released
from hudi_core.request.results import Result
from hudi_core.storage.base import FileInfo
from hudi_core.timeline.instant import Instant

T = TypeVar("T")
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait for another process, in seconds. Every `poll_interval` the task decides whether to make another
    attempt. For an instant, it makes one when the owner releases it, or shows no sign of life for `takeover_after`. The
    job then takes the instant over, or finds the owner alive. `timeout` counts from the first wait.
    """

    poll_interval: float = 15.0
    takeover_after: float = 180.0
    timeout: float = 7200.0


@dataclass(frozen=True, slots=True)
class Held:
    """An attempt that others held up. `who` names what the task waits for. `says` makes the log line, by the seconds
    that are left. `too_long` is the error to raise in the end. `is_over` says whether to make another attempt.
    """

    who: str
    says: Callable[[float], str]
    too_long: HudiInstantBusy
    is_over: Callable[[], bool] = lambda: True


def wait_for_others(attempt: Callable[[], T | Held], is_stopped: Callable[[], bool], patience: Patience) -> T:
    """Makes attempts; returns the result of the first that is not held up. Raises HudiJobKilled, HudiInstantBusy."""
    deadline: float | None = None
    reminder = Reminder(time.monotonic)
    while isinstance(result := attempt(), Held):
        # The time counts from the first wait. The work of the first attempt may have taken longer than a task waits.
        deadline = time.monotonic() + patience.timeout if deadline is None else deadline
        is_over = False
        while not is_over:
            if time.monotonic() >= deadline:
                raise result.too_long
            if reminder.is_due():
                log.info("%s", result.says(deadline - time.monotonic()))
            time.sleep(patience.poll_interval)
            if is_stopped():
                raise HudiJobKilled(f"stopped while waiting for {result.who}")
            is_over = result.is_over()
    return result


@dataclass(frozen=True, slots=True)
class Finished:
    """A completed instant. `elsewhere` says that another process completed it."""

    instant: Instant
    elsewhere: bool


class InstantWatch:
    def __init__(self, reader: TimelineReader, requested_time: str, action: str) -> None:
        self.requested_time = requested_time
        self.reader = reader
        self.action = action

    def look(self) -> Instant:
        """Returns the instant as it is now. Raises HudiInstantNotFound if it is missing or has another action."""
        timeline = self.reader.load()
        instant = timeline.find(self.requested_time, self.action)
        if instant is not None:
            return instant
        uri = self.reader.storage.uri
        other = next((item for item in timeline if item.requested_time == self.requested_time), None)
        if other is not None:
            remedy = f"name the instant of a {self.action}; `hudictl timeline {uri}` lists them"
            said = f"instant {self.requested_time} is a {other.action}, no {self.action}"
            raise HudiInstantNotFound(said, path=uri, remedy=remedy)
        remedy = f"it never was there, was dropped, or is archived: `hudictl timeline {uri} --archived`"
        said = f"the timeline holds no {self.action} at instant {self.requested_time}"
        raise HudiInstantNotFound(said, path=uri, remedy=remedy)

    def is_claimed(self) -> bool:
        """Returns whether the instant has claims. A run removes its claims last, after it completes the instant."""
        return bool(self._claim_files())

    def is_released(self) -> bool:
        return is_released(info.name for info in self._claim_files())

    def signs_of_life(self) -> Hashable:
        """Returns the instant's claims and heartbeats with their times, which change while a job works on it."""
        storage = self.reader.storage
        beats = [info for info in storage.list_files(HUDI_HEARTBEATS) if info.name == self.requested_time]
        return tuple((info.path, info.modified) for info in [*self._claim_files(), *beats])

    def _claim_files(self) -> list[FileInfo]:
        return self.reader.storage.list_files(ClaimFolder(self.requested_time).path)


def run_until_completed(job: EngineJob, watch: InstantWatch, patience: Patience) -> Finished:
    """Runs the job until the timeline shows the instant completed, also if the job failed after its commit. Raises
    HudiJobFailed, HudiJobKilled, HudiInstantBusy, HudiInstantNotFound, HudiInputRefused.
    """
    by_others: list[Instant] = []
    """The instant, if others have completed it while this task waited."""

    def attempt() -> Finished | Held:
        if by_others:
            return Finished(by_others[0], elsewhere=True)
        fate = fate_of(code := job.run())
        instant = watch.look()
        if instant.is_completed:
            elsewhere = fate is Fate.WAITS or found_completed(job.result, watch.requested_time)
            if fate not in (Fate.DONE, Fate.WAITS) and not job.stopped:
                _clean_up_behind(job, watch)
            return Finished(instant, elsewhere)
        if job.stopped:
            raise HudiJobKilled(
                f"stopped while running {watch.action} {watch.requested_time}", remedy="a retry takes the instant over"
            )
        still = f", instant {watch.requested_time} is still {instant.state.value}"
        log.info("The job gave way at instant %s: %s", watch.requested_time, _why_it_gave_way(job, code, still))
        return _held(watch, instant, by_others, patience)

    return wait_for_others(attempt, lambda: job.stopped, patience)


def _why_it_gave_way(job: EngineJob, code: int, still: str = "") -> str:
    """Returns why a job gave way to others. Raises HudiInputRefused or HudiJobFailed if the job failed."""
    reason, fate = failure_of(job.result) or UNSAID, fate_of(code)
    if fate is Fate.FAILS_FOR_GOOD:
        raise refused(job.result)
    if fate is not Fate.WAITS:
        raise HudiJobFailed(f"the job ended with exit code {code}{still}: {reason}")
    return reason


def _held(watch: InstantWatch, instant: Instant, by_others: list[Instant], patience: Patience) -> Held:
    """Returns the Held of an instant that another process runs. The wait ends when the instant is completed (and in
    `by_others`), released, or shows no sign of life. Only changes of these signs count, so the clocks need not agree.
    """
    life, since = watch.signs_of_life(), time.monotonic()

    def says(seconds: float) -> str:
        at_work = watch.reader.at_work(watch.requested_time) or "claimed by no process now"
        return (
            f"Waiting for {watch.action} {watch.requested_time} of {watch.reader.storage.uri}, which is "
            f"{instant.state.value}, {at_work}: the last sign of life is {time.monotonic() - since:.0f} s old; it is "
            f"taken over after {patience.takeover_after:.0f} s, and this task waits for up to {seconds:.0f} s more"
        )

    def is_over() -> bool:
        nonlocal instant, life, since
        instant = watch.look()
        if instant.is_completed:
            by_others.append(instant)
            return True
        if watch.is_released():
            log.info("Instant %s is free again; running the job", watch.requested_time)
            return True
        if (now := watch.signs_of_life()) != life:
            life, since = now, time.monotonic()
            return False
        silent = time.monotonic() - since
        if silent >= patience.takeover_after:
            log.info("No sign of life at instant %s for %.0f s; running the job again", watch.requested_time, silent)
        return silent >= patience.takeover_after

    too_long = HudiInstantBusy(
        f"another process has been running instant {watch.requested_time} for longer than this task may wait",
        remedy="a retry waits again; see which process runs it with `hudictl show`",
    )
    return Held(f"instant {watch.requested_time}", says, too_long, is_over)


def _clean_up_behind(job: EngineJob, watch: InstantWatch) -> None:
    """Runs the job again to clean up after a completed instant, because no later task does. It spares a live owner."""
    try:
        if watch.is_claimed():
            log.info("The job ended right behind the completion of %s; running it to clean up", watch.requested_time)
            job.run()
    except Exception as error:  # noqa: BLE001 (the instant is completed)
        log.warning("What the job left of instant %s was not cleaned up: %s", watch.requested_time, error)


def run_until_done(job: EngineJob, patience: Patience, *, enough: Callable[[], bool] = lambda: False) -> Result | None:
    """Runs the job and returns its result; None if it was not received, or if others have done the work. Runs the job
    again while others hold what it needs, unless `enough` says that the timeline shows the work. Raises the errors of
    run_until_completed.
    """

    def attempt() -> Result | Held | None:
        code = run_unless_stopped(job)
        if fate_of(code) is Fate.DONE:
            return job.result if isinstance(job.result, Result) else None
        reason = _why_it_gave_way(job, code)
        if enough():
            return None
        too_long = HudiInstantBusy(
            f"others have held the table for longer than this task may wait: {reason}", remedy="a retry waits again"
        )
        said = f"Waiting to {job.subject}: {reason}; it is tried again in {patience.poll_interval:.0f} s, "
        return Held("others", lambda seconds: f"{said}and this task waits for up to {seconds:.0f} s more", too_long)

    return wait_for_others(attempt, lambda: job.stopped, patience)


def run_unless_stopped(job: EngineJob) -> int:
    """Runs the job and returns its exit code. Raises HudiJobKilled if the job was stopped."""
    code = job.run()
    if job.stopped:
        raise HudiJobKilled("stopped while its job was running", remedy="a retry resumes what was started")
    return code
