"""A Hudi table as a Spark DataFrame. The driver plans the read here, and the executors read the files."""

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
"""The bytes of base and log files per task: smaller file slices share a task, a larger one has its own task."""


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
    """A table for Spark. Nothing is read before `to_spark`. Every call of it reads the table as it is at that time."""

    def __init__(
        self, uri: str, storage_options: Mapping[str, str] | None = None, options: Mapping[str, str] | None = None
    ) -> None:
        """Takes `options` as hudi_core.table.HudiTable.open does. The executors get the storage options."""
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
        """Returns the rows of a query as a lazy DataFrame, like the rows of hudi_core.table.HudiTable.read.

        The call chooses the files, by the timeline at this time and by `where`; each action of the DataFrame reads
        these files again. Conditions that are added to the DataFrame later filter rows, but do not reduce the files:
        pass them as `where`. Executors need this package: open the session with hudi_spark.session.open_session, or
        pass the job zip by --py-files or spark.addArtifacts. The same code runs on classic Spark and on Spark Connect.

        Raises the errors of HudiTable.open and HudiTable.plan. An error of an executor comes with the action, as
        Spark's own exception; hudi_spark.failure.translate makes a HudiError of it. For a failed write, Spark Connect
        keeps too little of the text for that.
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
    # There is one row for each task, so that the number of tasks is the number of bins, whatever the session's default
    # parallelism is.
    return spark.range(0, len(bins), 1, len(bins)).mapInArrow(SplitReader.of(plan.common, bins), schema)


def spark_type_of(schema: pa.Schema) -> types.StructType:
    """Returns the StructType of a read's schema: all columns nullable, timestamps as TIMESTAMP or TIMESTAMP_NTZ.

    TIMESTAMP is for timestamps with a zone. This replaces pyspark's from_arrow_schema, which makes TIMESTAMP of both,
    and raises an untyped error for unknown types. Raises UnsupportedError for a type that Spark does not have.
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
