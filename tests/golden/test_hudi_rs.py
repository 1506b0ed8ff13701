"""The test tables of Apache Hudi-rs, made by Hudi 0.14 to 1.2 with Spark SQL: our rows against two independent answers.

Each read is equal to what the wheel `hudi` (Hudi-rs, another implementation) reads, meta columns included, and its
values are those that an interpreter of the table's own SQL script computes (tests/golden/sql_script.py). Incremental
reads have the wheel's answer only.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hudi import HudiQueryType, HudiReadOptions
from hudi import HudiTable as Wheel

from hudi_core.errors import ConfigError, UnsupportedError
from hudi_core.table import HudiTable
from tests.golden.sql_script import Script
from tests.support.hudi_rs_data import HudiRsTable, hudi_rs_tables
from tests.support.rows import assert_same_rows, rows_of
from tests.support.tiers import tiered

READABLE = [table for table in hudi_rs_tables() if not table.is_lance]
LANCE = [table for table in hudi_rs_tables() if table.is_lance]
WITHOUT_META = [table for table in READABLE if table.name.endswith("_no_metafields")]
CHICAGO = re.compile(r"sample_table/cow/v6_|/v9_txns_(complex|nonpart|simple)_(no)?meta$")
"""The tables that were written in a session of that zone; all others in UTC. Only their timestamps tell."""
PATH_TEXT = {"sample_table/cow/v6_timebasedkeygen_nonhivestyle": "ts_str"}
"""Hudi 0.15 reads a timestamp key generator's column from the partition's path; the wheel and the script have the
stored text.
"""
RO = {"hoodie.read.use.read_optimized.mode": "true"}
HISTORIES = [
    HudiRsTable(f"sample_table/{name}")
    for name in (
        "cow/v6_complexkeygen_hivestyle",
        "cow/v6_simplekeygen_nonhivestyle_overwritetable",
        "cow/v8_nonpartitioned",
        "cow/v9_txns_simple_overwrite",
        "mor/avro/v9_nonpartitioned_rollback",
        "mor/parquet/v6_nonpartitioned_rollback",
    )
]
"""Of each version: updates, overwrites, rollbacks."""


@cache
def script_of(table: HudiRsTable) -> Script:
    zone = ZoneInfo("America/Chicago" if CHICAGO.search(table.name) else "UTC")
    return Script(zone, upserts="/v6_" in table.name).run(table.script)


def ours(table: HudiRsTable, **query: Any) -> pa.Table:
    answer = HudiTable.open(str(table.path)).read(**query)
    return pa.Table.from_batches(answer.batches, answer.schema)


def theirs(table: HudiRsTable, options: HudiReadOptions | None = None) -> pa.Table | None:
    """The wheel's rows; None when it returns no batch, and so no schema."""
    batches = Wheel(str(table.path)).read(options or HudiReadOptions())
    return pa.Table.from_batches(batches) if batches else None


def plain(schema: pa.Schema) -> dict[str, str]:
    """Column types, without the names that writers give to the entries of lists and maps."""
    return {
        field.name: re.sub(r" \('[^']*'\)|(?<=<)(element|item|array)(?=:)", "", str(field.type)) for field in schema
    }


def assert_equal(table: HudiRsTable, mine: pa.Table, wheel: pa.Table | None) -> None:
    if wheel is None:
        assert mine.num_rows == 0
        return
    as_text = {PATH_TEXT[table.name]} if table.name in PATH_TEXT else set()
    assert {name: kind for name, kind in plain(mine.schema).items() if name not in as_text} == {
        name: kind for name, kind in plain(wheel.schema).items() if name not in as_text
    }
    assert_same_rows(mine, wheel, ignore=as_text)


def assert_as_written(table: HudiRsTable, mine: pa.Table, expected: pa.Table) -> None:
    path_text = PATH_TEXT.get(table.name)
    columns = [name for name in expected.column_names if name != path_text]
    assert [name for name in mine.column_names if not name.startswith("_hoodie_")] == expected.column_names
    assert plain(mine.select(expected.column_names).schema) == plain(expected.schema)
    assert rows_of(mine, columns) == rows_of(expected, columns)
    if path_text is not None:
        stored = [value[:13].replace("-", "/").replace("T", "/") for value in expected[path_text].to_pylist()]
        assert sorted(mine[path_text].to_pylist()) == sorted(stored)


def write_instants(table: HudiRsTable) -> list[tuple[str, str]]:
    """Instant and the time that incremental queries go by (completion time from version 8 on), of each write that a
    script's statement made.
    """
    found = HudiTable.open(str(table.path))
    merge_on_read = found.config.is_merge_on_read
    by_completion = found.config.version >= 8
    writes = []
    for instant in found.timeline().completed():
        metadata = found.show(instant.requested_time).metadata or {}
        compaction = merge_on_read and instant.action == "commit"
        if (
            instant.action in ("commit", "deltacommit", "replacecommit")
            and not compaction
            and metadata["operationType"] != "CLUSTER"
        ):
            time = instant.completion_time if by_completion else instant.requested_time
            assert time is not None
            writes.append((instant.requested_time, time))
    return writes


@pytest.mark.parametrize("metadata", tiered(["auto", "off"], ["auto"]))
@pytest.mark.parametrize("table", READABLE, ids=lambda table: table.name)
def test_snapshot(table: HudiRsTable, metadata: str) -> None:
    mine = ours(table, metadata=metadata)
    assert_equal(table, mine, theirs(table))
    assert_as_written(table, mine, script_of(table).table())


@pytest.mark.parametrize("table", [table for table in READABLE if "/mor/" in table.name], ids=lambda table: table.name)
def test_read_optimized(table: HudiRsTable) -> None:
    assert_equal(table, ours(table, query="read_optimized"), theirs(table, HudiReadOptions().with_hudi_options(RO)))


@pytest.mark.parametrize("table", tiered(READABLE, HISTORIES), ids=lambda table: table.name)
def test_time_travel(table: HudiRsTable) -> None:
    script, instants = script_of(table), write_instants(table)
    assert len(instants) == script.writes
    for index, (instant, _) in enumerate(instants):
        mine = ours(table, as_of=instant)
        assert_equal(table, mine, theirs(table, HudiReadOptions().with_as_of_timestamp(instant)))
        assert_as_written(table, mine, script.table(index))


@pytest.mark.parametrize(
    "table",
    tiered([table for table in READABLE if table not in WITHOUT_META], HISTORIES),
    ids=lambda table: table.name,
)
def test_incremental(table: HudiRsTable) -> None:
    times = ["000", *(time for _, time in write_instants(table))]
    for begin, end in pairwise(times):
        for last in {end, times[-1]}:
            options = (
                HudiReadOptions()
                .with_query_type(HudiQueryType.Incremental)
                .with_start_timestamp(begin)
                .with_end_timestamp(last)
            )
            assert_equal(table, ours(table, query="incremental", begin=begin, end=last), theirs(table, options))


@pytest.mark.parametrize("table", WITHOUT_META, ids=lambda table: table.name)
def test_incremental_needs_the_meta_columns(table: HudiRsTable) -> None:
    """As real Hudi (IncrementalRelation); the wheel returns whole file slices."""
    with pytest.raises(ConfigError, match="_hoodie_ columns"):
        ours(table, query="incremental", begin="000")


@pytest.mark.parametrize("table", LANCE, ids=lambda table: table.name)
def test_lance_is_refused_by_name(table: HudiRsTable) -> None:
    with pytest.raises(UnsupportedError, match="LANCE"):
        ours(table)


def test_every_table_of_the_archive_is_here() -> None:
    assert (len(READABLE), len(WITHOUT_META), len(LANCE)) == (41, 3, 6)
