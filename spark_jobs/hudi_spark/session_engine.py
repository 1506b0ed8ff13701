"""A SparkEngine with its session: opened when there is work, probed before anything is written, stopped after."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Final, TypeVar

from hudi_core.engine.protocol import Consume, Json, Produce, UnitTask
from hudi_core.metadata_table.extract.expressions import SESSION_ZONE
from hudi_core.request.requests import Request
from hudi_spark.engine import SparkEngine
from hudi_spark.probe import probe_executors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

U = TypeVar("U")
R = TypeVar("R")
AnyRequest = TypeVar("AnyRequest", bound=Request)


_OF_DATABRICKS: Final = "DATABRICKS_RUNTIME_VERSION"
"""A variable of Databricks' drivers, whose session is the cluster's and not to be stopped by a job."""


class SessionEngine:
    """The Engine port with a session of its own; a context manager that stops the session.

    `start` opens it and raises ConfigError when executors lack what a task needs. Call it as soon as it is known that
    there is work: an engine that is started by its first `run` finds out only after the instant was claimed. `open` is
    for work on the driver alone.
    """

    name = "spark"
    is_remote = True

    def __init__(self, open_session: Callable[[], SparkSession], warn: Callable[[str], None]) -> None:
        self._open_session = open_session
        self._warn = warn
        self._spark: SparkSession | None = None
        self._engine: SparkEngine | None = None

    def start(self) -> SparkEngine:
        """Opens and probes the session, once."""
        if self._engine is None:
            spark = self.open()
            report = probe_executors(spark)
            report.require()
            for warning in report.warnings():
                self._warn(warning)
            self._engine = SparkEngine(spark)
        return self._engine

    def with_zone(self, request: AnyRequest) -> AnyRequest:
        """The request with the session's time zone among its options, where it has none.

        Expressions over timestamps depend on it. Opens the session when it is not open.
        """
        if SESSION_ZONE in request.options:
            return request
        zone = self.open().conf.get(SESSION_ZONE)
        return request if not zone else replace(request, options={**request.options, SESSION_ZONE: zone})

    def open(self) -> SparkSession:
        """Opens the session without using its executors, once."""
        if self._spark is None:
            self._spark = self._open_session()
        return self._spark

    def run(
        self,
        task: UnitTask[U, R],
        units: Sequence[U],
        *,
        run_epoch: int,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[R]:
        """See Engine.run."""
        return self.start().run(task, units, run_epoch=run_epoch, progress=progress)

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
        """See Engine.exchange."""
        return self.start().exchange(produce, units, consume, shards=shards, run_epoch=run_epoch, progress=progress)

    def stage_query(self, query: str, folder: str, storage_options: Mapping[str, str]) -> frozenset[str]:
        """See FrameEngine."""
        return self.start().stage_query(query, folder, storage_options)

    def stage_dataframe(
        self, function: str, arguments: Mapping[str, str], folder: str, storage_options: Mapping[str, str]
    ) -> frozenset[str]:
        """See FrameEngine."""
        return self.start().stage_dataframe(function, arguments, folder, storage_options)

    def setups(self) -> tuple[Json, ...]:
        """See RemoteEngine.setups. Demands nothing of the executors; opens the session when it is not open."""
        return probe_executors(self.open()).setups

    def __enter__(self) -> SessionEngine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._spark is not None and _OF_DATABRICKS not in os.environ:
            self._spark.stop()
