"""Races of many writers for one thing, round by round, and the mistake that they must find: look, then write."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from hudi_core.errors import HudiError, LockError, StorageConflictError, StorageExistsError
from hudi_core.storage.base import Storage
from hudi_core.transaction.locks.base import TableLock

Round = list[int]
"""The numbers of the writers that won it."""


class CheckThenPut:
    """Any storage, with conditional writes that look first and write then."""

    def __init__(self, inner: Storage, pause: float = 0.002) -> None:
        self._inner = inner
        self._pause = pause

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def create_exclusive(self, path: str, data: bytes) -> None:
        """Two writers may both see that nothing is there."""
        if self._inner.exists(path):
            raise StorageExistsError("there", path=path)
        time.sleep(self._pause)
        self._inner.write(path, data)

    def write_if(self, path: str, data: bytes, *, version: str | None) -> str:
        """Two writers may both see the version that they expect."""
        if version is None:
            self.create_exclusive(path, data)
        else:
            if self._inner.read_versioned(path)[1] != version:
                raise StorageConflictError("changed", path=path)
            time.sleep(self._pause)
            self._inner.write(path, data)
        return self._inner.read_versioned(path)[1]


def race(
    attempts: Sequence[Callable[[int], bool]], rounds: int, after: Callable[[int, int], None] | None = None
) -> list[Round]:
    """Lets all writers try at the same moment, in each round; `attempts[writer](round)` says whether it won.

    `after(writer, round)` runs in each winner once all have tried, and before the next round begins. An error of any of
    them is raised.
    """
    barrier = threading.Barrier(len(attempts))
    found: list[Round] = [[] for _ in range(rounds)]
    failures: list[BaseException] = []

    def run(writer: int) -> None:
        try:
            for number in range(rounds):
                barrier.wait(120)
                won = attempts[writer](number)
                if won:
                    found[number].append(writer)
                barrier.wait(120)
                if won and after is not None:
                    after(writer, number)
        except threading.BrokenBarrierError:
            return  # another writer's failure is the one to tell
        except BaseException as error:  # noqa: BLE001 (raised below)
            failures.append(error)
            barrier.abort()

    threads = [threading.Thread(target=run, args=(writer,)) for writer in range(len(attempts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return found


def race_for_creates(storage: Storage, writers: int, rounds: int) -> list[Round]:
    """Races for one new file of the timeline per round; a winner is one whose call succeeded."""

    def attempt(writer: int) -> Callable[[int], bool]:
        def create(number: int) -> bool:
            try:
                storage.create_exclusive(f".hoodie/{20260101000000000 + number}.commit", str(writer).encode())
            except StorageExistsError:
                return False
            return True

        return create

    return race([attempt(writer) for writer in range(writers)], rounds)


def race_for_lock(locks: Sequence[TableLock], rounds: int, *, strict: bool = True) -> list[Round]:
    """Races for one lock per round; the winner keeps it until all have tried. Unless `strict`, a winner that lost it
    afterwards is let be.
    """

    def attempt(lock: TableLock) -> Callable[[int], bool]:
        def take(_: int) -> bool:
            try:
                lock.acquire()
            except LockError:
                return False
            return True

        return take

    def give_back(writer: int, _: int) -> None:
        lock = locks[writer]
        try:
            lock.check()
            if not lock.release():
                raise LockError("the lock was not ours at its release", path=lock.name)
        except HudiError:
            if strict:
                raise
            lock.release()

    return race([attempt(lock) for lock in locks], rounds, give_back)


def several(rounds: list[Round]) -> list[Round]:
    """The rounds that more than one writer won."""
    return [winners for winners in rounds if len(winners) > 1]


def fair(rounds: list[Round]) -> bool:
    """Whether each round had exactly one winner."""
    return all(len(winners) == 1 for winners in rounds)
