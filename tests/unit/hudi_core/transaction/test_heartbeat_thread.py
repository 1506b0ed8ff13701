from __future__ import annotations

import logging
import threading
import time

import pytest

from hudi_core.errors import ConflictError, StorageError
from hudi_core.transaction.heartbeat_thread import Heartbeat, Renewal
from tests.support.fault_storage import InjectedCrash


def wait_for(condition: threading.Event) -> None:
    assert condition.wait(20)


def test_it_beats_at_once_and_again_until_stopped() -> None:
    third = threading.Event()
    beats: list[float] = []

    def beat() -> None:
        beats.append(time.monotonic())
        if len(beats) >= 3:
            third.set()

    heartbeat = Heartbeat(beat, interval_seconds=0.01, tolerance_seconds=30, name="x")
    heartbeat.start()
    assert beats
    wait_for(third)
    heartbeat.check()
    heartbeat.stop()
    heartbeat.stop()
    count = len(beats)
    time.sleep(0.05)
    assert len(beats) == count


def test_the_first_failure_is_raised_at_once() -> None:
    def beat() -> None:
        raise StorageError("down")

    with pytest.raises(StorageError, match="down"):
        Heartbeat(beat, interval_seconds=1, tolerance_seconds=1, name="x").start()


def test_later_failures_are_borne_until_others_may_think_it_dead() -> None:
    failed, healed, down = threading.Event(), threading.Event(), threading.Event()

    def beat() -> None:
        if down.is_set():
            failed.set()
            raise StorageError("down")
        if failed.is_set():
            healed.set()

    heartbeat = Heartbeat(beat, interval_seconds=0.01, tolerance_seconds=30, name="x")
    heartbeat.start()
    down.set()
    wait_for(failed)
    heartbeat.check()
    heartbeat._last -= 60
    with pytest.raises(ConflictError, match="down"):
        heartbeat.check()
    down.clear()
    wait_for(healed)
    heartbeat.stop()
    heartbeat.check()


def test_a_crash_of_the_process_in_the_thread_is_raised_by_the_next_check() -> None:
    beats: list[int] = []
    crashed = threading.Event()

    def beat() -> None:
        beats.append(1)
        if len(beats) > 1:
            crashed.set()
            raise InjectedCrash

    heartbeat = Heartbeat(beat, interval_seconds=0.01, tolerance_seconds=30, name="x")
    heartbeat.start()
    wait_for(crashed)
    heartbeat.stop()
    with pytest.raises(InjectedCrash):
        heartbeat.check()
    assert len(beats) == 2


def test_it_calls_until_it_is_stopped() -> None:
    calls: list[float] = []
    third = threading.Event()

    def renew() -> bool:
        calls.append(time.monotonic())
        if len(calls) == 3:
            third.set()
        return True

    renewal = Renewal(renew, interval_seconds=0.01, name="x")
    renewal.start()
    wait_for(third)
    renewal.stop()
    renewal.stop()
    count = len(calls)
    time.sleep(0.05)
    assert len(calls) == count


def test_a_failure_is_logged_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    again = threading.Event()
    failures = [StorageError("no answer", path="x")]

    def renew() -> bool:
        if failures:
            raise failures.pop()
        again.set()
        return True

    with caplog.at_level(logging.WARNING):
        renewal = Renewal(renew, interval_seconds=0.01, name="the lease")
        renewal.start()
        wait_for(again)
        renewal.stop()
    assert "the lease was not renewed, it is tried again: x: no answer" in caplog.text


@pytest.mark.parametrize("ends", ["false", "crash"])
def test_a_lost_lease_or_a_dying_process_ends_it(ends: str) -> None:
    calls: list[int] = []

    def renew() -> bool:
        calls.append(1)
        if ends == "crash":
            raise InjectedCrash("dead")
        return False

    renewal = Renewal(renew, interval_seconds=0.01, name="x")
    renewal.start()
    deadline = time.monotonic() + 10
    while renewal._thread.is_alive() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert calls == [1]
    renewal.stop()


def test_stopping_it_from_within_does_not_wait_for_itself() -> None:
    stopped = threading.Event()
    holder: list[Renewal] = []

    def renew() -> bool:
        holder[0].stop()
        stopped.set()
        return True

    holder.append(Renewal(renew, interval_seconds=0.01, name="x"))
    holder[0].start()
    wait_for(stopped)
    holder[0].stop()
