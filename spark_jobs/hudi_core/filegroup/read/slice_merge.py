"""The merge of a file slice: its base rows with what its log files hold of each key (HoodieMergeHandle of 0.15,
FileGroupReaderBasedMergeHandle and HoodieFileGroupReader of 1.x), for readers and compaction. The logs are merged in
merge.log_merge, a batch of base rows with them in merge.base_merge.

Memory: `budget` bytes of log records, beyond which they lie in memory-mapped files; for every log record its key, its
ordering value and 9 bytes (17 with positions); an eighth of the budget of base rows, and the merged copy of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass

import pyarrow as pa

from hudi_core.codec.log.blocks import LogBlock
from hudi_core.codec.log.positions import RecordPositions, decode_positions
from hudi_core.filegroup.merge.base_merge import BaseMerger, MergeCounts
from hudi_core.filegroup.merge.log_merge import LogRecords
from hudi_core.filegroup.merge.ordering_values import Ordering
from hudi_core.filegroup.merge.table_policy import MergePolicy
from hudi_core.filegroup.read.base_file import History
from hudi_core.filegroup.read.log_records import merge_logs
from hudi_core.filegroup.read.log_scan import ScanResult
from hudi_core.model.names import parse_base_file
from hudi_core.storage.base import Storage

GROUP_SHARE = 8
"""A group of base batches whose keys are looked up at once takes up at most this part of the memory budget."""


@dataclass(frozen=True)
class SliceMerge:
    """A slice whose log files are read: `records` is what they hold of each key."""

    records: LogRecords
    _merger: BaseMerger
    _budget: int

    @property
    def counts(self) -> MergeCounts:
        return self._merger.counts

    def rows(self, base: Iterable[pa.RecordBatch], *, batch_rows: int, group_rows: int = 1) -> Iterator[pa.RecordBatch]:
        """The merged slice: base rows in their order, then rows that only the logs have, `batch_rows` in a batch."""
        yield from self.merged(base, group_rows=group_rows)
        yield from self.inserts(batch_rows)

    def merged(self, base: Iterable[pa.RecordBatch], *, group_rows: int = 1) -> Iterator[pa.RecordBatch]:
        """Base rows, in the schema of the log records, merged with what the logs hold of their keys. Keys are looked up
        for `group_rows` base rows per log record at once, as far as memory allows: every look-up hashes all keys of the
        logs.
        """
        for group in grouped(base, rows=group_rows * len(self.records), max_bytes=self._budget // GROUP_SHARE):
            yield from self._merger.apply(group)

    def pass_over(self, rows: int) -> None:
        """Counts the next base rows, of which the logs hold no version, and which were not merged."""
        self._merger.pass_over(rows)

    def inserts(self, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """After all base rows: rows that only the logs have, fewer in a batch where they are wide."""
        share = self._budget // GROUP_SHARE
        yield from self._merger.inserts(max(1, min(batch_rows, share // max(1, self.records.store.row_bytes))))


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
        merger = BaseMerger(records, policy, ordering, path=base or "", first_only=first_only, visible=visible)
        yield SliceMerge(records, merger, budget)


def grouped(
    batches: Iterable[pa.RecordBatch], *, rows: int | None = None, max_bytes: int
) -> Iterator[list[pa.RecordBatch]]:
    """Batches in groups of about `rows` rows, None for any number, but of no more than `max_bytes` and one batch."""
    group: list[pa.RecordBatch] = []
    held_rows = held_bytes = 0
    for batch in batches:
        group.append(batch)
        held_rows += batch.num_rows
        held_bytes += batch.nbytes
        if held_bytes >= max_bytes or (rows is not None and held_rows >= rows):
            yield group
            group, held_rows, held_bytes = [], 0, 0
    if group:
        yield group


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
    found = tuple(decode_positions(block.record_positions or "", path=block.path) for block in blocks)
    return found if all(positions.count for positions in found) else None
