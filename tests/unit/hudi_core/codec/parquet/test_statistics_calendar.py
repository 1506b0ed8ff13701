"""Files in Spark's hybrid calendar: which columns hold other dates than their numbers say, and what is refused. That
Spark marks and reads files so is tests/contract/test_parquet_in_spark.py.
"""

from __future__ import annotations

import datetime as dt
import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.codec.parquet.splice import RowGroupSource
from hudi_core.codec.parquet.statistics import proleptic_version
from hudi_core.errors import UnsupportedError

VERSION, DATETIME, INT96 = (f"org.apache.spark.{key}" for key in ("version", "legacyDateTime", "legacyINT96"))
LEGACY = {VERSION: "3.5.1", DATETIME: "", "org.apache.spark.timeZone": "UTC"}
OLD, NEW = dt.date(1582, 10, 14), dt.date(1582, 10, 15)
UTC = dt.timezone.utc
OLD_TIME, NEW_TIME = (dt.datetime(1900, 1, 1, tzinfo=UTC) - dt.timedelta(microseconds=past) for past in (1, 0))


def opened(table: pa.Table, keys: dict[str, str], **options: Any) -> ParquetBaseFile:
    file = io.BytesIO()
    with pq.ParquetWriter(file, table.schema, store_schema=False, **options) as writer:
        writer.write_table(table, row_group_size=2)
        writer.add_key_value_metadata(keys)
    return ParquetBaseFile(file, "base.parquet")


DAYS = pa.table({"id": [1, 2, 3], "day": [NEW, NEW, OLD], "at": pa.array([NEW_TIME] * 3, pa.timestamp("us", "UTC"))})


@pytest.mark.parametrize(
    "keys", [LEGACY, {VERSION: "3.1.2", DATETIME: ""}, {VERSION: "2.4.8"}, {**LEGACY, INT96: ""}], ids=str
)
def test_older_values_in_the_hybrid_calendar_are_refused(keys: dict[str, str]) -> None:
    base = opened(DAYS, keys)
    assert base.hybrid_columns == ["day"]
    for columns, row_groups in ((None, None), (["day"], [0])):
        with pytest.raises(UnsupportedError, match=r"base\.parquet.*'day'.*1582") as caught:
            list(base.batches(columns, row_groups=row_groups))
        assert "CORRECTED" in (caught.value.remedy or "")
    assert pa.Table.from_batches(base.batches(["id", "at"])).num_rows == 3
    refusal = RowGroupSource(base).refusal(DAYS.schema)
    assert refusal == "its columns are in the hybrid calendar: day"


@pytest.mark.parametrize("keys", [{}, {VERSION: "3.5.1"}, {VERSION: "3.0.1", INT96: ""}, {DATETIME: ""}], ids=str)
def test_files_in_the_proleptic_calendar_and_without_a_mark_are_read(keys: dict[str, str]) -> None:
    base = opened(DAYS, keys)
    assert pa.Table.from_batches(base.batches()).equals(DAYS)
    assert RowGroupSource(base).refusal(DAYS.schema) is None


@pytest.mark.parametrize(
    ("values", "kind", "is_older"),
    [
        ([NEW, None], pa.date32(), False),
        ([None, OLD], pa.date32(), True),
        ([None, None], pa.date32(), False),
        ([NEW_TIME], pa.timestamp("us", "UTC"), False),
        ([OLD_TIME], pa.timestamp("us", "UTC"), True),
        ([NEW_TIME], pa.timestamp("ms", "UTC"), False),
        ([dt.datetime(1899, 12, 31, tzinfo=UTC)], pa.timestamp("ms", "UTC"), True),
        ([dt.datetime(1500, 1, 1)], pa.timestamp("us"), False),
        ([-200_000], pa.int32(), False),
        ([{"days": [NEW, OLD]}], pa.struct([("days", pa.list_(pa.date32()))]), True),
        ([[(OLD, NEW)]], pa.map_(pa.date32(), pa.date32()), True),
        ([[(NEW, NEW)]], pa.map_(pa.date32(), pa.date32()), False),
    ],
)
def test_only_columns_with_older_values_count(values: list[Any], kind: pa.DataType, is_older: bool) -> None:
    """Local timestamps are in no calendar."""
    table = pa.table({"a": pa.array([1] * len(values)), "b": pa.array(values, kind)})
    assert opened(table, LEGACY).hybrid_columns == (["b"] if is_older else [])


def test_a_column_without_ranges_may_hold_older_values() -> None:
    assert opened(DAYS, LEGACY, write_statistics=False).hybrid_columns == ["day", "at"]
    assert opened(DAYS.slice(0, 0), LEGACY, write_statistics=False).hybrid_columns == []


@pytest.mark.parametrize(
    ("keys", "found"),
    [
        ({VERSION: "3.5.1", INT96: ""}, ["at"]),
        ({VERSION: "3.0.1"}, ["at"]),
        (LEGACY, []),
        ({VERSION: "3.1.0"}, []),
        ({}, []),
    ],
)
def test_int96_has_its_own_mark(keys: dict[str, str], found: list[str]) -> None:
    """And no ranges."""
    table = pa.table({"at": pa.array([NEW_TIME], pa.timestamp("us", "UTC"))})
    assert opened(table, keys, use_deprecated_int96_timestamps=True).hybrid_columns == found


@pytest.mark.parametrize(
    ("footers", "version"),
    [
        ([{}], None),
        ([{VERSION: "3.5.1"}], "3.5.1"),
        ([LEGACY], "3.5.1"),
        ([{VERSION: "2.4.8"}], "3.1.0"),
        ([{VERSION: "3.5.1"}, {VERSION: "4.0.0"}, {VERSION: "3.0.1"}], "4.0.0"),
        ([{VERSION: "3.5.1"}, {}], None),
        ([], "3.1.0"),
    ],
)
def test_a_new_file_says_what_its_sources_say(footers: list[dict[str, str]], version: str | None) -> None:
    assert proleptic_version(footers) == version
