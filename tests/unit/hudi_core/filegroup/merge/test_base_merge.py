from __future__ import annotations

import pyarrow as pa
import pytest

from hudi_core.filegroup.merge.base_merge import BaseMerger, MergeCounts
from hudi_core.filegroup.merge.log_merge import LogMerger, LogRecords
from hudi_core.filegroup.merge.ordering_values import Ordering
from hudi_core.filegroup.merge.table_policy import MergePolicy, Rules

SCHEMA = pa.schema([("key", pa.string()), ("ts", pa.int64()), ("value", pa.string())])
AVRO = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": name, "type": ["null", kind]}
        for name, kind in zip(SCHEMA.names, ("string", "long", "string"), strict=True)
    ],
}
POLICY = MergePolicy(("key",), ("ts",), Rules.EVENT_TIME)
ORDERING = Ordering.of(POLICY, AVRO, path="p")


def batch(*rows: tuple[str, int, str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


def logs(*rows: tuple[str, int, str]) -> LogRecords:
    merger = LogMerger(SCHEMA, POLICY, ORDERING, budget=1 << 20)
    merger.add_records(batch(*rows), path="log", partial=None)
    return merger.finish()


def merged(base: list[pa.RecordBatch], records: LogRecords, **options: bool) -> tuple[list[str], MergeCounts]:
    merger = BaseMerger(records, POLICY, ORDERING, path="base", **options)
    found = [*merger.apply(base), *merger.inserts(10)]
    return [value for rows in found for value in rows.column("value").to_pylist()], merger.counts


def test_rows_are_replaced_kept_and_inserted_in_their_order() -> None:
    base = [batch(("a", 1, "a1"), ("b", 9, "b9")), batch(("c", 1, "c1"))]
    values, counts = merged(base, logs(("c", 2, "c2"), ("b", 2, "b2"), ("d", 1, "d1")))
    assert values == ["a1", "b9", "c2", "d1"]
    assert counts == MergeCounts(base=3, updated=1, kept=1, inserted=1)
    assert counts.written == 4


@pytest.mark.parametrize(("first_only", "expected"), [(False, ["a2", "a2"]), (True, ["a2", "a1"])])
def test_a_base_file_may_hold_a_key_twice(first_only: bool, expected: list[str]) -> None:
    """A writer merges each of the rows, a reader the first."""
    values, _ = merged([batch(("a", 1, "a1")), batch(("a", 1, "a1"))], logs(("a", 2, "a2")), first_only=first_only)
    assert values == expected


def test_without_logs_nothing_changes() -> None:
    values, counts = merged([batch(("a", 1, "a1"))], logs())
    assert (values, counts) == (["a1"], MergeCounts(base=1))
