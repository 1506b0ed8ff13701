"""Every partition type of real Hudi's metadata table against the data files and rows that it indexes: versions 6, 8 and
9.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.codec.bloom import BloomFilter
from hudi_core.errors import ConfigError, MetadataUnavailableError
from tests.support.bloom_filters import might_contain
from tests.support.golden_data import GoldenCase
from tests.support.golden_indexes import (
    ALL_KINDS,
    MANY,
    VERSIONS,
    WITH_RECORD_INDEX,
    open_table,
    values_of,
)
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
COLUMNS = ("id", "name", "amount", "qty", "note", "ts", "dt", "_hoodie_record_key", "_hoodie_commit_time")
EXPECTED_TYPES = {
    "id": pa.string(),
    "amount": pa.float64(),
    "qty": pa.int32(),
    "ts": pa.int64(),
    "_hoodie_commit_time": pa.string(),
}


@pytest.mark.parametrize(
    ("version", "case"), tiered(MANY, [("6", "mdt_all_cow"), ("8", "mdt_all_mor_compacted"), ("9", "mdt_all_mor")])
)
def test_column_statistics_are_those_of_the_base_files(golden: Golden, version: str, case: str) -> None:
    metadata_snapshot = open_table(golden(version, case))
    tables = metadata_snapshot.metadata.column_stats(COLUMNS)
    assert list(tables) == list(COLUMNS)
    seen = 0
    for column, table in tables.items():
        assert table.schema.field("min").type == EXPECTED_TYPES.get(column, table.schema.field("min").type)
        rows = {(row["partition"], row["file"]): row for row in table.to_pylist()}
        assert len(rows) == table.num_rows
        assert rows.keys() == {
            (partition, name)
            for partition in metadata_snapshot.metadata.partitions()
            for name in metadata_snapshot.metadata.list_files(partition)
        }
        for partition, name, path in metadata_snapshot.base_files():
            values = values_of(path, column)
            there = [value for value in values if value is not None]
            row = rows[partition, name]
            assert (row["min"], row["max"]) == (min(there, default=None), max(there, default=None)), (column, name)
            assert (row["null_count"], row["value_count"]) == (len(values) - len(there), len(values)), (column, name)
            seen += 1
    assert seen == (15 if "cow" in case else 9) * len(COLUMNS)


@pytest.mark.parametrize(("version", "case"), MANY)
def test_statistics_by_partition_and_by_file_are_parts_of_all(golden: Golden, version: str, case: str) -> None:
    metadata = open_table(golden(version, case)).metadata
    (whole,) = metadata.column_stats(["qty"]).values()
    first, second, *_ = metadata.partitions()
    for requested in ([first], [second, first], []):
        (part,) = metadata.column_stats(["qty"], partitions=requested).values()
        assert part.to_pylist() == [row for row in whole.to_pylist() if row["partition"] in requested]
    files = {first: list(metadata.list_files(first))[:2], second: ["absent.parquet"]}
    (part,) = metadata.column_stats(["qty"], files=files).values()
    assert part.to_pylist() == [
        row for row in whole.to_pylist() if row["partition"] == first and row["file"] in files[first]
    ]
    assert metadata.column_stats(["absent", "qty"])["absent"].num_rows == 0


@pytest.mark.parametrize(("version", "case"), [pair for pair in MANY if pair[0] != "6"])
def test_partition_statistics_cover_the_rows_of_the_snapshot(golden: Golden, version: str, case: str) -> None:
    metadata_snapshot = open_table(golden(version, case))
    seen = 0
    for column, table in metadata_snapshot.metadata.partition_stats(
        ["id", "name", "amount", "qty", "note", "ts"]
    ).items():
        by_partition = defaultdict(list)
        for partition, value in zip(
            metadata_snapshot.snapshot["dt"].to_pylist(), metadata_snapshot.snapshot[column].to_pylist(), strict=True
        ):
            by_partition[partition].append(value)
        rows = {row["partition"]: row for row in table.to_pylist()}
        assert rows.keys() == by_partition.keys()
        for partition, values in by_partition.items():
            there = [value for value in values if value is not None]
            assert rows[partition]["min"] <= min(there), (column, partition)
            assert rows[partition]["max"] >= max(there), (column, partition)
            if "cow" in case:
                assert (rows[partition]["min"], rows[partition]["max"], rows[partition]["value_count"]) == (
                    min(there),
                    max(there),
                    len(values),
                )
            seen += 1
    assert seen == 18


@pytest.mark.parametrize(("version", "case"), WITH_RECORD_INDEX)
def test_the_record_index_knows_every_row_and_no_other(golden: Golden, version: str, case: str) -> None:
    metadata_snapshot = open_table(golden(version, case))
    rows = metadata_snapshot.snapshot.select(
        ["_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name"]
    ).to_pylist()
    index = metadata_snapshot.metadata.record_index
    assert not index.is_partitioned
    found = dict(index.all())
    assert found.keys() == {row["_hoodie_record_key"] for row in rows}
    looked_up = metadata_snapshot.metadata.record_locations([*found, "absent"])
    assert looked_up == {key: (location,) for key, location in found.items()}
    instants = {row["_hoodie_commit_time"] for row in metadata_snapshot.snapshot.to_pylist()} | {
        i.requested_time for i in metadata_snapshot.metadata._metadata_snapshot.data_timeline
    }
    for row in rows:
        location = found[row["_hoodie_record_key"]]
        assert location.partition == row["_hoodie_partition_path"]
        # A log record's file name is the file group's id alone.
        assert row["_hoodie_file_name"].split("_")[0] == location.file_id
        assert location.instant in instants


def test_the_empty_text_is_no_record_key(golden: Golden) -> None:
    metadata = open_table(golden("9", "mdt_record_index_lookup")).metadata
    assert metadata.record_locations([]) == {}
    with pytest.raises(ConfigError, match="no record key"):
        metadata.record_locations(["k", ""])


@pytest.mark.parametrize(("version", "case"), tiered(MANY, [("6", "mdt_all_mor")]))
def test_bloom_filters_are_those_of_the_base_files_footers(golden: Golden, version: str, case: str) -> None:
    metadata_snapshot = open_table(golden(version, case))
    seen = 0
    for partition in metadata_snapshot.metadata.partitions():
        names = list(metadata_snapshot.metadata.list_files(partition))
        filters = metadata_snapshot.metadata.bloom_filters(partition, [*names, "absent.parquet"])
        assert filters.keys() == {name for name in names if name.endswith(".parquet")}
        for name, stored in filters.items():
            path = metadata_snapshot.path / partition / name
            footer = pq.ParquetFile(path).metadata.metadata
            metadata_timeline = BloomFilter.parse(
                footer[b"org.apache.hudi.bloomfilter"], footer[b"hoodie_bloom_filter_type_code"].decode(), path=name
            )
            assert stored.to_base64() == metadata_timeline.to_base64()
            assert all(might_contain(stored, key.encode()) for key in values_of(path, "_hoodie_record_key"))
            assert not might_contain(stored, b"absent")
            seen += 1
    assert seen >= 9


@pytest.mark.parametrize(("version", "case"), [pair for pair in MANY if pair[0] != "6"])
def test_the_secondary_index_gives_the_record_keys_of_each_value(golden: Golden, version: str, case: str) -> None:
    metadata_snapshot = open_table(golden(version, case))
    expected = defaultdict(list)
    for row in metadata_snapshot.snapshot.select(["name", "_hoodie_record_key"]).to_pylist():
        expected[row["name"]].append(row["_hoodie_record_key"])
    index = "secondary_index_idx_name"
    assert metadata_snapshot.metadata.definitions[index].version == (2 if version == "9" else 1)
    assert metadata_snapshot.metadata.secondary_keys(index, [*expected, "absent"]) == {
        value: sorted(keys) for value, keys in expected.items()
    }
    assert metadata_snapshot.metadata.covers_all_rows(index)
    one = next(iter(expected))
    assert metadata_snapshot.metadata.secondary_keys(index, [one]) == {one: sorted(expected[one])}


@pytest.mark.parametrize(("version", "case"), [pair for pair in MANY if pair[0] != "6"])
def test_expression_statistics_are_those_of_the_base_files(golden: Golden, version: str, case: str) -> None:
    """from_unixtime(ts, 'yyyy-MM-dd') of milliseconds taken for seconds: real Hudi's own test values lie in the year
    55840.
    """
    metadata_snapshot = open_table(golden(version, case))
    definition = metadata_snapshot.metadata.definitions["expr_index_idx_day"]
    assert (definition.type, definition.function, definition.source_fields) == (
        "column_stats",
        "from_unixtime",
        ("ts",),
    )
    table = metadata_snapshot.metadata.expression_stats("expr_index_idx_day")
    rows = {(row["partition"], row["file"]): row for row in table.to_pylist()}
    seen = 0
    for partition, name, path in metadata_snapshot.base_files():
        row = rows[partition, name]
        assert row["value_count"] == len(values_of(path, "ts"))
        assert row["min"] == row["max"] == "+55840-11-08"
        seen += 1
    assert seen >= 9


@pytest.mark.parametrize("version", tiered(["8", "9"], ["9"]))
@pytest.mark.parametrize("case", tiered(["mdt_all_cow", "mdt_all_cow_compacted"], ["mdt_all_cow"]))
def test_expression_filters_hold_the_expressions_values(golden: Golden, version: str, case: str) -> None:
    """lower(name), of every base file."""
    metadata_snapshot = open_table(golden(version, case))
    seen = 0
    for partition, name, path in metadata_snapshot.base_files():
        stored = metadata_snapshot.metadata.expression_blooms("expr_index_idx_low", partition, [name])[name]
        assert all(might_contain(stored, value.lower().encode()) for value in values_of(path, "name"))
        assert not any(might_contain(stored, key.encode()) for key in values_of(path, "_hoodie_record_key"))
        seen += 1
    assert seen == 15


@pytest.mark.parametrize("version", VERSIONS)
def test_a_planned_index_is_not_there_until_it_is_built(golden: Golden, version: str) -> None:
    case = golden(version, "indexing_requested")
    before = open_table(case).metadata
    assert "column_stats" not in before.partition_types
    with pytest.raises(MetadataUnavailableError, match="does not name `column_stats`"):
        before.column_stats(["id"])
    metadata_snapshot = open_table(
        GoldenCase(case.version, case.name, case.after(), case.expected, case.info, case.scratch)
    )
    assert "column_stats" in metadata_snapshot.metadata.partition_types
    (table,) = metadata_snapshot.metadata.column_stats(["id"]).values()
    rows = {(row["partition"], row["file"]): (row["min"], row["max"]) for row in table.to_pylist()}
    if version == "6":
        # Hudi 0.15 initialised both file groups (an empty delete block each) and wrote no record: every file may match.
        assert rows == {}
        return
    for partition, name, path in metadata_snapshot.base_files():
        values = values_of(path, "id")
        assert rows[partition, name] == (min(values), max(values))


@pytest.mark.parametrize(("version", "case"), [("6", case) for case in ALL_KINDS])
def test_partition_types_of_later_versions_are_distinguished(golden: Golden, version: str, case: str) -> None:
    metadata = open_table(golden(version, case)).metadata
    assert metadata.definitions == {}
    for ask in (
        lambda: metadata.partition_stats(["id"]),
        lambda: metadata.secondary_keys("secondary_index_idx_name", ["a"]),
        lambda: metadata.expression_stats("expr_index_idx_day"),
    ):
        with pytest.raises(MetadataUnavailableError, match="no such metadata"):
            ask()
