from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_core.config.rows_config import Payload
from hudi_core.errors import CorruptFileError
from hudi_core.filegroup.merge.base_merge import MergeCounts, SliceMerge, grouped
from hudi_core.filegroup.merge.log_merge import LogMerger, LogRecords
from hudi_core.filegroup.merge.ordering_values import Ordering
from hudi_core.filegroup.merge.table_policy import FILL_OF, Fill, MergePolicy, Rules

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
    merger = SliceMerge(records, POLICY, ORDERING, path="base", budget=1 << 30, **options)
    found = [*merger.merged(base), *merger.inserts(10)]
    return [value for rows in found for value in rows.column("value").to_pylist()], merger.counts


def test_rows_are_replaced_kept_and_inserted_in_their_order() -> None:
    base = [batch(("a", 1, "a1"), ("b", 9, "b9")), batch(("c", 1, "c1"))]
    values, counts = merged(base, logs(("c", 2, "c2"), ("b", 2, "b2"), ("d", 1, "d1")))
    assert values == ["a1", "b9", "c2", "d1"]
    assert counts == MergeCounts(base=3, updated=1, kept=1, inserted=1)
    assert counts.written == 4


def test_each_row_that_is_changed_is_told() -> None:
    """With its key, and with the row before and after, also where a merge makes one row of two."""
    told: list[tuple[Any, ...]] = []

    def values(rows: pa.RecordBatch | None, count: int) -> list[Any]:
        return [None] * count if rows is None else rows.column("value").to_pylist()

    def on_change(keys: pa.Array, before: pa.RecordBatch | None, after: pa.RecordBatch | None) -> None:
        told.extend(zip(keys.to_pylist(), values(before, len(keys)), values(after, len(keys)), strict=True))

    filling = replace(POLICY, fill=Fill.NULL)
    for policy, filled in ((POLICY, None), (filling, "b1")):
        merger = LogMerger(SCHEMA, policy, ORDERING, budget=1 << 20)
        merger.add_records(batch(("b", 2, None), ("c", 0, "c0"), ("e", 1, "e1")), path="log")
        merger.add_deletes(pa.array(["d", "x"]), np.ones(2, np.bool_), pa.nulls(2, pa.int64()), path="log")
        merge = SliceMerge(merger.finish(), policy, ORDERING, path="base", budget=1 << 30, on_change=on_change)
        rows = [("a", 1, "a1"), ("b", 1, "b1"), ("c", 1, "c1"), ("d", 1, "d1")]
        merge.pass_over(1)
        assert sum(rows.num_rows for rows in merge.rows([batch(*rows[1:])], batch_rows=10)) == 3
        kept = [("c", "c1", "c1")] if filled else []
        assert sorted(told) == [("b", "b1", filled), *kept, ("d", "d1", None), ("e", None, "e1")]
        assert len(told) == merge.counts.updated + merge.counts.deleted + merge.counts.inserted
        told.clear()


@pytest.mark.parametrize(("first_only", "expected"), [(False, ["a2", "a2"]), (True, ["a2", "a1"])])
def test_a_base_file_may_hold_a_key_twice(first_only: bool, expected: list[str]) -> None:
    """A writer merges each of the rows, a reader the first."""
    values, _ = merged([batch(("a", 1, "a1")), batch(("a", 1, "a1"))], logs(("a", 2, "a2")), first_only=first_only)
    assert values == expected


def at_positions(positions: list[int], *rows: tuple[str, int, str], deleted: tuple[int, ...] = ()) -> LogRecords:
    """One block of records, and of deletes of key d, each with its positions."""
    merger = LogMerger(SCHEMA, POLICY, ORDERING, budget=1)
    merger.add_records(batch(*rows), path="log", partial=None)
    merger.add_positions(np.array(positions))
    if deleted:
        natural = np.ones(len(deleted), dtype=np.bool_)
        merger.add_deletes(pa.array(["d"] * len(deleted)), natural, pa.nulls(len(deleted), pa.int64()), path="log")
        merger.add_positions(np.array(deleted))
    return merger.finish()


def later_than(ts: int) -> Callable[[pa.RecordBatch], pa.Array]:
    return lambda rows: pc.greater(rows.column("ts"), ts)


ROWS = [("a", 1, "a1"), ("d", 1, "d1"), ("a", 9, "a9"), ("a", 2, "a2"), ("d", 2, "d2"), ("a", 3, "a3")]


@pytest.mark.parametrize("size", [1, 2, 6])
def test_records_with_positions_are_merged_with_these_rows(size: int) -> None:
    """Each of them on its own terms; a row of the same key that none names stays."""
    base = [batch(*ROWS[start : start + size]) for start in range(0, 6, size)]
    records = at_positions([0, 2, 5], ("a", 5, "a5"), ("a", 5, "a5"), ("a", 6, "a6"), deleted=(1, 4))
    values, counts = merged(base, records)
    assert values == ["a5", "a9", "a2", "a6"]
    assert counts == MergeCounts(base=6, updated=2, kept=1, deleted=2)


def test_the_newest_version_at_each_position_counts() -> None:
    merger = LogMerger(SCHEMA, POLICY, ORDERING, budget=1)
    for positions, ts in ([0, 2], 5), ([2, 3], 4), ([3], 7):
        merger.add_records(batch(*[("a", ts, f"a{ts}")] * len(positions)), path="log", partial=None)
        merger.add_positions(np.array(positions))
    records = merger.finish()
    assert records.positions is not None
    assert (records.positions.tolist(), records.keys.to_pylist()) == ([0, 2, 3], ["a", "a", "a"])
    values, _ = merged([batch(*ROWS)], records)
    assert values == ["a5", "d1", "a9", "a7", "d2", "a3"]


def test_rows_that_are_passed_over_or_hidden_have_their_positions() -> None:
    records = at_positions([3], ("a", 5, "a5"))
    merger = SliceMerge(records, POLICY, ORDERING, path="base", budget=1 << 30)
    merger.pass_over(2)
    assert [found.column("value").to_pylist() for found in merger.merged([batch(*ROWS[2:])])] == [
        ["a9", "a5", "d2", "a3"]
    ]
    merger = SliceMerge(
        records, POLICY, ORDERING, path="base", budget=1 << 30, visible=lambda rows: pc.greater(rows.column("ts"), 1)
    )
    assert [found.column("value").to_pylist() for found in merger.merged([batch(*ROWS)])] == [["a9", "a5", "d2", "a3"]]
    merger = SliceMerge(
        records, POLICY, ORDERING, path="base", budget=1 << 30, visible=lambda rows: pc.greater(rows.column("ts"), 2)
    )
    found = [*merger.merged([batch(*ROWS)]), *merger.inserts(10)]
    assert [rows.column("value").to_pylist() for rows in found] == [["a9", "a3"], ["a5"]]


def test_the_row_of_another_key_is_not_replaced() -> None:
    """Hudi does not compare them, and puts one row in the place of another."""
    with pytest.raises(
        CorruptFileError, match=r"row 4 has the key 'd', a log record for this row 'a' .*=false"
    ) as found:
        merged([batch(*ROWS[:3]), batch(*ROWS[3:])], at_positions([3, 4], ("a", 5, "a5"), ("a", 5, "a5")))
    assert found.value.path == "base"


def test_without_logs_nothing_changes() -> None:
    values, counts = merged([batch(("a", 1, "a1"))], logs())
    assert (values, counts) == (["a1"], MergeCounts(base=1))


Rows = list[tuple[str, int, str]]


def nested(policy: MergePolicy, kind: str, base: Rows, log: Rows) -> list[str]:
    """The values after a merge of rows whose ordering value is `meta.ts`."""
    inner = {"type": "record", "name": "m", "fields": [{"name": "ts", "type": kind}]}
    avro = {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": name, "type": ["null", of], "default": None}
            for name, of in (("key", "string"), ("meta", inner), ("value", "string"))
        ],
    }
    struct = pa.struct([("ts", pa.int32() if kind == "int" else pa.int64())])
    schema = pa.schema([("key", pa.string()), ("meta", struct), ("value", pa.string())])

    def rows(of: Rows) -> pa.RecordBatch:
        found = [{"key": key, "meta": {"ts": ts}, "value": value} for key, ts, value in of]
        return pa.RecordBatch.from_pylist(found, schema=schema)

    ordering = Ordering.of(policy, avro, path="p")
    merger = LogMerger(schema, policy, ordering, budget=1 << 20)
    merger.add_records(rows(log), path="log", partial=None)
    applied = SliceMerge(merger.finish(), policy, ordering, path="base", budget=1 << 30)
    found = [*applied.merged([rows(base)]), *applied.inserts(10)]
    return [value for part in found for value in part.column("value").to_pylist()]


@pytest.mark.parametrize(
    ("rules", "payload", "kind", "expected"),
    [
        (Rules.EVENT_TIME, Payload.LATEST, "long", ["a5", "b9", "c9"]),
        (Rules.PAYLOAD_0_15, Payload.DEFAULT, "long", ["a4", "b7", "c2"]),
        (Rules.PAYLOAD_0_15, Payload.DEFAULT, "int", ["a4", "b7", "c2"]),
        (Rules.PAYLOAD_0_15, Payload.LATEST, "long", ["a3", "b7", "c2"]),
        (Rules.PAYLOAD_0_15, Payload.PARTIAL_UPDATE, "long", ["a3", "b7", "c2"]),
        (Rules.PAYLOAD_0_15, Payload.PARTIAL_UPDATE, "int", ["a4", "b1", "c2"]),
    ],
)
def test_hudi_0_15_orders_by_a_field_of_a_struct_only_against_the_base(
    rules: Rules, payload: Payload, kind: str, expected: list[str]
) -> None:
    """Log records go by arrival (SpillableMapUtils.getPreCombineVal); PartialUpdateAvroPayload keeps its int 0."""
    policy = MergePolicy(("key",), ("meta.ts",), rules, payload, FILL_OF.get(payload, Fill.NOTHING))
    log = [("a", 5, "a5"), ("b", 9, "b9"), ("c", 9, "c9"), ("a", 3, "a3"), ("b", 7, "b7"), ("c", 2, "c2")]
    assert nested(policy, kind, [("a", 4, "a4"), ("b", 1, "b1")], log) == expected


def test_groups_respect_rows_and_bytes() -> None:
    batches = [pa.record_batch([pa.array(range(10))], ["a"]) for _ in range(5)]
    assert [len(group) for group in grouped(iter(batches), rows=25, max_bytes=1 << 20)] == [3, 2]
    assert [len(group) for group in grouped(iter(batches), rows=100, max_bytes=100)] == [2, 2, 1]
    assert [len(group) for group in grouped(iter(batches), rows=0, max_bytes=1)] == [1] * 5
    assert list(grouped(iter([]), rows=1, max_bytes=1)) == []


def test_rows_that_only_logs_have_come_in_batches_of_an_eighth_of_the_budget() -> None:
    records = logs(*((f"{number:02}", number, "x" * 96) for number in range(40)))
    for budget, rows in ((80 * records.store.row_bytes, 10), (1 << 20, 20), (1, 1)):
        merge = SliceMerge(records, POLICY, ORDERING, path="base", budget=budget)
        assert {found.num_rows for found in merge.inserts(20)} == {rows}
