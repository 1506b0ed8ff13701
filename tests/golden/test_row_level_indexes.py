"""Record index and secondary index built from the data files of golden tables are those that real Hudi wrote, key by
key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_core.codec.hashing import file_group_index
from hudi_core.codec.hfile.reader import HFileReader
from hudi_core.codec.log.blocks import BlockType, LogBlock
from hudi_core.codec.log.delete_columns import delete_columns, encode_natural_deletes
from hudi_core.metadata_table.partitions.row_indexes import RecordIndexRows, SecondaryIndexRows
from hudi_core.metadata_table.partitions.row_level import RecordGroups
from hudi_core.metadata_table.read.file_group import live_blocks, read_content
from hudi_core.metadata_table.read.row_level import RecordIndexRules, RecordLocation, SecondaryIndexRules
from hudi_core.metadata_table.read.snapshot import MetadataTableSnapshot
from hudi_core.metadata_table.record import GONE
from tests.golden.test_made_metadata_tables import open_table as open_written
from tests.support.golden_data import GoldenCase
from tests.support.golden_indexes import MANY, WITH_RECORD_INDEX, open_table
from tests.support.golden_row_indexes import GoldenRows, group_count
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
WITH_SECONDARY = [pair for pair in MANY if pair[0] != "6"]


def record_rows(golden: GoldenRows) -> RecordIndexRows:
    groups = golden.groups("record_index", "record-index-")
    return RecordIndexRows(RecordGroups({None: groups}), golden.schema, golden.table.config.timezone)


def locations(golden: GoldenRows, shards: list[dict[bytes, bytes]]) -> dict[str, RecordLocation]:
    """Decoded by the reader's own rules; every key is in the file group that its hash names."""
    codec, rules = golden.codec(), RecordIndexRules(golden.table.config.timezone)
    found: dict[str, RecordLocation] = {}
    for number, cells in enumerate(shards):
        for key, value in cells.items():
            name, datum = codec.decode(key, value)
            assert file_group_index(name, len(shards)) == number
            assert name not in found
            found[name] = rules.decode(name, datum, path="ours")
    return found


def replayed(golden: GoldenRows, rows: RecordIndexRows | SecondaryIndexRows) -> tuple[list[dict[bytes, bytes]], int]:
    """What stands after all commits, by file group, and how many deletions there were: each of a key that stood."""
    held: list[dict[bytes, bytes]] = [{} for _ in range(group_count(rows))]
    deletions = 0
    for _, shards in golden.replay(rows):
        for cells, changes in zip(held, shards, strict=True):
            for key, value in changes.items():
                if value == GONE:
                    deletions += 1
                    del cells[key]
                else:
                    cells[key] = value
    return held, deletions


@pytest.mark.parametrize(
    ("version", "name"),
    tiered(WITH_RECORD_INDEX, [("6", "mdt_all_mor"), ("8", "mdt_all_cow_compacted"), ("9", "mdt_record_index_lookup")]),
)
def test_the_record_index_of_the_commits_is_real_hudis(golden: Golden, version: str, name: str) -> None:
    case = golden(version, name)
    ours = GoldenRows.open(case.table)
    held, deletions = replayed(ours, record_rows(ours))
    real = dict(open_table(case).metadata.record_index.all())
    assert locations(ours, held) == real
    assert deletions > 0
    assert len(real) > 90


@pytest.mark.parametrize(
    ("version", "name"), tiered(WITH_RECORD_INDEX, [("6", "mdt_all_cow_compacted"), ("9", "mdt_all_mor_compacted")])
)
def test_a_record_index_that_is_rebuilt_differs_in_the_instant_alone(golden: Golden, version: str, name: str) -> None:
    """No file records which commit brought a row to its file group: the base instant of the slice replaces it, as in
    real Hudi's initialization.
    """
    case = golden(version, name)
    ours = GoldenRows.open(case.table)
    found = locations(ours, ours.begin(record_rows(ours)))
    real = dict(open_table(case).metadata.record_index.all())
    assert {key: (place.partition, place.file_id) for key, place in found.items()} == {
        key: (place.partition, place.file_id) for key, place in real.items()
    }
    starts = {(group.partition, group.file_id): item.base_instant for group, item in ours.slices(None).items()}
    assert all(place.instant == starts[place.partition, place.file_id] for place in found.values())


def secondary_rows(
    golden: GoldenRows, column: str = "name", index: str = "secondary_index_idx_name"
) -> SecondaryIndexRows:
    groups = golden.groups(index, f"{index.replace('_', '-')}-")
    return SecondaryIndexRows(index, column, groups, golden.schema, golden.table.config.features.typed_statistics)


def pairs_of_real_hudi(golden: GoldenRows, index: str = "secondary_index_idx_name") -> list[set[str]]:
    """By file group. None is stored as taken away: real Hudi writes a DELETE block instead."""
    metadata_snapshot = MetadataTableSnapshot(golden.storage, golden.table.config, golden.table.timeline())
    groups = [group.all() for group in metadata_snapshot.groups(index, SecondaryIndexRules())]
    assert all(current for group in groups for current in group.values())
    return [{key.decode() for key in group} for group in groups]


def pairs(golden: GoldenRows, shards: list[dict[bytes, bytes]]) -> list[set[str]]:
    codec, rules = golden.codec(), SecondaryIndexRules()
    for cells in shards:
        assert all(rules.decode(*codec.decode(key, value), path="ours") for key, value in cells.items())
    return [{key.decode() for key in cells} for cells in shards]


@pytest.mark.parametrize(("version", "name"), WITH_SECONDARY)
def test_a_secondary_index_that_is_rebuilt_is_real_hudis(golden: Golden, version: str, name: str) -> None:
    ours = GoldenRows.open(golden(version, name).table)
    found = pairs(ours, ours.begin(secondary_rows(ours)))
    assert found == pairs_of_real_hudi(ours)
    assert sum(map(len, found)) > 90


@pytest.mark.parametrize(("version", "name"), tiered(WITH_SECONDARY, [("8", "mdt_all_mor"), ("9", "mdt_all_cow")]))
def test_the_pairs_of_the_commits_are_real_hudis(golden: Golden, version: str, name: str) -> None:
    ours = GoldenRows.open(golden(version, name).table)
    held, deletions = replayed(ours, secondary_rows(ours))
    assert pairs(ours, held) == pairs_of_real_hudi(ours)
    assert deletions > 50


def blocks_of(golden: GoldenRows, partition: str) -> Iterator[tuple[str, int, LogBlock, bytes]]:
    """Instant, number of the file group, block and content of every log block of an index that real Hudi wrote with
    keys in it.
    """
    metadata_snapshot = MetadataTableSnapshot(golden.storage, golden.table.config, golden.table.timeline())
    for number, group in enumerate(metadata_snapshot.groups(partition, SecondaryIndexRules())):
        for block in live_blocks(golden.storage, group._slice.logs, metadata_snapshot.blocks):
            content = read_content(block, 0, block.content_length)
            if block.instant_time is not None and not (
                block.type is BlockType.DELETE and not delete_columns(content, path="").num_rows
            ):
                yield block.instant_time, number, block, content


@pytest.mark.parametrize(
    ("version", "name", "index"),
    tiered(
        [
            *((*pair, "record_index") for pair in WITH_RECORD_INDEX),
            *((*pair, "secondary_index_idx_name") for pair in WITH_SECONDARY),
        ],
        [
            ("6", "mdt_all_mor", "record_index"),
            ("8", "mdt_all_cow", "secondary_index_idx_name"),
            ("9", "mdt_all_mor", "record_index"),
            ("9", "mdt_all_mor", "secondary_index_idx_name"),
        ],
    ),
)
def test_log_blocks_say_what_those_of_real_hudi_say(golden: Golden, version: str, name: str, index: str) -> None:
    """Cell by cell the same bytes, and delete blocks with the same entries to the byte, in whatever order."""
    ours = GoldenRows.open(golden(version, name).table)
    rows = record_rows(ours) if index == "record_index" else secondary_rows(ours)
    recorded = dict(ours.replay(rows))
    seen = 0
    for instant, number, block, content in blocks_of(ours, index):
        changes = recorded[instant][number]
        seen += 1
        if block.type is BlockType.DELETE:
            keys = [key.encode() for key in delete_columns(content, path="").column("key").to_pylist()]
            assert content == encode_natural_deletes(pa.array(keys, pa.binary()), index)
            assert sorted(keys) == sorted(key for key, value in changes.items() if value == GONE)
        else:
            cells = dict(HFileReader.of_bytes(content, "").items())
            assert cells == {key: value for key, value in changes.items() if value != GONE}
            assert block.schema == ours.schema
    assert seen > 0 or "compacted" in name


@pytest.mark.parametrize("version", ["8", "9"])
def test_odd_keys_and_values_of_a_table_without_partitions(written: Path, version: str) -> None:
    """Null, empty, separators, escapes, NUL and characters beyond U+FFFF, as keys and as values."""
    ours = GoldenRows.open(written / f"keys_v{version}")
    found = pairs(ours, ours.begin(secondary_rows(ours, "word", "secondary_index_word")))
    assert found == pairs_of_real_hudi(ours, "secondary_index_word")
    assert any(key.startswith("\0$") for keys in found for key in keys)
    held, _ = replayed(ours, record_rows(ours))
    assert locations(ours, held) == dict(open_written(written, f"keys_v{version}").metadata.record_index.all())


def test_a_record_index_by_data_partition(written: Path) -> None:
    ours = GoldenRows.open(written / "partitioned_v9")
    real = open_written(written, "partitioned_v9").metadata.record_index
    groups = RecordGroups({name: len(part.groups) for name, part in real.parts.items()})
    ids = {
        path.name[1:].split("_")[0]
        for path in (ours.path / ".hoodie/metadata/record_index").glob(".record-index-*.log.1_0-0-0")
    }
    assert set(groups.file_ids()) == ids
    held, _ = replayed(ours, RecordIndexRows(groups, ours.schema, ours.table.config.timezone))
    codec, rules = ours.codec(), RecordIndexRules(ours.table.config.timezone)
    shards = iter(held)
    for name in sorted(real.parts, key=str):
        for group in real.parts[name].groups:
            found = {key: rules.decode(*codec.decode(key, value), path="ours") for key, value in next(shards).items()}
            assert found == group.all()
    assert sum(map(len, held)) > 10


WITHOUT_INDEX = (
    "insert_overwrite_table",
    "insert_overwrite_partition_cow",
    "insert_overwrite_partition_mor",
    "clustered_cow",
    "clustered_mor",
    "delete_partition_mor",
    "mor_compacted",
    "mor_log_only",
    "mor_parquet_log",
    "bucket_index_mor",
    "global_index_partition_change",
    "non_partitioned_mor",
    "only_deletes_mor",
    "rolled_back_mor",
    "complex_keygen",
)


@pytest.mark.parametrize(
    ("version", "name"),
    tiered(
        [(version, name) for version in ("6", "8", "9") for name in WITHOUT_INDEX],
        [
            ("6", "delete_partition_mor"),
            ("6", "insert_overwrite_table"),
            ("6", "only_deletes_mor"),
            ("6", "rolled_back_mor"),
            ("8", "clustered_mor"),
            ("8", "global_index_partition_change"),
            ("8", "insert_overwrite_partition_mor"),
            ("8", "mor_log_only"),
            ("9", "bucket_index_mor"),
            ("9", "mor_compacted"),
            ("9", "mor_parquet_log"),
        ],
    ),
)
def test_what_commits_tell_is_where_the_rows_of_the_snapshot_are(golden: Golden, version: str, name: str) -> None:
    """Overwrites, clusterings, moved keys, inserts in log files, log blocks that were rolled back: of tables without a
    record index.
    """
    metadata_snapshot = open_table(golden(version, name))
    ours = GoldenRows.open(metadata_snapshot.path)
    rows = RecordIndexRows(RecordGroups({None: 7}), ours.schema, ours.table.config.timezone)
    held, _ = replayed(ours, rows)
    found = {key: (place.partition, place.file_id) for key, place in locations(ours, held).items()}
    columns = ("_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name")
    expected = {
        row[columns[0]]: (row[columns[1]], row[columns[2]].split("_")[0])
        for row in metadata_snapshot.snapshot.select(columns).to_pylist()
    }
    assert found == expected
    again = {key: (place.partition, place.file_id) for key, place in locations(ours, ours.begin(rows)).items()}
    assert again == expected
