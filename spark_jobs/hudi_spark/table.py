"""A Hudi table as a Spark DataFrame: planned here, on the driver, and read by the executors."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import types

from hudi_core.errors import UnsupportedError
from hudi_core.table import HudiTable as CoreTable
from hudi_spark.read import SplitReader, bins_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from hudi_core.query.read_plan import ReadPlan
    from hudi_core.query.request import MetadataMode, Query

log = logging.getLogger(__name__)

BYTES_PER_TASK = 128 << 20
"""Of base and log files: slices smaller than that share a task, a larger one has a task of its own."""


_PLAIN: dict[pa.DataType, Callable[[], types.DataType]] = {
    pa.bool_(): types.BooleanType,
    pa.int8(): types.ByteType,
    pa.int16(): types.ShortType,
    pa.int32(): types.IntegerType,
    pa.int64(): types.LongType,
    pa.float32(): types.FloatType,
    pa.float64(): types.DoubleType,
    pa.string(): types.StringType,
    pa.binary(): types.BinaryType,
    pa.date32(): types.DateType,
    pa.timestamp("us"): types.TimestampNTZType,
}


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


def spark_type_of(schema: pa.Schema) -> types.StructType:
    """The StructType of a read's schema: all columns nullable, timestamps as TIMESTAMP or TIMESTAMP_NTZ.

    TIMESTAMP is for those with a zone. It is our own instead of pyspark's from_arrow_schema: that one makes TIMESTAMP
    of both, and fails untyped on types it does not know. Raises UnsupportedError for a type that Spark does not have.
    """
    return types.StructType([types.StructField(field.name, _type_of(field.type, field.name), True) for field in schema])


def _type_of(kind: pa.DataType, name: str) -> types.DataType:
    plain = _PLAIN.get(kind)
    if plain is not None:
        return plain()
    if pa.types.is_timestamp(kind) and kind.unit == "us":
        return types.TimestampType()
    if pa.types.is_decimal128(kind):
        return types.DecimalType(kind.precision, kind.scale)
    if pa.types.is_list(kind):
        return types.ArrayType(_type_of(kind.value_type, f"{name}.element"), True)
    if pa.types.is_map(kind):
        return types.MapType(_type_of(kind.key_type, f"{name}.key"), _type_of(kind.item_type, f"{name}.value"), True)
    if pa.types.is_struct(kind):
        return types.StructType(
            [types.StructField(field.name, _type_of(field.type, f"{name}.{field.name}"), True) for field in kind]
        )
    raise UnsupportedError(f"Spark has no type for the column {name!r} of type {kind}")
