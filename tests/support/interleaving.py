"""Runs actors in an order that a seed decides, one storage operation at a time, and kills some of them: every
interleaving can be had again.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

from hudi_core.storage.base import Storage
from tests.support.fault_storage import FaultPlan, FaultStorage, InjectedCrash, Operation


class Interleaving:
    """Actors over one storage. `kills` is the chance that an operation is an actor's last."""

    def __init__(self, inner: Storage, seed: int, kills: float = 0.0) -> None:
        self._inner = inner
        self._random = random.Random(seed)
        self._kills = kills
        self._turns: list[threading.Semaphore] = []
        self._back = threading.Semaphore(0)
        self._threads: list[threading.Thread] = []
        self._ended: list[bool] = []
        self._doomed = False
        self.errors: list[BaseException] = []

    def add(self, act: Callable[[Storage], None]) -> None:
        """An actor. Errors that `act` does not handle, other than its being killed, fail `run`."""
        number = len(self._turns)
        self._turns.append(threading.Semaphore(0))
        self._ended.append(False)
        storage = FaultStorage(self._inner, FaultPlan(when=lambda operation: self._wait(number, operation)))

        def body() -> None:
            self._turns[number].acquire()
            try:
                act(storage)
            except InjectedCrash:
                pass
            except BaseException as error:  # noqa: BLE001 (run raises it)
                self.errors.append(error)
            finally:
                self._ended[number] = True
                self._back.release()

        self._threads.append(threading.Thread(target=body, daemon=True))

    def run(self) -> None:
        """Lets all actors come to their end."""
        for thread in self._threads:
            thread.start()
        sticky = self._random.random()  # some seeds let one actor run on for long, some switch at every operation
        actor = 0
        while not all(self._ended):
            alive = [number for number, ended in enumerate(self._ended) if not ended]
            if actor not in alive or self._random.random() > sticky:
                actor = self._random.choice(alive)
            self._doomed = self._random.random() < self._kills
            self._turns[actor].release()
            self._back.acquire()
        if self.errors:
            raise self.errors[0]

    def _wait(self, number: int, operation: Operation) -> bool:
        self._back.release()
        self._turns[number].acquire()
        return self._doomed
