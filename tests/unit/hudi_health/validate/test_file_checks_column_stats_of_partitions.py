from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast

import pyarrow as pa
import pytest

from hudi_core.expr.tree import Column
from hudi_core.metadata_table.keys import partition_stats_key
from hudi_core.view.file_group import DataFile, slice_of_base
from hudi_health.validate.check import Findings, PartitionFiles
from hudi_health.validate.file_checks import PartitionStatsCheck
from hudi_health.validate.subject import Subject
from hudi_health.validate.true_ranges import IndexedOperands
from tests.support.damaged_tables import changed
from tests.unit.hudi_health.validate.test_run import LATER, STATS, Golden, metadata_snapshot


@pytest.mark.parametrize("version", LATER)
@pytest.mark.parametrize("name", ["mdt_all_cow", "mdt_all_mor"])
def test_stale_statistics_of_a_partition(golden: Golden, version: str, name: str) -> None:
    table = metadata_snapshot(golden, version, name)
    partition = table.metadata.partitions()[0]
    key = partition_stats_key("amount", partition)
    datum = table.raw("partition_stats")[key]
    assert datum[STATS]["isTightBound"]
    table.write({"partition_stats": [(key, changed(datum, STATS, maxValue=datum[STATS]["minValue"]))]})
    (found,) = table.found()
    assert (found.partition_type, found.partition, found.file) == ("partition_stats", partition, None)
    assert found.what.startswith("column amount: the stored maximum is ")


@pytest.mark.slow
@pytest.mark.parametrize("version", LATER)
def test_counts_of_a_partition(golden: Golden, version: str) -> None:
    table = metadata_snapshot(golden, version)
    partition = table.metadata.partitions()[0]
    key = partition_stats_key("note", partition)
    datum = table.raw("partition_stats")[key]
    rows = datum[STATS]["valueCount"]
    table.write({"partition_stats": [(key, changed(datum, STATS, valueCount=rows - 1))]})
    (found,) = table.found()
    assert f"nulls of {rows - 1} values, but there are" in found.what
    table.write({"partition_stats": [(key, changed(datum, STATS, valueCount=rows + 1))]})
    assert table.found() == []
    table.write({"partition_stats": [(key, changed(datum, STATS, isDeleted=True))]})
    (found,) = table.found()
    assert found.what == "the partition has values of note, but no statistics"


def test_a_column_that_was_added_later_needs_no_statistics() -> None:
    """Of a partition that no write has touched since, no writer records it."""
    empty = pa.table({name: [] for name in ("partition", "min", "max", "null_count", "value_count", "is_tight")})

    class Metadata:
        def partition_stats(self, columns: Sequence[str]) -> dict[str, pa.Table]:
            return dict.fromkeys(columns, empty)

    findings = Findings()
    subject = cast(Subject, SimpleNamespace(metadata=Metadata(), findings=findings))
    check = PartitionStatsCheck(subject, IndexedOperands({name: Column((name,)) for name in "ab"}))
    files = PartitionFiles("p", {}, {})
    check.open_partition(files)
    check.add_rows(slice_of_base(DataFile("p", "f-0_0-0-0_1.parquet", 1)), pa.record_batch({"a": [1], "b": [None]}))
    check.close_partition(files)
    assert [item.what for item in findings.report([], 1, 1, 1).differences] == [
        "the partition has values of a, but no statistics"
    ]
