"""Every damage is found, and nothing else: real records that are not true, in every version that has the kind."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hudi_core.codec.bloom import build
from hudi_core.codec.hashing import file_group_index
from hudi_core.metadata_table.keys import (
    bloom_filter_key,
    column_stats_key,
    partition_stats_key,
    secondary_hashed_part,
    secondary_key,
)
from hudi_core.services.metadata.validate.run import validate
from hudi_core.services.metadata.validate.true_ranges import buffers_of
from hudi_core.storage.data_registry import open_data_storage
from tests.support.damaged_tables import DamagedTable, Datum, changed
from tests.support.golden_cleans import context_of
from tests.support.golden_data import GoldenCase

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["6", pytest.param("8", marks=pytest.mark.soak), "9"]
LATER = ["8", pytest.param("9", marks=pytest.mark.soak)]
"""Every damage of the list on every version: test_every_table_damaged."""
STATS, BLOOM = "ColumnStatsMetadata", "BloomFilterMetadata"
DAY, LOW, NAMES = "expr_index_idx_day", "expr_index_idx_low", "secondary_index_idx_name"


def metadata_snapshot(golden: Golden, version: str, name: str = "mdt_all_cow") -> DamagedTable:
    return DamagedTable(golden(version, name).table)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["mdt_all_cow", "mdt_all_mor"])
@pytest.mark.parametrize(
    ("from_", "to", "word"), [("maxValue", "minValue", "minimum"), ("minValue", "maxValue", "maximum")]
)
def test_a_stale_bound(golden: Golden, version: str, name: str, from_: str, to: str, word: str) -> None:
    table = metadata_snapshot(golden, version, name)
    partition, file = table.latest_base()
    values = pq.read_table(table.path / partition / file)["qty"]
    key = column_stats_key("qty", partition, file)
    datum = table.raw("column_stats")[key]
    table.rewrite("column_stats", {key: changed(datum, STATS, **{to: datum[STATS][from_]})})
    (found,) = table.found()
    least, greatest = pc.min(values).as_py(), pc.max(values).as_py()
    stored, true = (greatest, least) if word == "minimum" else (least, greatest)
    assert (found.partition_type, found.partition, found.file) == ("column_stats", partition, file)
    assert found.what == f"column qty: the stored {word} is {stored}, but there is {true}"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_stale_bound_of_text_and_wrong_counts(golden: Golden, version: str) -> None:
    table = metadata_snapshot(golden, version)
    partition, file = table.latest_base()
    key = column_stats_key("id", partition, file)
    datum = table.raw("column_stats")[key]
    rows = datum[STATS]["valueCount"]
    table.rewrite(
        "column_stats",
        {key: changed(datum, STATS, minValue=datum[STATS]["maxValue"], nullCount=1, valueCount=rows + 3)},
    )
    counts, bound = table.found()
    assert counts.what == f"column id: stored are 1 nulls of {rows + 3} values, but there are 0 of {rows}"
    assert bound.what.startswith("column id: the stored minimum is ")
    assert counts.file == bound.file == file


@pytest.mark.parametrize("version", VERSIONS)
def test_values_that_are_said_to_be_null(golden: Golden, version: str) -> None:
    table = metadata_snapshot(golden, version)
    partition, file = table.latest_base()
    key = column_stats_key("ts", partition, file)
    datum = table.raw("column_stats")[key]
    rows = datum[STATS]["valueCount"]
    table.rewrite("column_stats", {key: changed(datum, STATS, minValue=None, maxValue=None, nullCount=rows)})
    assert any(
        item.what.startswith(f"column ts: stored are {rows} values, all null, but there is ") for item in table.found()
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_a_wider_bound_is_no_difference(golden: Golden, version: str) -> None:
    table = metadata_snapshot(golden, version)
    partition, file = table.latest_base()
    key = column_stats_key("qty", partition, file)
    datum = table.raw("column_stats")[key]
    wrapper = datum[STATS]["minValue"][0]
    table.rewrite("column_stats", {key: changed(datum, STATS, minValue=(wrapper, {"value": -(10**6)}), maxValue=None)})
    assert table.found() == []


@pytest.mark.parametrize("version", VERSIONS)
def test_a_stale_bound_of_a_log_file(golden: Golden, version: str) -> None:
    table = metadata_snapshot(golden, version, "mdt_all_mor")
    data = {key: datum for key, datum in table.raw("column_stats").items() if ".log." in datum[STATS]["fileName"]}
    key, datum = next(
        (key, item) for key, item in data.items() if item[STATS]["columnName"] == "qty" and item[STATS]["minValue"]
    )
    low, high = (datum[STATS][end][1]["value"] for end in ("minValue", "maxValue"))
    assert low < high
    table.rewrite("column_stats", {key: changed(datum, STATS, maxValue=datum[STATS]["minValue"])})
    (found,) = table.found()
    assert (found.partition_type, found.file) == ("column_stats", datum[STATS]["fileName"])
    assert found.what == f"column qty: the stored maximum is {low}, but there is {high}"


@pytest.mark.parametrize("version", VERSIONS)
def test_statistics_of_a_deleted_file(golden: Golden, version: str) -> None:
    table = metadata_snapshot(golden, version)
    partition, file = table.latest_base()
    datum = table.raw("column_stats")[column_stats_key("qty", partition, file)]
    table.write(
        {
            "column_stats": [
                (column_stats_key("qty", partition, "gone.parquet"), changed(datum, STATS, fileName="gone.parquet"))
            ]
        }
    )
    (found,) = table.found()
    assert (found.partition_type, found.partition, found.file) == ("column_stats", partition, "gone.parquet")
    assert found.what == "has statistics, but `files` does not list it"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_file_without_statistics(golden: Golden, version: str) -> None:
    table = metadata_snapshot(golden, version)
    _, file = table.latest_base()
    data = {key: datum for key, datum in table.raw("column_stats").items() if datum[STATS]["fileName"] == file}
    gone = [(key, changed(datum, STATS, isDeleted=True)) for key, datum in data.items()]
    assert len(gone) >= 10
    table.write({"column_stats": gone})
    (found,) = table.found()
    assert (found.partition_type, found.file) == ("column_stats", file)
    assert found.what.startswith("has no statistics of _hoodie_commit_time, ")
    assert found.what.endswith(f" and {len(gone) - 3} more")


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


@pytest.mark.parametrize("version", VERSIONS)
def test_the_filter_of_another_file(golden: Golden, version: str) -> None:
    table = metadata_snapshot(golden, version)
    partition, file = table.latest_base()
    other = next((place, name) for place, name in table.base_files() if place != partition)
    data = table.raw("bloom_filters")
    table.write({"bloom_filters": [(bloom_filter_key(partition, file), data[bloom_filter_key(*other)])]})
    rows = pq.ParquetFile(table.path / partition / file).metadata.num_rows
    assert [(item.partition_type, item.partition, item.file, item.what) for item in table.found()] == [
        ("bloom_filters", partition, file, "the filter is not that of the file's footer"),
        ("bloom_filters", partition, file, f"the filter lacks {rows} of the file's {rows} keys"),
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_filter_that_lacks_a_key(golden: Golden, version: str) -> None:
    table = metadata_snapshot(golden, version)
    partition, file = table.latest_base()
    keys = pq.read_table(table.path / partition / file)["_hoodie_record_key"].combine_chunks()
    lacking = build(*buffers_of(keys[1:]))
    key = bloom_filter_key(partition, file)
    datum = changed(table.raw("bloom_filters")[key], BLOOM, bloomFilter=lacking.to_base64().encode())
    table.write({"bloom_filters": [(key, datum)]})
    assert [item.what for item in table.found()] == [
        "the filter is not that of the file's footer",
        f"the filter lacks 1 of the file's {len(keys)} keys",
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_filters_of_no_file_and_files_without_a_filter(golden: Golden, version: str) -> None:
    table = metadata_snapshot(golden, version)
    partition, file = table.latest_base()
    key, nowhere = bloom_filter_key(partition, file), bloom_filter_key(partition, "gone.parquet")
    datum = table.raw("bloom_filters")[key]
    gone = changed(datum, BLOOM, isDeleted=True, bloomFilter=b"")
    table.write({"bloom_filters": [(key, gone), (nowhere, datum)]})
    assert [(item.file, item.what) for item in table.found()] == [
        (None, f"key {nowhere}: a filter of a file that is no listed base file of the partition"),
        (file, "has a filter in its footer, and none here"),
    ]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["mdt_all_cow", "mdt_all_mor", "mdt_record_index_lookup"])
def test_a_record_that_is_mapped_to_the_wrong_group(golden: Golden, version: str, name: str) -> None:
    table = metadata_snapshot(golden, version, name)
    places = dict(table.metadata.record_index.all())
    key, right = min(places.items())
    other, wrong = next((key, place) for key, place in sorted(places.items()) if place.file_id != right.file_id)
    table.write({"record_index": [(key, table.raw("record_index")[other])]})
    (found,) = table.found()
    assert (found.partition_type, found.partition, found.file) == ("record_index", wrong.partition, wrong.file_id)
    where = f"file group {right.file_id} of partition {right.partition!r}"
    assert found.what == f"key {key!r} is mapped to the file group, but it is in {where}"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["mdt_all_cow", "mdt_all_mor"])
def test_a_deleted_key_that_is_still_mapped(golden: Golden, version: str, name: str) -> None:
    table = metadata_snapshot(golden, version, name)
    key, place = min(table.metadata.record_index.all())
    table.write({"record_index": [("ghost", table.raw("record_index")[key])]})
    (found,) = table.found()
    assert (found.partition_type, found.partition, found.file) == ("record_index", place.partition, place.file_id)
    assert found.what == "key 'ghost' is mapped to the file group, but no row has it"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["mdt_all_cow", "mdt_all_mor"])
def test_a_key_that_is_not_mapped(golden: Golden, version: str, name: str) -> None:
    table = metadata_snapshot(golden, version, name)
    key, place = min(table.metadata.record_index.all())
    table.write({"record_index": [(key, None)]})
    (found,) = table.found()
    assert (found.partition_type, found.partition, found.file) == ("record_index", place.partition, place.file_id)
    assert found.what == f"key {key!r} is not mapped, but the file group has a row of it"


@pytest.mark.parametrize("version", LATER)
@pytest.mark.parametrize("name", ["mdt_all_cow", "mdt_all_mor"])
def test_pairs_of_a_secondary_index(golden: Golden, version: str, name: str) -> None:
    table = metadata_snapshot(golden, version, name)
    data = table.raw(NAMES)

    def at_home(key: str) -> bool:
        """Whether a writer that hashes the whole key brings it to where it is looked for."""
        return version == "8" or file_group_index(key, 10) == file_group_index(secondary_hashed_part(key), 10)

    remaining = {key: datum for key, datum in data.items() if not datum["SecondaryIndexMetadata"]["isDeleted"]}
    taken = next(key for key in sorted(remaining) if at_home(key))
    ghost, extra = next(
        (f"ghost{number}", key) for number in range(1000) if at_home(key := secondary_key("no$1", f"ghost{number}"))
    )
    datum: Datum = remaining[taken]
    table.write({NAMES: [(taken, {**datum, "SecondaryIndexMetadata": {"isDeleted": True}}), (extra, datum)]})
    value, record_key = taken.split("$")
    assert sorted((item.partition_type, item.what) for item in table.found()) == sorted(
        [
            (NAMES, f"value {value!r} of key {record_key!r} is not in the index, but the file group has it"),
            (NAMES, f"value 'no$1' of key {ghost!r} is in the index, but no row has it"),
        ]
    )


@pytest.mark.parametrize("version", LATER)
@pytest.mark.parametrize(
    ("partition_type", "what"), [(NAMES, "is in the index, but"), ("record_index", "is mapped to the file group, but")]
)
def test_what_lies_where_nobody_looks_for_it(golden: Golden, version: str, partition_type: str, what: str) -> None:
    """A log file of one file group of the index, under the name of another."""
    table = metadata_snapshot(golden, version)
    before = set(table.path.glob(f".hoodie/metadata/{partition_type}/.*.log.*"))
    key = min(table.raw(partition_type))
    table.write({partition_type: [(key, table.raw(partition_type)[key])]})
    (log,) = set(table.path.glob(f".hoodie/metadata/{partition_type}/.*.log.*")) - before
    here = int(log.name.split("-0_")[0][-4:])
    count = len({path.name.split("-0_")[0].lstrip(".") for path in before})
    home = file_group_index(secondary_hashed_part(key) if (version, partition_type) == ("9", NAMES) else key, count)
    other = (home + 1) % count
    log.rename(log.with_name(log.name.replace(f"-{here:04d}-0_", f"-{other:04d}-0_")))
    (found,) = table.found()
    assert found.partition_type == partition_type
    assert found.what.endswith(f" {what} in file group {other} of the index, where nobody looks for it (but in {home})")


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
def test_stale_statistics_of_an_expression_over_a_partition(golden: Golden, version: str) -> None:
    table = metadata_snapshot(golden, version)
    partition = table.metadata.list_partitions()[0]
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


@pytest.mark.parametrize("version", LATER)
def test_an_expressions_filter_of_another_file(golden: Golden, version: str) -> None:
    table = metadata_snapshot(golden, version)
    partition, file = table.latest_base()
    key = bloom_filter_key(partition, file)
    empty = build(*buffers_of(pa.array(["nothing"])))
    datum = changed(table.raw(LOW)[key], BLOOM, bloomFilter=empty.to_base64().encode())
    table.write({LOW: [(key, datum), (bloom_filter_key(partition, "gone.parquet"), datum)]})
    rows = pq.ParquetFile(table.path / partition / file).metadata.num_rows
    partition_types = [(item.partition_type, item.file) for item in table.found()]
    assert partition_types == [(LOW, None), (LOW, file)]
    assert table.found()[1].what == f"the filter lacks {rows} of the file's {rows} keys"


def test_the_zone_of_an_expression_has_to_be_given(golden: Golden) -> None:
    """Counts and files are compared without it."""
    table = metadata_snapshot(golden, "9")
    key, datum = next(
        (key, item) for key, item in table.raw(DAY).items() if item[STATS]["fileName"].endswith(".parquet")
    )
    wrapper = datum[STATS]["minValue"][0]
    table.rewrite(DAY, {key: changed(datum, STATS, minValue=(wrapper, {"value": "9999"}), valueCount=1)})
    report = validate(context_of(table.path), open_data_storage(str(table.path)))
    (found,) = report.differences
    assert found.what.startswith("stored are 0 nulls of 1 values, but there are 0 of ")
    assert "airflow_hudi.read.zone" in next(item.why for item in report.not_checked if item.partition_type == DAY)


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
