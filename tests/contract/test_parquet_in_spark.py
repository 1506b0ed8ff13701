"""What Spark's own readers, without Hudi, make of base files of ours: NaN, dates and timestamps of old, and pieces of
random files; and what we make of files that Spark marks as in the hybrid calendar.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.codec.parquet.statistics import SPARK_VERSION, proleptic_version
from hudi_core.codec.parquet.writer import BaseFileWriter, ParquetStyle
from hudi_core.errors import UnsupportedError
from tests.support.random_parquet import random_table
from tests.support.random_pieces import BLOCK, copied, paged_file, source_of

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROWS = 100
"""Rows of a row group."""
OLD = "SELECT 1 AS id, DATE '1500-03-01' AS day, TIMESTAMP '1850-01-02 03:04:05' AS at"
NEW = "SELECT 1 AS id, DATE '1582-10-15' AS day, TIMESTAMP '1900-01-01 00:00:00' AS at"


class Session:
    """The shared session, with options that end with a test."""

    def __init__(self, spark: Any) -> None:
        self.spark = spark
        self._set: set[str] = set()

    def set(self, **options: str) -> None:
        """Options below `spark.sql.parquet`."""
        for name, value in options.items():
            self._set.add(f"spark.sql.parquet.{name}")
            self.spark.conf.set(f"spark.sql.parquet.{name}", value)

    def unset(self) -> None:
        for name in self._set:
            self.spark.conf.unset(name)

    def rows(self, path: Path, vectorized: str) -> list[str]:
        """The rows of a file as JSON, in its order."""
        self.set(enableVectorizedReader=vectorized)
        return [
            row.json for row in self.spark.read.parquet(str(path)).selectExpr("to_json(struct(*)) AS json").collect()
        ]

    def written(self, query: str, folder: Path, **options: str) -> Path:
        """The one file that Spark writes of a query."""
        self.set(**options)
        self.spark.sql(query).coalesce(1).write.parquet(str(folder))
        (path,) = folder.glob("*.parquet")
        return path


@pytest.fixture
def session(spark: Any) -> Iterator[Session]:
    made = Session(spark)
    yield made
    made.unset()


def write(path: Path, table: pa.Table, footer: dict[str, str] | None = None) -> None:
    with path.open("wb") as file:
        writer = BaseFileWriter(file, table.schema, path=str(path), style=ParquetStyle(row_group_rows=ROWS))
        writer.write(table)
        writer.close(footer or {})


@pytest.mark.conformance
@pytest.mark.parametrize("block", range(50))
def test_pieces_of_random_files_are_read_as_their_source(session: Session, tmp_path: Path, block: int) -> None:
    """By both readers of Spark and by polars. The files are those of test_pieces, where Arrow is the reader."""
    judged = 0
    source, target = tmp_path / "source.parquet", tmp_path / "target.parquet"
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        random = Random(seed)
        table = random_table(random)
        source.write_bytes(paged_file(random, table))
        try:
            pq.read_table(source)
        except (OSError, pa.ArrowInvalid):
            continue  # Arrow writes lists in pages of some bytes so that it cannot read them itself
        target.write_bytes(copied(random, source_of(source.read_bytes()), table.schema))
        expected = session.rows(source, vectorized="false")
        assert len(expected) == table.num_rows
        for vectorized in ("false", "true"):
            assert session.rows(target, vectorized) == expected, (seed, vectorized)
        assert pl.read_parquet(target).equals(pl.read_parquet(source)), seed
        judged += 1
    assert judged > BLOCK / 2


@pytest.mark.parametrize("vectorized", ["true", "false"])
def test_spark_finds_nan_by_filters(session: Session, tmp_path: Path, vectorized: str) -> None:
    """It is greater than every number, and no statistics that its readers go by say otherwise."""
    numbers = [float(number % ROWS) for number in range(4 * ROWS)]
    numbers[ROWS + 7] = numbers[2 * ROWS] = math.nan
    numbers[3 * ROWS :] = [math.nan] * ROWS
    table = pa.table(
        {
            "id": list(range(4 * ROWS)),
            "d": numbers,
            "f": pa.array(numbers, pa.float32()),
            "s": [{"x": number} for number in numbers],
        }
    )
    write(tmp_path / "ours.parquet", table)
    session.set(enableVectorizedReader=vectorized)
    frame = session.spark.read.parquet(str(tmp_path / "ours.parquet"))
    expected = [number for number, value in enumerate(numbers) if math.isnan(value)]
    for column in ("d", "f", "s.x"):
        for predicate in ("{} > 100", "{} >= 100", "NOT {} <= 99", "{} = double('NaN')"):
            found = frame.where(predicate.format(column)).select("id").collect()
            assert sorted(row.id for row in found) == expected, (column, predicate)
        assert frame.where(f"{column} < 1").count() == numbers.count(0.0)


@pytest.mark.parametrize("query", [OLD, NEW])
def test_old_dates_in_the_hybrid_calendar_are_refused(session: Session, tmp_path: Path, query: str) -> None:
    path = session.written(
        query, tmp_path / "legacy", datetimeRebaseModeInWrite="LEGACY", outputTimestampType="TIMESTAMP_MICROS"
    )
    with path.open("rb") as file, ParquetBaseFile(file, path.name) as base:
        assert "org.apache.spark.legacyDateTime" in base.footer
        if query == OLD:
            assert base.hybrid_columns == ["day", "at"]
            with pytest.raises(UnsupportedError, match="'day'"):
                list(base.batches())
        else:
            (row,) = pa.Table.from_batches(base.batches()).to_pylist()
            assert (row["day"], row["at"].isoformat()) == (dt.date(1582, 10, 15), "1900-01-01T00:00:00+00:00")


def test_old_timestamps_of_int96_are_refused(session: Session, tmp_path: Path) -> None:
    modes = {"int96RebaseModeInWrite": "LEGACY", "datetimeRebaseModeInWrite": "CORRECTED"}
    path = session.written(OLD, tmp_path / "int96", outputTimestampType="INT96", **modes)
    with path.open("rb") as file, ParquetBaseFile(file, path.name) as base:
        assert base.hybrid_columns == ["at"]
        assert pa.Table.from_batches(base.batches(["day"]))["day"].to_pylist() == [dt.date(1500, 3, 1)]


@pytest.mark.parametrize("vectorized", ["true", "false"])
def test_old_dates_are_as_spark_wrote_them_behind_a_rewrite(session: Session, tmp_path: Path, vectorized: str) -> None:
    """Spark reads a file of ours without a question that replaces one that it reads so; without the mark it asks for
    the calendar.
    """
    path = session.written(
        OLD, tmp_path / "corrected", datetimeRebaseModeInWrite="CORRECTED", outputTimestampType="TIMESTAMP_MICROS"
    )
    with path.open("rb") as file, ParquetBaseFile(file, path.name) as base:
        table, version = pa.Table.from_batches(base.batches()), proleptic_version([base.footer])
    assert version == session.spark.version
    write(tmp_path / "ours.parquet", table, {SPARK_VERSION: version})
    write(tmp_path / "without.parquet", table)
    session.set(enableVectorizedReader=vectorized)
    text = ["CAST(day AS STRING)", "CAST(at AS STRING)"]
    (row,) = session.spark.read.parquet(str(tmp_path / "ours.parquet")).selectExpr(*text).collect()
    assert tuple(row) == ("1500-03-01", "1850-01-02 03:04:05")
    with pytest.raises(Exception, match=r"(?s)INCONSISTENT_BEHAVIOR_CROSS_VERSION.*datetimeRebaseModeInRead"):
        session.spark.read.parquet(str(tmp_path / "without.parquet")).selectExpr(*text).collect()
