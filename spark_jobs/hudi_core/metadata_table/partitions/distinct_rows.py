"""Deduplicates by key the rows that an exchange brought to one file group (HoodieTableMetadataUtil.reduceByKeys).

A record that moves is deleted in one file group and inserted in another, so its key occurs twice: the new location is
kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hudi_core.engine.exchange import SHARD_ROWS
from hudi_core.errors import HudiError

GONE: Final = b""
"""The value of a key that is deleted: an entry of a DELETE block. No record is empty."""
_GONE: Final = pa.scalar(GONE, pa.binary())


def distinct_rows(
    batches: Iterator[pa.RecordBatch], *, conflict: Callable[[bytes], HudiError]
) -> Iterator[pa.RecordBatch]:
    """The rows of a shard (sorted by key) with each key once: of several the one that is no deletion.

    Raises what `conflict` makes of a key that comes with two records. Memory: a batch, and the rows of one key.
    """
    held: pa.RecordBatch | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        rows = batch if held is None else _joined(held, batch)
        keys = rows.column(0)
        starts = np.flatnonzero(
            np.r_[True, pc.not_equal(keys.slice(1), keys.slice(0, rows.num_rows - 1)).to_numpy(zero_copy_only=False)]
        )
        # The last key may go on in the next batch.
        held = rows.slice(int(starts[-1]))
        if len(starts) > 1:
            yield _one_each(rows.slice(0, int(starts[-1])), starts[:-1], conflict)
    if held is not None:
        yield _one_each(held, np.zeros(1, dtype=np.int64), conflict)


def is_gone(batch: pa.RecordBatch) -> pa.Array:
    """Which rows (key, value) are deletions."""
    return pc.equal(batch.column(1), _GONE)


def _one_each(
    rows: pa.RecordBatch, starts: NDArray[np.int64], conflict: Callable[[bytes], HudiError]
) -> pa.RecordBatch:
    if len(starts) == rows.num_rows:
        return rows
    values, count = rows.column(1), rows.num_rows
    current = pc.not_equal(values, _GONE).to_numpy(zero_copy_only=False)
    first = np.minimum.reduceat(np.where(current, np.arange(count), count), starts)
    chosen = np.where(first < count, first, starts)
    owner = np.repeat(chosen, np.diff(np.r_[starts, count]))
    others = np.flatnonzero(current & (np.arange(count) != owner))
    if len(others):
        differs = pc.not_equal(values.take(pa.array(others)), values.take(pa.array(owner[others]))).to_numpy(
            zero_copy_only=False
        )
        if differs.any():
            raise conflict(rows.column(0)[int(others[int(np.argmax(differs))])].as_py())
    return rows.take(pa.array(chosen))


def _joined(first: pa.RecordBatch, second: pa.RecordBatch) -> pa.RecordBatch:
    columns = [pa.concat_arrays([first.column(index), second.column(index)]) for index in range(len(SHARD_ROWS))]
    return pa.RecordBatch.from_arrays(columns, schema=SHARD_ROWS)
