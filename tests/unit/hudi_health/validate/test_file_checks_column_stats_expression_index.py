from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.metadata_table.keys import (
    bloom_filter_key,
    column_stats_key,
)
from tests.support.bloom_filters import build
from tests.support.damaged_tables import UTC, DamagedTable, changed
from tests.support.overwrites import overwrite, own_rows, put_source
from tests.support.table_invariants import read_rows
from tests.unit.hudi_health.validate.test_run import (
    BLOOM,
    DAY,
    LATER,
    LOW,
    STATS,
    Golden,
    metadata_snapshot,
)


@pytest.mark.parametrize("version", LATER)
def test_stale_statistics_of_an_expression(golden: Golden, version: str) -> None:
    table = metadata_snapshot(golden, version)
    key = column_stats_key("ts", *table.latest_base())
    datum = table.raw(DAY)[key]
    wrapper = datum[STATS]["minValue"][0]
    table.rewrite(
        DAY, {key: changed(datum, STATS, minValue=(wrapper, {"value": "9999"}), maxValue=(wrapper, {"value": "9999"}))}
    )
    (found,) = table.found()
    assert (found.partition_type, found.file) == (DAY, datum[STATS]["fileName"])
    assert found.what == "the stored minimum is '9999', but there is '+55840-11-08'"
    table.write({DAY: [(key, changed(datum, STATS, isDeleted=True))]})
    (found,) = table.found()
    assert (found.file, found.what) == (datum[STATS]["fileName"], "has no statistics")


@pytest.mark.parametrize("version", LATER)
@pytest.mark.parametrize(
    "times", [[1_700_000_000, None, None], pytest.param([None, None, None], marks=pytest.mark.conformance)]
)
def test_counts_of_an_expression_are_without_nulls(
    golden: Golden, tmp_path: Path, version: str, times: list[int | None]
) -> None:
    """As Hudi's are, which counts a column's values."""
    table = metadata_snapshot(golden, version)
    rows = own_rows(table.path, read_rows(table.path)).slice(0, 3)
    rows = rows.set_column(rows.schema.get_field_index("ts"), "ts", pa.array(times, pa.int64()))
    overwrite(table.path, put_source(rows, tmp_path), UTC)
    assert table.found() == []
    nulls = times.count(None)
    key, datum = next(
        (key, item)
        for key, item in table.raw(DAY).items()
        if item[STATS]["nullCount"] and item[STATS]["fileName"].endswith(".parquet")
    )
    assert (datum[STATS]["nullCount"], datum[STATS]["valueCount"]) == (nulls, 3 - nulls)
    for members in ({"valueCount": 4 - nulls}, {"nullCount": nulls - 1}, {"valueCount": 3}):
        table.rewrite(DAY, {key: changed(datum, STATS, **members)})
        (found,) = table.found()
        assert (found.partition_type, found.file) == (DAY, datum[STATS]["fileName"])
        assert found.what.endswith(f" values, but there are {nulls} of 3")


@pytest.mark.parametrize("version", LATER)
def test_stale_statistics_of_an_expression_over_a_partition(golden: Golden, version: str) -> None:
    table = metadata_snapshot(golden, version)
    partition = table.metadata.partitions()[0]
    key, datum = next((key, item) for key, item in table.raw(DAY).items() if item[STATS]["fileName"] == partition)
    wrapper = datum[STATS]["minValue"][0]
    table.write(
        {DAY: [(key, changed(datum, STATS, maxValue=(wrapper, {"value": "+1"}), minValue=(wrapper, {"value": "+1"})))]}
    )
    (found,) = table.found()
    assert (found.partition_type, found.partition, found.what) == (
        DAY,
        partition,
        "of the whole partition: the stored maximum is '+1', but there is '+55840-11-08'",
    )


@pytest.mark.slow
@pytest.mark.parametrize("version", LATER)
def test_an_expressions_filter_of_another_file(golden: Golden, version: str) -> None:
    table = metadata_snapshot(golden, version)
    partition, file = table.latest_base()
    key = bloom_filter_key(partition, file)
    empty = build(pa.array(["nothing"]))
    datum = changed(table.raw(LOW)[key], BLOOM, bloomFilter=empty.to_base64().encode())
    table.write({LOW: [(key, datum), (bloom_filter_key(partition, "gone.parquet"), datum)]})
    rows = pq.ParquetFile(table.path / partition / file).metadata.num_rows
    partition_types = [(item.partition_type, item.file) for item in table.found()]
    assert partition_types == [(LOW, None), (LOW, file)]
    assert table.found()[1].what == f"the filter lacks {rows} of the file's {rows} keys"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "column"), [(DAY, "ts"), (LOW, None)])
@pytest.mark.parametrize("version", LATER)
def test_an_expression_index_need_not_know_older_slices(
    golden: Golden, version: str, name: str, column: str | None
) -> None:
    """Real Hudi begins it with the latest ones; of these every file has to be there."""
    table = DamagedTable(golden(version, "mdt_all_cow").table)
    context = table.context
    view = context.view(context.active.load())
    latest = {
        item.base_file.name
        for place in view.partitions()
        for item in view.latest_merged_slices(place)
        if item.base_file is not None
    }
    older = [(partition, file) for partition, file in table.base_files() if file not in latest]
    assert older

    def forget(partition: str, file: str) -> None:
        key = bloom_filter_key(partition, file) if column is None else column_stats_key(column, partition, file)
        body = "BloomFilterMetadata" if column is None else "ColumnStatsMetadata"
        table.write({name: [(key, changed(table.raw(name)[key], body, isDeleted=True))]})

    for partition, file in older:
        forget(partition, file)
    assert table.found() == []
    partition, file = table.latest_base()
    forget(partition, file)
    (found,) = table.found()
    assert (found.partition_type, found.partition, found.file) == (name, partition, file)
