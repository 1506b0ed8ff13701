"""The registry, which columns are indexed, how kinds begin, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from hudi_core.errors import ConfigError, UnsupportedError
from hudi_core.metadata_table.extract.stored_ranges import remaining_expressions, remaining_statistics
from hudi_core.metadata_table.index_definitions import IndexDefinition
from hudi_core.metadata_table.indexed_table import COLUMN_COUNT, COLUMN_LIST, IndexedTable
from hudi_core.metadata_table.keys import partition_stats_key
from hudi_core.metadata_table.partitions.registry import clean_updates, partition_type_of, partition_types_of
from hudi_core.metadata_table.read.snapshot import MetadataTableSnapshot
from hudi_core.metadata_table.records.column_stats import ColumnStatsRules
from hudi_core.metadata_table.records.file_statistics import (
    ColumnRange,
    CommitUpdate,
    DataFileRef,
    FileChanges,
    FileStatistics,
)
from hudi_core.metadata_table.records.stat_values import Bound, ValueType
from tests.support.golden_data import GoldenCase
from tests.support.golden_metadata_cells import GoldenCells, plain_datum

Golden = Callable[[str, str], GoldenCase]
META = ("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key")
WRITER = {"spark.sql.session.timeZone": "UTC"}


def table_of(
    golden: Golden, version: str = "8", case: str = "mdt_all_cow", settings: Mapping[str, str] | None = None
) -> IndexedTable:
    return GoldenCells(golden(version, case).table, WRITER if settings is None else settings).table


def plain(table: IndexedTable) -> IndexedTable:
    return replace(table, definitions={})


def whole_file(table: IndexedTable, name: str, low: str, high: str, *, without: str = "") -> FileStatistics:
    """Facts that say of every column that it is text between two."""
    ranges = [
        ColumnRange(column, Bound("string", low), Bound("string", high), 0, 2, 1, 1, ValueType(0))
        for column, partition_type in table.indexed_types().items()
        if column != without and str(partition_type) == "string"
    ]
    others = [
        ColumnRange(column, None, None, 2, 2, 1, 1, ValueType(0))
        for column, partition_type in table.indexed_types().items()
        if str(partition_type) != "string"
    ]
    return FileStatistics(DataFileRef("2024-01-01", name, 9, True), (*ranges, *others))


@pytest.mark.parametrize("version", ["8", "9"])
@pytest.mark.parametrize("case", ["mdt_all_cow", "cow_basic", "mor_basic"])
def test_the_columns_that_a_new_index_gets_are_those_that_hudi_defined(golden: Golden, version: str, case: str) -> None:
    table = table_of(golden, version, case)
    assert (
        plain(table).chosen_columns() == table.definitions["column_stats"].source_fields == table.statistics_columns()
    )


def test_table_version_6_indexes_every_column(golden: Golden) -> None:
    table = table_of(golden, "6")
    assert table.statistics_columns()[:5] == (
        "_hoodie_commit_time",
        "_hoodie_commit_seqno",
        "_hoodie_record_key",
        "_hoodie_partition_path",
        "_hoodie_file_name",
    )
    assert len(table.statistics_columns()) == 12
    assert replace(table, settings={COLUMN_LIST: "qty, name"}).statistics_columns() == ("qty", "name")


def test_options_choose_the_columns(golden: Golden) -> None:
    table = plain(table_of(golden))
    assert replace(table, settings={COLUMN_COUNT: "2"}).chosen_columns() == (*META, "id", "name")
    assert replace(table, settings={COLUMN_LIST: "qty,nowhere,_hoodie_record_key"}).chosen_columns() == (*META, "qty")
    with pytest.raises(ConfigError, match=r"max\.columns"):
        replace(table, settings={COLUMN_COUNT: "few"}).chosen_columns()


def test_columns_that_have_no_order_are_left_out(golden: Golden) -> None:
    table = plain(table_of(golden, "9", "types_mor"))
    assert {"c_array", "c_map", "c_struct"}.isdisjoint(table.chosen_columns())
    assert "c_bin" in table.chosen_columns()


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
def test_a_kind_that_cannot_be_kept_true_is_refused(golden: Golden, name: str) -> None:
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


def test_expression_indexes_that_are_not_computed_exactly_are_refused(golden: Golden) -> None:
    table = table_of(golden)
    with pytest.raises(UnsupportedError, match="session zone"):
        partition_type_of("expr_index_idx_day", replace(table, settings={}))
    index = table.definitions["expr_index_idx_low"]
    for changed in (
        replace(index, function="regexp_extract"),
        replace(index, type="other"),
        replace(index, source_fields=("name", "id")),
        replace(index, source_fields=("nowhere",)),
        replace(index, options={"filtertype": "SIMPLE"}),
        replace(index, options={"fpp": "2"}),
        replace(index, options={"fpp": "x"}),
    ):
        with pytest.raises(UnsupportedError):
            partition_type_of("expr_index_idx_low", replace(table, definitions={"expr_index_idx_low": changed}))


def test_filters_of_expressions_are_refused_where_there_are_log_files(golden: Golden) -> None:
    table = table_of(golden, "8", "mdt_all_mor")
    index = IndexDefinition("expr_index_low", "bloom_filters", "lower", ("name",), {}, 1)
    with pytest.raises(UnsupportedError, match="log files"):
        partition_type_of("expr_index_low", replace(table, definitions={"expr_index_low": index}))


def test_statistics_of_partitions_need_partitions(golden: Golden) -> None:
    with pytest.raises(UnsupportedError, match="without partitions"):
        partition_type_of("partition_stats", table_of(golden, "9", "non_partitioned_cow"))


def test_a_partition_that_a_commit_emptied_loses_its_statistics(golden: Golden) -> None:
    table = table_of(golden)
    statistics = CommitUpdate("1", "DELETE_PARTITION", {}, (), {"2024-01-01": ("f",)})
    records = dict(partition_type_of("partition_stats", table).of_commit(statistics))
    assert set(records) == {partition_stats_key(column, "2024-01-01") for column in table.statistics_columns()}
    for key, datum in records.items():
        assert ColumnStatsRules().decode(key, plain_datum(datum), path="x").is_deleted


def test_of_a_partition_that_lost_some_groups_the_rest_is_told(golden: Golden) -> None:
    partition_type = partition_type_of("partition_stats", table_of(golden))
    left = whole_file(table_of(golden), "old", "a", "e")
    replaced = {"2024-01-01": ("f",)}
    recorded = dict(
        partition_type.of_commit(CommitUpdate("1", "INSERT_OVERWRITE", {}, (), replaced, {"2024-01-01": (left,)}))
    )
    found = ColumnStatsRules(counted=True).decode(
        "k", plain_datum(recorded[partition_stats_key("name", "2024-01-01")]), path="x"
    )
    assert (found.range.least, found.range.greatest, found.is_deleted) == (
        Bound("string", "a"),
        Bound("string", "e"),
        False,
    )
    assert list(partition_type.of_commit(CommitUpdate("1", "INSERT_OVERWRITE", {}, (), replaced))) == []
    emptied = dict(
        partition_type.of_commit(CommitUpdate("1", "INSERT_OVERWRITE", {}, (), replaced, {"2024-01-01": ()}))
    )
    assert len(emptied) == len(recorded)


def test_what_stands_in_a_partition_widens_its_range(golden: Golden) -> None:
    table = table_of(golden)
    written, remaining = whole_file(table, "new", "d", "f"), whole_file(table, "old", "a", "e")
    statistics = CommitUpdate("1", "UPSERT", {}, (written,), {}, {"2024-01-01": (remaining,)})
    records = dict(partition_type_of("partition_stats", table).of_commit(statistics))
    datum = records[partition_stats_key("name", "2024-01-01")]
    found = ColumnStatsRules(counted=True).decode("k", plain_datum(datum), path="x")
    assert (found.range.least, found.range.greatest, found.range.value_count) == (
        Bound("string", "a"),
        Bound("string", "f"),
        4,
    )
    assert found.is_tight
    assert found.name == "2024-01-01"


def test_a_standing_file_of_unknown_values_is_refused(golden: Golden) -> None:
    table = table_of(golden)
    written, remaining = whole_file(table, "new", "d", "f"), whole_file(table, "old", "a", "e", without="name")
    statistics = CommitUpdate("1", "UPSERT", {}, (written,), {}, {"2024-01-01": (remaining,)})
    with pytest.raises(UnsupportedError, match="'name'"):
        list(partition_type_of("partition_stats", table).of_commit(statistics))
    day = "expr_index_idx_day"
    found = ColumnRange("ts", Bound("string", "a"), Bound("string", "b"), 0, 2, 1, 1, ValueType(0))
    statistics = CommitUpdate(
        "1", "UPSERT", {}, (replace(written, expressions={day: found}),), {}, {"2024-01-01": (remaining,)}
    )
    with pytest.raises(UnsupportedError, match=day):
        list(partition_type_of(day, table).of_commit(statistics))


def test_a_log_file_of_changes_has_no_part_in_the_range_of_its_partition(golden: Golden) -> None:
    """Real Hudi's CDC logs stand among the files of a slice, and no index holds anything of them."""
    table = table_of(golden)
    written, remaining = whole_file(table, "new", "d", "f"), whole_file(table, "old", "a", "e")
    changes = FileStatistics(DataFileRef("2024-01-01", ".f-0_20240101000000000.log.1_0-1-1.cdc", 9, False))
    rows = FileStatistics(DataFileRef("2024-01-01", ".f-0_20240101000000000.log.1_0-1-1", 9, False))
    partition_type = partition_type_of("partition_stats", table)
    statistics = CommitUpdate("1", "UPSERT", {}, (written,), {}, {"2024-01-01": (remaining, changes)})
    assert dict(partition_type.of_commit(statistics)) == dict(
        partition_type.of_commit(replace(statistics, remaining={"2024-01-01": (remaining,)}))
    )
    assert dict(partition_type.initial("1", [written, changes])) == dict(partition_type.initial("1", [written]))
    with pytest.raises(UnsupportedError, match="cannot be told"):
        list(partition_type.of_commit(replace(statistics, remaining={"2024-01-01": (remaining, rows)})))


def test_what_the_index_holds_of_standing_files(golden: Golden) -> None:
    cells = GoldenCells(golden("9", "mdt_all_mor").table, WRITER)
    metadata_snapshot = MetadataTableSnapshot(cells.storage, cells.config, cells.timeline)
    files = [file for file in cells.files() if file.partition == "2024-01-01"]
    stranger = DataFileRef("2024-01-01", "stranger", 1, True)
    columns = tuple(cells.table.indexed_types())
    index = metadata_snapshot.partition("column_stats", ColumnStatsRules(counted=True))
    whole, to_read = remaining_statistics(index, "2024-01-01", [*files, stranger], columns)
    assert to_read == [stranger]
    from_files = cells.statistics(files, requirements=cells.requirements("partition_stats"))
    assert {statistics.file.name: statistics.ranges for statistics in whole} == {
        statistics.file.name: statistics.ranges for statistics in from_files
    }
    day = metadata_snapshot.partition("expr_index_idx_day", ColumnStatsRules(counted=True))
    whole, to_read = remaining_expressions(day, "expr_index_idx_day", "2024-01-01", files, "ts")
    from_files = {
        statistics.file.name: statistics.expressions
        for statistics in cells.statistics(files, requirements=cells.requirements("expr_index_idx_day"))
    }
    assert {statistics.file.name: statistics.expressions for statistics in whole} == {
        name: from_files[name] for name in (statistics.file.name for statistics in whole)
    }
    assert whole
    assert [file.name for file in to_read] == [file.name for file in files if not _has_rows(from_files[file.name])]


def _has_rows(expressions: Mapping[str, object]) -> bool:
    found = expressions["expr_index_idx_day"]
    return isinstance(found, ColumnRange) and found.value_count + found.null_count > 0
