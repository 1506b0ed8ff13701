"""What tests/golden/make_metadata_tables.py had real Hudi write: every type of statistics, odd keys and values, the
partitioned record index.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import FormatError
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.active import ActiveTimeline
from tests.support.bloom_filters import might_contain
from tests.support.golden_indexes import Opened, values_of
from tests.support.tiers import tiered

VERSIONS = ("6", "8", "9")
TYPES = {
    "flag": pa.bool_(),
    "tiny": pa.int32(),
    "small": pa.int32(),
    "number": pa.int32(),
    "big": pa.int64(),
    "single": pa.float32(),
    "twice": pa.float64(),
    "word": pa.string(),
    "bytes": pa.binary(),
    "money": pa.decimal128(10, 2),
    "wide": pa.decimal128(30, 12),
    "day": pa.date32(),
    "moment": pa.timestamp("us", tz="UTC"),
    "nothing": pa.string(),
}
NOT_INDEXED = {"8": {"wide"}}
"""Hudi 1.2.0 leaves out of version 8's index the decimals that its wrapper, a decimal(30, 15), cannot hold."""


def open_table(written: Path, name: str) -> Opened:
    storage = LocalStorage(written / name)
    config = TableConfig.load(storage)
    metadata = MetadataTable(storage, config, ActiveTimeline(storage, config).load())
    snapshot = pq.read_table(written / f"{name}.snapshot.parquet")
    if "moment" in snapshot.column_names:
        # Spark stores what a query returns as int96, without a zone.
        moment = snapshot["moment"].cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
        snapshot = snapshot.set_column(snapshot.column_names.index("moment"), "moment", moment)
    return Opened(written / name, storage, config, metadata, snapshot)


@pytest.mark.parametrize("version", tiered(VERSIONS, ["8"]))
def test_statistics_of_every_type(written: Path, version: str) -> None:
    metadata_snapshot = open_table(written, f"types_v{version}")
    tables = metadata_snapshot.metadata.column_stats(list(TYPES))
    for column, kind in TYPES.items():
        table = tables[column]
        assert (table.schema.field("min").type, table.schema.field("max").type) == (kind, kind)
        rows = {(row["partition"], row["file"]): row for row in table.to_pylist()}
        if column in NOT_INDEXED.get(version, ()):
            assert rows == {}
            continue
        assert rows.keys() == {
            (partition, name) for partition in ("p0", "p1") for name in metadata_snapshot.metadata.list_files(partition)
        }
        bases = list(metadata_snapshot.base_files())
        assert len(bases) == 4
        for partition, name, path in bases:
            values = values_of(path, column)
            there = [value for value in values if value is not None]
            row = rows[partition, name]
            assert (row["min"], row["max"]) == (min(there, default=None), max(there, default=None)), (column, name)
            assert (row["null_count"], row["value_count"]) == (len(values) - len(there), len(values)), (column, name)


@pytest.mark.parametrize("version", VERSIONS)
def test_statistics_of_log_files_cover_the_rows_they_brought(written: Path, version: str) -> None:
    """Rows of the second commit are in log files only; a log of deletes alone has no values."""
    metadata_snapshot = open_table(written, f"types_v{version}")
    changed = [row for row in metadata_snapshot.snapshot.to_pylist() if row["ts"] == 2]
    assert len(changed) > 8
    for column in TYPES.keys() - NOT_INDEXED.get(version, set()):
        logs = [
            row
            for row in metadata_snapshot.metadata.column_stats([column])[column].to_pylist()
            if ".log." in row["file"]
        ]
        assert len(logs) == 4
        by_partition = {row["partition"]: row for row in logs if row["value_count"]}
        assert len(by_partition) == 2
        for row in changed:
            bound = by_partition[row["p"]]
            assert row[column] is None or bound["min"] <= row[column] <= bound["max"], column


def test_nested_and_unknown_columns_have_no_range(written: Path) -> None:
    metadata = open_table(written, "types_v6").metadata
    for column, table in metadata.column_stats(["nested", "tags", "nested.a", "absent", "a.b"]).items():
        assert set(table["min"].to_pylist()) <= {None}, column
    assert pa.types.is_null(metadata.column_stats(["nested"])["nested"].schema.field("min").type)
    assert metadata.column_stats(["nested.a"])["nested.a"].schema.field("min").type == pa.int32()


@pytest.mark.parametrize("version", ["8", "9"])
def test_values_of_all_kinds_in_a_secondary_index(written: Path, version: str) -> None:
    metadata_snapshot = open_table(written, f"keys_v{version}")
    expected: dict[str | None, list[str]] = defaultdict(list)
    for row in metadata_snapshot.snapshot.to_pylist():
        expected[row["word"]].append(row["_hoodie_record_key"])
    assert {None, "", "$", "\\", "\0", "\U0001f600"} <= expected.keys()
    assert metadata_snapshot.metadata.secondary_keys("secondary_index_word", expected) == {
        value: sorted(keys) for value, keys in expected.items()
    }
    for value, keys in expected.items():
        assert metadata_snapshot.metadata.secondary_keys("secondary_index_word", [value, "absent"]) == {
            value: sorted(keys)
        }


def test_an_index_that_came_with_a_write_lacks_the_changes_of_that_write(written: Path) -> None:
    """Of the rows that the first commit wrote and no later one changed, Hudi 1.2.0 indexed none."""
    metadata_snapshot = open_table(written, "incomplete_v9")
    index = "secondary_index_word"
    rows = metadata_snapshot.snapshot.to_pylist()
    found = {
        key
        for keys in metadata_snapshot.metadata.secondary_keys(index, {row["word"] for row in rows}).values()
        for key in keys
    }
    assert found == {row["_hoodie_record_key"] for row in rows if row["ts"] == 2}
    assert len(found) < len(rows)
    assert metadata_snapshot.metadata.record_locations(row["_hoodie_record_key"] for row in rows).keys() == {
        row["_hoodie_record_key"] for row in rows
    }
    assert not metadata_snapshot.metadata.covers_all_rows(index)


@pytest.mark.parametrize("version", ["8", "9"])
def test_an_index_built_while_a_commit_was_written_is_not_trusted_to_be_whole(written: Path, version: str) -> None:
    """The only row of that commit was deleted since, which the metadata table does not tell."""
    assert not open_table(written, f"keys_v{version}").metadata.covers_all_rows("secondary_index_word")


@pytest.mark.parametrize("version", ["8", "9"])
def test_a_table_without_partitions(written: Path, version: str) -> None:
    metadata_snapshot = open_table(written, f"keys_v{version}")
    rows = metadata_snapshot.snapshot.to_pylist()
    found = metadata_snapshot.metadata.record_locations([row["_hoodie_record_key"] for row in rows] + ["k$3"])
    assert found.keys() == {row["_hoodie_record_key"] for row in rows}, "k$3 was deleted"
    for row in rows:
        (location,) = found[row["_hoodie_record_key"]]
        assert (location.partition, location.file_id) == ("", row["_hoodie_file_name"].split("_")[0])
    table = metadata_snapshot.metadata.column_stats(["word"])["word"]
    assert set(table["partition"].to_pylist()) == {""}
    assert table.equals(metadata_snapshot.metadata.column_stats(["word"], partitions=[""])["word"])
    names = metadata_snapshot.metadata.list_files("")
    assert metadata_snapshot.metadata.column_stats(["word"], files={"": names})["word"].num_rows == len(names)
    filters = metadata_snapshot.metadata.bloom_filters("", names)
    assert filters.keys() == {name for name in names if name.endswith(".parquet")}
    for base, stored in filters.items():
        assert all(
            might_contain(stored, key.encode())
            for key in values_of(metadata_snapshot.path / base, "_hoodie_record_key")
        )


def test_the_partitioned_record_index(written: Path) -> None:
    metadata_snapshot = open_table(written, "partitioned_v9")
    assert metadata_snapshot.metadata.definitions["record_index"].is_partitioned
    index = metadata_snapshot.metadata.record_index
    assert index.is_partitioned
    expected: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for row in metadata_snapshot.snapshot.to_pylist():
        expected[row["_hoodie_record_key"]].add((row["_hoodie_partition_path"], row["_hoodie_file_name"].split("_")[0]))
    found = metadata_snapshot.metadata.record_locations([*expected, "absent"])
    assert {key: {(place.partition, place.file_id) for place in places} for key, places in found.items()} == expected
    assert max(map(len, found.values())) == 2
    assert sum(1 for _ in index.all()) == metadata_snapshot.snapshot.num_rows


def test_a_metadata_partition_whose_name_is_no_folder_is_refused(written: Path) -> None:
    metadata_snapshot = open_table(written, "keys_v9")
    forged: Any = metadata_snapshot.config.metadata_partitions | {"../../x"}
    metadata = MetadataTable(
        metadata_snapshot.storage,
        replace(metadata_snapshot.config, metadata_partitions=forged),
        metadata_snapshot.metadata._metadata_snapshot.data_timeline,
    )
    with pytest.raises(FormatError):
        metadata.expression_stats("../../x")
