from __future__ import annotations

import threading
import time

import pytest

from hudi_core.errors import ConflictError, StorageError
from hudi_core.transaction.heartbeat_thread import Heartbeat
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


def test_a_crash_of_the_process_in_the_thread_is_told_by_the_next_check() -> None:
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
