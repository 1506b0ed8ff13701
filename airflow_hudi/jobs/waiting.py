"""The one wait of a task for others: attempt after attempt, until one comes to something or its patience is over. An
attempt is at an instant (done when the timeline has it completed, by whichever process), at any other request (the job
decides), or at many (rounds.py). Take-over from a dead owner: hudi_core/transaction/claim.py.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
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
from hudi_core.model.names import HUDI_HEARTBEATS, ClaimFolder, is_released
from hudi_core.request.results import Result
from hudi_core.storage.base import FileInfo
from hudi_core.timeline.instant import Instant

T = TypeVar("T")
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait for another process, in seconds. Every `poll_interval` it is found out whether another attempt
    is worth it: of an instant, when the owner releases it, or shows no sign of life for `takeover_after`; the job then
    takes it over, or finds the owner alive. `timeout` counts from the first wait.
    """

    poll_interval: float = 15.0
    takeover_after: float = 180.0
    timeout: float = 7200.0


@dataclass(frozen=True, slots=True)
class Held:
    """An attempt that others kept from its work: `who` is waited for, what the log `says` by the seconds left, whether
    another attempt is worth it, and what is raised in the end.
    """

    who: str
    says: Callable[[float], str]
    too_long: HudiInstantBusy
    is_over: Callable[[], bool] = lambda: True


def wait_for_others(attempt: Callable[[], T | Held], is_stopped: Callable[[], bool], patience: Patience) -> T:
    """What the first attempt came to that was not held up. Raises HudiJobKilled, HudiInstantBusy."""
    deadline: float | None = None
    reminder = Reminder(time.monotonic)
    while isinstance(result := attempt(), Held):
        # From here, and not from the first attempt: its work may have taken longer than a task waits.
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
    """A completed instant; `elsewhere`: another process completed it."""

    instant: Instant
    elsewhere: bool


class InstantWatch:
    def __init__(self, reader: TimelineReader, requested_time: str, action: str) -> None:
        self.requested_time = requested_time
        self.reader = reader
        self.action = action

    def look(self) -> Instant:
        """The instant as it is now. Raises HudiInstantNotFound when it is missing, or one of another action."""
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
        """Whether claims of the instant are there; a run that ends behind its completion removes them last."""
        return bool(self._claim_files())

    def is_released(self) -> bool:
        return is_released(info.name for info in self._claim_files())

    def signs_of_life(self) -> Hashable:
        """Changes while a job works on the instant: its claims and heartbeats with their modification times."""
        storage = self.reader.storage
        beats = [info for info in storage.list_files(HUDI_HEARTBEATS) if info.name == self.requested_time]
        return tuple((info.path, info.modified) for info in [*self._claim_files(), *beats])

    def _claim_files(self) -> list[FileInfo]:
        return self.reader.storage.list_files(ClaimFolder(self.requested_time).path)


def run_until_completed(job: EngineJob, watch: InstantWatch, patience: Patience) -> Finished:
    """The completed instant: the timeline decides, also where the job failed behind its commit. Raises HudiJobFailed,
    HudiJobKilled, HudiInstantBusy, HudiInstantNotFound; HudiInputRefused.
    """
    by_others: list[Instant] = []
    """The instant, once others have completed it while this task waited."""

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
    """Of a job to which others were in the way. Raises HudiInputRefused, HudiJobFailed for one that failed."""
    reason, fate = failure_of(job.result) or UNSAID, fate_of(code)
    if fate is Fate.FAILS_FOR_GOOD:
        raise refused(job.result)
    if fate is not Fate.WAITS:
        raise HudiJobFailed(f"the job ended with exit code {code}{still}: {reason}")
    return reason


def _held(watch: InstantWatch, instant: Instant, by_others: list[Instant], patience: Patience) -> Held:
    """An instant that another process runs: it is waited for until it is completed, which goes to `by_others`, or its
    owner has released it or shows no sign of life. Only changes count, so the clocks need not agree.
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
    """No later task runs that instant. The job does nothing where the owner may be alive."""
    try:
        if watch.is_claimed():
            log.info("The job ended right behind the completion of %s; running it to clean up", watch.requested_time)
            job.run()
    except Exception as error:  # noqa: BLE001 (the instant is completed)
        log.warning("What the job left of instant %s was not cleaned up: %s", watch.requested_time, error)


def run_until_done(job: EngineJob, patience: Patience, *, enough: Callable[[], bool] = lambda: False) -> Result | None:
    """What the job reported; None when it was not received, or others have done the work. It is run again while others
    hold what it needs, unless `enough` says that the timeline shows the work. Raises as run_until_completed.
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
    """The exit code of the job. Raises HudiJobKilled where it was stopped."""
    code = job.run()
    if job.stopped:
        raise HudiJobKilled("stopped while its job was running", remedy="a retry resumes what was started")
    return code
