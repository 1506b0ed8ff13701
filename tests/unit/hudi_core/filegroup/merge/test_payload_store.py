from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_core.errors import ExecutionError
from hudi_core.filegroup.merge.payload_store import PayloadStore

SCHEMA = pa.schema([("number", pa.int64()), ("texts", pa.list_(pa.string()))])


def batch(start: int, count: int) -> pa.RecordBatch:
    """Rows that name their own number."""
    numbers = range(start, start + count)
    return pa.record_batch(
        [pa.array(numbers), pa.array([[str(number)] * (number % 3) for number in numbers])], schema=SCHEMA
    )


@settings(max_examples=60, deadline=None)
@given(sizes=st.lists(st.integers(0, 20), max_size=10), budget=st.sampled_from([1, 500, 4000, 1 << 20]), data=st.data())
def test_rows_come_back_in_any_order(sizes: list[int], budget: int, data: st.DataObject) -> None:
    with closing(PayloadStore(SCHEMA, budget=budget)) as store:
        for size in sizes:
            assert store.append(batch(store.rows, size)) == store.rows - size
        requested = data.draw(st.lists(st.integers(0, store.rows - 1), max_size=40)) if store.rows else []
        found = store.take(np.array(requested, dtype=np.int64))
        assert found.schema == SCHEMA
        assert found["number"].to_pylist() == requested
        assert found["texts"].to_pylist() == [[str(number)] * (number % 3) for number in requested]


def test_rows_within_the_budget_stay_in_memory_and_more_go_to_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with closing(PayloadStore(SCHEMA, budget=1 << 20)) as store:
        store.append(batch(0, 100))
        assert store.take(np.array([5]))["number"].to_pylist() == [5]
        assert (store.spilled_bytes, list(tmp_path.iterdir())) == (0, [])
    with closing(PayloadStore(SCHEMA, budget=1000)) as store:
        for start in range(0, 1000, 100):
            store.append(batch(start, 100))
        store.append(batch(1000, 3))
        assert store.take(np.array([999, 0, 1002]))["number"].to_pylist() == [999, 0, 1002]
        assert store.spilled_bytes > 10_000
        assert list(tmp_path.glob("hudi-log-records-*/*.arrow"))
    assert list(tmp_path.iterdir()) == []


def test_spilling_takes_what_was_kept_before_along() -> None:
    with closing(PayloadStore(SCHEMA, budget=20_000)) as store:
        for start in range(0, 5000, 50):
            store.append(batch(start, 50))
            assert store.take(np.array([start]))["number"].to_pylist() == [start]
        numbers = np.arange(4999, -1, -7)
        assert store.take(numbers)["number"].to_pylist() == numbers.tolist()


def test_no_room_to_spill_is_an_execution_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with (
        closing(PayloadStore(SCHEMA, budget=1)) as store,
        pytest.raises(ExecutionError, match="gone"),
    ):
        store.append(batch(0, 10))
