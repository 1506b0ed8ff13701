"""Ranges that were too narrow for rows that are there: NaN, floats that became doubles, moments before 1970, files
without rows.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.metadata_table.extract.data_file import StatisticsRequirements, read_file_statistics
from hudi_core.metadata_table.extract.expressions import function_of
from hudi_core.metadata_table.partitions.partition_stats import PartitionStatsPartition
from hudi_core.metadata_table.partitions.registry import merge_data
from hudi_core.metadata_table.records.file_statistics import ColumnRange, CommitUpdate, DataFileRef
from hudi_core.metadata_table.records.stat_values import Bound, ValueType
from hudi_core.metadata_table.records.value_types import as_type, merged, outer_bound
from hudi_core.model.names import BaseFileName, WriteToken
from hudi_core.storage.local import LocalStorage
from tests.support.golden_metadata_cells import plain_datum
from tests.unit.hudi_core.metadata_table.partitions.test_registry import Golden, table_of, whole_file
from tests.unit.hudi_core.metadata_table.services.test_merge_group import bounds, stats, wrapped

NAN = float("nan")
TENTH = 0.10000000149011612
"""0.1 as a float."""


@pytest.mark.parametrize("kind", ["float", "double"])
@pytest.mark.parametrize("nan_first", [True, False])
def test_nan_is_the_greatest_bound_in_either_order(kind: str, nan_first: bool) -> None:
    pair = (Bound(kind, NAN), Bound(kind, 1.0)) if nan_first else (Bound(kind, 1.0), Bound(kind, NAN))
    assert outer_bound(*pair, upper=False) == Bound(kind, 1.0)
    found = outer_bound(*pair, upper=True)
    assert found is not None
    assert math.isnan(found.value)


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


def test_no_bound_is_cut_to_a_narrower_kind() -> None:
    """Nor left out: to readers of 0.15 a range without bounds meets no filter."""
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


def test_seconds_before_1970_are_those_of_spark() -> None:
    """UnixTimestamp divides microseconds as Java does."""
    for unit, per in (("ms", 1000), ("us", 1_000_000)):
        kind = pa.timestamp(unit, tz="UTC")
        function, _ = function_of("unix_timestamp", {}, kind, None)
        values = pa.array([-per // 2, -per, -per - 1, per + 1, None], pa.int64()).cast(kind)
        assert function(values).to_pylist() == [0, -1, -1, 1, None]


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
        table.stored_schema(), tuple(table.indexed_types()), table.version_of("column_stats")
    )
    empty = read_file_statistics(LocalStorage(str(tmp_path)), empty_file(tmp_path, table.arrow_schema()), requirements)
    kind = PartitionStatsPartition("partition_stats", table)
    other = whole_file(table, "f", "b", "m")

    def recorded(*files: Any) -> list[Any]:
        return list(kind.of_commit(CommitUpdate("20240101000000000", "COMPACT", {}, files)))

    assert recorded(empty, other) == recorded(other) != []
    assert recorded(empty) == []


@pytest.mark.parametrize("operation", ["COMPACT", "CLUSTER"])
def test_rewritten_rows_never_narrow_the_range_of_a_partition(golden: Golden, operation: str) -> None:
    """A record that replaced the older one would also replace that of a write which was requested before and completes
    after.
    """
    table = table_of(golden)
    kind = PartitionStatsPartition("partition_stats", table)
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
            plain_datum(datum)["ColumnStatsMetadata"] for _, datum in kind.of_commit(statistics) if datum is not None
        ]

    partition = within.file.partition
    current = {item.column: item for item in within.ranges}
    assert recorded(replace(statistics, recorded={partition: current})) == []
    wider = recorded(replace(statistics, recorded={partition: current}, written=(beyond,)))
    assert [(item["columnName"], item["maxValue"][1]["value"], item["isTightBound"]) for item in wider] == [
        ("name", "z", False)
    ]
    assert recorded(statistics), "real Hudi takes a partition without a record for one without rows"
    assert not any(item["isTightBound"] for item in recorded(statistics))
    assert all(item["isTightBound"] for item in recorded(replace(statistics, operation="UPSERT")))
