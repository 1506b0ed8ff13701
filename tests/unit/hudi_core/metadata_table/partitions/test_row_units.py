"""Records of the indexes of rows, made many at a time, are those that single ones are, and one key has one."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator

import pyarrow as pa
import pytest

from hudi_core.codec.hashing import file_group_index
from hudi_core.codec.hfile.reader import HFileReader
from hudi_core.codec.log.blocks import BlockType, LogBlock
from hudi_core.codec.log.content import decode_delete_block
from hudi_core.codec.log.frames import walk
from hudi_core.config.versions import SUPPORTED, V6, V8, V9, TableVersion
from hudi_core.engine.exchange_rows import SHARD_ROWS
from hudi_core.engine.serializer import from_text, to_text
from hudi_core.errors import ExecutionError, TimelineError, UnsupportedError
from hudi_core.metadata_table.initialize.new_table import stored_schema
from hudi_core.metadata_table.keys import secondary_hashed_part, secondary_key, secondary_prefix
from hudi_core.metadata_table.partitions.distinct_rows import GONE, distinct_rows
from hudi_core.metadata_table.partitions.group_content import base_cells, log_contents
from hudi_core.metadata_table.partitions.record_groups import RecordGroups
from hudi_core.metadata_table.partitions.record_index import RecordIndexRows, location_datum
from hudi_core.metadata_table.partitions.secondary_index import SecondaryIndexRows, pair_keys, prefixes, value_texts
from hudi_core.metadata_table.read.record_index import RecordIndexRules, RecordLocation
from hudi_core.metadata_table.read.secondary_index import SecondaryIndexRules
from hudi_core.metadata_table.record import MetadataCodec

FILE_ID = "9edb754e-98e8-450a-8273-ba65f475f266"


@pytest.mark.parametrize(
    ("file_id", "is_uuid"),
    [
        (FILE_ID, True),
        (f"{FILE_ID}-0", True),
        (f"{FILE_ID}-2147483647", True),
        (f"{FILE_ID}-2147483648", False),
        (f"{FILE_ID}-00", False),
        (f"{FILE_ID}--1", False),
        (f"{FILE_ID}-x", False),
        (FILE_ID.upper(), False),
        ("00000003-98e8-450a-8273-ba65f475f266-0", True),
        ("any-name", False),
        ("", False),
    ],
)
@pytest.mark.parametrize("version", SUPPORTED)
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_a_place_is_read_back_to_the_letter(version: TableVersion, file_id: str, is_uuid: bool, zone: str) -> None:
    rows = RecordIndexRows(RecordGroups({None: 3}), stored_schema(version), zone)
    for instant in ("20261120225335920", "20260329023000001", "22001231000000999"):
        batch = rows.came("p/q", file_id, instant, pa.array(["k"]))
        name, datum = MetadataCodec(stored_schema(version), path="f").decode(b"k", batch.column(2)[0].as_py())
        found = RecordIndexRules(zone).decode(name, datum, path="f")
        assert found == RecordLocation("p/q", file_id, instant)
    body = location_datum("p", file_id, "20261120225335920", zone)["recordIndexMetadata"]
    assert (body["fileIdEncoding"] == 0) == is_uuid


def test_an_instant_of_seconds_ends_with_its_second() -> None:
    assert location_datum("", FILE_ID, "20261120225335", "UTC")["recordIndexMetadata"]["instantTime"] == 1795215215999
    with pytest.raises(TimelineError):
        location_datum("", FILE_ID, "00000000000000", "UTC")


def test_rows_go_to_the_file_groups_of_their_keys_and_partitions() -> None:
    keys = [str(uuid.UUID(int=number << 90)) for number in range(200)]
    schema = stored_schema(V9)
    whole = RecordIndexRows(RecordGroups({None: 7}), schema, "UTC")
    assert whole.went("p", pa.array(keys)).column(0).to_pylist() == [file_group_index(key, 7) for key in keys]
    parts = RecordIndexRows(RecordGroups({"a": 2, "b": 3}), schema, "UTC")
    again = from_text(RecordIndexRows, to_text(parts))
    assert again == parts
    found = parts.came("b", FILE_ID, "20261120225335920", pa.array(keys))
    assert found.column(0).to_pylist() == [2 + file_group_index(key, 3) for key in keys]
    assert found.column(1).to_pylist() == [key.encode() for key in keys]
    with pytest.raises(UnsupportedError, match="32768 bytes"):
        parts.went("a", pa.array(["x" * 32768]))


VALUES = ["", "a", "a$b", "\\", "$", "\\$", "\0", "a\0b", "ä$", "x\\\\$y", None]


def test_pairs_of_many_rows_are_those_of_single_ones() -> None:
    keys = ["k", "k$1", "\\k", "k\0", "", "ü", "a,b", "a:b", "$", "\\\\", "k"]
    starts = prefixes(pa.array(VALUES, pa.string()))
    assert starts.to_pylist() == [secondary_prefix(value) for value in VALUES]
    assert pair_keys(starts, pa.array(keys)).to_pylist() == [
        secondary_key(value, key) for value, key in zip(VALUES, keys, strict=True)
    ]


@pytest.mark.parametrize(("version", "by_value"), [(V8, False), (V9, True)])
def test_pairs_go_to_the_file_groups_of_values_or_of_keys(version: TableVersion, by_value: bool) -> None:
    schema = stored_schema(version)
    rows = SecondaryIndexRows("secondary_index_x", "x", 10, schema, by_value)
    assert from_text(SecondaryIndexRows, to_text(rows)) == rows
    keys = [f"k{number}" for number in range(len(VALUES))]
    batch = rows.from_rows(pa.array(VALUES, pa.string()), pa.array(keys), came=True)
    expected = [secondary_key(value, key) for value, key in zip(VALUES, keys, strict=True)]
    assert batch.column(1).to_pylist() == [key.encode() for key in expected]
    assert batch.column(0).to_pylist() == [
        file_group_index(secondary_hashed_part(key) if by_value else key, 10) for key in expected
    ]
    name, datum = MetadataCodec(schema, path="f").decode(b"x", batch.column(2)[0].as_py())
    assert SecondaryIndexRules().decode(name, datum, path="f") is True
    assert set(rows.from_rows(pa.array(VALUES), pa.array(keys), came=False).column(2).to_pylist()) == {GONE}


def test_values_that_releases_print_differently_are_refused() -> None:
    assert value_texts(pa.array([1, -5, None], pa.int64()), "c").to_pylist() == ["1", "-5", None]
    for kind in (
        pa.float64(),
        pa.date32(),
        pa.timestamp("us"),
        pa.decimal128(9, 2),
        pa.bool_(),
        pa.binary(),
        pa.list_(pa.string()),
    ):
        with pytest.raises(UnsupportedError, match=r"column 'c\.d'"):
            value_texts(pa.nulls(1, kind), "c.d")


def batches(rows: list[tuple[bytes, bytes]], size: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        yield pa.RecordBatch.from_arrays(
            [pa.array(list(column), pa.binary()) for column in zip(*part, strict=True)], schema=SHARD_ROWS
        )
        yield pa.RecordBatch.from_pylist([], schema=SHARD_ROWS)


def no_conflict(key: bytes) -> ExecutionError:
    return ExecutionError(f"conflict of {key!r}")


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_one_row_of_each_key_is_left_and_records_win(size: int) -> None:
    source = random.Random(size)
    rows, expected = [], {}
    for number in range(300):
        key = f"{number:04d}".encode()
        values = source.choice(
            [[b"x"], [GONE], [GONE, b"x"], [b"x", GONE], [b"y", b"y"], [GONE, GONE], [GONE, b"z", GONE, b"z"]]
        )
        rows += [(key, value) for value in values]
        expected[key] = max(values)
    found = [
        row
        for batch in distinct_rows(batches(rows, size), conflict=no_conflict)
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    ]
    assert found == sorted(expected.items())
    assert list(distinct_rows(iter([]), conflict=no_conflict)) == []


@pytest.mark.parametrize("size", [1, 2, 1000])
def test_two_places_of_one_key_are_an_error_that_names_it(size: int) -> None:
    rows = [(b"a", b"1"), (b"b", GONE), (b"b", b"1"), (b"b", b"2"), (b"c", b"1")]
    index = RecordIndexRows(RecordGroups({None: 1}), stored_schema(V6), "UTC")
    with pytest.raises(UnsupportedError, match="'b' is in two file groups"):
        list(distinct_rows(batches(rows, size), conflict=index.conflict))


def blocks_in(data: bytes) -> list[LogBlock]:
    found = list(walk(lambda start, length: data[start : start + length], len(data), "log"))
    assert all(isinstance(block, LogBlock) for block in found)
    return [block for block in found if isinstance(block, LogBlock)]


def content_of(block: LogBlock, data: bytes) -> bytes:
    return data[block.content_offset : block.content_offset + block.content_length]


TYPES = (BlockType.HFILE_DATA, BlockType.DELETE)


@pytest.mark.parametrize("limit", [1 << 20, 1])
def test_log_files_hold_records_then_deletions(limit: int) -> None:
    """A file group gets one, or as many as it takes for each to stay small."""
    schema = stored_schema(V8)
    index = RecordIndexRows(RecordGroups({None: 1}), schema, "UTC")
    value = index.came("p", FILE_ID, "20261120225335920", pa.array(["k"])).column(2)[0].as_py()
    rows = [(f"{number:07d}".encode(), GONE if number % 3 == 0 else value * 50) for number in range(3000)]
    found = list(
        log_contents(
            "record_index",
            batches(rows, 500),
            "20261120225335999",
            schema,
            conflict=index.conflict,
            hudi_1_headers=True,
            limit=limit,
        )
    )
    assert (len(found) == 1) is (limit > 1)
    assert (sum(item.records for item in found), sum(item.deletions for item in found)) == (2000, 1000)
    cells, deleted = [], []
    for item in found:
        blocks = blocks_in(item.data)
        assert [block.type for block in blocks] == [
            kind for kind, count in zip(TYPES, (item.records, item.deletions), strict=True) if count
        ]
        assert {(block.instant_time, block.schema) for block in blocks} == {("20261120225335999", schema)}
        for block in blocks:
            content = content_of(block, item.data)
            if block.type is BlockType.DELETE:
                deleted += [
                    (entry.key, entry.partition, entry.ordering) for entry in decode_delete_block(content, path="log")
                ]
            else:
                cells += HFileReader.of_bytes(content, "log").items()
    assert cells == [row for row in rows if row[1] != GONE]
    assert deleted == [(key.decode(), "record_index", ("int", 0)) for key, held in rows if held == GONE]


def test_nothing_to_say_is_no_log_file() -> None:
    index = RecordIndexRows(RecordGroups({None: 1}), stored_schema(V9), "UTC")
    contents = log_contents(
        "record_index", iter([]), "20261120225335999", stored_schema(V9), conflict=index.conflict, hudi_1_headers=True
    )
    assert list(contents) == []
    assert list(base_cells(index, iter([]))) == []


def test_an_index_begins_without_deletions() -> None:
    index = RecordIndexRows(RecordGroups({None: 1}), stored_schema(V9), "UTC")
    assert [batch.num_rows for batch in base_cells(index, batches([(b"a", b"1"), (b"b", b"1")], 9))] == [1, 1]
    with pytest.raises(ExecutionError, match="begin with a deletion"):
        list(base_cells(index, batches([(b"a", GONE)], 9)))
