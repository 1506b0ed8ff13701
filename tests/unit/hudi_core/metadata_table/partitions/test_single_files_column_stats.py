"""The partition type `column_stats`: its records, their deletion, and how a compaction merges them."""

from __future__ import annotations

import math
from dataclasses import replace

import pyarrow as pa
import pytest

from hudi_core.metadata_table.keys import column_stats_key
from hudi_core.metadata_table.partitions.registry import merge_data
from hudi_core.metadata_table.partitions.single_files import ColumnStatsPartition
from hudi_core.metadata_table.records.bounds import Bound, ValueType
from hudi_core.metadata_table.records.column_stats import merge_stored
from hudi_core.metadata_table.records.file_statistics import ColumnRange, CommitUpdate, DataFileRef, FileStatistics
from hudi_core.metadata_table.records.range_merge import as_type, merged
from hudi_core.model.names import META_FIELDS
from tests.support.clean_updates import BASE, INDEXED, LOG, indexed_table, records
from tests.support.golden_metadata_cells import GoldenCells, plain_datum
from tests.support.golden_statistics import Golden, compared_commits, plain, table_of
from tests.unit.hudi_core.metadata_table.services.test_merge_group import bounds, stats, wrapped


def test_statistics_of_every_file_and_indexed_column() -> None:
    found = dict(records({"files", "column_stats", "expr_index_day"})["column_stats"])
    assert found.keys() == {column_stats_key(column, "p1", name) for column in ("a", "b") for name in (BASE, LOG)}
    body = found[column_stats_key("a", "p1", BASE)]["ColumnStatsMetadata"]
    assert (body["fileName"], body["columnName"], body["isDeleted"], body["valueCount"], body["minValue"]) == (
        BASE,
        "a",
        True,
        -1,
        None,
    )
    assert body["valueType"] == {"typeOrdinal": 1, "additionalInfo": None}
    expression = dict(records({"expr_index_day"})["expr_index_day"])
    assert expression.keys() == {column_stats_key("ts", "p1", name) for name in (BASE, LOG)}
    assert expression[column_stats_key("ts", "p1", LOG)]["ColumnStatsMetadata"]["valueType"] is None


def test_without_a_definition_the_tables_columns_count() -> None:
    found = records({"column_stats"}, indexed_table({}))["column_stats"]
    assert {key for key, _ in found} == {
        column_stats_key(column, "p1", name) for name in (BASE, LOG) for column in (*META_FIELDS, "c")
    }


NAN = float("nan")
TENTH = 0.10000000149011612
"""0.1 as a float."""


@pytest.mark.parametrize("nan_first", [True, False])
def test_a_compaction_keeps_both_ranges_where_one_is_nan(nan_first: bool) -> None:
    numbers, nan = stats(1.0, 5.0, "Double"), stats(NAN, NAN, "Double")
    low, high = bounds(merge_data("k", *((nan, numbers) if nan_first else (numbers, nan)), path="p"))
    assert low == wrapped("Double", 1.0)
    assert math.isnan(high[1]["value"])


def test_a_float_counts_by_its_text_in_a_column_that_became_a_double() -> None:
    """Readers show 0.1 of it, which lies below 0.10000000149."""
    older = ColumnRange("c", Bound("float", TENTH), Bound("float", TENTH), 0, 1, 0, 0, ValueType(5))
    newer = ColumnRange("c", Bound("double", 0.5), Bound("double", 0.5), 0, 1, 0, 0, ValueType(6))
    found = merged([older, newer])
    assert found is not None
    assert found.least == Bound("double", 0.1)
    assert as_type(older, pa.float64(), 2).greatest == Bound("double", 0.1)
    assert bounds(merge_data("k", stats(TENTH, TENTH, "Float"), stats(0.5, 0.5, "Double"), path="p"))[0] == wrapped(
        "Double", 0.1
    )


def test_no_bound_is_cut_to_a_narrower_type() -> None:
    """Nor is it missing: to readers of 0.15 a range without bounds meets no filter."""
    assert bounds(merge_data("k", stats(-1.5, 9.5, "Double"), stats(3, 4), path="p")) == (
        wrapped("Int", -(1 << 31)),
        wrapped("Int", (1 << 31) - 1),
    )
    assert bounds(merge_data("k", stats(1 << 40, 1 << 41, "Long"), stats(3, 4), path="p"))[1] == wrapped(
        "Int", (1 << 31) - 1
    )
    low, high = bounds(merge_data("k", stats(-1e300, 1e300, "Double"), stats(0.5, 0.5, "Float"), path="p"))
    assert low == wrapped("Float", -math.inf)
    assert math.isnan(high[1]["value"])
    assert bounds(merge_data("k", stats("a", "b", "String"), stats(3, 4), path="p")) == (None, None)


@pytest.mark.parametrize(("version", "case"), [("6", "mdt_all_cow"), ("8", "mdt_all_mor"), ("9", "mdt_all_cow")])
def test_the_records_of_commits_are_those_that_hudi_wrote(golden: Golden, version: str, case: str) -> None:
    count, found = compared_commits(GoldenCells(golden(version, case).table), "column_stats")
    assert count > 0
    assert found == []


def statistics(*ranges: ColumnRange, name: str = BASE, partial: bool = False) -> FileStatistics:
    return FileStatistics(DataFileRef("p1", name, 9, name == BASE), ranges, rows=2, partial=partial)


def column_range(column: str, least: int | None, *, values: int = 2, nulls: int = 0) -> ColumnRange:
    bound = None if least is None else Bound("int", least)
    return ColumnRange(column, bound, bound, nulls, values, 10, 20, ValueType(0))


def test_a_range_is_a_record_unless_it_is_unknown_or_of_a_column_that_the_log_file_lacks() -> None:
    partition = ColumnStatsPartition("column_stats", INDEXED)
    files = [
        statistics(column_range("a", 3), column_range("b", None), column_range("c", None, nulls=2)),
        statistics(column_range("a", 4), column_range("b", None, values=0), name=LOG, partial=True),
    ]
    found = {key: plain_datum(datum)["ColumnStatsMetadata"] for key, datum in partition.of_files("1", files, None)}
    assert list(found) == [
        column_stats_key("a", "p1", BASE),
        column_stats_key("c", "p1", BASE),
        column_stats_key("a", "p1", LOG),
    ]
    body = found[column_stats_key("a", "p1", BASE)]
    assert (body["fileName"], body["isDeleted"], body["isTightBound"]) == (BASE, False, False)
    assert (body["valueCount"], body["totalSize"], body["totalUncompressedSize"]) == (2, 10, 20)
    update = CommitUpdate("1", "UPSERT", {}, tuple(files))
    assert list(partition.of_commit(update)) == list(partition.of_files("1", files, None))
    assert list(partition.of_commit(replace(update, by_partition=True))) == [], "prepared before the table lock"
    assert list(partition.initial("1", files)) == list(partition.of_files("1", files, None))


def test_a_new_index_is_defined_by_its_columns_where_hudi_1_wrote_the_table(golden: Golden) -> None:
    for version, expected in (("8", 1), ("9", 2)):
        table = table_of(golden, version)
        found = ColumnStatsPartition("column_stats", plain(table)).definition()
        assert found is not None
        assert (found.source_fields, found.version) == (table.definitions["column_stats"].source_fields, expected)
    assert ColumnStatsPartition("column_stats", table_of(golden, "6")).definition() is None


def test_a_deletion_and_a_tight_range_replace_the_older_record() -> None:
    older = stats(1, 9)
    for newer in (stats(3, 4, isTightBound=True), stats(3, 4, isDeleted=True)):
        assert merge_stored("k", older, newer, path="f") is newer
        assert merge_stored("k", newer, older, path="f") != newer
    unknown = {**stats(3, 4), "ColumnStatsMetadata": {**stats(3, 4)["ColumnStatsMetadata"], "minValue": None}}
    assert bounds(merge_stored("k", older, unknown, path="f")) == (None, None)


def test_a_bound_of_another_encoding_becomes_the_end_of_the_newer_type() -> None:
    """The older value type may be of another unit, so that its number does not compare."""
    older, newer = stats(1, 9), stats(3, 4, valueType={"typeOrdinal": 3, "additionalInfo": None})
    assert bounds(merge_stored("k", older, newer, path="f")) == (
        wrapped("Int", -(1 << 31)),
        wrapped("Int", (1 << 31) - 1),
    )
    wider = stats(3, 4, "Long")
    assert bounds(merge_stored("k", older, wider, path="f")) == (wrapped("Long", 1), wrapped("Long", 9))
