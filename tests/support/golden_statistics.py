"""Tables of the golden data as partition types see them, and statistics of files that were never written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from hudi_core.metadata_table.indexed_table import IndexedTable, indexed_types
from hudi_core.metadata_table.records.bounds import Bound, ValueType
from hudi_core.metadata_table.records.file_statistics import ColumnRange, DataFileRef, FileStatistics
from tests.support.golden_data import GoldenCase
from tests.support.golden_metadata_cells import GoldenCells, differences

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
        for column, partition_type in indexed_types(table).items()
        if column != without and str(partition_type) == "string"
    ]
    others = [
        ColumnRange(column, None, None, 2, 2, 1, 1, ValueType(0))
        for column, partition_type in indexed_types(table).items()
        if str(partition_type) != "string"
    ]
    return FileStatistics(DataFileRef("2024-01-01", name, 9, True), (*ranges, *others))


def compared_commits(cells: GoldenCells, partition: str) -> tuple[int, list[str]]:
    """How many cells the commits of real Hudi wrote into a metadata partition, and where ours differ."""
    count, found = 0, list[str]()
    for instant, metadata in cells.commits():
        if instant.requested_time >= cells.built(partition):
            theirs = cells.theirs(partition, instant.requested_time)
            found += differences(theirs, cells.ours(partition, instant, metadata))
            count += len(theirs)
    return count, found
