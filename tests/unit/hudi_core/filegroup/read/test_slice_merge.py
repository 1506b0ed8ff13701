"""How much of the base rows a merge looks up at once; what it returns is tested by its users: test_slice_reader and
tests of compaction.
"""

from __future__ import annotations

from contextlib import closing
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from hudi_core.filegroup.merge.payload_store import PayloadStore
from hudi_core.filegroup.read.slice_merge import SliceMerge, grouped


def test_groups_respect_rows_and_bytes() -> None:
    batches = [pa.record_batch([pa.array(range(10))], ["a"]) for _ in range(5)]
    assert [len(group) for group in grouped(iter(batches), rows=25, max_bytes=1 << 20)] == [3, 2]
    assert [len(group) for group in grouped(iter(batches), rows=100, max_bytes=100)] == [2, 2, 1]
    assert [len(group) for group in grouped(iter(batches), rows=0, max_bytes=1)] == [1] * 5
    assert list(grouped(iter([]), rows=1, max_bytes=1)) == []


def test_rows_that_only_logs_have_come_in_batches_of_an_eighth_of_the_budget() -> None:
    schema = pa.schema([("text", pa.string())])
    with closing(PayloadStore(schema, budget=1 << 20)) as store:
        store.append(pa.record_batch([pa.array(["x" * 96] * 40)], schema=schema))
        assert store.row_bytes == 100
        asked: Any = SimpleNamespace(inserts=lambda rows: iter([rows]))
        records: Any = SimpleNamespace(store=store)
        for budget, rows in ((8000, 10), (1 << 20, 50), (1, 1)):
            assert list(SliceMerge(records, asked, budget).inserts(50)) == [rows]
