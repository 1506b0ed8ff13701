"""Rows that are pieces of some MiB: Spark hands them to a consumer in small batches."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.engine.exchange import PIECES_PER_BATCH, exchange_rows
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.services.clustering.sorted_groups import SortUnit
from hudi_core.services.write.row_shards import RowsUnit
from hudi_spark.engine import MAX_RECORDS, SparkEngine
from tests.contract.tasks_by_value import engine_for_tasks_of

pytestmark = pytest.mark.spark


@pytest.fixture
def engine(spark: Any) -> Iterator[SparkEngine]:
    with engine_for_tasks_of(__name__, spark) as of_spark:
        yield of_spark


@dataclass(frozen=True)
class Pieces:
    rows_per_batch = PIECES_PER_BATCH
    n: int


@dataclass(frozen=True)
class Rows:
    n: int


@dataclass(frozen=True)
class Largest:
    rows: int
    largest: int


def pieces_of(unit: Rows | Pieces, attempt: TaskAttempt) -> Iterator[pa.RecordBatch]:
    """Forty rows for each of two shards."""
    keys = pa.array([f"{unit.n}-{number:03d}".encode() for number in range(80)], pa.binary())
    yield exchange_rows(pa.array([number % 2 for number in range(80)], pa.int32()), keys, keys)


def note_largest(shard: int, batches: Iterator[pa.RecordBatch], attempt: TaskAttempt) -> Largest:
    sizes = [batch.num_rows for batch in batches]
    return Largest(sum(sizes), max(sizes, default=0))


def test_pieces_come_to_a_consumer_in_small_batches(engine: SparkEngine, spark: Any) -> None:
    """Spark cuts batches by rows alone: 10,000 pieces of 1 MiB."""
    before = spark.conf.get(MAX_RECORDS)

    def pieces() -> list[Largest]:
        return engine.exchange(pieces_of, [Pieces(0), Pieces(1)], note_largest, shards=2, run_epoch=1)

    with ThreadPoolExecutor(2) as pool:  # the tables of a batch share the session
        others = [pool.submit(pieces) for _ in range(2)]
        found = [item for other in others for item in other.result()]
    assert [item.rows for item in found] == [80] * 4
    assert max(item.largest for item in found) <= PIECES_PER_BATCH
    assert spark.conf.get(MAX_RECORDS) == before
    rows = engine.exchange(pieces_of, [Rows(0), Rows(1)], note_largest, shards=2, run_epoch=1)
    assert [(item.rows, item.largest) for item in rows] == [(80, 80)] * 2


def test_the_units_of_a_sort_and_of_an_overwrite_have_pieces() -> None:
    assert SortUnit.rows_per_batch == RowsUnit.rows_per_batch == PIECES_PER_BATCH
