"""The code that Spark's tasks run: units, and both sides of an exchange. Also the values that tasks send to the driver:
the task's attempt, its result or typed error, and its progress. Classes are pickled by reference, so executors need
hudi_spark (--py-files).

An exchange uses only DataFrames, and is one action. One mapInArrow produces the rows. They are shuffled by shard and
sorted, and another mapInArrow consumes them. The hash of a shard's number chooses the shard's task: a task may consume
several shards, one after the other, or none. For each shard one row without a key is added, so that a shard without
rows is consumed, too; nulls sort first.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias
from zipimport import zipimporter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.engine.exchange import SHARD_ROWS, check_rows
from hudi_core.engine.hidden_pandas import hide_pandas
from hudi_core.engine.protocol import Consume, PackedUnits, Produce, TaskAttempt, UnitTask
from hudi_core.engine.serializer import to_text
from hudi_core.errors import ExecutionError, HudiError, is_transient
from hudi_core.frozen import dataclass
from hudi_core.request.results import error_from_json, error_to_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Batches: TypeAlias = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""A function of mapInArrow."""
RESULT_SCHEMA = "unit long, failed boolean, body binary"
_ROWS = "shard int, key binary, value binary"
_MARKER = "HUDI_TASK_ERROR"
_MARKED = re.compile(rf"{_MARKER} (\{{.*\}})")
_INTERVAL_SECONDS = 0.5


def attempt_of(run_epoch: int, partition_id: int | None = None) -> TaskAttempt:
    """Returns the attempt of this Spark task. `partition_id` is the number of a part of the task's partition.

    Raises ExecutionError outside of a Spark task.
    """
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        raise ExecutionError("a unit was run outside a Spark task")
    # taskAttemptId is unique among all attempts of one Spark application. run_epoch is unique among the applications
    # that run the same instant.
    number = context.partitionId() if partition_id is None else partition_id
    return TaskAttempt(partition_id=number, stage_id=run_epoch, attempt_id=context.taskAttemptId())


def answer(number: int, ticks: str | None, tick: int, work: Callable[[], Any]) -> pa.RecordBatch:
    """Runs `work` and returns one row of RESULT_SCHEMA: the number of a unit or shard, whether `work` failed for good,
    and its result (serializer.to_text) or its error as JSON. If a retry may help, raises TaskFailure, which fails the
    Spark task.
    """
    try:
        failed, body = False, to_text(work()).encode()
    except Exception as error:
        if not isinstance(error, HudiError) or is_transient(error):
            raise TaskFailure(error) from error
        failed, body = True, json.dumps(error_to_json(error)).encode()
    ProgressFolder.tick(ticks, tick)
    columns = [pa.array([number], pa.int64()), pa.array([failed], pa.bool_()), pa.array([body], pa.binary())]
    return pa.RecordBatch.from_arrays(columns, names=["unit", "failed", "body"])


def numbers_of(batches: Iterator[pa.RecordBatch]) -> Iterator[int]:
    """Yields the numbers of units or bins in a partition. Each is one row, so nothing can be vectorised. After the last
    number the task is over, and forget_importers runs.
    """
    try:
        for batch in batches:
            yield from batch.column(0).to_pylist()
    finally:
        forget_importers()


def forget_importers() -> None:
    """Drops this worker's importers for zip files and for the folders in them; an import makes them again. It keeps the
    importers of the user's own zip files that Spark brought.

    Before each task PySpark's worker tells every importer that there may be new modules. Each importer then reads the
    whole directory of its zip again (zipimporter.invalidate_caches, since Python 3.10). This costs 0.25 CPU seconds per
    task, measured. The dropped zips do not change: the job zip is named by its content, and Spark's zips are installed.
    """
    from pyspark import SparkFiles, TaskContext

    if TaskContext.get() is None:
        return  # This process is a driver.
    brought = SparkFiles.getRootDirectory()
    for path, importer in list(sys.path_importer_cache.items()):
        if not isinstance(importer, zipimporter):
            continue
        is_the_users = importer.archive.startswith(brought) and not __file__.startswith(importer.archive)
        if importer.prefix or not is_the_users:
            sys.path_importer_cache.pop(path, None)


class TaskFailure(Exception):
    """Fails a Spark task, so that Spark retries it. The text contains the typed error for the driver. An error that is
    not the engine's own is a defect, or comes from the machine's state (disk full, out of memory).
    """

    def __init__(self, error: Exception) -> None:
        if not isinstance(error, HudiError):
            error = ExecutionError(f"{type(error).__name__}: {error}")
        super().__init__(f"{_MARKER} {json.dumps(error_to_json(error))}")


def error_in_text(text: str) -> HudiError | None:
    """Returns the error of a TaskFailure in the text of a Spark failure; None without one, or if it was cut."""
    match = _MARKED.search(text)
    if match is None:
        return None
    try:
        value = json.loads(match.group(1))
    except json.JSONDecodeError:
        return None
    return error_from_json(value)


class ProgressFolder:
    """Calls `progress(done, total)` from its own thread when `done` grew, and at the start and the end. Each finished
    unit writes an empty file to a folder. This works if the executors run on the driver's machine (local masters). The
    executors of a cluster do not have the folder, so only the start and the end are reported; Spark's UI shows the
    progress of the jobs.
    """

    def __init__(self, total: int, progress: Callable[[int, int], None] | None) -> None:
        self._total = total
        self._progress = progress
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="hudi-progress", daemon=True)
        self._reported = -1

    @property
    def path(self) -> str | None:
        """The folder of the files that mark finished units; None without a `progress` function."""
        return None if self._folder is None else self._folder.name

    def __enter__(self) -> ProgressFolder:
        if self._progress is not None:
            self._folder = tempfile.TemporaryDirectory(prefix="hudi-progress-", ignore_cleanup_errors=True)
            # Executors of a standalone cluster may run here as another user.
            Path(self._folder.name).chmod(0o733)
            self._report(0)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._folder is None:
            return
        self._stop.set()
        self._thread.join()
        if kind is None:
            self._report(self._total)
        self._folder.cleanup()

    @staticmethod
    def tick(path: str | None, unit: int) -> None:
        """Marks `unit` as finished; an executor calls it. A folder that does not exist on this machine is ignored."""
        if path is not None:
            with suppress(OSError):
                (Path(path) / str(unit)).touch()

    def _watch(self) -> None:
        while not self._stop.wait(_INTERVAL_SECONDS):
            self._report(sum(1 for _ in Path(self.path or "").iterdir()))

    def _report(self, done: int) -> None:
        if self._progress is not None and done > self._reported:
            self._reported = done
            self._progress(done, self._total)


def exchanged(spark: SparkSession, producer: Batches | None, units: int, consumer: Batches, shards: int) -> DataFrame:
    """Returns the plan of an exchange: a row of RESULT_SCHEMA for each shard. `producer` is None without units."""
    rows = spark.range(0, shards, 1, 1).selectExpr(
        "cast(id as int) as shard", "cast(null as binary) as key", "cast(null as binary) as value"
    )
    if producer is not None:
        rows = spark.range(0, units, 1, units).mapInArrow(producer, _ROWS).union(rows)
    return rows.repartition(shards, "shard").sortWithinPartitions("shard", "key").mapInArrow(consumer, RESULT_SCHEMA)


@dataclass(frozen=True)
class WithoutPandas:
    """Runs a function of mapInArrow in a worker that runs no function of a user (engine.hidden_pandas)."""

    function: Batches

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        hide_pandas()
        return self.function(batches)


@dataclass(frozen=True)
class UnitRunner:
    """Runs the units of a partition, in an executor's Python worker."""

    task: UnitTask[Any, Any]
    units: PackedUnits[Any]
    run_epoch: int
    ticks: str | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Takes the partition's one row (the index of its unit) and yields one row of RESULT_SCHEMA."""
        for index in numbers_of(batches):
            yield answer(index, self.ticks, index, partial(self._run_unit, index))

    def _run_unit(self, index: int) -> Any:
        return self.task(self.units.unit(index), attempt_of(self.run_epoch))


@dataclass(frozen=True)
class RowProducer:
    """Produces the rows of an exchange, in an executor's Python worker."""

    produce: Produce[Any]
    units: PackedUnits[Any]
    run_epoch: int
    shards: int
    ticks: str | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Takes the partition's one row (the index of its unit) and yields rows.

        Every error fails the task, because only this removes rows that the task has already returned. Spark retries the
        task, and the driver gets the typed error in the end.
        """
        for index in numbers_of(batches):
            try:
                for rows in self.produce(self.units.unit(index), attempt_of(self.run_epoch)):
                    yield check_rows(rows, self.shards)
            except Exception as error:
                raise TaskFailure(error) from error
            ProgressFolder.tick(self.ticks, index)


@dataclass(frozen=True)
class ShardConsumer:
    """Consumes the shards of a partition, in an executor's Python worker. Shard 0 has the progress `first_tick`."""

    consume: Consume[Any]
    run_epoch: int
    ticks: str | None
    first_tick: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Takes the partition's rows, sorted by shard and key, and yields one row of RESULT_SCHEMA for each shard."""
        for shard, pieces in itertools.groupby(_pieces(batches), key=lambda piece: piece[0]):
            rows = (piece for _, piece in pieces if piece.num_rows)
            yield answer(shard, self.ticks, self.first_tick + shard, partial(self._run_shard, shard, rows))

    def _run_shard(self, shard: int, rows: Iterator[pa.RecordBatch]) -> Any:
        return self.consume(shard, rows, attempt_of(self.run_epoch, shard))


def _pieces(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yields the batches, cut at the start of each shard, without the rows that only name a shard."""
    try:
        for batch in batches:
            shards = batch.column(0).to_numpy()
            starts = np.flatnonzero(np.r_[True, shards[1:] != shards[:-1]][: len(shards)]).tolist()
            for start, end in zip(starts, [*starts[1:], len(shards)], strict=True):
                piece = batch.slice(start, end - start)
                if piece.column(1).null_count:
                    piece = piece.filter(pc.is_valid(piece.column(1)))
                columns = [piece.column(1), piece.column(2)]
                yield int(shards[start]), pa.RecordBatch.from_arrays(columns, schema=SHARD_ROWS)
    finally:
        forget_importers()
