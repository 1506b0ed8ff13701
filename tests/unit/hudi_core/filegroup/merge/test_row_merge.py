"""Rows of the store merged with each other and with base rows: which pairs, and which columns the results have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_core.filegroup.merge import row_merge
from hudi_core.filegroup.merge.ordering_values import Ordering
from hudi_core.filegroup.merge.payload_store import PayloadStore
from hudi_core.filegroup.merge.row_merge import FULL, RowMerger
from hudi_core.filegroup.merge.table_policy import Fill, MergePolicy, Rules
from hudi_core.filegroup.merge.user_mergers import register_merger
from hudi_core.filegroup.merge.winning_version import Kind, Step

SCHEMA = pa.schema([("key", pa.string()), ("a", pa.int64()), ("b", pa.int64())])
PARTIAL = frozenset({"key", "a"})
"""The columns of a partial-update block: rows hold null in `b`."""


def batch(*rows: tuple[str, int | None, int | None]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


@pytest.fixture
def store() -> Iterator[PayloadStore]:
    with closing(PayloadStore(SCHEMA, budget=1 << 20)) as made:
        yield made


def merger_of(store: PayloadStore, **policy: Any) -> RowMerger:
    chosen = MergePolicy(("key",), (), **{"rules": Rules.COMMIT_TIME, **policy})
    return RowMerger(SCHEMA, chosen, Ordering(()), store)


def add(merger: RowMerger, store: PayloadStore, rows: pa.RecordBatch, partial: frozenset[str] | None = None) -> None:
    store.append(rows)
    merger.note(rows.num_rows, partial)


def ints(*values: int) -> Any:
    return np.array(values, dtype=np.int64)


def test_rows_before_the_first_partial_block_have_all_columns(store: PayloadStore) -> None:
    merger = merger_of(store)
    add(merger, store, batch(("x", 1, 1), ("y", 2, 2)))
    assert merger.patterns_of(ints(0, 1)).tolist() == [FULL, FULL]
    add(merger, store, batch(("x", 3, None)), PARTIAL)
    add(merger, store, batch(("y", 4, 4)))
    full, partial, later = merger.patterns_of(ints(1, 2, 3)).tolist()
    assert (full, later) == (FULL, FULL)
    assert partial != FULL


@pytest.mark.parametrize("rows_at_once", [1, 1000])
def test_a_partial_winner_is_filled_from_the_row_below(
    store: PayloadStore, rows_at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_merge, "_ROWS", rows_at_once)
    merger = merger_of(store)
    add(merger, store, batch(("x", 1, 10), ("y", 2, 20)))
    add(merger, store, batch(("x", 3, None), ("y", 4, None)), PARTIAL)
    rows, kinds = merger.merge_stored(ints(0, 1), ints(2, 3), np.array([True, True]))
    assert store.take(rows).to_pylist() == batch(("x", 3, 10), ("y", 4, 20)).to_pylist()
    assert merger.patterns_of(rows).tolist() == [FULL, FULL]
    assert kinds.tolist() == [Kind.RECORD, Kind.RECORD]


def test_a_whole_winner_is_kept_as_it_is(store: PayloadStore) -> None:
    merger = merger_of(store)
    add(merger, store, batch(("x", 1, None)), PARTIAL)
    add(merger, store, batch(("x", 2, None)))
    rows, _ = merger.merge_stored(ints(0, 1), ints(1, 0), np.array([True, False]))
    assert rows.tolist() == [1, 1]
    assert store.rows == 2, "nothing was appended"


def test_base_rows_are_merged_with_partial_rows_alone(store: PayloadStore) -> None:
    merger = merger_of(store)
    add(merger, store, batch(("x", 2, 2)))
    add(merger, store, batch(("y", 3, None)), PARTIAL)
    both = np.array([True, True])
    assert not merger.always
    assert merger.needed(Step(both, both), ints(0, 1)).tolist() == [False, True]
    assert merger.needed(Step(np.array([True, False]), both), ints(1, 1)).tolist() == [True, False]
    merged, deleted = merger.merge_base(batch(("y", 1, 7)), ints(1), np.array([True]))
    assert merged.to_pylist() == batch(("y", 3, 7)).to_pylist()
    assert deleted.tolist() == [False]


def test_a_fill_merges_whole_rows(store: PayloadStore) -> None:
    merger = merger_of(store, fill=Fill.NULL)
    add(merger, store, batch(("x", 1, 10), ("x", None, 20)))
    assert merger.always
    step = Step(np.array([True, False]), np.array([True, False]))
    assert merger.needed(step, ints(0, 1)).tolist() == [True, False]
    rows, _ = merger.merge_stored(ints(0), ints(1), np.array([True]))
    assert store.take(rows).to_pylist() == batch(("x", 1, 20)).to_pylist()


def test_a_function_deletes_rows_in_the_logs_and_in_the_base(store: PayloadStore) -> None:
    def larger(older: pa.RecordBatch, newer: pa.RecordBatch) -> tuple[pa.RecordBatch, Any]:
        return newer, pc.greater(older.column("a"), newer.column("a")).to_numpy(zero_copy_only=False)

    register_merger("tests.larger", larger)
    merger = merger_of(store, rules=Rules.FUNCTION, function="tests.larger")
    add(merger, store, batch(("x", 5, 1), ("x", 4, 2), ("y", 1, 1), ("y", 2, 2)))
    rows, kinds = merger.merge_stored(ints(0, 2), ints(1, 3), np.array([True, True]))
    assert kinds.tolist() == [Kind.FLAGGED, Kind.RECORD]
    assert store.take(rows).to_pylist() == batch(("x", 4, 2), ("y", 2, 2)).to_pylist()
    merged, deleted = merger.merge_base(batch(("x", 9, 9)), ints(1), np.array([True]))
    assert merged.num_rows == 1
    assert deleted.tolist() == [True]
