"""Statistics of files and of commits: what follows from them alone."""

from __future__ import annotations

import pytest

from hudi_core.engine.serializer import from_text, to_text
from hudi_core.metadata_table.records.bounds import Bound, ValueType
from hudi_core.metadata_table.records.file_statistics import (
    ColumnRange,
    CommitUpdate,
    DataFileRef,
    Expression,
    FileStatistics,
    FilterText,
)

BASE = "f1-0_0-1-2_20250101000000000.parquet"
LOG = ".f1-0_20250101000000000.log.1_0-1-2"
RANGE = ColumnRange("a", Bound("int", 1), Bound("int", 2), 0, 2, 10, 20, ValueType(3))


@pytest.mark.parametrize(("name", "is_cdc"), [(BASE, False), (LOG, False), (f"{LOG}.cdc", True), ("x.cdc", False)])
def test_a_log_file_of_changes_is_known_by_its_name(name: str, is_cdc: bool) -> None:
    assert DataFileRef("p", name, 1, is_base=name == BASE).is_cdc is is_cdc


@pytest.mark.parametrize(
    ("name", "ranges", "rows", "bounds"),
    [
        (BASE, (RANGE,), 2, True),
        (BASE, (), 2, True),
        (BASE, (), 0, False),
        (LOG, (), 0, True),
        (f"{LOG}.cdc", (), 0, False),
    ],
)
def test_which_files_have_a_part_in_the_range_of_their_partition(
    name: str, ranges: tuple[ColumnRange, ...], rows: int, bounds: bool
) -> None:
    """Of a log file without ranges it is unknown which rows it changes."""
    statistics = FileStatistics(DataFileRef("p", name, 1, is_base=name == BASE), ranges, rows=rows)
    assert statistics.bounds_rows is bounds


@pytest.mark.parametrize(
    ("operation", "rewrites"),
    [("COMPACT", True), ("LOG_COMPACT", True), ("CLUSTER", True), ("UPSERT", False), ("INSERT_OVERWRITE", False)],
)
def test_which_operations_write_no_new_values(operation: str, rewrites: bool) -> None:
    assert CommitUpdate("1", operation, {}, ()).rewrites is rewrites
    assert not CommitUpdate("1", None, {}, ()).rewrites


def test_written_files_by_partition() -> None:
    first, second, third = (
        FileStatistics(DataFileRef(partition, name, 1, is_base=False))
        for partition, name in (("q", "a"), ("p", "b"), ("q", "c"))
    )
    found = CommitUpdate("1", "UPSERT", {}, (first, second, third)).written_in()
    assert list(found.items()) == [("p", [second]), ("q", [first, third])]


@pytest.mark.parametrize(("kind", "base_only"), [("column_stats", False), ("bloom_filters", True)])
def test_filters_are_of_base_files(kind: str, base_only: bool) -> None:
    assert Expression("expr_index_x", "a", "lower", {}, kind, 1).base_files_only is base_only


def test_statistics_cross_an_engine() -> None:
    expressions = {"expr_index_x": RANGE, "expr_index_y": FilterText("SIMPLE", "AAAA")}
    statistics = FileStatistics(DataFileRef("p", LOG, 1, False), (RANGE,), None, 2, expressions, partial=True)
    assert from_text(FileStatistics, to_text(statistics)) == statistics
