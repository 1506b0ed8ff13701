"""Writes and overwrites by a DataFrame, by a function that makes one, and by a query of Spark."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConfigError
from hudi_core.services.source.staged_rows import LEFT_SECONDS, STAGED
from hudi_core.table import HudiTable
from hudi_core.verbs.write import InsertOverwriteRequest
from hudi_spark.engine import SparkEngine
from hudi_spark.write import insert_overwrite, write
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import BUCKETS, in_buckets, own_rows, places, put_source, within
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import assert_metadata_true, read_rows
from tests.support.tiers import tiered

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

Golden = Callable[[str, str], GoldenCase]


def staged(table: Path) -> list[Path]:
    return [path for path in (table / STAGED).rglob("*") if path.is_file()]


def by_query(table: Path, query: str, engine: Any, **fields: Any) -> dict[str, Any]:
    return HudiTable.open(str(table)).run(InsertOverwriteRequest(str(table), query=query, **fields), engine).to_dict()


@pytest.mark.parametrize("case", tiered(["types_cow", "mor_basic"], ["types_cow"]))
def test_a_dataframe_replaces_the_partitions_of_its_rows(
    golden: Golden, tmp_path: Path, spark: SparkSession, case: str
) -> None:
    table = golden("9", case).table
    rows = read_rows(table)
    name = min(rows.column("_hoodie_partition_path").to_pylist())
    frame = spark.read.parquet(str(put_source(own_rows(table, within(rows, name)), tmp_path)))
    done = insert_overwrite(frame, str(table), token="once")
    assert (done["partitions"], done["records"], done["repeated"]) == (1, within(rows, name).num_rows, False)
    assert places(read_rows(table)) == places(rows)
    assert_same_rows(own_rows(table, read_rows(table)), own_rows(table, rows), ignore=())
    assert (staged(table), spark.catalog.listTables()) == ([], [])
    assert_metadata_true(table)
    never = spark.sql("SELECT raise_error('evaluated')")
    again = insert_overwrite(never, str(table), token="once")
    assert (again["instant"], again["repeated"]) == (done["instant"], True)


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["9"]))
def test_rows_of_a_dataframe_are_updated_deleted_and_inserted(
    golden: Golden, tmp_path: Path, spark: SparkSession, version: str
) -> None:
    table = golden(version, "cow_basic").table
    rows = read_rows(table)
    few = within(rows, min(rows.column("_hoodie_partition_path").to_pylist())).slice(0, 5)
    frame = spark.read.parquet(str(put_source(own_rows(table, few), tmp_path)))
    config = HudiTable.open(str(table)).config
    keys = frame.select(*config.record_key_fields, *config.partition_fields)
    done = [
        write(given, str(table), operation=operation, token=token)
        for given, operation, token in (
            (frame, "upsert", "a"),
            (keys, "delete", "b"),
            (frame, "insert", "c"),
            (spark.sql("SELECT raise_error('evaluated')"), "insert", "c"),
        )
    ]
    counts = [(item["inserted"], item["updated"], item["deleted"], item["repeated"]) for item in done]
    assert counts == [(0, 5, 0, False), (0, 0, 5, False), (5, 0, 0, False), (5, 0, 0, True)]
    assert {item["engine"] for item in done[:3]} == {"spark"}
    assert places(read_rows(table)) == places(rows)
    assert_same_rows(own_rows(table, read_rows(table)), own_rows(table, rows), ignore=())
    assert (staged(table), spark.catalog.listTables()) == ([], [])
    assert_metadata_true(table)


def test_executors_put_rows_into_buckets(golden: Golden, tmp_path: Path, spark: SparkSession) -> None:
    table = golden("8", "bucket_index_cow").table
    rows = read_rows(table)
    frame = spark.read.parquet(str(put_source(own_rows(table, rows), tmp_path, files=3)))
    insert_overwrite(frame.repartition(3), str(table), whole_table=True, options=BUCKETS)
    after = read_rows(table)
    assert in_buckets(after) == in_buckets(rows)
    assert places(after) == places(rows)
    assert_metadata_true(table)


def rows_of_half(spark: SparkSession, source: str, keep: str) -> Any:
    """A function as users write it."""
    return spark.read.parquet(source).where(keep)


def no_rows(spark: SparkSession) -> str:
    """A function that returns something else."""
    return "rows"


def by_function(table: Path, engine: Any, name: str, **arguments: str) -> dict[str, Any]:
    request = InsertOverwriteRequest(str(table), dataframe=name, dataframe_args=arguments)
    return HudiTable.open(str(table)).run(request, engine).to_dict()


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["9"]))
def test_a_function_makes_the_rows(golden: Golden, tmp_path: Path, spark: SparkSession, version: str) -> None:
    table = golden(version, "cow_basic").table
    rows = read_rows(table)
    name = min(rows.column("_hoodie_partition_path").to_pylist())
    field = HudiTable.open(str(table)).config.record_key_fields[0]
    source = own_rows(table, within(rows, name))
    key = sorted(map(str, source.column(field).to_pylist()))[0]
    done = by_function(
        table,
        SparkEngine(spark),
        f"{__name__}:{rows_of_half.__name__}",
        source=str(put_source(source, tmp_path)),
        keep=f"cast({field} AS string) > '{key}'",
    )
    assert (done["partitions"], done["records"]) == (1, source.num_rows - 1)
    assert read_rows(table).num_rows == rows.num_rows - 1
    assert staged(table) == []
    assert_metadata_true(table)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such_module_here:rows", "cannot be imported"),
        (f"{__name__}:missing", "cannot be imported"),
        (f"{__name__}:{no_rows.__name__}", "returned a str"),
    ],
)
def test_a_function_that_is_none_is_bad_input(golden: Golden, spark: SparkSession, name: str, message: str) -> None:
    table = golden("9", "mor_basic").table
    with pytest.raises(ConfigError, match=message):
        by_function(table, SparkEngine(spark), name)
    assert staged(table) == []


def test_rows_that_change_from_one_answer_to_the_next_are_those_of_one(golden: Golden, spark: SparkSession) -> None:
    """Keys, and the partitions that they belong to, are drawn by the query."""
    table = golden("8", "cow_basic").table
    names = sorted(set(read_rows(table).column("_hoodie_partition_path").to_pylist()))
    keys = HudiTable.open(str(table)).config.record_key_fields
    partition = HudiTable.open(str(table)).config.partition_fields[0]
    drawn = f"SELECT cast(cast(rand() * 1e6 AS int) AS string) AS {keys[0]}, " + (
        f"CASE WHEN rand() < 0.5 THEN '{names[0]}' ELSE '{names[1]}' END AS {partition} FROM range(0, 500, 1, 4)"
    )
    done = by_query(table, drawn, SparkEngine(spark), whole_table=True)
    assert (done["records"], read_rows(table).num_rows) == (500, 500)
    assert_metadata_true(table)


def test_no_rows_empty_what_is_named(golden: Golden, spark: SparkSession) -> None:
    table = golden("9", "mor_basic").table
    rows = read_rows(table)
    name = min(rows.column("_hoodie_partition_path").to_pylist())
    spark.createDataFrame([], spark.read.parquet(str(min(table.glob("*/*.parquet")))).schema).createTempView("none")
    try:
        done = by_query(table, "SELECT * FROM none", SparkEngine(spark), partitions=(name,))
    finally:
        spark.catalog.dropTempView("none")
    assert (done["records"], staged(table)) == (0, [])
    assert places(read_rows(table)) == places(within(rows, name, outside=True))


@pytest.mark.parametrize("query", ["SELECT", "SELECT nothing FROM nowhere", "SET a=b; SELECT 1"])
def test_a_query_that_is_none_is_bad_input(golden: Golden, spark: SparkSession, query: str) -> None:
    table = golden("9", "mor_basic").table
    with pytest.raises(ConfigError, match="Spark does not take the query"):
        by_query(table, query, SparkEngine(spark))
    assert staged(table) == []


def test_columns_that_differ_by_case_alone_are_bad_input(golden: Golden, spark: SparkSession) -> None:
    table = golden("9", "mor_basic").table
    with pytest.raises(ConfigError, match=r"the columns 'name' and 'NAME' have one name.*rename one of them"):
        by_query(table, "SELECT 'a' AS name, 'b' AS NAME", SparkEngine(spark))
    assert staged(table) == []


def test_a_dry_run_counts_the_rows_and_leaves_the_table(golden: Golden, tmp_path: Path, spark: SparkSession) -> None:
    """Also what a killed run left, which the next run deletes."""
    table = golden("9", "mor_basic").table
    rows = read_rows(table)
    name = min(rows.column("_hoodie_partition_path").to_pylist())
    source = put_source(own_rows(table, within(rows, name)), tmp_path)
    left = table / STAGED / "old" / "part.parquet"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"")
    os.utime(left, (0, 0))
    before = {path: path.read_bytes() for path in table.rglob("*") if path.is_file()}
    query = f"SELECT * FROM parquet.`{source}`"
    looked = by_query(table, query, SparkEngine(spark), dry_run=True)
    assert {path: path.read_bytes() for path in table.rglob("*") if path.is_file()} == before
    assert (looked["instant"], looked["partitions"], looked["records"]) == (None, 1, within(rows, name).num_rows)
    done = by_query(table, query, SparkEngine(spark))
    assert (done["records"], done["replaced_file_groups"]) == (looked["records"], looked["replaced_file_groups"])


def test_the_local_engine_has_no_rows_of_spark(golden: Golden) -> None:
    with pytest.raises(ConfigError, match="answers no query") as error:
        by_query(golden("9", "mor_basic").table, "SELECT 1", LocalEngine(1))
    assert "--engine spark" in str(error.value)


def test_what_a_killed_run_left_goes_after_a_week(golden: Golden, spark: SparkSession) -> None:
    table = golden("9", "mor_basic").table
    for name, age in (("old", LEFT_SECONDS + 60), ("new", 60)):
        left = table / STAGED / name / "part.parquet"
        left.parent.mkdir(parents=True)
        left.write_bytes(b"")
        then = left.stat().st_mtime - age
        os.utime(left, (then, then))
    with pytest.raises(ConfigError):
        by_query(table, "SELECT", SparkEngine(spark))
    assert [path.parent.name for path in staged(table)] == ["new"]
