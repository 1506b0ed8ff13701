"""Reads a file slice as rows, for readers and compaction: the base file alone, or merged with the log records of each
key (HoodieMergeHandle and HoodieMergeOnReadSnapshotRelation of 0.15, FileGroupReaderBasedMergeHandle and
HoodieFileGroupReader of 1.x). merge.log_merge merges the logs, merge.base_merge a batch of base rows with them.

Memory: a budget of bytes of log records, beyond which they lie in memory-mapped files; for every log record its key,
its ordering value and 9 bytes (17 with positions); an eighth of the budget of base rows, and the merged copy of a
batch; a sixteenth of a decoded block; 8 MiB of small log files.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cached_property

import pyarrow as pa

from hudi_core.codec.log.blocks import CorruptBlock, LogBlock
from hudi_core.codec.log.positions import RecordPositions, decode_positions
from hudi_core.config.rows_config import MEMORY_BYTES, QUERY_MEMORY_BYTES, STRICT
from hudi_core.filegroup.merge.base_merge import GROUP_SHARE, SliceMerge
from hudi_core.filegroup.merge.log_merge import merge_columns
from hudi_core.filegroup.merge.ordering_values import Ordering
from hudi_core.filegroup.merge.table_policy import MergePolicy, reads_as_hudi_1
from hudi_core.filegroup.read.base_file import History, RowChoice, read_base_file
from hudi_core.filegroup.read.log_records import has_operations, merge_logs
from hudi_core.filegroup.read.log_scan import CommittedInstants, ScanResult, scan_log_files
from hudi_core.filegroup.read.read_spec import ReaderSpec, RowFilter, of_commit_times
from hudi_core.frozen import dataclass
from hudi_core.model.names import OPERATION, parse_base_file
from hudi_core.storage.base import Storage
from hudi_core.view.file_group import DataFile, FileSlice


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
    """Reads the log blocks of `scan`, and keeps their rows until the end of the `with` block. `schema` is that of all
    rows. `base` is the path of the base file; its rows are then given from the first to the last, and merged by key or
    by position. With `first_only`, only the first of the base rows with one key is merged, as in readers. Rows that are
    not `visible` are left out. Raises CorruptFileError or UnsupportedError naming the file.
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
    """Returns the positions of each block's records in the base file of path `base`; None when records are merged by
    keys. Hudi 1.x changes to keys, for the whole slice, at the first block without positions in the slice's own base
    file (PositionBasedFileGroupRecordBuffer). Such a block is of a bucket index, of inserts, of a writer without
    positions, of a batch with two records for one row, of an older base file, or of a log compaction of Hudi. Raises
    CorruptFileError naming the log file for positions that cannot be read.
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


READ_ROWS = 64 << 10

log = logging.getLogger(__name__)


def warn_of_corrupt(block: CorruptBlock) -> None:
    log.warning("%s", block.describe())


@dataclass(frozen=True)
class SliceReader:
    """Reads slices of one query. Rows take `airflow_hudi.memory.bytes` of memory, else QUERY_MEMORY_BYTES."""

    storage: Storage
    spec: ReaderSpec
    committed: CommittedInstants | None = None
    """The instants whose log blocks count, when they are not those of the spec."""
    on_corrupt: Callable[[CorruptBlock], None] = warn_of_corrupt
    """Gets each corrupt block that is skipped, or that a rollback removed: rows may be missing."""

    def output_schema(self, columns: Sequence[str] | None = None) -> pa.Schema:
        """Returns the columns of the rows, in Spark's types: `_hoodie_*` first (unless the table has none), then the
        table's. `columns` selects; when None, the spec's columns do. Raises ConfigError for a column that the table
        lacks.
        """
        return self.spec.output.select(self.spec.columns if columns is None else columns)

    def read(
        self,
        file_slice: FileSlice,
        columns: Sequence[str] | None = None,
        *,
        row_filter: RowFilter | None = None,
        choice: RowChoice | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yields the slice's rows in output_schema(columns) that the spec and `row_filter` keep: base rows in the
        file's order, then rows that only logs have. For a slice without log files, `choice` selects rows of a Parquet
        base file; with log files, an excluded row may hide an older one. Corrupt log blocks are skipped, as in
        Hudi, unless `airflow_hudi.read.strict` makes them an error. Raises StorageNotFoundError for a missing file,
        FormatError for a file that is broken or not supported, UnsupportedError for a payload class with log files.
        """
        output = self.output_schema(columns)
        filters = [*self.spec.filters, *([] if row_filter is None else [row_filter])]
        needed = set(output.names).union(*(condition.columns for condition in filters))
        read = [name for name in self.spec.output.all.names if name in needed]
        rows = self.spec.output.select(read) if filters else output
        base = file_slice.base_file
        if self.spec.merge_logs and file_slice.log_files:
            batches = self._merged(file_slice, rows.names)
        elif base is not None:
            batches = self._base_rows(base, self.spec.output.stored_of(rows.names), self._budget, choice)
        else:
            return
        for stored in batches:
            batch = self.spec.output.finish(
                stored, file_slice.file_group.partition, rows, path=file_slice.file_group.file_id
            )
            for condition in filters:
                batch = condition.apply(batch)
            if batch.num_rows:
                yield batch if rows is output else batch.select(output.names)

    @cached_property
    def _budget(self) -> int:
        return MEMORY_BYTES.read(self.spec.options) if MEMORY_BYTES.is_set(self.spec.options) else QUERY_MEMORY_BYTES

    def _base_rows(
        self, base: DataFile, schema: pa.Schema, batch_bytes: int, choice: RowChoice | None = None
    ) -> Iterator[pa.RecordBatch]:
        history = self.spec.history
        # When a file is read by column id, the names in its footer are not the query's.
        chosen = None if history is not None else choice
        limits = {"batch_rows": READ_ROWS, "batch_bytes": batch_bytes}
        return read_base_file(self.storage, base, schema, **limits, choice=chosen, history=history)

    def _merged(self, file_slice: FileSlice, names: Collection[str]) -> Iterator[pa.RecordBatch]:
        config = self.spec.config
        policy, base = MergePolicy.for_table(config, self.spec.options), file_slice.base_file
        if self.spec.commit_times is not None and base is not None:
            # Hudi reads only the files of the range, and has no positions in a base file before it.
            in_range = parse_base_file(base.name).instant in self.spec.commit_times
            policy = replace(policy, by_position=policy.by_position and in_range)
        ordering = Ordering.of(policy, self.spec.schema, path=config.path)
        scan = self.scan(file_slice)
        stored = self.spec.output.stored
        if not policy.whole_rows:
            stored = self.spec.output.stored_of({*names, *merge_columns(policy, ordering)})
        if has_operations(scan.blocks) and OPERATION not in stored.names:
            stored = stored.append(pa.field(OPERATION, pa.string()))
        with merging(
            self.storage,
            scan,
            stored,
            policy,
            ordering,
            base=None if base is None else base.path,
            first_only=True,
            budget=self._budget,
            history=self.spec.history,
            visible=self._visible(scan),
        ) as merge:
            base_rows = () if base is None else self._base_rows(base, stored, self._budget // GROUP_SHARE)
            yield from merge.rows(base_rows, batch_rows=READ_ROWS)

    def _visible(self, scan: ScanResult) -> Callable[[pa.RecordBatch], pa.Array] | None:
        """Returns the filter of the base rows that log records are merged with: those of the range
        (incremental_filters_base). None for all rows.
        """
        times, features = self.spec.commit_times, self.spec.config.features
        if times is None or not features.incremental_filters_base or any(block.is_partial for block in scan.blocks):
            return None
        return of_commit_times(times).mask

    def scan(self, file_slice: FileSlice) -> ScanResult:
        scanned = scan_log_files(
            self.storage,
            file_slice.log_files,
            self.committed or self.spec.committed,
            latest_instant=self.spec.latest_instant,
            stop_at_newer=not reads_as_hudi_1(self.spec.config),
        )
        if STRICT.read(self.spec.options):
            scanned.refuse_corrupt()
        for block in scanned.corrupt:
            self.on_corrupt(block)
        for block in scanned.corrupt_removed:
            self.on_corrupt(replace(block, reason=f"{block.reason}; a later rollback takes it for a part of its write"))
        return scanned
