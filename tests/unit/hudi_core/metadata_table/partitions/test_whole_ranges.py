"""The partition type `partition_stats`: ranges of whole partitions after writes, overwrites and rewrites."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.errors import ConflictError, UnsupportedError
from hudi_core.metadata_table.extract.column_ranges import RowRanges
from hudi_core.metadata_table.extract.data_file import StatisticsRequirements, read_file_statistics
from hudi_core.metadata_table.indexed_table import indexed_types, statistics_columns
from hudi_core.metadata_table.keys import partition_stats_key
from hudi_core.metadata_table.partitions.registry import (
    partition_type_of,
)
from hudi_core.metadata_table.partitions.whole_ranges import PartitionStatsPartition
from hudi_core.metadata_table.records.bounds import Bound
from hudi_core.metadata_table.records.column_stats import ColumnStatsRules
from hudi_core.metadata_table.records.file_statistics import CommitUpdate, DataFileRef, FileChanges, FileStatistics
from hudi_core.model.names import BaseFileName, WriteToken
from hudi_core.storage.local import LocalStorage
from tests.support.golden_metadata_cells import GoldenCells, plain_datum
from tests.support.golden_statistics import Golden, compared_commits, table_of, whole_file


def test_statistics_of_partitions_need_partitions(golden: Golden) -> None:
    with pytest.raises(UnsupportedError, match="without partitions"):
        partition_type_of("partition_stats", table_of(golden, "9", "non_partitioned_cow"))


def test_a_partition_that_a_commit_emptied_loses_its_statistics(golden: Golden) -> None:
    table = table_of(golden)
    statistics = CommitUpdate("1", "DELETE_PARTITION", {}, (), {"2024-01-01": ("f",)})
    records = dict(partition_type_of("partition_stats", table).of_commit(statistics))
    assert set(records) == {partition_stats_key(column, "2024-01-01") for column in statistics_columns(table)}
    for key, datum in records.items():
        assert ColumnStatsRules().decode(key, plain_datum(datum), path="x").is_deleted


def test_a_partition_that_lost_some_groups_gets_the_range_of_the_remaining_files(golden: Golden) -> None:
    partition_type = partition_type_of("partition_stats", table_of(golden))
    left = whole_file(table_of(golden), "old", "a", "e")
    replaced = {"2024-01-01": ("f",)}
    recorded = dict(
        partition_type.of_commit(CommitUpdate("1", "INSERT_OVERWRITE", {}, (), replaced, {"2024-01-01": (left,)}.get))
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
        partition_type.of_commit(CommitUpdate("1", "INSERT_OVERWRITE", {}, (), replaced, {"2024-01-01": ()}.get))
    )
    assert len(emptied) == len(recorded)


def test_remaining_files_widen_the_range_of_their_partition(golden: Golden) -> None:
    table = table_of(golden)
    written, remaining = whole_file(table, "new", "d", "f"), whole_file(table, "old", "a", "e")
    statistics = CommitUpdate("1", "UPSERT", {}, (written,), {}, {"2024-01-01": (remaining,)}.get)
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


def test_a_log_file_of_changes_has_no_part_in_the_range_of_its_partition(golden: Golden) -> None:
    """Real Hudi's CDC logs are among the files of a slice, and no index holds anything of them."""
    table = table_of(golden)
    written, remaining = whole_file(table, "new", "d", "f"), whole_file(table, "old", "a", "e")
    changes = FileStatistics(DataFileRef("2024-01-01", ".f-0_20240101000000000.log.1_0-1-1.cdc", 9, False))
    rows = FileStatistics(DataFileRef("2024-01-01", ".f-0_20240101000000000.log.1_0-1-1", 9, False))
    partition_type = partition_type_of("partition_stats", table)
    statistics = CommitUpdate("1", "UPSERT", {}, (written,), {}, {"2024-01-01": (remaining, changes)}.get)
    assert dict(partition_type.of_commit(statistics)) == dict(
        partition_type.of_commit(replace(statistics, remaining={"2024-01-01": (remaining,)}.get))
    )
    assert dict(partition_type.initial("1", [written, changes])) == dict(partition_type.initial("1", [written]))
    with pytest.raises(UnsupportedError, match="is unknown"):
        list(partition_type.of_commit(replace(statistics, remaining={"2024-01-01": (remaining, rows)}.get)))


def empty_file(path: Path, schema: pa.Schema) -> DataFileRef:
    name = str(
        BaseFileName("0b5ad9f1-6a3c-4f3c-9d0e-3c1b5b6c7d80-0", WriteToken(0, 1, 0), "20240101000000000", "parquet")
    )
    (path / "2024-01-01").mkdir()
    pq.write_table(schema.empty_table(), path / "2024-01-01" / name)
    return DataFileRef("2024-01-01", name, (path / "2024-01-01" / name).stat().st_size, is_base=True)


def test_a_base_file_without_rows_does_not_keep_a_partition_from_its_range(golden: Golden, tmp_path: Path) -> None:
    """A compaction leaves one where the logs deleted every row of a slice."""
    table = table_of(golden)
    requirements = StatisticsRequirements(
        table.stored_schema(), tuple(indexed_types(table)), table.version_of("column_stats")
    )
    empty = read_file_statistics(LocalStorage(str(tmp_path)), empty_file(tmp_path, table.arrow_schema()), requirements)
    partition_type = PartitionStatsPartition("partition_stats", table)
    other = whole_file(table, "f", "b", "m")

    def recorded(*files: Any) -> list[Any]:
        return list(partition_type.of_commit(CommitUpdate("20240101000000000", "COMPACT", {}, files)))

    assert recorded(empty, other) == recorded(other) != []
    assert recorded(empty) == []


@pytest.mark.parametrize("operation", ["COMPACT", "CLUSTER"])
def test_rewritten_rows_never_narrow_the_range_of_a_partition(golden: Golden, operation: str) -> None:
    """A record that replaced the older one would also replace that of a write which was requested before and completes
    after.
    """
    table = table_of(golden)
    partition_type = PartitionStatsPartition("partition_stats", table)
    within, other = whole_file(table, "f", "b", "m"), whole_file(table, "f", "b", "z")
    beyond = replace(
        within,
        ranges=tuple(
            new if new.column == "name" else old for old, new in zip(within.ranges, other.ranges, strict=True)
        ),
    )
    statistics = CommitUpdate("20240101000000000", operation, {}, (within,))

    def recorded(statistics: CommitUpdate) -> list[dict[str, Any]]:
        return [
            plain_datum(datum)["ColumnStatsMetadata"]
            for _, datum in partition_type.of_commit(statistics)
            if datum is not None
        ]

    partition = within.file.partition
    current = {item.column: item for item in within.ranges}
    assert recorded(replace(statistics, recorded={partition: current}.get)) == []
    # A column that came later: by now the rewritten files have it, with nulls that no record counts.
    later = current | {"name": replace(current["name"], value_count=current["name"].value_count - 1)}
    of_later = recorded(replace(statistics, recorded={partition: later}.get, stats={partition: ()}))
    assert [(item["columnName"], item["isTightBound"]) for item in of_later] == [("name", False)]
    assert recorded(replace(statistics, recorded={partition: later}.get)) == [], "a comparison is no rewrite"
    wider = recorded(replace(statistics, recorded={partition: current}.get, written=(beyond,)))
    assert [(item["columnName"], item["maxValue"][1]["value"], item["isTightBound"]) for item in wider] == [
        ("name", "z", False)
    ]
    assert recorded(statistics), "real Hudi takes a partition without a record for one without rows"
    assert not any(item["isTightBound"] for item in recorded(statistics))
    assert all(item["isTightBound"] for item in recorded(replace(statistics, operation="UPSERT")))


@pytest.mark.parametrize(("version", "case"), [("8", "mdt_all_mor"), ("9", "mdt_all_cow")])
def test_the_records_of_commits_are_those_that_hudi_wrote(golden: Golden, version: str, case: str) -> None:
    count, found = compared_commits(GoldenCells(golden(version, case).table), "partition_stats")
    assert count > 0
    assert found == []


def test_cleans_and_rollbacks_leave_ranges_of_partitions_as_they_are(golden: Golden) -> None:
    partition_type = PartitionStatsPartition("partition_stats", table_of(golden))
    changes = FileChanges({"p": {"a": 1}}, {"p": frozenset({"b.parquet"})})
    assert not partition_type.updated_by_clean
    assert [*partition_type.of_clean("1", changes), *partition_type.of_rollback(changes)] == []


@pytest.mark.parametrize("operation", ["COMPACT", "CLUSTER", "UPSERT"])
def test_a_range_of_another_type_is_replaced(golden: Golden, operation: str) -> None:
    """Of a column that was widened: Hudi compares bounds of one Java type alone, so a record that widens the older one
    makes its readers and writers fail.
    """
    table = table_of(golden)
    partition_type = PartitionStatsPartition("partition_stats", table)
    file = whole_file(table, "f", "b", "m")
    partition = file.file.partition
    column = next(name for name, kind in indexed_types(table).items() if kind == pa.int64())
    rows, before = RowRanges(column, pa.int64(), 2), RowRanges(column, pa.int32(), 2)
    rows.add(pa.array([5], pa.int64()))
    before.add(pa.array([-3], pa.int32()))
    of_long, older = rows.result(), before.result()
    file = replace(file, ranges=tuple(of_long if item.column == column else item for item in file.ranges))
    recorded = {item.column: item for item in file.ranges} | {column: older}
    update = CommitUpdate("20240101000000000", operation, {}, (file,), recorded={partition: recorded}.get)
    bodies = [
        plain_datum(datum)["ColumnStatsMetadata"] for _, datum in partition_type.of_commit(update) if datum is not None
    ]
    (found,) = [item for item in bodies if item["columnName"] == column]
    assert found["isTightBound"]
    assert found["minValue"][0].endswith("LongWrapper")
    if operation == "UPSERT":
        return
    assert len(bodies) == 1
    assert found["minValue"][1]["value"] == -3
    with pytest.raises(ConflictError, match="another type"):
        list(partition_type.of_commit(replace(update, overtakes=True)))


@pytest.mark.parametrize("operation", ["COMPACT", "CLUSTER"])
@pytest.mark.parametrize(("greatest", "is_tight"), [("\uff21", True), ("\ud7ff", False)])
def test_texts_that_java_orders_otherwise_replace_a_range(
    golden: Golden, operation: str, greatest: str, is_tight: bool
) -> None:
    """Hudi merges a record that widens the older one by UTF-16, so that the smaller maximum stayed and hid rows."""
    table = table_of(golden)
    partition_type = PartitionStatsPartition("partition_stats", table)
    older, file = whole_file(table, "f", "b", greatest), whole_file(table, "f", "b", "\U0001f600")
    recorded = {file.file.partition: {item.column: item for item in older.ranges}}
    update = CommitUpdate("20240101000000000", operation, {}, (file,), recorded=recorded.get)
    found = [
        plain_datum(datum)["ColumnStatsMetadata"] for _, datum in partition_type.of_commit(update) if datum is not None
    ]
    of_texts = [item for item in found if item["maxValue"][1] == {"value": "\U0001f600"}]
    assert [item["isTightBound"] for item in of_texts] == [is_tight] * len(found) != []
    if is_tight:
        with pytest.raises(ConflictError, match="texts that Hudi orders otherwise"):
            list(partition_type.of_commit(replace(update, overtakes=True)))
