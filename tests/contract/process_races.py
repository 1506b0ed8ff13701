"""Races of processes and of threads for new files of a local storage."""

from __future__ import annotations

import multiprocessing
import threading
from pathlib import Path
from typing import Any

from hudi_core.errors import StorageExistsError
from hudi_core.storage.base import Storage
from hudi_core.storage.local import LocalStorage


def _racing_process(kind: type[LocalStorage], root: str, number: int, rounds: int, barrier: Any, wins: Any) -> None:
    storage = kind(root)
    for round_number in range(rounds):
        barrier.wait(60)
        try:
            storage.create_exclusive(f"race/{round_number}", bytes([number]) * 20_000)
        except StorageExistsError:
            pass
        else:
            wins.put((round_number, number))
        found = storage.read(f"race/{round_number}")
        if len(found) != 20_000 or len(set(found)) != 1:
            wins.put((round_number, -1))
    wins.put(None)


def race_processes(kind: type[LocalStorage], root: Path, racers: int, rounds: int) -> dict[int, list[int]]:
    """Races processes over a file in each round; per round the numbers of those that believe they won, -1 for a reader
    who saw a part.
    """
    context = multiprocessing.get_context("fork")
    barrier, wins = context.Barrier(racers), context.Queue()
    processes = [
        context.Process(target=_racing_process, args=(kind, str(root), number, rounds, barrier, wins))
        for number in range(racers)
    ]
    for process in processes:
        process.start()
    found: dict[int, list[int]] = {number: [] for number in range(rounds)}
    finished = 0
    while finished < racers:
        win = wins.get(timeout=120)
        if win is None:
            finished += 1
        else:
            found[win[0]].append(win[1])
    for process in processes:
        process.join()
    return found


def race_threads(storage: Storage, path: str, racers: int, size: int) -> list[int]:
    """Lets threads create `path` at the same moment; returns the winners' numbers."""
    barrier = threading.Barrier(racers)
    winners: list[int] = []
    failures: list[Exception] = []

    def create(number: int) -> None:
        barrier.wait()
        try:
            storage.create_exclusive(path, bytes([number]) * size)
        except StorageExistsError:
            return
        except Exception as error:  # noqa: BLE001 (a thread cannot raise to its caller)
            failures.append(error)
            return
        winners.append(number)

    threads = [threading.Thread(target=create, args=(number,)) for number in range(racers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    return winners
