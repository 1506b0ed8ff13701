"""Writes the rows of a query or a DataFrame once, as Parquet files. So a second read returns the same rows."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Final, cast

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_core.errors import ConfigError
from hudi_core.frozen import dataclass
from hudi_core.storage.arrow_store import open_data_storage
from hudi_spark.tasks import attempt_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STAGED_SCHEMA: Final = "name string"
_EMPTY: Final = "part-empty.parquet"


@dataclass(frozen=True)
class StagedPart:
    """Writes the rows of a DataFrame's partition to a file, for mapInArrow. Yields its name if there are rows."""

    folder: str
    storage_options: Mapping[str, str]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Writes one file for each attempt. Only the files that a result names count. Memory: a row group."""
        first = next(batches, None)
        if first is None:
            return
        attempt = attempt_of(0)
        name = f"part-{attempt.partition_id:05d}-{attempt.attempt_id}.parquet"
        storage = open_data_storage(self.folder, self.storage_options)
        with storage.open_output(name) as file, pq.ParquetWriter(file, first.schema, compression="zstd") as writer:
            for batch in chain([first], batches):
                writer.write_batch(batch)
        yield pa.RecordBatch.from_pydict({"name": [name]})


def frame_of(spark: SparkSession, query: str) -> DataFrame:
    """Returns the DataFrame of a query. Raises ConfigError for a query that Spark does not understand."""
    from pyspark.errors import AnalysisException, ParseException

    try:
        frame = spark.sql(query)
        if not frame.columns:
            raise ConfigError("the query has no columns", remedy="give a SELECT")
        return frame
    except (AnalysisException, ParseException) as error:
        first = str(error).strip().splitlines()[0]
        raise ConfigError(f"Spark does not take the query: {first}", remedy="give a SELECT of Spark SQL") from error


def dataframe_of(spark: SparkSession, function: str, arguments: Mapping[str, str]) -> DataFrame:
    """Calls the function with the session and the arguments, and returns its DataFrame. Raises ConfigError if the
    function cannot be imported, or does not return a DataFrame. Does not catch the function's own errors.
    """
    module, _, name = function.partition(":")
    try:
        made = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"{function} cannot be imported: {error}",
            remedy="give its module to the driver: by --py-files of spark-submit, which is `py_files` in the "
            "submit_kwargs of an operator, or by PYTHONPATH",
        ) from error
    frame = made(spark, **arguments)
    # Classic Spark and Spark Connect have different classes.
    if not callable(getattr(frame, "mapInArrow", None)):
        raise ConfigError(f"{function} returned a {type(frame).__name__}", remedy="return a DataFrame of the session")
    return cast("DataFrame", frame)


def staged_names(
    frame: DataFrame, folder: str, storage_options: Mapping[str, str], names: frozenset[str]
) -> frozenset[str]:
    """Returns the files of all rows: `names`, or if there are none, a file without rows, which is written here."""
    from pyspark.sql.pandas.types import to_arrow_schema

    if names:
        return names
    storage = open_data_storage(folder, storage_options)
    with storage.open_output(_EMPTY) as file, pq.ParquetWriter(file, to_arrow_schema(frame.schema)):
        pass
    return frozenset({_EMPTY})
