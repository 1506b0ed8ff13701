"""One operation of a compaction plan: merges a file slice's base file and log files into a new base file
(HoodieCompactor).

Hudi 0.15 merges by its log scanner and HoodieMergeHandle, 1.x by the reader of its queries
(FileGroupReaderBasedMergeHandle). They differ in what they make of a key that the base file holds twice, of log blocks
newer than the compaction reads, and in what they count.

Runs wherever the engine puts it, on what the unit says alone. Peak memory of a task is bounded by the options, not by
the files: `airflow_hudi.memory.bytes` of log records, beyond which they lie in memory-mapped temporary files; for every
log record its key, its ordering value and 9 bytes; one batch of base rows and its merged copy; one Parquet row group
being written (`hoodie.parquet.block.size`); what a sixteenth of the log records' budget (at least 8 MiB) of an Avro log
block decodes to.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hudi_core.codec.avro.schema import AvroSchema, without_meta_fields
from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.codec.parquet.statistics import proleptic_version
from hudi_core.config.rows_config import WriteConfig
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.errors import ExecutionError
from hudi_core.filegroup.merge.base_merge import GROUP_SHARE, MergeCounts, SliceMerge
from hudi_core.filegroup.merge.ordering_values import Ordering
from hudi_core.filegroup.merge.table_policy import MergePolicy, Rules
from hudi_core.filegroup.read.base_file import base_batches, open_replaced_file
from hudi_core.filegroup.read.log_scan import AFTER_ALL, CommittedInstants, ScanCounts, scan_log_files
from hudi_core.filegroup.read.slice_reader import merging
from hudi_core.filegroup.read.torn_tails import pass_over_torn_tails
from hudi_core.filegroup.write.base_file_writer import BaseFileHandle
from hudi_core.filegroup.write.markers import MarkerType, check_attempt, create_marker
from hudi_core.metadata_table.extract.data_file import StatisticsRequirements
from hudi_core.model.names import RECORD_KEY, BaseFileName, WriteToken, parse_base_file, parse_log_file
from hudi_core.model.partition import check_file_name, check_partition, join
from hudi_core.services.rewriting.new_file_groups import DEFAULT_CODEC, GROUP_ROWS, statistics_of
from hudi_core.services.rewriting.proof import OperationResult
from hudi_core.services.rewriting.row_group_copies import RowGroupPlan, RowGroups, copy_source, keys_remain
from hudi_core.storage.arrow_store import open_data_storage
from hudi_core.timeline.actions.compaction import LOG_BYTES, CompactionOperation
from hudi_core.timeline.actions.write_stats import NULL_COMMIT, WriteStat
from hudi_core.view.file_group import DataFile

_SOURCE = "compaction unit"


@dataclass(frozen=True, slots=True)
class CompactionUnit:
    """One operation of the plan at `instant`, and what its merge must know of the table. `committed` is
    CommittedInstants.of the timeline, `schema` the table's Avro schema. `as_hudi_1` is table_policy.reads_as_hudi_1 of
    the table. `requirements` are what the metadata table must know of the new file; None: nothing.
    """

    operation: CompactionOperation
    uri: str
    storage_options: Mapping[str, str]
    instant: str
    committed: CommittedInstants
    schema: AvroSchema
    policy: MergePolicy
    config: WriteConfig
    as_hudi_1: bool
    requirements: StatisticsRequirements | None = None
    sizes: tuple[int, ...] = ()
    """The bytes of the operation's log files, in its order, as listed when the plan was checked; none in layout 1."""


@dataclass(frozen=True, slots=True)
class CompactedSlice(OperationResult):
    """`written` counts the rows of the new file, `copied` those of copied row groups."""

    records: MergeCounts
    written: int
    copied: int = 0


def compact_operation(unit: CompactionUnit, attempt: TaskAttempt) -> CompactedSlice:
    """Compacts one file slice; the UnitTask of compaction. Files: the marker first, then the base file under a name of
    this attempt. Raises HudiError only: StorageNotFoundError for a file of the plan that is gone, CorruptFileError for
    a broken one and for a corrupt log block of a completed write (torn_tails; unless allowed), UnsupportedError,
    ExecutionError when the counts of rows in and out do not agree.
    """
    compaction = _Compaction(unit, attempt)
    try:
        return compaction.run()
    except (pa.ArrowException, MemoryError) as error:
        path = join(compaction.partition, compaction.name)
        raise ExecutionError(f"merging the file slice failed: {error!r}", path=path) from error


class _Compaction:
    def __init__(self, unit: CompactionUnit, attempt: TaskAttempt) -> None:
        operation = unit.operation
        self.unit = unit
        self.instant = check_file_name(unit.instant, source=_SOURCE)
        self.partition = check_partition(operation.partition, source=_SOURCE)
        self.file_id = operation.file_id
        self.base_name = operation.base_file
        self.log_names = [check_file_name(name, source=_SOURCE) for name in operation.log_files]
        self.schema = without_meta_fields(unit.schema)
        self.config = unit.config
        self.as_hudi_1 = unit.as_hudi_1
        self.storage = open_data_storage(unit.uri, unit.storage_options)
        self.epoch = attempt.stage_id
        token = WriteToken(attempt.partition_id, self.epoch, attempt.attempt_id)
        self.name = str(parse_base_file(str(BaseFileName(self.file_id, token, self.instant, "parquet"))))
        self.ordering = Ordering.of(unit.policy, self.schema, path=self.file_id)

    def run(self) -> CompactedSlice:
        started = time.perf_counter()
        files = self._log_files()
        # Hudi 0.15 ends the scan at a block newer than the last commit (AbstractHoodieLogRecordReader). Behind that of
        # a pending write may be one of a completed write, which no reader would find any more.
        scan = scan_log_files(self.storage, files, self.unit.committed, latest_instant=AFTER_ALL, stop_at_newer=False)
        corrupt = pass_over_torn_tails(self.storage, scan, allow_lost=self.config.allow_corrupt_log_blocks)
        # Hudi: a slice whose blocks were all rolled back is still rewritten when it has a base file, and is nothing
        # when it has none.
        if not scan.blocks and self.base_name is None:
            return CompactedSlice(None, None, corrupt, MergeCounts(), 0)
        with ExitStack() as stack:
            base = None
            if self.base_name is not None:
                base = stack.enter_context(open_replaced_file(self.storage, join(self.partition, self.base_name)))
            kind = MarkerType.CREATE if base is None else MarkerType.MERGE
            marker = create_marker(self.storage, self.instant, self.partition, self.name, kind)
            check_attempt(self.storage, self.instant, self.epoch, marker, closed=False)
            replaced_codec = None if base is None else base.compression
            codec = self.config.parquet_codec or replaced_codec or DEFAULT_CODEC
            handle = stack.enter_context(
                BaseFileHandle(
                    self.storage,
                    join(self.partition, self.name),
                    self.schema,
                    self.config,
                    codec=codec,
                    spark_version=proleptic_version([] if base is None else [base.footer]),
                    has_keys=self.unit.policy.key_fields == (RECORD_KEY,),
                )
            )
            merge = stack.enter_context(
                merging(
                    self.storage,
                    scan,
                    handle.rows_schema,
                    self.unit.policy,
                    self.ordering,
                    base=None if base is None else base.path,
                    first_only=self.as_hudi_1,
                    budget=self.config.memory_bytes,
                )
            )
            scanned = time.perf_counter()
            copied = self._write(base, merge, handle)
            size = handle.close()
            check_attempt(self.storage, self.instant, self.epoch, marker, closed=True)
        scan_ms, write_ms = int((scanned - started) * 1000), int((time.perf_counter() - scanned) * 1000)
        stat = self._stat(merge, scan.counts, size, sum(file.size for file in files), scan_ms, write_ms)
        statistics = statistics_of(self.storage, stat, self.unit.requirements, content=handle.content)
        return CompactedSlice(stat, statistics, corrupt, merge.counts, merge.counts.written, copied)

    def _log_files(self) -> list[DataFile]:
        """The plan's log files in scan order; raises StorageNotFoundError naming the first that is gone."""
        sizes = self.unit.sizes or [self.storage.stat(join(self.partition, name)).size for name in self.log_names]
        files = [DataFile(self.partition, name, size) for name, size in zip(self.log_names, sizes, strict=True)]
        return sorted(files, key=lambda file: parse_log_file(file.name).scan_order)

    def _write(self, base: ParquetBaseFile | None, merge: SliceMerge, handle: BaseFileHandle) -> int:
        """Streams the merged rows into the new file; none may be lost or doubled. Returns how many were copied."""
        copied = 0 if base is None else self._write_base(base, merge, handle)
        for batch in merge.inserts(self.config.batch_rows):
            handle.write(batch)
        counts = merge.counts
        expected = 0 if base is None else base.num_rows
        if counts.base != expected or counts.written != handle.rows:
            raise ExecutionError(
                f"read {counts.base} of {expected} base rows, deleted {counts.deleted}, inserted {counts.inserted}, "
                f"but wrote {handle.rows}",
                path=handle.path,
            )
        return copied

    def _write_base(self, base: ParquetBaseFile, merge: SliceMerge, handle: BaseFileHandle) -> int:
        known = keys_remain(merge.records) and handle.keys.join(base)
        source = copy_source(base, handle.schema, self.unit.policy, self.config)
        parts: Iterable[RowGroups] = [RowGroups(list(range(base.metadata.num_row_groups)), copied=False)]
        if source is not None:
            keys, positions = merge.records.keys, merge.records.positions
            plan = RowGroupPlan(source, keys, self.config, handle.codec, with_keys=not known, positions=positions)
            parts = plan.parts()
        copied = 0
        for part in parts:
            if source is not None and part.copied:
                before = handle.rows
                handle.copy(source, part.numbers[0])
                for some in part.keys:
                    handle.keys.add(some)
                merge.pass_over(handle.rows - before)
                copied += handle.rows - before
                continue
            batches = base_batches(
                base,
                handle.rows_schema,
                batch_rows=self.config.batch_rows,
                batch_bytes=self.config.memory_bytes // GROUP_SHARE,
                row_groups=part.numbers,
            )
            for batch in merge.merged(batches, group_rows=GROUP_ROWS):
                handle.write(batch, known_keys=known)
        return copied

    def _stat(
        self, merge: SliceMerge, scan: ScanCounts, size: int, log_bytes: int, scan_ms: int, write_ms: int
    ) -> WriteStat:
        records, counts = merge.records, merge.counts
        has_base = self.base_name is not None
        # Entries of delete blocks that 1.x compares by ordering value are among the reported log records.
        counts_deletes = self.as_hudi_1 and self.unit.policy.rules is not Rules.COMMIT_TIME
        extra: dict[str, Any] = {"numUpdates": 0, "totalLogReadTimeMs": scan_ms} if self.as_hudi_1 else {}
        if self.as_hudi_1 and has_base:
            extra["prevBaseFile"] = self.base_name
        return WriteStat(
            file_id=self.file_id,
            path=join(self.partition, self.name),
            partition_path=self.partition,
            prev_commit=NULL_COMMIT if self.base_name is None else parse_base_file(self.base_name).instant,
            num_writes=counts.written,
            num_deletes=counts.deleted + counts.missed_deletes,
            num_update_writes=counts.updated,
            # HoodieMergeHandle of 0.15 counts a delete whose key the base lacks as an insert too; HoodieCreateHandle
            # and 1.x do not.
            num_inserts=counts.inserted + (counts.missed_deletes if has_base and not self.as_hudi_1 else 0),
            file_size_in_bytes=size,
            total_write_bytes=size,
            total_log_records=records.record_count + (records.delete_count if counts_deletes else 0),
            total_log_files_compacted=scan.files,
            total_log_size_compacted=int(self.unit.operation.metrics.get(LOG_BYTES, log_bytes)),
            total_updated_records_compacted=len(records),
            total_log_blocks=scan.blocks,
            total_corrupt_log_block=scan.corrupt,
            total_rollback_blocks=scan.rolled_back,
            total_scan_time_ms=scan_ms,
            total_upsert_time_ms=write_ms if has_base else 0,
            total_create_time_ms=0 if has_base else write_ms,
            extra=extra,
        )
