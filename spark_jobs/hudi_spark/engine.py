"""The Engine port over Spark, with DataFrames and mapInArrow only; classic Spark and Spark Connect run it alike.

One unit is one partition.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from hudi_core.engine.packed_units import PackedUnits, pack_units, result_type
from hudi_core.engine.protocol import Consume, Produce, UnitTask, in_units
from hudi_core.engine.serializer import from_text
from hudi_core.errors import ExecutionError
from hudi_core.request.outcome import error_from_json
from hudi_core.services.overwrite.source_schema import check_names
from hudi_spark.arrow_batches import rows_per_batch
from hudi_spark.exchange import RowProducer, ShardConsumer, exchanged
from hudi_spark.failure import SPARK_FAILURES, translate
from hudi_spark.progress import ProgressFolder
from hudi_spark.staged_rows import STAGED_SCHEMA, StagedPart, dataframe_of, frame_of, staged_names
from hudi_spark.task_attempts import RESULT_SCHEMA, attempt_of, numbers_of, outcome_of, result_row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

U = TypeVar("U")
R = TypeVar("R")


class SparkEngine:
    """Runs units as the tasks of one Spark job, and exchanges as one.

    The session belongs to the caller, who also stops it.
    """

    name = "spark"
    is_remote = True

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def run(
        self,
        task: UnitTask[U, R],
        units: Sequence[U],
        *,
        run_epoch: int,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[R]:
        """Runs `task` on each unit and returns the results in the order of `units`.

        A permanent HudiError of a task travels back as its result and is raised here, typed; the first one by unit
        order. A StorageError fails the Spark task, so that Spark tries it again (spark.task.maxFailures), and is raised
        when no attempt succeeded. Anything else that goes wrong is an ExecutionError. Progress counts finished units
        while they run where executors share the driver's machine; elsewhere it is reported at the start and at the end.
        """
        if not units:
            return []
        packed = pack_units(units, compress=True)
        with ProgressFolder(len(units), progress) as ticks:
            runner = UnitRunner(task, packed, run_epoch, ticks.path)
            rows = self._collect(
                lambda: self._spark.range(0, len(units), 1, len(units)).mapInArrow(runner, RESULT_SCHEMA)
            )
        return _results(rows, result_type(task), len(units), "units")

    def exchange(
        self,
        produce: Produce[U],
        units: Sequence[U],
        consume: Consume[R],
        *,
        shards: int,
        run_epoch: int,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[R]:
        """See Engine.exchange. Spark tries a failed task again (spark.task.maxFailures), a producer's for any reason.

        Memory: Spark shuffles and sorts with what it has, and spills the rest. The JVM and the Python worker hold one
        batch of rows each, beside what the functions hold: as many as the units say, or as the session says
        (spark.sql.execution.arrow.maxRecordsPerBatch).
        """
        if shards < 1:
            raise ValueError(f"an exchange has at least one shard, not {shards}")
        packed = pack_units(units, compress=True) if units else None
        with ProgressFolder(len(units) + shards, in_units(progress, len(units), shards)) as ticks:
            producer = None if packed is None else RowProducer(produce, packed, run_epoch, shards, ticks.path)
            consumer = ShardConsumer(consume, run_epoch, ticks.path, len(units))
            rows = self._collect(
                lambda: exchanged(self._spark, producer, len(units), consumer, shards),
                getattr(units[0], "rows_per_batch", None) if units else None,
            )
        return _results(rows, result_type(consume), shards, "shards")

    def stage_query(self, query: str, folder: str, storage_options: Mapping[str, str]) -> frozenset[str]:
        """See FrameEngine."""
        return self._stage(frame_of(self._spark, query), folder, storage_options)

    def stage_dataframe(
        self, function: str, arguments: Mapping[str, str], folder: str, storage_options: Mapping[str, str]
    ) -> frozenset[str]:
        """See FrameEngine."""
        return self._stage(dataframe_of(self._spark, function, arguments), folder, storage_options)

    def _stage(self, frame: DataFrame, folder: str, storage_options: Mapping[str, str]) -> frozenset[str]:
        # Spark would say in the job that a reference is ambiguous.
        check_names([pa.field(name, pa.null()) for name in frame.columns], path=None)
        part = StagedPart(folder, dict(storage_options))
        rows = self._collect(lambda: frame.mapInArrow(part, STAGED_SCHEMA))
        return staged_names(frame, folder, storage_options, frozenset(row.name for row in rows))

    def _collect(self, plan: Callable[[], DataFrame], most_rows: int | None = None) -> list[Row]:
        def act() -> list[Row]:
            # A plan is lazy and runs again with every action, and tasks write files: there is exactly one action.
            with rows_per_batch(self._spark, most_rows):
                rows: list[Row] = plan().collect()
            return rows

        # In a thread of its own: Spark's SIGINT handler cancels the jobs by a call to the JVM, which breaks when it
        # interrupts another one. Leaving the pool waits for the job's end, so that no job runs any more when the claim
        # is released.
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="hudi-spark-action") as pool:
            try:
                return pool.submit(act).result()
            except SPARK_FAILURES as error:
                raise translate(error) from error
            except KeyboardInterrupt:
                self._interrupt()
                raise

    def _interrupt(self) -> None:
        """Stops this session's running jobs. Classic Spark has done so in its own SIGINT handler."""
        from pyspark.sql.utils import is_remote

        if is_remote():
            self._spark.interruptAll()


@dataclass(frozen=True)
class UnitRunner:
    """What an executor's Python worker runs on its partition.

    Pickled by reference: the executor needs hudi_spark (--py-files).
    """

    task: UnitTask[Any, Any]
    units: PackedUnits[Any]
    run_epoch: int
    ticks: str | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Takes the partition's one row (the index of its unit) and yields one row of RESULT_SCHEMA."""
        for index in numbers_of(batches):
            failed, body = outcome_of(partial(self._run_unit, index))
            ProgressFolder.tick(self.ticks, index)
            yield result_row(index, failed, body)

    def _run_unit(self, index: int) -> Any:
        return self.task(self.units.unit(index), attempt_of(self.run_epoch))


def _results(rows: Sequence[Row], result: type[R], count: int, word: str) -> list[R]:
    """The results in order; raises the error of the first that failed."""
    results: list[R] = []
    for row in sorted(rows, key=lambda row: int(row["unit"])):
        body = bytes(row["body"])
        if row["failed"]:
            raise error_from_json(json.loads(body))
        results.append(from_text(result, body))
    if len(results) != count:
        raise ExecutionError(f"Spark returned {len(results)} results for {count} {word}")
    return results
