"""Runs a job again until its work is done: until the timeline shows its instant completed, by whichever process, or
until the job itself reports success where it has no instant of its own yet.

A retry of a task resumes the instant that task_store.py kept (operators/service.py), and a completed one is not run
again. Whether the job may take an instant over from a dead owner is decided on the cluster
(hudi_core/transaction/claim.py).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Protocol

from airflow_hudi.exceptions import (
    HudiInputRefused,
    HudiInstantBusy,
    HudiInstantNotFound,
    HudiJobFailed,
    HudiJobKilled,
)
from airflow_hudi.results import found_completed
from airflow_hudi.timeline_reader import TimelineReader
from hudi_core.errors import EXIT_BAD_INPUT, EXIT_RETRY, Reminder
from hudi_core.model.claim_names import HUDI_HEARTBEATS, ClaimFolder, is_released
from hudi_core.request.results import BatchResult, JobResult, Result, error_from_json
from hudi_core.storage.base import FileInfo
from hudi_core.timeline.instant import Instant

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
    def failure(self) -> str | None:
        """Why the last run failed, in the job's own words; None when it did not report."""
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
    """How long to wait for another process that runs the instant, in seconds.

    Every `poll_interval` the timeline is read. When the owner releases the instant, or shows no sign of life for
    `takeover_after`, the job is run again: it takes the instant over, or finds the owner alive. `timeout` ends the
    wait.
    """

    poll_interval: float = 15.0
    takeover_after: float = 180.0
    timeout: float = 7200.0


@dataclass(frozen=True, slots=True)
class Finished:
    """A completed instant; `elsewhere`: another process completed it."""

    instant: Instant
    elsewhere: bool


class InstantWatch:
    """One instant of one table, as seen from outside the job."""

    def __init__(self, reader: TimelineReader, requested_time: str, action: str) -> None:
        self.requested_time = requested_time
        self._reader = reader
        self.action = action

    def look(self) -> Instant:
        """The instant as it is now. Raises HudiInstantNotFound when it is missing, or one of another action."""
        timeline = self._reader.load()
        found = timeline.find(self.requested_time, self.action)
        if found is not None:
            return found
        uri = self._reader.storage.uri
        other = next((item for item in timeline if item.requested_time == self.requested_time), None)
        if other is not None:
            raise HudiInstantNotFound(
                f"instant {self.requested_time} is a {other.action}, no {self.action}",
                path=uri,
                remedy=f"name the instant of a {self.action}; `hudictl timeline {uri}` lists them",
            )
        raise HudiInstantNotFound(
            f"the timeline holds no {self.action} at instant {self.requested_time}",
            path=uri,
            remedy=f"it never was there, was dropped, or is archived: `hudictl timeline {uri} --archived`",
        )

    def at_work(self) -> str | None:
        """Who runs the instant, and since when; see TimelineReader.at_work."""
        return self._reader.at_work(self.requested_time)

    @property
    def table(self) -> str:
        """The table's address."""
        return self._reader.storage.uri

    def is_claimed(self) -> bool:
        """Whether claims of the instant are there; a run that ends behind its completion removes them last."""
        return bool(self._claim_files())

    def is_released(self) -> bool:
        """Whether the last job of ours that claimed the instant has let go of it."""
        return is_released(info.name for info in self._claim_files())

    def signs_of_life(self) -> Hashable:
        """Something that changes while a job works on the instant: its claims and heartbeats with their modification
        times.
        """
        storage = self._reader.storage
        beats = [info for info in storage.list_files(HUDI_HEARTBEATS) if info.name == self.requested_time]
        return tuple((info.path, info.modified) for info in [*self._claim_files(), *beats])

    def _claim_files(self) -> list[FileInfo]:
        return self._reader.storage.list_files(ClaimFolder(self.requested_time).path)


def run_until_completed(
    job: Job,
    watch: InstantWatch,
    patience: Patience,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Finished:
    """The completed instant.

    The timeline decides: a job that failed after its commit, or whose work another process finished, has succeeded.
    Raises HudiJobFailed, HudiJobKilled, HudiInstantBusy, HudiInstantNotFound; HudiInputRefused.
    """
    deadline = clock() + patience.timeout
    while True:
        code = job.run()
        instant = watch.look()
        if instant.is_completed:
            elsewhere = code == EXIT_RETRY or found_completed(job.result, watch.requested_time)
            if code not in (0, EXIT_RETRY) and not job.stopped:
                _clean_up_behind(job, watch)
            return Finished(instant, elsewhere)
        if job.stopped:
            raise HudiJobKilled(
                f"stopped while running {watch.action} {watch.requested_time}", remedy="a retry takes the instant over"
            )
        reason = job.failure or "it did not report why; see its output above"
        if code == EXIT_BAD_INPUT:
            raise refused(job)
        if code != EXIT_RETRY:
            raise HudiJobFailed(
                f"the job ended with exit code {code}, instant {watch.requested_time} is still {instant.state.value}: "
                f"{reason}"
            )
        log.info("The job gave way at instant %s: %s", watch.requested_time, reason)
        outcome = _wait(job, watch, instant, patience, deadline, clock, sleep)
        if outcome is not None:
            return Finished(outcome, elsewhere=True)


def _clean_up_behind(job: Job, watch: InstantWatch) -> None:
    """Runs the job once more where it completed the instant and was cut off before it had cleaned up: no later task
    runs that instant. It does nothing where the owner may be alive. The instant is completed whatever comes of it.
    """
    try:
        if watch.is_claimed():
            log.info("The job ended right behind the completion of %s; running it to clean up", watch.requested_time)
            job.run()
    except Exception as error:  # noqa: BLE001 (the instant is completed)
        log.warning("What the job left of instant %s was not cleaned up: %s", watch.requested_time, error)


def _wait(
    job: Job,
    watch: InstantWatch,
    instant: Instant,
    patience: Patience,
    deadline: float,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> Instant | None:
    """The instant once it is completed, or None when its owner released it or shows no sign of life.

    Only changes count, so the clocks need not agree.
    """
    last_life, since = watch.signs_of_life(), clock()
    reminder = Reminder(clock)
    while True:
        if job.stopped:
            raise HudiJobKilled(f"stopped while waiting for instant {watch.requested_time}")
        if clock() >= deadline:
            raise HudiInstantBusy(
                f"another process has been running instant {watch.requested_time} for longer than this task may wait",
                remedy="a retry waits again; see which process runs it with `hudictl show`",
            )
        if reminder.is_due():
            log.info(
                "Waiting for %s %s of %s, which is %s, %s: the last sign of life is %.0f s old; it is taken over after "
                "%.0f s, and this task waits for up to %.0f s more",
                watch.action,
                watch.requested_time,
                watch.table,
                instant.state.value,
                watch.at_work() or "claimed by no process now",
                clock() - since,
                patience.takeover_after,
                deadline - clock(),
            )
        sleep(patience.poll_interval)
        instant = watch.look()
        if instant.is_completed:
            return instant
        if watch.is_released():
            log.info("Instant %s is free again; running the job", watch.requested_time)
            return None
        life = watch.signs_of_life()
        if life != last_life:
            last_life, since = life, clock()
        elif clock() - since >= patience.takeover_after:
            log.info(
                "No sign of life at instant %s for %.0f s; running the job again", watch.requested_time, clock() - since
            )
            return None


def refused(job: Job) -> HudiInputRefused:
    """The error of a job that refused its input, as the job said it."""
    result = job.result.stopped if isinstance(job.result, BatchResult) else job.result
    if result is None or result.error is None:
        return HudiInputRefused(job.failure or "the job refused its input and did not say why; see its output above")
    error = error_from_json(result.error)
    return HudiInputRefused(error.message, path=error.path, remedy=error.remedy)


def run_until_done(
    job: Job,
    patience: Patience,
    *,
    enough: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Result | None:
    """What the job reported; None when it was not received, or others have done the work.

    While others hold what the job needs it is run again, unless `enough` says that the timeline shows the
    requested work. Raises HudiJobFailed, HudiJobKilled, HudiInstantBusy; HudiInputRefused.
    """
    deadline = clock() + patience.timeout
    reminder = Reminder(clock)
    while True:
        code = job.run()
        if job.stopped:
            raise HudiJobKilled("stopped while its job was running", remedy="a retry resumes what was started")
        if code == 0:
            return job.result if isinstance(job.result, Result) else None
        reason = job.failure or "it did not report why; see its output above"
        if code == EXIT_BAD_INPUT:
            raise refused(job)
        if code != EXIT_RETRY:
            raise HudiJobFailed(f"the job ended with exit code {code}: {reason}")
        if enough():
            return None
        if clock() >= deadline:
            raise HudiInstantBusy(
                f"others have held the table for longer than this task may wait: {reason}", remedy="a retry waits again"
            )
        if reminder.is_due():
            log.info(
                "Waiting to %s: %s; it is tried again in %.0f s, and this task waits for up to %.0f s more",
                job.subject,
                reason,
                patience.poll_interval,
                deadline - clock(),
            )
        sleep(patience.poll_interval)
        if job.stopped:
            raise HudiJobKilled("stopped while waiting for others")
