from __future__ import annotations

import pytest

from hudi_core.metadata_table.keys import (
    partition_stats_key,
)
from tests.support.damaged_tables import changed
from tests.unit.hudi_core.services.metadata.validate.test_run import LATER, STATS, Golden, metadata_snapshot


@pytest.mark.parametrize("version", LATER)
@pytest.mark.parametrize("name", ["mdt_all_cow", "mdt_all_mor"])
def test_stale_statistics_of_a_partition(golden: Golden, version: str, name: str) -> None:
    table = metadata_snapshot(golden, version, name)
    partition = table.metadata.list_partitions()[0]
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
    partition = table.metadata.list_partitions()[0]
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
    assert found.what == "the partition has rows, but no statistics of note"
