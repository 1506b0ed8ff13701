"""Processes that take part in the races for locks and claims, and such that are killed while they hold one."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hudi_core.errors import ConflictError
from hudi_core.storage.local import LocalStorage
from hudi_core.transaction.claim import claim
from hudi_core.transaction.locks.filesystem import FileSystemLock
from hudi_core.transaction.owner import Owner

FORK = multiprocessing.get_context("fork")


def run_all(target: Callable[..., None], racers: int, *arguments: Any) -> None:
    """Runs `target(number, barrier, *arguments)` in `racers` processes; all must end well."""
    barrier = FORK.Barrier(racers)
    processes = [FORK.Process(target=target, args=(number, barrier, *arguments)) for number in range(racers)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0] * racers


def race_for_claims(
    number: int, barrier: Any, root: str, rounds: int, wins: Any, kind: type[LocalStorage] = LocalStorage
) -> None:
    """Claims one instant per round, all at the same moment, and keeps what it won until all have tried."""
    storage = kind(root)
    for instant in range(1, rounds + 1):
        barrier.wait(60)
        try:
            won = claim(storage, str(instant), Owner.current(f"racer {number}"))
        except ConflictError:
            won = None
        else:
            wins.put((instant, number))
        barrier.wait(60)
        if won is not None:
            won.release()


def count_under_lock(
    number: int, barrier: Any, root: str, rounds: int, kind: type[LocalStorage] = LocalStorage
) -> None:
    """Adds one to a counter, by reading and writing it, `rounds` times under the lock."""
    storage = kind(root)
    counter = Path(root) / "counter"
    barrier.wait(60)
    for _ in range(rounds):
        with FileSystemLock(storage, Owner.current(f"counter {number}"), wait_ms=60_000):
            value = int(counter.read_text())
            time.sleep(0.001)
            counter.write_text(str(value + 1))


def break_and_hold(number: int, barrier: Any, root: str, inside: Any, most: Any) -> None:
    """Takes a stale lock, all at the same moment; notes how many were inside at once."""
    storage = LocalStorage(root)
    barrier.wait(60)
    with FileSystemLock(storage, Owner.current(f"breaker {number}"), wait_ms=60_000):
        with inside.get_lock():
            inside.value += 1
            most.value = max(most.value, inside.value)
        time.sleep(0.01)
        with inside.get_lock():
            inside.value -= 1


def _hold(ready: Any, take: Callable[[], object]) -> None:
    held = take()
    ready.put(os.getpid())
    time.sleep(300)
    del held


class Holder:
    """A child that takes something, reports it, and sleeps until it is killed."""

    def __init__(self, take: Callable[[], object]) -> None:
        ready = FORK.Queue()
        self.process = FORK.Process(target=_hold, args=(ready, take), daemon=True)
        self.process.start()
        self.pid: int = ready.get(timeout=30)

    def kill(self, *, reap: bool = True) -> None:
        """SIGKILL. Without `reap` the child stays a zombie."""
        os.kill(self.pid, signal.SIGKILL)
        if reap:
            self.process.join(30)
        else:
            deadline = time.monotonic() + 30
            while Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
                assert time.monotonic() < deadline
                time.sleep(0.005)
