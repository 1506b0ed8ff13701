"""Runs one operation of a log compaction's plan: copies the newest version of each row from the log files of a file
slice into one log file (LogCompactionExecutionHelper of 0.15, FileGroupReaderBasedAppendHandle of 1.1 and later).

The merge loop of readers folds the versions. The winning version is copied as it is, with its commit time, ordering
value and schema. A reader goes on from it. So there is no log compaction where a merge makes a new row of two.

Peak memory of a task: the key, the ordering value and 17 bytes of every log record, in memory-mapped files beyond
`airflow_hudi.memory.bytes`; one decoded piece of a block; and the memory of filegroup.write.log_copy.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hudi_core.codec.avro.arrow import arrow_schema
from hudi_core.codec.avro.schema import add_meta_fields
from hudi_core.codec.log.blocks import BlockType, HeaderKey, LogBlock
from hudi_core.codec.log.delete_columns import delete_columns
from hudi_core.codec.log.positions import RecordPositions
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.errors import ExecutionError, UnsupportedError
from hudi_core.filegroup.merge.log_merge import LogRecords, merge_columns
from hudi_core.filegroup.merge.ordering_values import Ordering, greater, nulls
from hudi_core.filegroup.merge.winning_version import Kind
from hudi_core.filegroup.read.log_records import PIECE_BYTES, block_content, has_operations, merge_logs
from hudi_core.filegroup.read.log_scan import ScanResult, scan_log_files
from hudi_core.filegroup.read.slice_reader import block_positions
from hudi_core.filegroup.read.torn_tails import pass_over_torn_tails
from hudi_core.filegroup.write.log_copy import LogCopy
from hudi_core.filegroup.write.markers import check_attempt, create_marker, log_marker
from hudi_core.frozen import dataclass
from hudi_core.model.names import LogFileName, WriteToken, parse_base_file, parse_data_file, parse_log_file, spelled
from hudi_core.model.partition import check_file_name, check_partition, join
from hudi_core.services.compaction.block_order import BlockOrder
from hudi_core.services.rewriting.new_file_groups import statistics_of
from hudi_core.services.rewriting.proof import OperationResult
from hudi_core.services.rewriting.slice_rows import SliceTarget
from hudi_core.storage.arrow_store import open_data_storage
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.timeline.actions.compaction import LOG_BYTES, CompactionOperation
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.transaction.reconcile import OWN_ATTEMPTS
from hudi_core.view.file_group import DataFile

_SOURCE: Final = "log compaction unit"
_COPIED: Final = frozenset({BlockType.AVRO_DATA, BlockType.DELETE})


@dataclass(frozen=True, slots=True)
class LogCompactionUnit:
    """One operation of the plan. `order` says which blocks may come in between."""

    target: SliceTarget
    operation: CompactionOperation
    order: BlockOrder


@dataclass(frozen=True, slots=True)
class MergedLogs(OperationResult):
    """The result of an operation. Each of the `keys` in the logs is one of the `records` or `deletes`."""

    keys: int = 0
    records: int = 0
    deletes: int = 0


def merge_operation(unit: LogCompactionUnit, attempt: TaskAttempt) -> MergedLogs:
    """Merges the log files of one file slice (UnitTask of log compaction). Writes the marker first, then the log file
    under a name of this attempt. Raises HudiError only: StorageNotFoundError for a file of the plan that is gone,
    CorruptFileError for a broken one and for a corrupt log block (unless allowed), UnsupportedError for blocks that are
    not copied, ConflictError for blocks of a pending write that come between (BlockOrder.check), ExecutionError.
    """
    merge = _Merge(unit, attempt)
    try:
        return merge.run()
    except (pa.ArrowException, MemoryError) as error:
        raise ExecutionError(f"merging the log files failed: {error!r}", path=merge.partition) from error


def check_copied(blocks: Sequence[LogBlock]) -> None:
    """Raises UnsupportedError for a block whose records are not copied here."""
    for block in blocks:
        if block.type not in _COPIED or block.is_partial or has_operations([block]):
            what = "partial rows" if block.is_partial else f"a block of type {block.type.name}"
            what = f"change operations ({block.type.name})" if has_operations([block]) else what
            raise UnsupportedError(
                f"log compaction copies no log file with {what}", path=block.path, remedy="compact the table instead"
            )


class _Merge:
    def __init__(self, unit: LogCompactionUnit, attempt: TaskAttempt) -> None:
        self.unit = unit
        self.files, self.policy = unit.target.files, unit.target.rules(unit.operation.file_id)
        self.instant = check_file_name(self.files.instant, source=_SOURCE)
        self.partition = check_partition(unit.operation.partition, source=_SOURCE)
        self.names = [check_file_name(name, source=_SOURCE) for name in unit.operation.log_files]
        self.storage: Storage = open_data_storage(unit.target.uri, unit.target.storage_options)
        self.token = WriteToken(attempt.partition_id, attempt.stage_id, OWN_ATTEMPTS + attempt.attempt_id)

    def run(self) -> MergedLogs:
        unit, committed, started = self.unit, self.unit.target.committed, time.perf_counter()
        names = sorted(self.names, key=lambda name: parse_log_file(name).scan_order)
        files = [DataFile(self.partition, name, self.storage.stat(join(self.partition, name)).size) for name in names]
        scan = scan_log_files(
            self.storage, files, committed, latest_instant=self.instant, stop_at_newer=not self.files.as_hudi_1
        )
        corrupt = pass_over_torn_tails(self.storage, scan, allow_lost=self.files.config.allow_corrupt_log_blocks)
        if not scan.blocks:
            return MergedLogs(None, None, corrupt)
        check_copied(scan.blocks)
        merged = list(dict.fromkeys(str(block.instant_time) for block in scan.blocks))
        listed = self.storage.list_files(self.partition)
        unit.order.check(self.storage, unit.operation, listed, frozenset(merged), committed)
        name = self._name(listed)
        kind = log_marker(by_name=unit.order.by_name)
        marker = create_marker(self.storage, self.instant, self.partition, str(name), kind)
        check_attempt(self.storage, self.instant, self.token.stage_id, marker, closed=False)
        headers = {HeaderKey.INSTANT_TIME: self.instant, HeaderKey.COMPACTED_BLOCK_TIMES: ",".join(merged)}
        base = unit.operation.base_file
        positions = block_positions(scan.blocks, base, self.policy)
        instant = None if positions is None or base is None else parse_base_file(base).instant
        with LogCopy(self.storage, join(self.partition, str(name)), headers, positions_instant=instant) as copy:
            records = self._folded(scan, positions)
            with closing(records.store):
                scanned = time.perf_counter()
                self._copy(scan, records, copy, positions)
            size = copy.close()
            check_attempt(self.storage, self.instant, self.token.stage_id, marker, closed=True)
        if copy.records + copy.deletes != len(records):
            raise ExecutionError(
                f"the logs hold {len(records)} keys, but {copy.records} records and {copy.deletes} deletes were copied",
                path=copy.path,
            )
        scan_ms, write_ms = int((scanned - started) * 1000), int((time.perf_counter() - scanned) * 1000)
        stat = self._stat(name, scan, records, copy, size, sum(file.size for file in files), scan_ms, write_ms)
        statistics = statistics_of(self.storage, stat, self.files.requirements, is_base=False)
        return MergedLogs(stat, statistics, corrupt, len(records), copy.records, copy.deletes)

    def _name(self, listed: Sequence[FileInfo]) -> LogFileName:
        """Returns the name of the next log file of the slice; in layout 2, of the first log file of the instant."""
        operation = self.unit.operation
        if self.unit.order.by_name:
            return LogFileName(operation.file_id, self.instant, 1, self.token)
        versions = [
            name.version
            for name in (parse_data_file(info.name) for info in listed)
            if isinstance(name, LogFileName)
            and (name.file_id, name.instant) == (operation.file_id, operation.base_instant)
        ]
        return LogFileName(operation.file_id, operation.base_instant, max(versions, default=0) + 1, self.token)

    def _folded(self, scan: ScanResult, positions: Sequence[RecordPositions] | None) -> LogRecords:
        """Returns the winning version of each key, or base row. Its row number counts the rows of all data blocks."""
        schema, file_id = self.files.schema, self.unit.operation.file_id
        self.ordering = Ordering.of(self.policy, schema, path=file_id)
        columns = arrow_schema(add_meta_fields(schema), path=file_id)
        names = spelled(merge_columns(self.policy, self.ordering), columns.names)
        seen = pa.schema([column for column in columns if column.name in names])
        budget = self.files.config.memory_bytes
        return merge_logs(self.storage, scan, seen, self.policy, self.ordering, budget=budget, positions=positions)

    def _copy(
        self, scan: ScanResult, records: LogRecords, copy: LogCopy, positions: Sequence[RecordPositions] | None
    ) -> None:
        kept = np.sort(records.rows[records.rows >= 0])
        first = 0
        block_of, entry_of = self._entries(scan, records, positions)
        for number, block in enumerate(scan.blocks):
            named = None if positions is None else positions[number].rows(positions[number].count)
            entries = np.sort(entry_of[block_of == number])
            if block.type is BlockType.AVRO_DATA:
                here = kept[np.searchsorted(kept, first) :] - first
                first += copy.copy_records(block, here, piece_bytes=PIECE_BYTES, positions=named)
            elif len(entries):
                copy.copy_deletes(block, entries, named)

    def _entries(
        self, scan: ScanResult, records: LogRecords, positions: Sequence[RecordPositions] | None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns the last block's and entry's numbers for keys, or positions, whose newest version is a delete."""
        places = np.flatnonzero(records.rows < 0)
        keys = records.keys.take(pa.array(places)) if records.positions is None else pa.array(records.positions[places])
        block_of = np.full(len(places), -1, dtype=np.int64)
        entry_of = block_of.copy()
        for number, block in enumerate(scan.blocks):
            if block.type is not BlockType.DELETE or not len(places):
                continue
            columns = delete_columns(block_content(self.storage, block), path=block.path)
            named = (
                columns.column("key").combine_chunks().cast(keys.type)
                if positions is None
                else pa.array(positions[number].rows(columns.num_rows))
            )
            at = pc.index_in(named, value_set=keys).fill_null(-1).to_numpy()
            natural, values = self.ordering.of_deletes(columns)
            hits = np.flatnonzero(at >= 0)
            hits = hits[self._is_version(records, places[at[hits]], natural[hits], values.take(pa.array(hits)))]
            block_of[at[hits]], entry_of[at[hits]] = number, hits
        if (block_of < 0).any():
            lost = keys[int(np.flatnonzero(block_of < 0)[0])].as_py()
            raise ExecutionError(f"no delete entry is the newest version of key {lost!r}", path=self.partition)
        return block_of, entry_of

    def _is_version(
        self, records: LogRecords, places: NDArray[np.int64], natural: NDArray[np.bool_], values: pa.Array
    ) -> NDArray[np.bool_]:
        """Returns whether each delete entry is the version that the fold has left of its key, at `places`."""
        kept = records.ordering.take(pa.array(places))
        same = ~greater(kept, values) & ~greater(values, kept) & (nulls(kept) == nulls(values))
        is_natural = records.kinds[places] == Kind.NATURAL_DELETE
        matches: NDArray[np.bool_] = (natural == is_natural) & (natural | same)
        return matches

    def _stat(
        self,
        name: LogFileName,
        scan: ScanResult,
        records: LogRecords,
        copy: LogCopy,
        size: int,
        log_bytes: int,
        scan_ms: int,
        write_ms: int,
    ) -> WriteStat:
        operation, by_name = self.unit.operation, self.unit.order.by_name
        earlier = () if by_name else tuple(reversed(operation.log_files))
        return WriteStat(
            file_id=operation.file_id,
            path=copy.path,
            partition_path=self.partition,
            prev_commit=operation.base_instant,
            num_writes=copy.records,
            num_deletes=copy.deletes,
            num_update_writes=copy.records,
            num_inserts=0,
            file_size_in_bytes=size,
            total_write_bytes=size,
            total_log_records=records.record_count,
            total_log_files_compacted=scan.counts.files,
            total_log_size_compacted=int(operation.metrics.get(LOG_BYTES, log_bytes)),
            total_updated_records_compacted=len(records),
            total_log_blocks=scan.counts.blocks,
            total_corrupt_log_block=scan.counts.corrupt,
            total_rollback_blocks=scan.counts.rolled_back,
            total_scan_time_ms=scan_ms,
            total_upsert_time_ms=write_ms,
            log_version=name.version,
            log_offset=0,
            base_file="" if by_name else operation.base_file or "",
            log_files=(*earlier, str(name)),
            extra={"numUpdates": 0, "totalLogReadTimeMs": scan_ms} if by_name else {},
        )
