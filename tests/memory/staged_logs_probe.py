"""Publishes staged blocks, or stages them, in a process of its own and prints the peak of anonymous memory as JSON.

Arguments: the table's folder, an instant, what to do (`publish` or `stage`), and the files or the rows.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from hudi_core.engine.exchange import SHARD_ROWS
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.metadata_table.partition_type import RECORD_INDEX
from hudi_core.metadata_table.partitions.row_exchange import LOG_BYTES
from hudi_core.metadata_table.partitions.row_indexes import RecordIndexRows
from hudi_core.metadata_table.partitions.row_level import RecordGroups
from hudi_core.metadata_table.read.file_group import latest_slices
from hudi_core.metadata_table.record import stored_schema
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.delta_writer import DeltaWriter
from hudi_core.metadata_table.write.staged_logs import StagedLog, StagingTarget, staging_folder
from tests.support.metadata_records import TOKEN, Table
from tests.support.peak_memory import measured
from tests.support.staged_rows import FILE_ID

BATCH = 50_000


def publish(table: Table, instant: str, files: int) -> int:
    """Publishes `files` staged log files of LOG_BYTES each; what is in them makes no difference here."""
    metadata_timeline = MetadataTimeline(table.storage, table.config)
    place = latest_slices(
        table.storage, metadata_timeline.active.load(), RECORD_INDEX, layout=metadata_timeline.features.layout
    )[0]
    content = np.random.default_rng(0).bytes(LOG_BYTES)
    logs = [
        StagedLog(place.file_id, f"{staging_folder(instant, 1)}/{number}", 1, 0, LOG_BYTES) for number in range(files)
    ]
    for log in logs:
        table.storage.write(log.path, content)
    _, peak, _ = measured(lambda: DeltaWriter(metadata_timeline, TOKEN).write_alone(instant, {}, {RECORD_INDEX: logs}))
    return peak


def stage(table: Table, instant: str, rows: int) -> int:
    """Stages the records of `rows` record keys of one file group."""
    schema = stored_schema(table.config.features)
    index = RecordIndexRows(RecordGroups({None: 1}), schema, "UTC")

    def batches() -> Iterator[pa.RecordBatch]:
        rng = np.random.default_rng(0)
        for start in range(0, rows, BATCH):
            tails = rng.integers(0, 1 << 63, BATCH, dtype=np.int64)
            keys = pa.array([f"{start + number:012d}-{tail:019d}" for number, tail in enumerate(tails.tolist())])
            found = index.came("p", FILE_ID, instant, keys)
            yield pa.RecordBatch.from_arrays([found.column(1), found.column(2)], schema=SHARD_ROWS)

    target = StagingTarget(str(table.path), {}, instant, schema, staging_folder(instant, 1))

    def work() -> int:
        staged = target.stage(
            RECORD_INDEX,
            "record-index-0000-0",
            batches(),
            TaskAttempt(0, 1, 0),
            conflict=index.conflict,
            limit=LOG_BYTES // 16,
        )
        return sum(log.size for log in staged)

    size, peak, _ = measured(work)
    assert size > 5 * (LOG_BYTES // 16)
    return peak


def main(folder: str, instant: str, what: str, count: int) -> None:
    """Runs one of the two."""
    work = {"publish": publish, "stage": stage}[what]
    table = Table(Path(folder))
    print(json.dumps({"peak": work(table, instant, count)}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
