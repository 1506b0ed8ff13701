"""Runs a job again until its work is done: until the timeline shows its instant completed, by whichever process, or
until the job itself reports success where it has no instant of its own yet. How it waits for others: waiting.py.

A retry of a task resumes the instant that task_store.py kept (operators/service.py), and a completed one is not run
again. Whether the job may take an instant over from a dead owner is decided on the cluster
(hudi_core/transaction/claim.py).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from airflow_hudi.exceptions import HudiInstantBusy, HudiInstantNotFound, HudiJobFailed, HudiJobKilled
from airflow_hudi.jobs.waiting import Held, Job, Patience, wait_for_others
from airflow_hudi.results import found_completed
from airflow_hudi.task_fate import UNSAID, Fate, failure_of, fate_of, refused
from airflow_hudi.timeline_reader import TimelineReader
from hudi_core.model.names import HUDI_HEARTBEATS, ClaimFolder, is_released
from hudi_core.request.results import Result
from hudi_core.storage.base import FileInfo
from hudi_core.timeline.instant import Instant

log = logging.getLogger(__name__)


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
        if fate is Fate.FAILS_FOR_GOOD:
            raise refused(job.result)
        if fate is not Fate.WAITS:
            raise HudiJobFailed(
                f"the job ended with exit code {code}, instant {watch.requested_time} is still {instant.state.value}: "
                f"{failure_of(job.result) or UNSAID}"
            )
        log.info("The job gave way at instant %s: %s", watch.requested_time, failure_of(job.result) or UNSAID)
        return _held(watch, instant, by_others, patience, clock)

    return wait_for_others(attempt, lambda: job.stopped, patience, clock=clock, sleep=sleep)


def _held(
    watch: InstantWatch, instant: Instant, by_others: list[Instant], patience: Patience, clock: Callable[[], float]
) -> Held:
    """An instant that another process runs: it is waited for until it is completed, which goes to `by_others`, or its
    owner has released it or shows no sign of life. Only changes count, so the clocks need not agree.
    """
    life, since = watch.signs_of_life(), clock()

    def says(seconds: float) -> str:
        return (
            f"Waiting for {watch.action} {watch.requested_time} of {watch.table}, which is {instant.state.value}, "
            f"{watch.at_work() or 'claimed by no process now'}: the last sign of life is {clock() - since:.0f} s old; "
            f"it is taken over after {patience.takeover_after:.0f} s, and this task waits for up to {seconds:.0f} s "
            "more"
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
            life, since = now, clock()
            return False
        silent = clock() - since
        if silent >= patience.takeover_after:
            log.info("No sign of life at instant %s for %.0f s; running the job again", watch.requested_time, silent)
        return silent >= patience.takeover_after

    too_long = HudiInstantBusy(
        f"another process has been running instant {watch.requested_time} for longer than this task may wait",
        remedy="a retry waits again; see which process runs it with `hudictl show`",
    )
    return Held(f"instant {watch.requested_time}", says, too_long, is_over)


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

    def attempt() -> Result | Held | None:
        fate = fate_of(code := job.run())
        if job.stopped:
            raise HudiJobKilled("stopped while its job was running", remedy="a retry resumes what was started")
        if fate is Fate.DONE:
            return job.result if isinstance(job.result, Result) else None
        reason = failure_of(job.result) or UNSAID
        if fate is Fate.FAILS_FOR_GOOD:
            raise refused(job.result)
        if fate is not Fate.WAITS:
            raise HudiJobFailed(f"the job ended with exit code {code}: {reason}")
        if enough():
            return None
        too_long = HudiInstantBusy(
            f"others have held the table for longer than this task may wait: {reason}", remedy="a retry waits again"
        )
        return Held(
            "others",
            lambda seconds: (
                f"Waiting to {job.subject}: {reason}; it is tried again in {patience.poll_interval:.0f} s, "
                f"and this task waits for up to {seconds:.0f} s more"
            ),
            too_long,
        )

    return wait_for_others(attempt, lambda: job.stopped, patience, clock=clock, sleep=sleep)
