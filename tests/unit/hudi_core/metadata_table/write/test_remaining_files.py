"""The files that hold a partition's rows beside those of a commit, and what the indexes say of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_core.metadata_table.extract.data_file import StatisticsRequirements
from hudi_core.metadata_table.indexed_table import StoredTable
from hudi_core.metadata_table.partitions.registry import partition_type_of, requirements_of
from hudi_core.metadata_table.write.remaining_files import RemainingFiles, recorded_of, remaining_of
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.view.listing import StorageListing
from tests.support.golden_cleans import context_of
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import Table

Golden = Callable[[str, str], GoldenCase]
FIRST, SECOND = "2024-01-01", "2024-01-02"
INSTANT = "29990101000000000"


@pytest.fixture(params=["8", "9"])
def table(golden: Golden, request: pytest.FixtureRequest) -> Table:
    return Table(golden(request.param, "mdt_all_mor").table)


def group_of(table: Table, partition: str) -> tuple[str, set[str]]:
    """The id of the partition's one file group, and the names of its latest slice."""
    context = context_of(table.path)
    (item,) = context.view(context.active.load()).latest_merged_slices(partition)
    base = () if item.base_file is None else (item.base_file,)
    return item.file_group.file_id, {file.name for file in (*base, *item.log_files)}


def files_of(table: Table, *names: str, replaced: tuple[str, ...] = (), completed: bool = False) -> RemainingFiles:
    """As of a commit that wrote `names` into the first partition, and replaced groups of the second."""
    stats = tuple(
        WriteStat(name.partition("_")[0].lstrip("."), f"{FIRST}/{name}", FIRST, "null", 1, 0, 0, 1, 9, 9)
        for name in names
    )
    metadata = CommitMetadata({FIRST: stats}, replaced_file_ids={SECOND: replaced})
    listing = StorageListing(table.storage) if completed else None
    return RemainingFiles(table.storage, table.config, INSTANT, metadata, listing)


def requirements(table: Table) -> StatisticsRequirements:
    indexed = StoredTable(table.storage, table.config, {})
    return requirements_of(indexed, [partition_type_of(name, indexed) for name in ("column_stats", "partition_stats")])


def test_files_of_other_groups_remain(table: Table) -> None:
    file_id, names = group_of(table, FIRST)
    other_id, others = group_of(table, SECOND)
    nothing = files_of(table)
    assert nothing.partitions == {FIRST, SECOND}
    assert {file.name for file in nothing.of(FIRST)} == names
    assert {file.name for file in nothing.of(SECOND)} == others
    assert files_of(table, replaced=(other_id,)).of(SECOND) == []
    rewritten = files_of(table, f"{file_id}_0-9-9_{INSTANT}.parquet")
    assert rewritten.of(FIRST) == []
    appended = files_of(table, f".{file_id}_{INSTANT}.log.1_0-9-9")
    assert {file.name for file in appended.of(FIRST)} == names, "a log file replaces nothing"


def test_base_and_log_files_are_distinguished(table: Table) -> None:
    found = files_of(table).of(FIRST)
    assert {file.is_base for file in found} == {True, False}
    assert all(file.is_base == file.name.endswith(".parquet") and file.size > 0 for file in found)


def test_of_a_completed_commit_the_files_are_listed_without_its_own(table: Table) -> None:
    _, names = group_of(table, FIRST)
    written = next(name for name in sorted(names) if ".log." in name)
    assert {file.name for file in files_of(table, written, completed=True).of(FIRST)} == names - {written}


def test_statistics_of_remaining_files_are_those_of_the_index(table: Table) -> None:
    indexed = StoredTable(table.storage, table.config, {})
    of_ranges = partition_type_of("partition_stats", indexed)
    remaining = remaining_of(files_of(table), of_ranges, requirements(table))
    files = remaining(FIRST) or ()
    assert {item.file.name for item in files} == group_of(table, FIRST)[1]
    assert {item.column for file in files for item in file.ranges} == set(requirements(table).columns)
    assert remaining("2024-01-03") is None
    recorded = recorded_of(files_of(table), of_ranges, requirements(table))
    assert recorded("2024-01-03") is None
    ranges = recorded(FIRST) or {}
    for column, found in ranges.items():
        mine = [item for file in files for item in file.ranges if item.column == column]
        assert sum(item.value_count for item in mine) >= found.null_count
        assert found.column == column
    assert ranges.keys() <= set(requirements(table).columns)
    assert "id" in ranges
