"""Runs units in threads of this process, or in processes beside it: the engine that needs no Spark."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager
from functools import partial
from multiprocessing import connection
from multiprocessing.context import SpawnContext
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any, TypeVar

from hudi_core.engine.exchange import Run, RunBuffer, check_rows, fewer_runs, merged_rows
from hudi_core.engine.hidden_pandas import hide_pandas
from hudi_core.engine.protocol import (
    Consume,
    PackedUnits,
    Produce,
    TaskAttempt,
    UnitTask,
    in_units,
    pack_units,
    result_type,
)
from hudi_core.engine.serializer import from_text, to_text
from hudi_core.errors import ConfigError, ExecutionError, HudiError, LogFormatter, is_transient

T = TypeVar("T")
U = TypeVar("U")
R = TypeVar("R")
Progress = Callable[[int, int], None]
EXCHANGE_BYTES = 256 << 20
"""The bytes of rows that all producers of an exchange may hold in memory, sorted copies included, before they spill."""
EXCHANGE_ATTEMPTS = 3
_KILLED = (
    "where the machine ran out of memory, give it fewer processes (docs/reference/options.md), or use the engine spark"
)


class LocalEngine(AbstractContextManager["LocalEngine"]):
    """Runs units side by side, each once. They run in threads, since most of the work releases the GIL. With
    `processes`, they run in that many processes: for plans that are worth their start (a second of CPU time each) and
    tasks that can be pickled. The first failure stops the units that have not started. The exit ends the processes.
    """

    name = "local"
    is_remote = False

    def __init__(self, threads: int | None = None, *, processes: int = 0, exchange_bytes: int = EXCHANGE_BYTES) -> None:
        """Uses `threads` (default: one per processor) or `processes`. Raises ConfigError for fewer than 1 or 0."""
        if threads is not None and threads < 1:
            raise ConfigError(f"{threads} threads cannot run anything", remedy="give a number of threads of at least 1")
        if processes < 0:
            raise ConfigError(f"{processes} processes cannot run anything", remedy="give 0 to use threads")
        self._width = processes or threads or os.cpu_count() or 1
        self._in_processes = processes > 0
        self._processes: Processes | None = None
        self._exchange_bytes = exchange_bytes

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_processes()

    def run(
        self, task: UnitTask[U, R], units: Sequence[U], *, run_epoch: int, progress: Progress | None = None
    ) -> list[R]:
        """Engine.run: runs each unit once. Raises the HudiError of the first unit that failed, else ExecutionError."""
        if not units:
            return []
        packed, result = pack_units(units), result_type(task)
        jobs = [partial(_run_unit, task, unit, run_epoch, result, index) for index, unit in self._each(packed)]
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
        """Engine.exchange with up to three attempts at a unit or shard, without a pause. Memory holds EXCHANGE_BYTES of
        rows to sort and a batch per producer, then a merge of exchange.FAN_IN runs per thread. Other rows go to TMPDIR.
        """
        if shards < 1:
            raise ValueError(f"an exchange has at least one shard, not {shards}")
        of_units = in_units(progress, len(units), shards)
        of_shards = None if of_units is None else lambda done, total: of_units(len(units) + done, total)
        with tempfile.TemporaryDirectory(prefix="hudi-exchange-") as name:
            folder = Path(name)
            share = self._exchange_bytes // (3 * min(self._width, max(len(units), 1)))
            producing = [
                partial(_produce, produce, unit, index, run_epoch, folder, share, shards)
                for index, unit in (self._each(pack_units(units)) if units else ())
            ]
            runs = fewer_runs(folder, [run for produced in self._all(producing, "unit", of_units) for run in produced])
            result = result_type(consume)
            consuming = [
                partial(_consume, consume, shard, runs, run_epoch, len(units), result) for shard in range(shards)
            ]
            return self._all(consuming, "shard", of_shards)

    def _each(self, packed: PackedUnits[U]) -> Iterator[tuple[int, Callable[[], U]]]:
        """Yields each unit's index and the function that makes the unit; another process gets only its own unit."""
        for index in range(len(packed.separate)):
            yield index, partial(packed.only(index).unit, 0) if self._in_processes else partial(packed.unit, index)

    def _all(self, jobs: Sequence[Callable[[], T]], word: str, progress: Progress | None) -> list[T]:
        if not jobs:
            return []
        if self._in_processes:
            if self._processes is None:
                self._processes = Processes(self._width)
            try:
                return _collected(self._processes.submit, jobs, word, progress)
            except BaseException as error:
                if not isinstance(error, HudiError) or isinstance(error.__cause__, BrokenProcessPool):
                    self._end_processes()
                raise
        pool = ThreadPoolExecutor(max_workers=min(self._width, len(jobs)), thread_name_prefix=word)
        try:
            return _collected(pool.submit, jobs, word, progress)
        finally:
            pool.shutdown(cancel_futures=True)

    def _end_processes(self) -> None:
        if self._processes is not None:
            self._processes.close()
            self._processes = None


def _collected(
    submit: Callable[[Callable[[], T]], Future[T]],
    jobs: Sequence[Callable[[], T]],
    word: str,
    progress: Progress | None,
) -> list[T]:
    futures = {submit(job): index for index, job in enumerate(jobs)}
    try:
        _wait_for_all(futures, word, progress)
    except HudiError:
        # The caller removes the files that the started jobs read and write.
        wait([future for future in futures if not future.cancel()])
        raise
    return [future.result() for future in futures]


def _run_unit(task: UnitTask[U, R], unit: Callable[[], U], run_epoch: int, result: type[R], index: int) -> R:
    """Runs a task. Unit and result cross as text, as on Spark: no object is shared, and the same values are refused."""
    return from_text(result, to_text(task(unit(), TaskAttempt(index, run_epoch, index))))


def _produce(
    produce: Produce[U], unit: Callable[[], U], index: int, run_epoch: int, folder: Path, max_bytes: int, shards: int
) -> list[Run]:
    def once(number: int) -> list[Run]:
        buffer = RunBuffer(folder, str(number), max_bytes)
        try:
            for batch in produce(unit(), TaskAttempt(index, run_epoch, number)):
                buffer.add(check_rows(batch, shards))
            return buffer.finish()
        except BaseException:
            buffer.abandon()
            raise

    return _tried(once, index)


def _consume(consume: Consume[R], shard: int, runs: Sequence[Run], run_epoch: int, produced: int, result: type[R]) -> R:
    def once(number: int) -> R:
        return from_text(
            result, to_text(consume(shard, merged_rows(runs, shard), TaskAttempt(shard, run_epoch, number)))
        )

    return _tried(once, produced + shard)


def _tried(once: Callable[[int], T], index: int) -> T:
    """Returns the first result; repeats transient failures. Each attempt at any unit or shard has its own number."""
    first = index * EXCHANGE_ATTEMPTS
    for number in range(first, first + EXCHANGE_ATTEMPTS - 1):
        try:
            return once(number)
        except HudiError as error:
            if not is_transient(error):
                raise
    return once(first + EXCHANGE_ATTEMPTS - 1)


def _wait_for_all(futures: dict[Future[T], int], word: str, progress: Progress | None) -> None:
    # Not by wait(), which looks at every future that is left whenever one has ended.
    ended: SimpleQueue[Future[T]] = SimpleQueue()
    for future in futures:
        future.add_done_callback(ended.put)
    running = len(futures)
    while running:
        finished = [ended.get(), *(ended.get() for _ in range(ended.qsize()))]
        running -= len(finished)
        for future in sorted(finished, key=futures.__getitem__):
            error = future.exception()
            if isinstance(error, BrokenProcessPool):
                raise ExecutionError("a process of the local engine was killed", remedy=_KILLED) from error
            if isinstance(error, Exception) and not isinstance(error, HudiError):
                text = f"{word} {futures[future]} failed: {type(error).__name__}: {error}"
                raise ExecutionError(text) from error
            if error is not None:
                raise error
        if progress is not None:
            progress(len(futures) - running, len(futures))


_LOGGER = "hudi_core"


class Processes:
    """Up to `count` processes, kept for more work. They are spawned: this process has threads (Arrow, heartbeats,
    caller). Functions and results are pickled. A future raises its function's HudiError, else ExecutionError.
    """

    def __init__(self, count: int) -> None:
        self._context = _Recorder()
        self._pool = ProcessPoolExecutor(
            count, mp_context=self._context, initializer=_start, initargs=(logging.getLogger(_LOGGER).level,)
        )

    def submit(self, function: Callable[[], T]) -> Future[T]:
        return self._pool.submit(_call, function)

    def close(self) -> None:
        """Ends the processes, also in the middle of their work."""
        for process in self._context.started:
            process.terminate()
        self._pool.shutdown(wait=True, cancel_futures=True)


class _Recorder(SpawnContext):
    """Keeps the processes that it started, to end them: a pool does not end a process before its work is done."""

    def __init__(self) -> None:
        self.started: list[Any] = []

    def Process(self, *arguments: Any, **named: Any) -> Any:  # type: ignore[override]
        process = SpawnContext.Process(*arguments, **named)
        self.started.append(process)
        return process


def _start(level: int) -> None:
    """Sets a process up: it logs at the level of its parent, ignores interrupts, and ends when its parent is gone."""
    hide_pandas()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogFormatter("%(levelname)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger(_LOGGER).setLevel(level)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def _call(function: Callable[[], T]) -> T:
    try:
        return function()
    except HudiError:
        raise
    except Exception as error:  # noqa: BLE001  perhaps it cannot be pickled
        raise ExecutionError(f"{type(error).__name__}: {error}") from None
