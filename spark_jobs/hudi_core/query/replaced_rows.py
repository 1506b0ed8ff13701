"""Replaced rows in incremental queries, an open point of RFC-18: they are reported on request (docs/decisions/0006).

Besides the rows that the commits of the range wrote, such a query returns every row of the file groups that overwrites
and dropped partitions of the range replaced, as the replacecommit found it, with the replacecommit's instant as
`_hoodie_commit_time` and true in `_hoodie_is_deleted`. A consumer applies the deletes of an instant before its writes:
a key that was overwritten is in both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from hudi_core.engine.protocol import Json
from hudi_core.model.meta_fields import COMMIT_TIME, IS_DELETED

REPLACED_BY: Final = "replaced_by"
"""In a split: the instant that replaced its rows, None for rows that the range wrote.

In what splits share: whether the two are distinguished.
"""


def flagged(batches: Iterator[pa.RecordBatch], split: Json, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of a split, marked; `schema` is that of the batches without the flag."""
    instant = split.get(REPLACED_BY)
    for batch in batches:
        columns = [batch.column(field.name).cast(field.type) for field in schema if field.name != IS_DELETED]
        names = [name for name in schema.names if name != IS_DELETED]
        count = batch.num_rows
        if instant is not None and COMMIT_TIME in names:
            columns[names.index(COMMIT_TIME)] = pa.array([instant] * count, pa.string())
        if (
            instant is None
            and IS_DELETED in batch.schema.names
            and pa.types.is_boolean(batch.schema.field(IS_DELETED).type)
        ):
            flags = batch.column(IS_DELETED).fill_null(False)
        else:
            flags = pa.repeat(pa.scalar(instant is not None), count)
        yield pa.RecordBatch.from_arrays([*columns, flags], names=[*names, IS_DELETED])
