"""The content of a row-level index's file groups: one row of each key, log files and base files."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pyarrow as pa
import pytest

from hudi_core.codec.hfile.reader import HFileReader
from hudi_core.codec.log.blocks import BlockType, LogBlock, walk
from hudi_core.codec.log.content import decode_delete_block
from hudi_core.config.versions import V6, V8, V9
from hudi_core.engine.exchange import SHARD_ROWS
from hudi_core.errors import ConflictError, ExecutionError, UnsupportedError
from hudi_core.metadata_table.partitions.row_exchange import base_cells, distinct_rows, is_gone, log_contents
from hudi_core.metadata_table.partitions.row_indexes import RecordIndexRows
from hudi_core.metadata_table.partitions.row_level import RecordGroups
from hudi_core.metadata_table.record import GONE, stored_schema

FILE_ID = "9edb754e-98e8-450a-8273-ba65f475f266"


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
    found = distinct_rows(batches(rows, size), conflict=None)
    assert [row for batch in found for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)] == [
        (b"a", b"1"),
        (b"b", b"1"),
        (b"c", b"1"),
    ]


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


def test_no_rows_make_no_log_file() -> None:
    index = RecordIndexRows(RecordGroups({None: 1}), stored_schema(V9), "UTC")
    contents = log_contents("record_index", iter([]), "20261120225335999", stored_schema(V9), conflict=index.conflict)
    assert list(contents) == []
    assert list(base_cells(index, iter([]))) == []


def test_an_index_is_initialized_without_deletions() -> None:
    index = RecordIndexRows(RecordGroups({None: 1}), stored_schema(V9), "UTC")
    assert [batch.num_rows for batch in base_cells(index, batches([(b"a", b"1"), (b"b", b"1")], 9))] == [1, 1]
    with pytest.raises(ExecutionError, match="initialized with a deletion"):
        list(base_cells(index, batches([(b"a", GONE)], 9)))


def distinct(rows: list[tuple[bytes, bytes]], size: int) -> list[tuple[bytes, bytes]]:
    found = distinct_rows(batches(rows, size), conflict=lambda key: ConflictError(f"two records of {key!r}"))
    return [tuple(row.values()) for batch in found for row in batch.to_pylist()]


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_a_record_wins_over_the_deletion_of_its_key(size: int) -> None:
    rows = [(b"a", b"1"), (b"b", GONE), (b"b", b"2"), (b"c", b"3"), (b"c", GONE), (b"d", GONE), (b"d", GONE)]
    assert distinct(rows, size) == [(b"a", b"1"), (b"b", b"2"), (b"c", b"3"), (b"d", GONE)]


@pytest.mark.parametrize("size", [1, 2, 100])
def test_two_records_of_one_key(size: int) -> None:
    assert distinct([(b"a", b"1"), (b"a", b"1")], size) == [(b"a", b"1")]
    with pytest.raises(ConflictError, match="two records of b'a'"):
        distinct([(b"a", b"1"), (b"a", GONE), (b"a", b"2")], size)


def test_deletions() -> None:
    batch, _ = batches([(b"a", b"1"), (b"b", GONE)], 2)
    assert is_gone(batch).to_pylist() == [False, True]
    assert list(distinct_rows(iter([batch.slice(0, 0)]), conflict=ConflictError)) == []
