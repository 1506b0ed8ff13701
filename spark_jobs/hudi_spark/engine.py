"""The Engine port over Spark, with DataFrames and mapInArrow only; classic Spark and Spark Connect run it alike.

One unit is one partition.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import TYPE_CHECKING, Final, TypeVar
from weakref import WeakKeyDictionary

import pyarrow as pa

from hudi_core.engine.protocol import Consume, Json, Produce, UnitTask, in_units, pack_units, result_type
from hudi_core.engine.serializer import from_text
from hudi_core.errors import ExecutionError
from hudi_core.metadata_table.extract.expressions import SESSION_ZONE
from hudi_core.request.results import error_from_json
from hudi_core.services.overwrite.source_schema import check_names
from hudi_core.verbs.request import Request
from hudi_spark.failure import SPARK_FAILURES, translate
from hudi_spark.probe import probe_executors
from hudi_spark.staged_rows import STAGED_SCHEMA, StagedPart, dataframe_of, frame_of, staged_names
from hudi_spark.tasks import RESULT_SCHEMA, ProgressFolder, RowProducer, ShardConsumer, UnitRunner, exchanged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

U = TypeVar("U")
R = TypeVar("R")
AnyRequest = TypeVar("AnyRequest", bound=Request)

log = logging.getLogger(__name__)

MAX_RECORDS: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"
_OF_DATABRICKS: Final = "DATABRICKS_RUNTIME_VERSION"
"""A variable of Databricks' drivers, whose session is the cluster's and not to be stopped by a job."""


class SparkEngine:
    """Runs units as the tasks of one Spark job, and exchanges as one.

    The session belongs to the caller, who also stops it.
    """

    name = "spark"
    is_remote = True

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    @property
    def session(self) -> SparkSession:
        """The session that runs actions. It is opened in the caller's thread: the main one gets a handler of SIGINT."""
        return self._spark

    def run(
        self,
        task: UnitTask[U, R],
        units: Sequence[U],
        *,
        run_epoch: int,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[R]:
        """See Engine.run. A permanent HudiError of a task travels back as its result and is raised here, typed; the
        first one by unit order. A StorageError fails the Spark task, so that Spark tries it again
        (spark.task.maxFailures), and is raised when no attempt succeeded. Anything else that goes wrong is an
        ExecutionError. Progress counts finished units while they run where executors share the driver's machine;
        elsewhere it is reported at the start and at the end.
        """
        if not units:
            return []
        spark, packed = self.session, pack_units(units, compress=True)
        with ProgressFolder(len(units), progress) as ticks:
            runner = UnitRunner(task, packed, run_epoch, ticks.path)
            rows = self._collect(lambda: spark.range(0, len(units), 1, len(units)).mapInArrow(runner, RESULT_SCHEMA))
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
        spark, packed = self.session, pack_units(units, compress=True) if units else None
        with ProgressFolder(len(units) + shards, in_units(progress, len(units), shards)) as ticks:
            producer = None if packed is None else RowProducer(produce, packed, run_epoch, shards, ticks.path)
            consumer = ShardConsumer(consume, run_epoch, ticks.path, len(units))
            rows = self._collect(
                lambda: exchanged(spark, producer, len(units), consumer, shards),
                getattr(units[0], "rows_per_batch", None) if units else None,
            )
        return _results(rows, result_type(consume), shards, "shards")

    def stage_query(self, query: str, folder: str, storage_options: Mapping[str, str]) -> frozenset[str]:
        return self._stage(frame_of(self.session, query), folder, storage_options)

    def stage_dataframe(
        self, function: str, arguments: Mapping[str, str], folder: str, storage_options: Mapping[str, str]
    ) -> frozenset[str]:
        return self._stage(dataframe_of(self.session, function, arguments), folder, storage_options)

    def _stage(self, frame: DataFrame, folder: str, storage_options: Mapping[str, str]) -> frozenset[str]:
        # Spark would say in the job that a reference is ambiguous.
        check_names([pa.field(name, pa.null()) for name in frame.columns], path=None)
        part = StagedPart(folder, dict(storage_options))
        rows = self._collect(lambda: frame.mapInArrow(part, STAGED_SCHEMA))
        return staged_names(frame, folder, storage_options, frozenset(row.name for row in rows))

    def _collect(self, plan: Callable[[], DataFrame], most_rows: int | None = None) -> list[Row]:
        spark = self.session

        def act() -> list[Row]:
            # A plan is lazy and runs again with every action, and tasks write files: there is exactly one action.
            with rows_per_batch(spark, most_rows):
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
            self.session.interruptAll()


class SessionEngine(SparkEngine):
    """With a session of its own, a context manager that stops it. `start` opens it and raises ConfigError when
    executors lack what a task needs. Call it as soon as it is known that there is work: an engine that is started by
    its first `run` finds out only after the instant was claimed. `open` is for work on the driver alone.
    """

    def __init__(self, open_session: Callable[[], SparkSession], warn: Callable[[str], None]) -> None:
        self._open_session = open_session
        self._warn = warn
        self._opened: SparkSession | None = None
        self._is_probed = False

    @property
    def session(self) -> SparkSession:
        """Opened and probed."""
        self.start()
        return self.open()

    def start(self) -> None:
        """Opens and probes the session, once."""
        if not self._is_probed:
            report = probe_executors(self.open())
            report.require()
            for warning in report.warnings():
                self._warn(warning)
            self._is_probed = True

    def with_zone(self, request: AnyRequest) -> AnyRequest:
        """The request with the session's time zone, on which expressions over timestamps depend, among its options."""
        if SESSION_ZONE in request.options:
            return request
        zone = self.open().conf.get(SESSION_ZONE)
        return request if not zone else replace(request, options={**request.options, SESSION_ZONE: zone})

    def open(self) -> SparkSession:
        """Opens the session without using its executors, once."""
        if self._opened is None:
            self._opened = self._open_session()
        return self._opened

    def setups(self) -> tuple[Json, ...]:
        """See RemoteEngine.setups. Demands nothing of the executors; opens the session when it is not open."""
        return probe_executors(self.open()).setups

    def __enter__(self) -> SessionEngine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._opened is not None and _OF_DATABRICKS not in os.environ:
            self._opened.stop()


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


@dataclass(slots=True)
class _Limit:
    """What a session says of itself, and what its running actions request."""

    before: str = ""
    requested: list[int] = field(default_factory=list)

    @property
    def now(self) -> str:
        limit = int(self.before)  # none where it is not positive
        return str(min([*self.requested, limit] if limit > 0 else self.requested)) if self.requested else self.before


_lock = threading.Lock()
_limits: WeakKeyDictionary[SparkSession, _Limit] = WeakKeyDictionary()


@contextmanager
def rows_per_batch(spark: SparkSession, rows: int | None) -> Iterator[None]:
    """Lets a mapInArrow of the action in this block have at most `rows` rows at a time, by a conf of the session, which
    counts rows and no bytes; None changes nothing.

    Spark reads the conf when it makes the tasks of a stage (MapInBatchExec.doExecute), with adaptive execution when the
    stages before have ended: it is set for the whole action. The tables of a batch share the session between threads:
    the smallest number counts while several are requested, and the last action restores the session's own. What else
    runs in the session meanwhile gets more and smaller batches. Raises what a session raises.
    """
    if rows is None:
        yield
        return
    with _lock:
        limit = _limits.setdefault(spark, _Limit())
        if not limit.requested:
            limit.before = str(spark.conf.get(MAX_RECORDS))
        limit.requested.append(rows)
    try:
        with _lock:
            spark.conf.set(MAX_RECORDS, limit.now)
        yield
    finally:
        with _lock:
            limit.requested.remove(rows)
            try:
                spark.conf.set(MAX_RECORDS, limit.now)
            except SPARK_FAILURES as error:  # the action's own end counts
                log.warning("%s could not be set to %s again: %s", MAX_RECORDS, limit.now, error)
