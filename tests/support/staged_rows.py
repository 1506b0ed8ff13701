"""Rows of a record index, staged as the tasks of an exchange stage them."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.engine.exchange import SHARD_ROWS
from hudi_core.engine.local import LocalEngine
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.metadata_table.partition_type import RECORD_INDEX
from hudi_core.metadata_table.partitions.row_exchange import LOG_BYTES
from hudi_core.metadata_table.partitions.row_indexes import RecordIndexRows
from hudi_core.metadata_table.partitions.row_level import RecordGroups
from hudi_core.metadata_table.read.file_group import latest_slices
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.staged_logs import StagedLog, Workers
from tests.support.metadata_records import Table

FILE_ID = "0b5ad9f1-6a3c-4f3c-9d0e-3c1b5b6c7d80-0"
BATCH = 1 << 16


def staged_rows(
    table: Table,
    instant: str,
    place: str,
    keys: pa.Array,
    *,
    came: bool = True,
    limit: int = LOG_BYTES,
    batch: int = BATCH,
) -> list[StagedLog]:
    """Staged blocks of record keys (string) that came to the data partition `place`, or went; a log file ends when it
    has `limit` bytes.
    """
    metadata_timeline = MetadataTimeline(table.storage, table.config)
    timeline, features = metadata_timeline.active.load(), metadata_timeline.features
    ids = [item.file_id for item in latest_slices(table.storage, timeline, RECORD_INDEX, layout=features.layout)]
    target = Workers(LocalEngine(1), 1, str(table.path), {}).staging_target(metadata_timeline, instant)
    rows = RecordIndexRows(RecordGroups({None: len(ids)}), target.schema, "UTC")
    found = rows.came(place, FILE_ID, instant, keys) if came else rows.went(place, keys)
    staged: list[StagedLog] = []
    for shard, file_id in enumerate(ids):
        mine = found.filter(pc.equal(found.column(0), shard)).sort_by("key")
        staged += target.stage(
            RECORD_INDEX,
            file_id,
            _batches(mine, batch),
            TaskAttempt(shard, 1, 0),
            conflict=rows.conflict,
            limit=limit,
        )
    return staged


def _batches(rows: pa.RecordBatch, size: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, rows.num_rows, size):
        piece = rows.slice(start, size)
        yield pa.RecordBatch.from_arrays([piece.column(1), piece.column(2)], schema=SHARD_ROWS)
