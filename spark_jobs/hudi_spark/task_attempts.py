"""Which attempt runs on an executor, what became of it, and the row by which it answers."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any
from zipimport import zipimporter

import pyarrow as pa

from hudi_core.engine.protocol import TaskAttempt
from hudi_core.engine.serializer import to_text
from hudi_core.errors import ExecutionError, HudiError, is_transient
from hudi_core.request.outcome import error_to_json
from hudi_spark.task_errors import TaskFailure

RESULT_SCHEMA = "unit long, failed boolean, body binary"


def attempt_of(run_epoch: int, partition_id: int | None = None) -> TaskAttempt:
    """The attempt that this Spark task is; `partition_id` is that of a part of its partition.

    Raises ExecutionError outside a Spark task.
    """
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        raise ExecutionError("a unit was run outside a Spark task")
    # taskAttemptId is unique among all attempts of one Spark application, run_epoch among applications that run one
    # instant.
    number = context.partitionId() if partition_id is None else partition_id
    return TaskAttempt(partition_id=number, stage_id=run_epoch, attempt_id=context.taskAttemptId())


def outcome_of(work: Callable[[], Any]) -> tuple[bool, bytes]:
    """Whether `work` failed for good, and its result as serializer.to_text or its error as JSON.

    Raises TaskFailure, which fails the Spark task, where trying again helps.
    """
    try:
        return False, to_text(work()).encode()
    except Exception as error:
        if isinstance(error, HudiError) and not is_transient(error):
            return True, json.dumps(error_to_json(error)).encode()
        raise TaskFailure(error) from error


def numbers_of(batches: Iterator[pa.RecordBatch]) -> Iterator[int]:
    """The numbers of units or bins in a partition: one row each, so there is nothing to vectorise. Behind the last one
    the task is over; see forget_importers.
    """
    try:
        for batch in batches:
            yield from batch.column(0).to_pylist()
    finally:
        forget_importers()


def forget_importers() -> None:
    """Drops the importers that this worker keeps for zip files and the folders in them, but for files of the user's
    that Spark brought; an import makes them again.

    Before each task PySpark's worker tells every importer that modules may be new, upon which each reads the whole
    directory of its zip again (zipimporter.invalidate_caches, since Python 3.10): 0.25 CPU seconds a task, measured.
    The job zip is named by its content, and those of Spark are installed.
    """
    from pyspark import SparkFiles, TaskContext

    if TaskContext.get() is None:
        return  # on a driver
    brought = SparkFiles.getRootDirectory()
    for path, importer in list(sys.path_importer_cache.items()):
        if not isinstance(importer, zipimporter):
            continue
        is_the_users = importer.archive.startswith(brought) and not __file__.startswith(importer.archive)
        if importer.prefix or not is_the_users:
            sys.path_importer_cache.pop(path, None)


def result_row(index: int, failed: bool, body: bytes) -> pa.RecordBatch:
    """One row of RESULT_SCHEMA: the unit or shard, whether it failed for good, and its result or its error as text."""
    columns = [pa.array([index], pa.int64()), pa.array([failed], pa.bool_()), pa.array([body], pa.binary())]
    return pa.RecordBatch.from_arrays(columns, names=["unit", "failed", "body"])
