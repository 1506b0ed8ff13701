"""The Engine port on Spark, classic or Connect, by DataFrames and mapInArrow alone. One unit is one partition."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import field, replace
from types import TracebackType
from typing import TYPE_CHECKING, Final, TypeVar
from weakref import WeakKeyDictionary

import pyarrow as pa

from hudi_core.engine.protocol import Consume, Json, Produce, UnitTask, in_units, pack_units, result_type
from hudi_core.engine.serializer import from_text
from hudi_core.errors import ExecutionError
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.extract.expressions import SESSION_ZONE
from hudi_core.request.results import error_from_json
from hudi_core.services.source.schema import check_names
from hudi_core.verbs.request import Request
from hudi_spark.failure import SPARK_FAILURES, translate
from hudi_spark.probe import probe_executors
from hudi_spark.staged_rows import STAGED_SCHEMA, StagedPart, dataframe_of, frame_of, staged_names
from hudi_spark.tasks import (
    RESULT_SCHEMA,
    Batches,
    ProgressFolder,
    RowProducer,
    ShardConsumer,
    UnitRunner,
    WithoutPandas,
    exchanged,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

U = TypeVar("U")
R = TypeVar("R")
AnyRequest = TypeVar("AnyRequest", bound=Request)

log = logging.getLogger(__name__)

MAX_RECORDS: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"
_OF_DATABRICKS: Final = "DATABRICKS_RUNTIME_VERSION"
"""An environment variable of Databricks' drivers. Their session belongs to the cluster, so a job must not stop it."""


class SparkEngine:
    """Runs units as tasks of one Spark job, and an exchange as one job. The caller owns and stops the session."""

    name = "spark"
    is_remote = True

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    @property
    def session(self) -> SparkSession:
        """The session, opened in the caller's thread: only the main thread can get Spark's SIGINT handler."""
        return self._spark

    def run(
        self,
        task: UnitTask[U, R],
        units: Sequence[U],
        *,
        run_epoch: int,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[R]:
        """Runs units as tasks (Engine.run). A permanent HudiError of a task is returned as the task's result, and
        raised here with its type; of several, the first by unit order is raised. A StorageError fails the Spark task,
        so that Spark retries it (spark.task.maxFailures), and is raised if no attempt succeeds. Any other failure is an
        ExecutionError. If executors share the driver's machine, progress counts finished units during the run;
        otherwise it is reported only at the start and at the end.
        """
        if not units:
            return []
        spark, packed = self.session, pack_units(units, compress=True)
        with ProgressFolder(len(units), progress) as ticks:
            runner = self._in_worker(UnitRunner(task, packed, run_epoch, ticks.path))
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
        """Runs an exchange (Engine.exchange). Spark retries failed tasks (spark.task.maxFailures). A producer's task
        fails on any error.

        Memory: Spark shuffles and sorts in its own memory, and spills the rest. The JVM and the Python worker each hold
        one batch of rows, in addition to the memory of the functions. The units, or else the session
        (spark.sql.execution.arrow.maxRecordsPerBatch), say how many rows a batch has.
        """
        if shards < 1:
            raise ValueError(f"an exchange has at least one shard, not {shards}")
        spark, packed = self.session, pack_units(units, compress=True) if units else None
        with ProgressFolder(len(units) + shards, in_units(progress, len(units), shards)) as ticks:
            producer = None if packed is None else RowProducer(produce, packed, run_epoch, shards, ticks.path)
            consumer = self._in_worker(ShardConsumer(consume, run_epoch, ticks.path, len(units)))
            rows = self._collect(
                lambda: exchanged(spark, producer and self._in_worker(producer), len(units), consumer, shards),
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
        # Without this check, Spark would fail in the job because of an ambiguous reference.
        check_names([pa.field(name, pa.null()) for name in frame.columns], path=None)
        part = StagedPart(folder, dict(storage_options))
        rows = self._collect(lambda: frame.mapInArrow(part, STAGED_SCHEMA))
        return staged_names(frame, folder, storage_options, frozenset(row.name for row in rows))

    def _in_worker(self, task: Batches) -> Batches:
        """Returns the task as it runs in a worker. The workers may be those of a user's session."""
        return task

    def _collect(self, plan: Callable[[], DataFrame], most_rows: int | None = None) -> list[Row]:
        spark = self.session

        def act() -> list[Row]:
            # A plan is lazy and runs again with every action. Tasks write files, so there is exactly one action.
            with rows_per_batch(spark, most_rows):
                rows: list[Row] = plan().collect()
            return rows

        # The action runs in its own thread: Spark's SIGINT handler cancels the jobs by a call to the JVM, and this call
        # breaks if it interrupts another call. Leaving the pool waits for the job's end, so that no job runs any more
        # when the claim is released.
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="hudi-spark-action") as pool:
            try:
                return pool.submit(act).result()
            except SPARK_FAILURES as error:
                raise translate(error) from error
            except KeyboardInterrupt:
                self._interrupt()
                raise

    def _interrupt(self) -> None:
        """Stops this session's running jobs. In classic Spark, its own SIGINT handler has already stopped them."""
        from pyspark.sql.utils import is_remote

        if is_remote():
            self.session.interruptAll()


class SessionEngine(SparkEngine):
    """An engine that opens its own session. As a context manager it stops the session. `start` opens the session, and
    raises ConfigError if executors lack what a task needs. Call `start` as soon as it is known that there is work: an
    engine that its first `run` starts finds a missing module only after the instant was claimed. `open` is for work
    only on the driver. `is_alone` says that the application runs no function or query of a user.
    """

    def __init__(
        self, open_session: Callable[[], SparkSession], warn: Callable[[str], None], *, is_alone: bool = False
    ) -> None:
        self._open_session = open_session
        self._warn = warn
        self._is_alone = is_alone
        self._opened: SparkSession | None = None
        self._is_probed = False

    @property
    def session(self) -> SparkSession:
        """The session, opened and probed."""
        self.start()
        return self.open()

    def start(self) -> None:
        """Opens and probes the session, once."""
        if not self._is_probed:
            report = probe_executors(self.open(), self._in_worker)
            report.require()
            for warning in report.warnings():
                self._warn(warning)
            self._is_probed = True

    def with_zone(self, request: AnyRequest) -> AnyRequest:
        """Returns the request with the session's time zone in its options. Expressions over timestamps depend on it."""
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
        """Returns the executors' Python set-ups, also with missing modules. Opens the session if needed."""
        return probe_executors(self.open(), self._in_worker).setups

    def _in_worker(self, task: Batches) -> Batches:
        from pyspark.sql.utils import is_remote

        # A server of Spark Connect and a cluster of Databricks have workers that run functions of other sessions.
        is_shared = _OF_DATABRICKS in os.environ or is_remote()
        return WithoutPandas(task) if self._is_alone and not is_shared else task

    def __enter__(self) -> SessionEngine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._opened is not None and _OF_DATABRICKS not in os.environ:
            self._opened.stop()


def _results(rows: Sequence[Row], result: type[R], count: int, word: str) -> list[R]:
    """Returns the results in the order of the units. Raises the error of the first unit that failed."""
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
    """The row limit of a session before the running actions, and the limits that these actions request."""

    before: str = ""
    requested: list[int] = field(default_factory=list)

    @property
    def now(self) -> str:
        limit = int(self.before)  # A limit that is not positive means no limit.
        return str(min([*self.requested, limit] if limit > 0 else self.requested)) if self.requested else self.before


_lock = threading.Lock()
_limits: WeakKeyDictionary[SparkSession, _Limit] = WeakKeyDictionary()


@contextmanager
def rows_per_batch(spark: SparkSession, rows: int | None) -> Iterator[None]:
    """Limits the batches of a mapInArrow to `rows` rows, for the action in this block. None changes nothing. It sets a
    conf of the session, which counts rows and not bytes.

    Spark reads the conf when it makes the tasks of a stage (MapInBatchExec.doExecute). With adaptive execution that is
    after the earlier stages have ended, so the conf is set for the whole action. The tables of a batch share the
    session between threads: the smallest requested number counts, and the last action restores the session's own. Other
    work in the session gets more and smaller batches meanwhile. Raises the errors of the session.
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
            except SPARK_FAILURES as error:  # The result of the action must not change.
                log.warning("%s could not be set to %s again: %s", MAX_RECORDS, limit.now, error)
