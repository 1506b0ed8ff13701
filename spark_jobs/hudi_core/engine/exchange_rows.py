"""The rows that cross an engine's exchange (engine.protocol.Engine.exchange): a shard, a key and a value each."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.errors import ExecutionError

ROWS = pa.schema([("shard", pa.int32()), ("key", pa.binary()), ("value", pa.binary())])
"""What a producer yields; no column holds nulls."""
SHARD_ROWS = pa.schema([("key", pa.binary()), ("value", pa.binary())])
"""What a consumer of one shard gets."""


def exchange_rows(shards: pa.Array, keys: pa.Array, values: pa.Array) -> pa.RecordBatch:
    """A batch of ROWS from an int32 array and two binary ones."""
    return pa.RecordBatch.from_arrays([shards, keys, values], schema=ROWS)


def check_rows(batch: pa.RecordBatch, shards: int) -> pa.RecordBatch:
    """A producer's batch as it is.

    Raises ExecutionError when it has another schema, holds nulls, or names a shard that does not exist.
    """
    if not isinstance(batch, pa.RecordBatch) or not batch.schema.equals(ROWS):
        found = batch.schema if isinstance(batch, pa.RecordBatch) else type(batch).__name__
        raise ExecutionError(f"a producer gave rows of another form than {ROWS.names}: {found}")
    if any(column.null_count for column in batch.columns):
        raise ExecutionError("a producer gave rows with nulls")
    if batch.num_rows:
        ends = pc.min_max(batch.column(0)).as_py()
        if ends["min"] < 0 or ends["max"] >= shards:
            raise ExecutionError(f"a producer named the shards {ends['min']} to {ends['max']}; there are {shards}")
    return batch
