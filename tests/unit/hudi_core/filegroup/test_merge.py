"""Log merge and base merge together against the reference."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_core.errors import ConfigError, CorruptFileError, UnsupportedError
from hudi_core.filegroup.base_merge import BaseMerger
from hudi_core.filegroup.merge import LogMerger, delete_flags, key_texts, merge_columns
from hudi_core.filegroup.ordering import Ordering
from hudi_core.filegroup.policy import MergePolicy
from tests.unit.hudi_core.filegroup.reference import Delete, Event, Record, Row, fold, merge

SCHEMA = pa.schema([("key", pa.string()), ("ordering", pa.int64()), ("tags", pa.list_(pa.string())), ("_hoodie_is_deleted", pa.bool_())])
ORDERING = Ordering("ordering", "long", pa.int64())
AVRO: dict[str, Any] = {"type": "record", "name": "r", "fields": [{"name": "ordering", "type": ["null", "long"]}]}


def policy(*, compare: bool) -> MergePolicy:
    """The payload that compares with the base, or the one that does not."""
    return MergePolicy("key", "ordering", compare)


def batch(rows: list[Row]) -> pa.RecordBatch:
    """Rows as a batch."""
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def row(key: str, ordering: int | None, tag: int, flagged: bool = False) -> Row:
    """A row that `tag` tells from others of its key."""
    return {"key": key, "ordering": ordering, "tags": [str(tag)] if tag % 3 else None, "_hoodie_is_deleted": flagged}


KEYS = st.sampled_from(["a", "b", "c", "d", "é", ""])
RECORDS = st.builds(
    lambda key, at, tag, flag: Record(key, at, row(key, at, tag, flag), flag), KEYS, st.integers(0, 3), st.integers(0, 99), st.booleans()
)
DELETES = st.builds(Delete, KEYS, st.none() | st.integers(-1, 4))
BLOCKS = st.lists(st.lists(RECORDS, max_size=6) | st.lists(DELETES, max_size=4), max_size=6)
BASES = st.lists(st.tuples(KEYS, st.none() | st.integers(0, 3)), max_size=12)


def run(blocks: list[list[Event]], base: list[Row], *, compare: bool, budget: int, group: int) -> tuple[list[Row], Any]:
    """The engine's merge of the same blocks and base rows."""
    rules = policy(compare=compare)
    merger = LogMerger(SCHEMA, rules, ORDERING, budget=budget)
    for block in blocks:
        records = [event.row for event in block if isinstance(event, Record)]
        if records:
            merger.add_records(batch(records), path="log")
        deletes = [event for event in block if isinstance(event, Delete)]
        if deletes:
            natural, values = ORDERING.of_deletes(pa.table({"long": pa.array([event.ordering for event in deletes], pa.int64())}))
            merger.add_deletes(pa.array([event.key for event in deletes]), natural, values, path="log")
    with merger.store:
        records = merger.finish()
        applied = BaseMerger(records, rules, ORDERING, path="base")
        batches = [batch(base[start : start + 3]) for start in range(0, len(base), 3)]
        found = []
        for start in range(0, len(batches), group):
            for merged in applied.apply(batches[start : start + group]):
                found += merged.to_pylist()
        for merged in applied.inserts(2):
            found += merged.to_pylist()
    return found, applied.counts


@settings(max_examples=120, deadline=None)
@given(blocks=BLOCKS, base=BASES, compare=st.booleans(), budget=st.sampled_from([1, 200, 1 << 20]), group=st.integers(1, 3))
def test_merge_equals_the_reference(blocks: list[list[Event]], base: list[tuple[str, int | None]], compare: bool, budget: int, group: int) -> None:
    rows = [row(key, ordering, index) for index, (key, ordering) in enumerate(base)]
    wanted = merge(rows, fold(event for block in blocks for event in block), compare_with_base=compare)
    found, counts = run(blocks, rows, compare=compare, budget=budget, group=group)
    assert found == wanted.rows, "rows and their order"
    assert counts.written == len(wanted.rows)
    for name in ("updated", "kept", "deleted", "inserted", "missed_deletes"):
        assert getattr(counts, name) == getattr(wanted, name), name


def test_several_base_rows_of_one_key_are_all_replaced() -> None:
    blocks: list[list[Event]] = [[Record("a", 1, row("a", 1, 7))]]
    found, counts = run(blocks, [row("a", 0, 1), row("b", 0, 2), row("a", 0, 3)], compare=False, budget=1 << 20, group=1)
    assert Counter(item["key"] for item in found) == {"a": 2, "b": 1}
    assert counts.updated == 2


def test_null_keys_are_refused_by_name() -> None:
    with pytest.raises(CorruptFileError, match="log-7"):
        key_texts(pa.array(["a", None]), path="log-7")
    assert key_texts(pa.array([1, -2]), path="p").to_pylist() == ["1", "-2"]
    with pytest.raises(UnsupportedError, match="double"):
        key_texts(pa.array([1.5]), path="p")


def test_null_ordering_value_is_refused() -> None:
    merger = LogMerger(SCHEMA, policy(compare=False), ORDERING, budget=1 << 20)
    with pytest.raises(ConfigError, match="ordering"):
        merger.add_records(batch([row("a", None, 1)]), path="log-7")


def test_delete_marker_column_replaces_the_flag() -> None:
    rules = MergePolicy("key", "ordering", True, "key", "D")
    assert delete_flags(batch([row("D", 1, 1), row("I", 1, 1, True)]), rules).tolist() == [True, False]
    assert delete_flags(batch([row("D", 1, 1), row("I", 1, 1, True)]), policy(compare=True)).tolist() == [False, True]
    assert merge_columns(rules, ORDERING) == {"key", "ordering"}
    nested = MergePolicy("key", "ordering", True, "tags", "D")
    with pytest.raises(UnsupportedError, match="tags"):
        delete_flags(batch([row("a", 1, 1)]), nested)


def test_delete_marker_of_a_number_column_compares_as_text() -> None:
    rules = MergePolicy("key", "ordering", True, "ordering", "2")
    assert delete_flags(batch([row("a", 2, 1), row("b", 1, 1)]), rules).tolist() == [True, False]


def test_nothing_to_merge() -> None:
    found, counts = run([], [row("a", 0, 1)], compare=True, budget=1, group=1)
    assert found == [row("a", 0, 1)]
    assert (counts.base, counts.written) == (1, 1)


@pytest.mark.parametrize(
    ("compare", "blocks", "disputed"),
    [
        (False, [[Record("a", 2, row("a", 2, 1))], [Record("a", 1, row("a", 1, 2))]], True),
        (False, [[Record("a", 1, row("a", 1, 1))], [Record("a", 1, row("a", 1, 2))]], False),
        (False, [[Record("a", 2, row("a", 2, 1))], [Delete("a", None)], [Record("a", 1, row("a", 1, 2))]], False),
        (True, [[Record("a", 2, row("a", 2, 1))], [Record("a", 1, row("a", 1, 2))]], False),
        (True, [[Delete("a", 3)], [Record("a", 1, row("a", 1, 2))]], True),
        (True, [[Delete("a", None)], [Record("a", 1, row("a", 1, 2))]], False),
    ],
)
def test_what_hudi_1_folds_otherwise_is_refused_in_tables_that_it_keeps(compare: bool, blocks: list[list[Event]], disputed: bool) -> None:
    merger = LogMerger(SCHEMA, replace(policy(compare=compare), kept_by_hudi_1=True), ORDERING, budget=1 << 20)
    for block in blocks:
        for event in block:
            if isinstance(event, Record):
                merger.add_records(batch([event.row]), path="log")
            else:
                natural, values = ORDERING.of_deletes(pa.table({"long": pa.array([event.ordering], pa.int64())}))
                merger.add_deletes(pa.array([event.key]), natural, values, path="log")
    if disputed:
        with pytest.raises(UnsupportedError, match=r"kept by Hudi 1\.x"):
            merger.finish()
    else:
        assert len(merger.finish()) == 1
    merger.store.close()
