"""Runs units in threads of this process: the engine that needs no Spark."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import TypeVar

from hudi_core.engine.exchange import Run, RunBuffer, check_rows, fewer_runs, merged_rows
from hudi_core.engine.packed_units import PackedUnits, pack_units, result_type
from hudi_core.engine.protocol import Consume, Produce, TaskAttempt, UnitTask
from hudi_core.engine.serializer import from_text, to_text
from hudi_core.errors import ConfigError, ExecutionError, HudiError, is_transient

T = TypeVar("T")
U = TypeVar("U")
R = TypeVar("R")
Progress = Callable[[int, int], None]
EXCHANGE_BYTES = 256 << 20
"""Rows of an exchange that all producers of a process may hold in memory, sorted copies included, before they spill."""
EXCHANGE_ATTEMPTS = 3


class LocalEngine:
    """Runs units in threads, each once: the work is Arrow, NumPy, compression and I/O, which release the GIL.

    The first failure stops the units that have not started. See engine.protocol.Engine.
    """

    name = "local"

    def __init__(self, threads: int | None = None, *, exchange_bytes: int = EXCHANGE_BYTES) -> None:
        """`threads` defaults to the number of processors; raises ConfigError when it is below 1."""
        if threads is not None and threads < 1:
            raise ConfigError(f"{threads} threads cannot run anything", remedy="give a number of threads of at least 1")
        self._threads = threads or os.cpu_count() or 1
        self._exchange_bytes = exchange_bytes

    def run(
        self, task: UnitTask[U, R], units: Sequence[U], *, run_epoch: int, progress: Progress | None = None
    ) -> list[R]:
        """See Engine.run; raises the HudiError of the first unit that failed, else ExecutionError."""
        if not units:
            return []
        packed, result = pack_units(units), result_type(task)
        jobs = [partial(_run_unit, task, packed, run_epoch, result, index) for index in range(len(units))]
        return self._all(jobs, "unit", progress)

    def exchange(
        self,
        produce: Produce[U],
        units: Sequence[U],
        consume: Consume[R],
        *,
        shards: int,
        run_epoch: int,
        progress: Progress | None = None,
    ) -> list[R]:
        """See Engine.exchange. An attempt is made up to three times, at once.

        Memory: EXCHANGE_BYTES of rows that wait to be sorted, and one batch of each producer; then, for each thread,
        what a merge of exchange.FAN_IN runs holds. The rest is in a temporary folder (TMPDIR), which needs room for
        all rows.
        """
        if shards < 1:
            raise ValueError(f"an exchange has at least one shard, not {shards}")
        numbers = itertools.count()
        total = len(units) + shards
        of_units = None if progress is None else lambda done, _: progress(done, total)
        of_shards = None if progress is None else lambda done, _: progress(len(units) + done, total)
        with tempfile.TemporaryDirectory(prefix="hudi-exchange-") as name:
            folder = Path(name)
            share = self._exchange_bytes // (3 * min(self._threads, max(len(units), 1)))
            packed = pack_units(units) if units else None
            producing = [
                partial(_produce, produce, packed, index, run_epoch, numbers, folder, share, shards)
                for index in range(len(units))
                if packed is not None
            ]
            runs = fewer_runs(folder, [run for found in self._all(producing, "unit", of_units) for run in found])
            result = result_type(consume)
            consuming = [partial(_consume, consume, shard, runs, run_epoch, numbers, result) for shard in range(shards)]
            return self._all(consuming, "shard", of_shards)

    def _all(self, jobs: Sequence[Callable[[], T]], word: str, progress: Progress | None) -> list[T]:
        """The results in the order of `jobs`, each of which is run once."""
        if not jobs:
            return []
        with ThreadPoolExecutor(max_workers=min(self._threads, len(jobs)), thread_name_prefix=word) as pool:
            futures = {pool.submit(job): index for index, job in enumerate(jobs)}
            try:
                _wait_for_all(futures, word, progress)
            finally:
                for future in futures:
                    future.cancel()
        return [future.result() for future in futures]


def _run_unit(task: UnitTask[U, R], units: PackedUnits[U], run_epoch: int, result: type[R], index: int) -> R:
    """Unit and result cross as text, as on Spark: a task cannot change the caller's, and engines refuse the same."""
    return from_text(result, to_text(task(units.unit(index), TaskAttempt(index, run_epoch, index))))


def _produce(
    produce: Produce[U],
    units: PackedUnits[U],
    index: int,
    run_epoch: int,
    numbers: Iterator[int],
    folder: Path,
    max_bytes: int,
    shards: int,
) -> list[Run]:
    def once(number: int) -> list[Run]:
        buffer = RunBuffer(folder, str(number), max_bytes)
        try:
            for batch in produce(units.unit(index), TaskAttempt(index, run_epoch, number)):
                buffer.add(check_rows(batch, shards))
            return buffer.finish()
        except BaseException:
            buffer.discard()
            raise

    return _tried(once, numbers)


def _consume(
    consume: Consume[R], shard: int, runs: Sequence[Run], run_epoch: int, numbers: Iterator[int], result: type[R]
) -> R:
    def once(number: int) -> R:
        return from_text(
            result, to_text(consume(shard, merged_rows(runs, shard), TaskAttempt(shard, run_epoch, number)))
        )

    return _tried(once, numbers)


def _tried(once: Callable[[int], T], numbers: Iterator[int]) -> T:
    """What one of a few attempts gave, each with a number of its own."""
    for _ in range(EXCHANGE_ATTEMPTS - 1):
        try:
            return once(next(numbers))
        except HudiError as error:
            if not is_transient(error):
                raise
    return once(next(numbers))


def _wait_for_all(futures: dict[Future[T], int], word: str, progress: Progress | None) -> None:
    waiting = set(futures)
    while waiting:
        finished, waiting = wait(waiting, return_when=FIRST_COMPLETED)
        for future in sorted(finished, key=futures.__getitem__):
            error = future.exception()
            if isinstance(error, Exception) and not isinstance(error, HudiError):
                text = f"{word} {futures[future]} failed: {type(error).__name__}: {error}"
                raise ExecutionError(text) from error
            if error is not None:
                raise error
        if progress is not None:
            progress(len(futures) - len(waiting), len(futures))
