from __future__ import annotations

import logging
import threading
import time

import pytest

from hudi_core.errors import StorageError
from hudi_core.transaction.locks.renewal import Renewal
from tests.support.fault_storage import InjectedCrash


def wait_for(condition: threading.Event) -> None:
    assert condition.wait(10)


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


def test_a_failure_is_told_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
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
