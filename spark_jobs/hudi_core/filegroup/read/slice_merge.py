"""The merge of a file slice: its base rows with what its log files hold of each key (HoodieMergeHandle of 0.15,
FileGroupReaderBasedMergeHandle and HoodieFileGroupReader of 1.x), for readers and compaction. The logs are merged in
merge.log_merge, a batch of base rows with them in merge.base_merge.

Memory: `budget` bytes of log records, beyond which they lie in memory-mapped files; for every log record its key, its
ordering value and 9 bytes (17 with positions); an eighth of the budget of base rows, and the merged copy of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager

import pyarrow as pa

from hudi_core.codec.log.blocks import LogBlock
from hudi_core.codec.log.positions import RecordPositions, decode_positions
from hudi_core.filegroup.merge.base_merge import SliceMerge
from hudi_core.filegroup.merge.ordering_values import Ordering
from hudi_core.filegroup.merge.table_policy import MergePolicy
from hudi_core.filegroup.read.base_file import History
from hudi_core.filegroup.read.log_records import merge_logs
from hudi_core.filegroup.read.log_scan import ScanResult
from hudi_core.model.names import parse_base_file
from hudi_core.storage.base import Storage


@contextmanager
def merging(
    storage: Storage,
    scan: ScanResult,
    schema: pa.Schema,
    policy: MergePolicy,
    ordering: Ordering,
    *,
    base: str | None,
    first_only: bool,
    budget: int,
    history: History | None = None,
    visible: Callable[[pa.RecordBatch], pa.Array] | None = None,
) -> Iterator[SliceMerge]:
    """Reads the log blocks of `scan`; their rows are kept until the end of the block. `schema` is that of all rows.

    `base` is the path of the base file, whose rows are then given from the first to the last, and merged by key or by
    position. `first_only`: of base rows with one key only the first is merged, as by readers. Rows that are not
    `visible` are left out. Raises CorruptFileError or UnsupportedError naming the file.
    """
    positions = block_positions(scan.blocks, base, policy)
    records = merge_logs(storage, scan, schema, policy, ordering, budget=budget, history=history, positions=positions)
    with closing(records.store):
        yield SliceMerge(
            records, policy, ordering, path=base or "", budget=budget, first_only=first_only, visible=visible
        )


def block_positions(
    blocks: Sequence[LogBlock], base: str | None, policy: MergePolicy
) -> tuple[RecordPositions, ...] | None:
    """The positions of each block's records in the base file of path `base`; None where records are merged by keys.

    Hudi 1.x goes over to keys, for the whole slice, at the first block that does not name positions in the slice's own
    base file (PositionBasedFileGroupRecordBuffer): those of a bucket index, of inserts, of a writer without positions,
    of a batch with two records for one row, of an older base file, of a log compaction of Hudi. Raises CorruptFileError
    for positions that cannot be read, naming the log file.
    """
    if base is None or not policy.by_position:
        return None
    name = parse_base_file(base.rpartition("/")[2])
    if name.extension != "parquet":
        return None
    if not all(block.record_positions and block.positions_instant == name.instant for block in blocks):
        return None
    of_blocks = tuple(decode_positions(block.record_positions or "", path=block.path) for block in blocks)
    return of_blocks if all(positions.count for positions in of_blocks) else None
