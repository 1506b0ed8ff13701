from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from airflow_hudi.jobs import waiting
from airflow_hudi.jobs.waiting import Finished, InstantWatch, Patience, run_until_completed, run_until_done
from airflow_hudi.task_fate import (
    HudiInputRefused,
    HudiInstantBusy,
    HudiInstantNotFound,
    HudiJobFailed,
    HudiJobKilled,
)
from airflow_hudi.timeline_reader import TimelineReader
from hudi_core.errors import ConflictError, ExecutionError, FormatError, StorageError
from hudi_core.model.names import CLAIMS, HUDI_HEARTBEATS
from hudi_core.request.results import InstantResult, Result
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.instant import Instant
from hudi_core.transaction.claim import claim
from hudi_core.transaction.owner import Owner

T = "20260102000000000"
PATIENCE = Patience(poll_interval=10, takeover_after=60, timeout=300)


FULL = Result.of_error(ExecutionError("the disk is full"))


class ScriptedJob:
    """Ends with each of the codes in turn; `during` happens while it runs."""

    subject = "run compaction of a table"

    def __init__(self, *codes: int, during: Callable[[], None] | None = None) -> None:
        self.codes = list(codes)
        self.runs = 0
        self.stopped = False
        self.result: Result | None = FULL
        self._during = during

    def run(self) -> int:
        self.runs += 1
        if self._during is not None:
            self._during()
        return self.codes.pop(0)


class Time:
    """A clock that sleeping moves; `events` happen when it passes their second."""

    def __init__(self, events: dict[float, Callable[[], None]] | None = None) -> None:
        self.now = 0.0
        self._events = dict(events or {})

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        for moment in sorted(self._events):
            if moment <= self.now:
                self._events.pop(moment)()


@pytest.fixture
def complete(put: Callable[..., None]) -> Callable[[], None]:
    put(f"{T}.compaction.requested")
    return lambda: put(f"{T}.commit", b"{}")


def drive(table: Path, job: ScriptedJob, time: Time | None = None) -> Instant:
    return finish(table, job, time).instant


def finish(table: Path, job: ScriptedJob, time: Time | None = None) -> Finished:
    time = time or Time()
    watch = InstantWatch(TimelineReader(LocalStorage(table)), T, "compaction")
    with patch.object(waiting, "time", SimpleNamespace(monotonic=lambda: time.now, sleep=time.sleep)):
        return run_until_completed(job, watch, PATIENCE)


def touch(table: Path, folder: str, name: str, content: str = "") -> None:
    path = table / folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def test_a_job_that_completes_the_instant(table: Path, complete: Callable[[], None]) -> None:
    assert drive(table, ScriptedJob(0, during=complete)).is_completed


@pytest.mark.parametrize("code", [1, 2, 3, 137])
def test_the_timeline_is_believed_more_than_the_exit_code(table: Path, complete: Callable[[], None], code: int) -> None:
    assert drive(table, ScriptedJob(code, during=complete)).is_completed


class Broken(ScriptedJob):
    """Its second run cannot be started."""

    def run(self) -> int:
        if self.runs:
            self.runs += 1
            raise HudiJobFailed("no cluster")
        return super().run()


@pytest.mark.parametrize(
    ("job", "stopped", "claimed", "runs"),
    [
        (ScriptedJob(137, 0), False, True, 2),
        (ScriptedJob(1, 1), False, True, 2),
        (Broken(1), False, True, 2),
        (ScriptedJob(137, 0), False, False, 1),
        (ScriptedJob(143, 0), True, True, 1),
        (ScriptedJob(0, 0), False, True, 1),
        (ScriptedJob(3, 0), False, True, 1),
    ],
)
def test_a_job_that_dies_behind_the_completion_is_run_again_to_clean_up(
    table: Path, complete: Callable[[], None], job: ScriptedJob, stopped: bool, claimed: bool, runs: int
) -> None:
    """With exit code 3 another process is at work on the instant, and with 0 all was done."""
    complete()
    if claimed:
        touch(table, f"{CLAIMS}/{T}", "000001.json")
    job.stopped = stopped
    assert drive(table, job).is_completed
    assert job.runs == runs


def test_a_storage_that_lists_no_claims_fails_no_completed_task(
    table: Path, complete: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_claimed(_: InstantWatch) -> bool:
        raise StorageError("throttled")

    monkeypatch.setattr(InstantWatch, "is_claimed", is_claimed)
    job = ScriptedJob(1, during=complete)
    assert drive(table, job).is_completed
    assert job.runs == 1


@pytest.mark.parametrize("code", [0, 1, 137, -9])
def test_a_job_that_leaves_the_instant_pending_failed(table: Path, complete: Callable[[], None], code: int) -> None:
    with pytest.raises(HudiJobFailed, match=f"exit code {code}.*the disk is full"):
        drive(table, ScriptedJob(code))


def test_refused_input_is_an_error_of_its_own(table: Path, complete: Callable[[], None]) -> None:
    job = ScriptedJob(2)
    with pytest.raises(HudiInputRefused, match="the disk is full"):
        drive(table, job)
    job = ScriptedJob(2)
    job.result = Result.of_error(FormatError("it is cut", path="a.avro", remedy="restore it"))
    with pytest.raises(HudiInputRefused) as refused:
        drive(table, job)
    assert (str(refused.value), refused.value.exit_code) == ("a.avro: it is cut (restore it)", 2)


def test_a_stopped_job_is_killed_not_failed(table: Path, complete: Callable[[], None]) -> None:
    job = ScriptedJob(143)
    job.stopped = True
    with pytest.raises(HudiJobKilled):
        drive(table, job)


def test_a_vanished_instant_is_named(table: Path) -> None:
    with pytest.raises(HudiInstantNotFound, match=T):
        drive(table, ScriptedJob(1))


def test_another_process_completes_it(
    table: Path, complete: Callable[[], None], caplog: pytest.LogCaptureFixture
) -> None:
    """The wait is logged at once, and each half minute."""
    caplog.set_level("INFO")
    job, time = ScriptedJob(3), Time({45: complete})
    assert finish(table, job, time).elsewhere
    assert job.runs == 1
    assert time.now == 50
    waits = [record.getMessage() for record in caplog.records if record.getMessage().startswith("Waiting for")]
    what = f"Waiting for compaction {T} of {table}, which is requested, claimed by no process now: the last "
    assert waits == [
        f"{what}sign of life is 0 s old; it is taken over after 60 s, and this task waits for up to 300 s more",
        f"{what}sign of life is 30 s old; it is taken over after 60 s, and this task waits for up to 270 s more",
    ]


def test_a_wait_names_the_owner(
    table: Path, complete: Callable[[], None], put: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    put(f"{T}.compaction.inflight")
    held = claim(LocalStorage(table), T, Owner.current("airflow:a/b"), interval_ms=60_000, tolerable_misses=2)
    with held:
        os.utime(table / CLAIMS / T / "000001.json", (0, 0))
        finish(table, ScriptedJob(3), Time({45: complete}))
    (first, _) = [text for text in caplog.messages if text.startswith("Waiting for")]
    owner = f"airflow:a/b (process {os.getpid()} on {Owner.current().host})"
    assert f"of {table}, which is inflight, run by {owner} since 1970-01-01T00:00:00Z: the last sign" in first


def test_who_completed_it_is_known(table: Path, complete: Callable[[], None]) -> None:
    assert finish(table, ScriptedJob(3, during=complete)).elsewhere
    assert not finish(table, ScriptedJob(0)).elsewhere
    loser = ScriptedJob(0)
    loser.result = Result((InstantResult(T, "compaction", "completed", already_completed=True),))
    assert finish(table, loser).elsewhere


def test_an_instant_of_another_action_is_named(table: Path, put: Callable[..., None]) -> None:
    put(f"{T}.deltacommit.requested")
    with pytest.raises(HudiInstantNotFound, match=f"instant {T} is a deltacommit, no compaction"):
        InstantWatch(TimelineReader(LocalStorage(table)), T, "compaction").look()


def test_a_dead_owner_is_taken_over(table: Path, complete: Callable[[], None]) -> None:
    job = ScriptedJob(3, 0)
    time = Time()
    runs = iter([lambda: None, complete])
    job._during = lambda: next(runs)()
    assert drive(table, job, time).is_completed
    assert job.runs == 2
    assert time.now == PATIENCE.takeover_after


def test_an_instant_that_its_owner_let_go_of_is_taken_up_at_once(table: Path, complete: Callable[[], None]) -> None:
    for name in ("000001.json", "000001.released", "000002.json"):
        touch(table, f"{CLAIMS}/{T}", name)
    runs = iter([lambda: None, complete])
    job = ScriptedJob(3, 0, during=lambda: next(runs)())
    time = Time({30: lambda: touch(table, f"{CLAIMS}/{T}", "000002.released")})
    assert drive(table, job, time).is_completed
    assert time.now == 30


@pytest.mark.parametrize(("folder", "name"), [(f"{CLAIMS}/{T}", "000001.heartbeat"), (HUDI_HEARTBEATS, T)])
def test_a_living_owner_is_waited_for(table: Path, complete: Callable[[], None], folder: str, name: str) -> None:
    def beat(moment: int) -> Callable[[], None]:
        def happen() -> None:
            touch(table, folder, name)
            os.utime(table / folder / name, (moment, moment))

        return happen

    job, time = ScriptedJob(3), Time({**{float(moment): beat(moment) for moment in range(0, 200, 40)}, 200.0: complete})
    assert drive(table, job, time).is_completed
    assert job.runs == 1


def test_heartbeats_of_other_instants_are_no_life(table: Path, complete: Callable[[], None]) -> None:
    events = {
        float(moment): (lambda moment=moment: touch(table, HUDI_HEARTBEATS, f"other{moment}"))
        for moment in range(0, 100, 10)
    }
    job, time = ScriptedJob(3, 1), Time(events)
    with pytest.raises(HudiJobFailed):
        drive(table, job, time)
    assert job.runs == 2


def test_the_wait_ends(table: Path, complete: Callable[[], None]) -> None:
    job, time = ScriptedJob(3, 3, 3, 3, 3, 3, 3), Time()
    with pytest.raises(HudiInstantBusy):
        drive(table, job, time)
    assert time.now >= PATIENCE.timeout


def test_a_task_that_is_stopped_while_waiting_stops_waiting(table: Path, complete: Callable[[], None]) -> None:
    job = ScriptedJob(3)
    time = Time({20: lambda: setattr(job, "stopped", True)})
    with pytest.raises(HudiJobKilled):
        drive(table, job, time)
    assert time.now == 20


REPORT_PATIENCE = Patience(poll_interval=10, timeout=35)


NOTHING = Result(reason="no old files")
HELD = Result.of_error(ConflictError("another writer holds the lock"))


class ReportingJob:
    """Ends with each of the codes in turn."""

    subject = "run clean of a table"

    def __init__(self, *codes: int) -> None:
        self.codes = list(codes)
        self.runs = 0
        self.stopped = False
        self.result: Result | None = None
        self.silent = False

    def run(self) -> int:
        self.runs += 1
        code = self.codes.pop(0)
        self.result = None if self.silent else HELD if code else NOTHING
        return code


class InterruptedTime:
    def __init__(self, during: Callable[[], None] = lambda: None) -> None:
        self.now = 0.0
        self._during = during

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self._during()


def drive_until_done(job: ReportingJob, time: InterruptedTime | None = None, **more: Any) -> Result | None:
    time = time or InterruptedTime()
    with patch.object(waiting, "time", SimpleNamespace(monotonic=lambda: time.now, sleep=time.sleep)):
        return run_until_done(job, REPORT_PATIENCE, **more)


def test_the_result_is_what_the_job_says() -> None:
    assert drive_until_done(ReportingJob(0)) == NOTHING
    silent = ReportingJob(0)
    silent.silent = True
    assert drive_until_done(silent) is None


def test_a_conflict_is_tried_again_until_the_wait_is_over() -> None:
    time = InterruptedTime()
    job = ReportingJob(3, 3, 0)
    assert drive_until_done(job, time) == NOTHING
    assert (job.runs, time.now) == (3, 20)
    with pytest.raises(HudiInstantBusy, match="another writer holds the lock"):
        drive_until_done(ReportingJob(3, 3, 3, 3, 3, 3))


def test_a_conflict_is_logged_at_once_and_each_half_minute(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    drive_until_done(ReportingJob(3, 3, 3, 3, 0))
    what = "Waiting to run clean of a table: another writer holds the lock; it is tried again in 10 s, and this task"
    assert caplog.messages == [f"{what} waits for up to 35 s more", f"{what} waits for up to 5 s more"]


def test_a_conflict_is_enough_when_the_timeline_has_what_was_requested() -> None:
    job = ReportingJob(3)
    assert drive_until_done(job, enough=lambda: True) is None
    assert job.runs == 1


def test_failures_differ_by_their_errors() -> None:
    with pytest.raises(HudiInputRefused, match="another writer holds the lock"):
        drive_until_done(ReportingJob(2))
    with pytest.raises(HudiJobFailed, match="exit code 137"):
        drive_until_done(ReportingJob(137))


def test_a_stopped_job_without_an_instant_is_killed_not_failed() -> None:
    job = ReportingJob(143)
    job.stopped = True
    with pytest.raises(HudiJobKilled):
        drive_until_done(job)
    waiting = ReportingJob(3, 0)
    with pytest.raises(HudiJobKilled):
        drive_until_done(waiting, InterruptedTime(lambda: setattr(waiting, "stopped", True)))
    assert waiting.runs == 1
