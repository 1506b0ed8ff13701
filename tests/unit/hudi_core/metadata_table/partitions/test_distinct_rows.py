from __future__ import annotations

import pyarrow as pa
import pytest

from hudi_core.engine.exchange import SHARD_ROWS
from hudi_core.errors import ConflictError
from hudi_core.metadata_table.partitions.distinct_rows import GONE, distinct_rows, is_gone


def batches(rows: list[tuple[bytes, bytes]], size: int) -> list[pa.RecordBatch]:
    parts = [rows[start : start + size] for start in range(0, len(rows), size)]
    return [
        pa.RecordBatch.from_arrays([list(column) for column in zip(*part, strict=True)], schema=SHARD_ROWS)
        for part in parts
    ]


def distinct(rows: list[tuple[bytes, bytes]], size: int) -> list[tuple[bytes, bytes]]:
    found = distinct_rows(iter(batches(rows, size)), conflict=lambda key: ConflictError(f"two records of {key!r}"))
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
    (batch,) = batches([(b"a", b"1"), (b"b", GONE)], 2)
    assert is_gone(batch).to_pylist() == [False, True]
    assert list(distinct_rows(iter([batch.slice(0, 0)]), conflict=ConflictError)) == []
