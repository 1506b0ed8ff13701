"""What Spark's tasks run: units, and both sides of an exchange. Classes are pickled by reference: executors need
hudi_spark (--py-files).

An exchange is DataFrames only, one action. Rows are made by one mapInArrow, shuffled by shard, sorted, and consumed by
another. Shards are spread by the hash of their number, so a task may consume several of them, one after the other, and
others none. For each shard one row without a key is added, so that a shard without rows is consumed, too; nulls sort
first.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.engine.exchange import SHARD_ROWS, check_rows
from hudi_core.engine.protocol import Consume, PackedUnits, Produce, UnitTask
from hudi_spark.tasks import (
    RESULT_SCHEMA,
    ProgressFolder,
    TaskFailure,
    answer,
    attempt_of,
    forget_importers,
    numbers_of,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROWS = "shard int, key binary, value binary"


def exchanged(
    spark: SparkSession, producer: RowProducer | None, units: int, consumer: ShardConsumer, shards: int
) -> DataFrame:
    """The plan: one row of RESULT_SCHEMA for each shard. `producer` is None where there are no units."""
    rows = spark.range(0, shards, 1, 1).selectExpr(
        "cast(id as int) as shard", "cast(null as binary) as key", "cast(null as binary) as value"
    )
    if producer is not None:
        rows = spark.range(0, units, 1, units).mapInArrow(producer, _ROWS).union(rows)
    return rows.repartition(shards, "shard").sortWithinPartitions("shard", "key").mapInArrow(consumer, RESULT_SCHEMA)


@dataclass(frozen=True)
class UnitRunner:
    """What an executor's Python worker runs on its partition of units."""

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
    """What makes rows in an executor's Python worker."""

    produce: Produce[Any]
    units: PackedUnits[Any]
    run_epoch: int
    shards: int
    ticks: str | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Takes the partition's one row (the index of its unit) and yields rows.

        Every error fails the task: rows that it returned already cannot be withdrawn otherwise. Spark tries again, and
        the driver gets the typed error in the end.
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
    """What consumes the shards of its partition in an executor's Python worker. `first_tick` is the progress number of
    shard 0.
    """

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
    """The batches cut at the start of each shard, without the rows that only name a shard."""
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
