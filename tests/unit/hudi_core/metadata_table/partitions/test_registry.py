"""The registry of partition types, which columns are indexed, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hudi_core.config.metadata_config import STATISTICS_COLUMN_COUNT, STATISTICS_COLUMNS
from hudi_core.errors import ConfigError, UnsupportedError
from hudi_core.metadata_table.indexed_table import chosen_columns, statistics_columns
from hudi_core.metadata_table.partitions.registry import clean_updates, partition_type_of, partition_types_of
from hudi_core.metadata_table.records.bounds import Bound, ValueType
from hudi_core.metadata_table.records.file_statistics import (
    ColumnRange,
    CommitUpdate,
    FileChanges,
)
from tests.support.golden_statistics import META, Golden, plain, table_of, whole_file


@pytest.mark.parametrize("version", ["8", "9"])
@pytest.mark.parametrize("case", ["mdt_all_cow", "cow_basic", "mor_basic"])
def test_the_columns_that_a_new_index_gets_are_those_that_hudi_defined(golden: Golden, version: str, case: str) -> None:
    table = table_of(golden, version, case)
    assert chosen_columns(plain(table)) == table.definitions["column_stats"].source_fields == statistics_columns(table)


def test_table_version_6_indexes_every_column(golden: Golden) -> None:
    table = table_of(golden, "6")
    assert statistics_columns(table)[:5] == (
        "_hoodie_commit_time",
        "_hoodie_commit_seqno",
        "_hoodie_record_key",
        "_hoodie_partition_path",
        "_hoodie_file_name",
    )
    assert len(statistics_columns(table)) == 12
    assert statistics_columns(replace(table, settings={STATISTICS_COLUMNS.name: "qty, name"})) == ("qty", "name")


def test_options_choose_the_columns(golden: Golden) -> None:
    table = plain(table_of(golden))
    assert chosen_columns(replace(table, settings={STATISTICS_COLUMN_COUNT.name: "2"})) == (*META, "id", "name")
    assert chosen_columns(replace(table, settings={STATISTICS_COLUMNS.name: "qty,nowhere,_hoodie_record_key"})) == (
        *META,
        "qty",
    )
    with pytest.raises(ConfigError, match=r"max\.columns"):
        chosen_columns(replace(table, settings={STATISTICS_COLUMN_COUNT.name: "few"}))


def test_columns_that_have_no_order_are_not_indexed(golden: Golden) -> None:
    table = plain(table_of(golden, "9", "types_mor"))
    assert {"c_array", "c_map", "c_struct"}.isdisjoint(chosen_columns(table))
    assert "c_bin" in chosen_columns(table)


@pytest.mark.parametrize(("version", "found"), [("6", 1), ("8", 1), ("9", 2)])
def test_the_version_of_the_encoding(golden: Golden, version: str, found: int) -> None:
    table = table_of(golden, version)
    assert [
        item.version_of(name) for item in (table, plain(table)) for name in ("column_stats", "partition_stats")
    ] == [found] * 4
    assert plain(table).version_of("bloom_filters") == 1


def test_names_and_counts_of_file_groups(golden: Golden) -> None:
    table = table_of(golden)
    partition_types = partition_types_of(
        ["files", "column_stats", "partition_stats", "bloom_filters", "expr_index_idx_day"], table
    )
    assert {name: partition_type.group_count({}) for name, partition_type in partition_types.items()} == {
        "bloom_filters": 4,
        "column_stats": 2,
        "expr_index_idx_day": 2,
        "files": 1,
        "partition_stats": 1,
    }
    assert partition_types["column_stats"].file_ids(2) == ["col-stats-0000-0", "col-stats-0001-0"]
    assert partition_types["expr_index_idx_day"].file_ids(1) == ["expr-index-idx-day-0000-0"]
    assert (
        partition_types["bloom_filters"].group_count({"hoodie.metadata.index.bloom.filter.file.group.count": "2"}) == 2
    )
    with pytest.raises(ConfigError):
        partition_types["column_stats"].group_count({"hoodie.metadata.index.column.stats.file.group.count": "0"})


@pytest.mark.parametrize("name", ["text_index_x", "expr_index_", "expr_index_unknown", ""])
def test_an_unknown_partition_is_refused(golden: Golden, name: str) -> None:
    with pytest.raises(UnsupportedError, match=r"cannot (be kept|keep) true"):
        partition_type_of(name, table_of(golden))


def test_a_clean_goes_through_the_same_registry(golden: Golden) -> None:
    table = table_of(golden)
    changes = FileChanges(deleted={"2024-01-01": frozenset({"f_0-0-0_1.parquet"})})
    recorded = {
        name: len(list(records))
        for name, records in clean_updates("1", changes, table.config.metadata_partitions, table).items()
    }
    assert recorded == {
        "bloom_filters": 1,
        "column_stats": 10,
        "expr_index_idx_day": 1,
        "expr_index_idx_low": 1,
        "files": 1,
    }
    with pytest.raises(UnsupportedError):
        clean_updates("1", changes, ["text_index_x"], table)


def test_a_remaining_file_of_unknown_values_is_refused(golden: Golden) -> None:
    table = table_of(golden)
    written, remaining = whole_file(table, "new", "d", "f"), whole_file(table, "old", "a", "e", without="name")
    statistics = CommitUpdate("1", "UPSERT", {}, (written,), {}, {"2024-01-01": (remaining,)}.get)
    with pytest.raises(UnsupportedError, match="'name'"):
        list(partition_type_of("partition_stats", table).of_commit(statistics))
    day = "expr_index_idx_day"
    found = ColumnRange("ts", Bound("string", "a"), Bound("string", "b"), 0, 2, 1, 1, ValueType(0))
    statistics = CommitUpdate(
        "1", "UPSERT", {}, (replace(written, expressions={day: found}),), {}, {"2024-01-01": (remaining,)}.get
    )
    with pytest.raises(UnsupportedError, match=day):
        list(partition_type_of(day, table).of_commit(statistics))
