"""A Hudi table as a Spark DataFrame: planned here, on the driver, and read by the executors."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hudi_core.table import HudiTable as CoreTable
from hudi_spark.read import SplitReader, bins_of
from hudi_spark.spark_types import spark_type_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from hudi_core.query.read_plan import ReadPlan
    from hudi_core.query.request import MetadataMode, Query

log = logging.getLogger(__name__)

BYTES_PER_TASK = 128 << 20
"""Of base and log files: slices smaller than that share a task, a larger one has a task of its own."""


class HudiTable:
    """A table for Spark. Nothing is read before `to_spark`; every call sees the table as it is then."""

    def __init__(
        self, uri: str, storage_options: Mapping[str, str] | None = None, options: Mapping[str, str] | None = None
    ) -> None:
        """`options` have Hudi's own names and this engine's, as in hudi_core.table.HudiTable.open.

        Storage options go to the executors.
        """
        self._uri = uri
        self._storage_options = dict(storage_options or {})
        self._options = dict(options or {})

    def to_spark(
        self,
        spark: SparkSession,
        query: Query = "snapshot",
        *,
        columns: Sequence[str] | None = None,
        metadata: MetadataMode = "auto",
        as_of: str | None = None,
        begin: str | None = None,
        end: str | None = None,
        where: str | None = None,
        dialect: str = "spark",
        bytes_per_task: int = BYTES_PER_TASK,
    ) -> DataFrame:
        """The rows of a query as a lazy DataFrame, as hudi_core.table.HudiTable.read returns them.

        Which files it reads is fixed here, by the timeline now and by `where`; its actions read them again each time.
        Conditions that are added to the DataFrame afterwards filter rows but open no file less: pass them as `where`.
        Executors need this package: open the session with hudi_spark.session.open_session, or pass the job zip by
        --py-files or spark.addArtifacts. The same code runs on classic Spark and on Spark Connect.

        Raises what HudiTable.open and HudiTable.plan raise. Errors of the executors come with the action that runs
        them, as Spark's own exception, of which hudi_spark.failure.translate makes a HudiError; of a write that fails,
        Spark Connect keeps too little for that.
        """
        plan = CoreTable.open(self._uri, self._storage_options, self._options).plan(
            query, columns, metadata, as_of=as_of, begin=begin, end=end, where=where, dialect=dialect
        )
        log.info("%s: %d files to read, %d ruled out", self._uri, plan.files_read, plan.files_pruned)
        return _frame(spark, plan, bytes_per_task)


def _frame(spark: SparkSession, plan: ReadPlan, bytes_per_task: int) -> DataFrame:
    schema = spark_type_of(plan.schema)
    bins = bins_of(plan.splits, bytes_per_task)
    if not bins:
        return spark.createDataFrame([], schema)
    # One row for each task, so that the number of tasks is the number of bins whatever the session's default
    # parallelism is.
    return spark.range(0, len(bins), 1, len(bins)).mapInArrow(SplitReader.of(plan.common, bins), schema)
