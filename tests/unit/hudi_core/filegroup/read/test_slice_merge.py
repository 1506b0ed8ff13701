"""How much of the base rows a merge looks up at once; what it returns is tested by its users: test_slice_reader and
tests of compaction.
"""

from __future__ import annotations

import pyarrow as pa

from hudi_core.filegroup.read.slice_merge import grouped


def test_groups_respect_rows_and_bytes() -> None:
    batches = [pa.record_batch([pa.array(range(10))], ["a"]) for _ in range(5)]
    assert [len(group) for group in grouped(iter(batches), rows=25, max_bytes=1 << 20)] == [3, 2]
    assert [len(group) for group in grouped(iter(batches), rows=100, max_bytes=100)] == [2, 2, 1]
    assert [len(group) for group in grouped(iter(batches), rows=0, max_bytes=1)] == [1] * 5
    assert list(grouped(iter([]), rows=1, max_bytes=1)) == []
