"""Runs one operation of a compaction plan: merges a file slice into a new base file (HoodieCompactor).

Hudi 0.15 merges by its log scanner and HoodieMergeHandle, 1.x by the reader of its queries
(FileGroupReaderBasedMergeHandle). They treat two things differently: a key that the base file holds twice, and log
blocks newer than the compaction reads. Their counts differ, too.

A task needs only its unit. The options bound its peak memory, not the files: `airflow_hudi.memory.bytes` of log
records, beyond which they lie in memory-mapped temporary files; the key, the ordering value and 9 bytes of every log
record; one batch of base rows and its merged copy; one Parquet row group being written (`hoodie.parquet.block.size`); a
decoded piece of an Avro log block, whose encoded size is a sixteenth of the log records' budget (at least 8 MiB).
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pyarrow as pa

from hudi_core.codec.parquet.statistics import proleptic_version
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.errors import ExecutionError
from hudi_core.filegroup.merge.base_merge import MergeCounts, SliceMerge
from hudi_core.filegroup.merge.table_policy import Rules
from hudi_core.filegroup.write.markers import MarkerType
from hudi_core.frozen import dataclass
from hudi_core.model.names import BaseFileName, WriteToken, parse_base_file
from hudi_core.model.partition import check_file_name, check_partition, join
from hudi_core.services.rewriting.new_file_groups import DEFAULT_CODEC, FileGroupWriter
from hudi_core.services.rewriting.proof import OperationResult
from hudi_core.services.rewriting.slice_rows import SliceRows, SliceTarget, open_slice
from hudi_core.storage.arrow_store import open_data_storage
from hudi_core.timeline.actions.compaction import LOG_BYTES, CompactionOperation
from hudi_core.timeline.actions.write_stats import NULL_COMMIT, WriteStat

_SOURCE = "compaction unit"


@dataclass(frozen=True, slots=True)
class CompactionUnit:
    """One operation of the plan. `sizes` are the bytes of its log files, in its order; empty in layout 1."""

    target: SliceTarget
    operation: CompactionOperation
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class CompactedSlice(OperationResult):
    """The result of an operation. `written` counts the rows of the new file, `copied` those of copied row groups."""

    records: MergeCounts
    written: int
    copied: int = 0


def compact_operation(unit: CompactionUnit, attempt: TaskAttempt) -> CompactedSlice:
    """Compacts one file slice (UnitTask of compaction). Writes the marker first, then the base file under a name of
    this attempt. Raises HudiError only: StorageNotFoundError for a file of the plan that is gone, CorruptFileError for
    a broken one and for a corrupt log block of a completed write (torn_tails; unless allowed), UnsupportedError,
    ExecutionError when the counts of rows in and out do not agree.
    """
    operation, started = unit.operation, time.perf_counter()
    partition = check_partition(operation.partition, source=_SOURCE)
    for name in operation.log_files:
        check_file_name(name, source=_SOURCE)
    storage = open_data_storage(unit.target.uri, unit.target.storage_options)
    try:
        with ExitStack() as stack:
            with open_slice(storage, unit.target, operation, sizes=unit.sizes, compacts=True) as rows:
                base, merge, scanned = rows.base, rows.merge, time.perf_counter()
                # As in Hudi: a slice whose blocks were all rolled back is still rewritten when it has a base file, and
                # becomes no file when it has none.
                if merge is None:
                    return CompactedSlice(None, None, rows.corrupt, MergeCounts(), 0)
                replaced_codec = None if base is None else base.compression
                writer = FileGroupWriter(
                    storage,
                    unit.target.files,
                    partition,
                    operation.file_id,
                    unit.target.config.parquet_codec or replaced_codec or DEFAULT_CODEC,
                    attempt,
                    spark_version=proleptic_version([] if base is None else [base.footer]),
                    only=MarkerType.CREATE if base is None else MarkerType.MERGE,
                )
                stack.enter_context(writer)
                copied = _write(rows, merge, writer)
            (file,) = writer.close()
        stat = _stat(operation, rows, merge, file.stat, int((scanned - started) * 1000))
        return CompactedSlice(stat, file.statistics, rows.corrupt, merge.counts, merge.counts.written, copied)
    except (pa.ArrowException, MemoryError) as error:
        token = WriteToken(attempt.partition_id, attempt.stage_id, attempt.attempt_id)
        path = join(partition, str(BaseFileName(operation.file_id, token, unit.target.files.instant, "parquet")))
        raise ExecutionError(f"merging the file slice failed: {error!r}", path=path) from error


def _write(rows: SliceRows, merge: SliceMerge, writer: FileGroupWriter) -> int:
    """Streams the merged rows; returns how many were copied. Raises ExecutionError for a lost or doubled row."""
    handle, counts = writer.handle, merge.counts
    copied = rows.append_to(writer)
    expected = 0 if rows.base is None else rows.base.num_rows
    if counts.base != expected or counts.written != handle.rows:
        raise ExecutionError(
            f"read {counts.base} of {expected} base rows, deleted {counts.deleted}, inserted {counts.inserted}, "
            f"but wrote {handle.rows}",
            path=handle.path,
        )
    return copied


def _stat(
    operation: CompactionOperation, rows: SliceRows, merge: SliceMerge, new: WriteStat, scan_ms: int
) -> WriteStat:
    """Returns the write stat `new` of a new file group, with the counts of the merge."""
    target, base_name = rows.target, operation.base_file
    records, counts, scan = merge.records, merge.counts, rows.scan.counts
    as_hudi_1 = target.files.as_hudi_1
    # Entries of delete blocks that 1.x compares by ordering value are among the reported log records.
    counts_deletes = as_hudi_1 and target.rules(operation.file_id).rules is not Rules.COMMIT_TIME
    extra: dict[str, Any] = {"numUpdates": 0, "totalLogReadTimeMs": scan_ms} if as_hudi_1 else {}
    if as_hudi_1 and base_name is not None:
        extra["prevBaseFile"] = base_name
    # HoodieMergeHandle of 0.15, unlike 1.x, also counts a delete whose key the base lacks as an insert.
    counted_twice = 0 if base_name is None or as_hudi_1 else counts.missed_deletes
    return replace(
        new,
        prev_commit=NULL_COMMIT if base_name is None else parse_base_file(base_name).instant,
        num_deletes=counts.deleted + counts.missed_deletes,
        num_update_writes=counts.updated,
        num_inserts=counts.inserted + counted_twice,
        total_log_records=records.record_count + (records.delete_count if counts_deletes else 0),
        total_log_files_compacted=scan.files,
        total_log_size_compacted=int(operation.metrics.get(LOG_BYTES, rows.log_bytes)),
        total_updated_records_compacted=len(records),
        total_log_blocks=scan.blocks,
        total_corrupt_log_block=scan.corrupt,
        total_rollback_blocks=scan.rolled_back,
        total_scan_time_ms=scan_ms,
        total_upsert_time_ms=0 if base_name is None else new.total_create_time_ms,
        total_create_time_ms=new.total_create_time_ms if base_name is None else 0,
        extra=extra,
    )
