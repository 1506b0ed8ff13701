"""Runs units in threads of this process: the engine that needs no Spark."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from hudi_core.errors import ConfigError, ExecutionError, HudiError
from hudi_core.model.engine import Json, TaskAttempt, UnitTask


class LocalEngine:
    """See model.engine.Engine. Every unit is tried once; the first failure stops the units that have not begun.

    Threads do: the work is Arrow, NumPy, compression and I/O, which release the interpreter lock.
    """

    name = "local"

    def __init__(self, threads: int | None = None) -> None:
        """`threads` defaults to the number of processors; raises ConfigError when it is below 1."""
        if threads is not None and threads < 1:
            raise ConfigError(f"{threads} threads cannot run anything", remedy="give a number of threads of at least 1")
        self._threads = threads or os.cpu_count() or 1

    def run(self, task: UnitTask, units: Sequence[Json], *, run_epoch: int, progress: Callable[[int, int], None] | None = None) -> list[Json]:
        """See Engine.run. Results come in the order of `units`; raises the HudiError of the first unit that failed, else ExecutionError."""
        if not units:
            return []
        with ThreadPoolExecutor(max_workers=min(self._threads, len(units)), thread_name_prefix="unit") as pool:
            futures = {pool.submit(_run_unit, task, unit, TaskAttempt(index, run_epoch, index)): index for index, unit in enumerate(units)}
            try:
                _wait_for_all(futures, progress)
            finally:
                for future in futures:
                    future.cancel()
        return [future.result() for future in futures]


def _run_unit(task: UnitTask, unit: Json, attempt: TaskAttempt) -> Json:
    """Unit and result cross as JSON, as on Spark: a task cannot change what the caller holds, and every engine refuses the same values."""
    result: Json = json.loads(json.dumps(task(json.loads(json.dumps(unit)), attempt)))
    return result


def _wait_for_all(futures: dict[Future[Json], int], progress: Callable[[int, int], None] | None) -> None:
    waiting = set(futures)
    while waiting:
        finished, waiting = wait(waiting, return_when=FIRST_COMPLETED)
        for future in sorted(finished, key=futures.__getitem__):
            _raise_failure(futures[future], future)
        if progress is not None:
            progress(len(futures) - len(waiting), len(futures))


def _raise_failure(index: int, future: Future[Json]) -> None:
    error = future.exception()
    if error is None:
        return
    if isinstance(error, Exception) and not isinstance(error, HudiError):
        raise ExecutionError(f"unit {index} failed: {type(error).__name__}: {error}") from error
    raise error
