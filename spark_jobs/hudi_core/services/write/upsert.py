"""Writes rows to the file groups that they belong to, and to new ones. An exchange brings the rows of a file group to
one shard, which writes the next base file of the group (HoodieMergeHandle, HoodieConcatHandle of 0.15,
HoodieWriteMergeHandle of 1.x): pages without a new row are copied, others merged.

Memory of a shard: that of a compaction (compaction/merge_slice.py), with the new rows in place of log records, and
that of a change log (filegroup/write/change_log.py).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import field, replace
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from hudi_core.codec.parquet.statistics import proleptic_version
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.errors import ExecutionError
from hudi_core.filegroup.merge.base_merge import OnChange, SliceMerge
from hudi_core.filegroup.merge.log_merge import LogMerger
from hudi_core.filegroup.merge.ordering_values import Ordering
from hudi_core.filegroup.merge.record_keys import delete_flags, record_keys
from hudi_core.filegroup.merge.table_policy import MergePolicy
from hudi_core.filegroup.read.base_file import open_replaced_file
from hudi_core.filegroup.read.log_scan import CommittedInstants, ScanCounts, ScanResult
from hudi_core.filegroup.write.base_file_writer import rows_schema
from hudi_core.filegroup.write.markers import MarkerType
from hudi_core.frozen import dataclass
from hudi_core.model.names import RECORD_KEY, parse_base_file
from hudi_core.model.partition import check_partition
from hudi_core.services.rewriting.new_file_groups import DEFAULT_CODEC, FileGroupWriter, NewFile
from hudi_core.services.rewriting.slice_rows import SliceRows, SliceTarget
from hudi_core.services.source.files import SourceRows
from hudi_core.services.write.plan import TAGGING
from hudi_core.services.write.route import LEAVING, Routes
from hudi_core.services.write.shard_files import (
    RowsTarget,
    failed,
    meta_columns,
    piece_schema,
    row_columns,
    write_shard,
)
from hudi_core.services.write.tagging.places import POSITION, POSITIONS
from hudi_core.storage.arrow_store import open_data_storage
from hudi_core.timeline.actions.commit import Operation
from hudi_core.timeline.actions.replacecommit import ClusteringSlice
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.view.file_group import DataFile, FileSlice, check_slice

_UNIT: Final = "unit of a write"
_NO_LOGS: Final = ScanResult((), (), ScanCounts())


@dataclass(frozen=True, slots=True)
class UpsertTarget:
    """What shards need. `new` is for new file groups. `slices` are those that `routes` names by number, with their
    `log_instants` (WritePlan); `by_name` is as in LogAppend, `policy` and `committed` as in SliceTarget. The columns of
    new rows are those of the source, fewer in a delete. `change_logs` is TableConfig.change_logs.
    """

    operation: str
    new: RowsTarget
    routes: Routes
    slices: tuple[FileSlice, ...]
    log_instants: tuple[str, ...]
    by_name: bool
    policy: MergePolicy
    committed: CommittedInstants
    rows: SourceRows
    change_logs: str | None = None


@dataclass(frozen=True, slots=True)
class GroupRows:
    """What became of the rows of a file group: `base` rows were there, `incoming` came. Of these `updated` replaced
    one, `deleted` removed one, `kept` lost to it, `inserted` are new, and `absent` found none.
    """

    base: int
    incoming: int
    updated: int = 0
    deleted: int = 0
    kept: int = 0
    inserted: int = 0
    absent: int = 0


@dataclass(frozen=True, slots=True)
class Upserted:
    """The files of a shard: the next file of a file group with its `counts`, none where it gets no row; or new ones.
    `dropped` counts by partition rows that are marked as deleted.
    """

    files: tuple[NewFile, ...] = ()
    counts: GroupRows | None = None
    dropped: Mapping[str, int] = field(default_factory=dict)


def write_routed(target: UpsertTarget, shard: int, batches: Iterator[pa.RecordBatch], attempt: TaskAttempt) -> Upserted:
    """Writes the files of a shard; with `target` it is an engine.protocol.Consume. Raises as write_shard and
    open_replaced_file, and ExecutionError where rows in and out do not agree.
    """
    touched = target.routes.touched
    if shard >= len(touched):
        written = write_shard(target.new, shard, batches, attempt)
        return Upserted(written.files, None, written.dropped)
    number = touched[shard]
    item = check_slice(target.slices[number])
    try:
        if number in target.routes.appended:
            return _append(target, item, target.log_instants[number], batches, attempt)
        if item.base_file is None:
            raise ExecutionError("the file group has no base file to merge", path=item.file_group.file_id)
        return _write_group(target, item.base_file, batches, attempt)
    except (pa.ArrowException, MemoryError) as error:
        raise failed(target.new, error) from error


def _write_group(
    target: UpsertTarget, base_file: DataFile, batches: Iterator[pa.RecordBatch], attempt: TaskAttempt
) -> Upserted:
    started = time.perf_counter()
    partition, name = check_partition(base_file.partition, source=_UNIT), parse_base_file(base_file.name)
    storage = open_data_storage(target.new.uri, target.new.storage_options)
    # Rows that stay keep their commit times, and the file holds all rows of its group, whatever its size.
    files = replace(target.new.files, stamps_rows=False, target_bytes=sys.maxsize)
    of_group = SliceTarget(target.new.uri, target.new.storage_options, files, target.committed, target.policy)
    planned = ClusteringSlice(partition, name.file_id, base_file.name, ())
    schema = rows_schema(files.schema, path=_UNIT)
    with ExitStack() as stack:
        base = stack.enter_context(open_replaced_file(storage, base_file.path))
        writer = FileGroupWriter(
            storage,
            files,
            partition,
            name.file_id,
            files.config.parquet_codec or base.compression or DEFAULT_CODEC,
            attempt,
            spark_version=proleptic_version([base.footer]),
            only=MarkerType.MERGE,
        )
        stack.enter_context(writer)
        marks = target.new.policy if target.operation not in TAGGING else None
        incoming = _Incoming(target, partition, schema, attempt, marks)
        changes = None
        if target.change_logs is not None:
            # Imported here, as in _append.
            from hudi_core.filegroup.write.change_log import ChangeLog

            changes = ChangeLog(
                storage,
                files.instant,
                files.schema,
                partition,
                name.file_id,
                attempt,
                target.change_logs,
                by_name=target.by_name,
            )
            stack.enter_context(changes)
        if target.operation not in TAGGING:
            SliceRows(of_group, planned, schema, base, None, _NO_LOGS, 0, 0, compacts=False).append_to(writer)
            for piece in incoming.batches(batches):
                writer.write(piece.rows)
                if changes is not None:
                    changes.add(record_keys(piece.rows, target.policy.key_fields, path=base.path), None, piece.rows)
            counts = GroupRows(base.num_rows, incoming.count, inserted=incoming.count)
        else:
            on_change = None if changes is None else changes.add
            merge = _merge(target, incoming.batches(batches), schema, base.path, stack, on_change)
            SliceRows(of_group, planned, schema, base, merge, _NO_LOGS, 0, 0, compacts=True).append_to(writer)
            of_merge = merge.counts
            counts = GroupRows(
                base.num_rows,
                incoming.count,
                updated=of_merge.updated,
                deleted=of_merge.deleted,
                kept=of_merge.kept,
                inserted=of_merge.inserted,
                absent=of_merge.missed_deletes,
            )
            if of_merge.base != base.num_rows:
                raise ExecutionError(f"read {of_merge.base} of {base.num_rows} base rows", path=base.path)
        due = counts.base - counts.deleted + counts.inserted
        if writer.handle.rows != due:
            raise ExecutionError(f"wrote {writer.handle.rows} rows where {due} are due: {counts}", path=base.path)
        change_logs = () if changes is None else changes.close(counts.updated + counts.deleted + counts.inserted)
        (file,) = writer.close()
    upsert_ms = int((time.perf_counter() - started) * 1000)
    stat = _stat(file.stat, counts, base_file, upsert_ms)
    return Upserted((NewFile(replace(stat, cdc_stats=change_logs), file.statistics),), counts, dict(incoming.dropped))


def _append(
    target: UpsertTarget, item: FileSlice, instant: str, batches: Iterator[pa.RecordBatch], attempt: TaskAttempt
) -> Upserted:
    # Imported here: tasks of copy-on-write tables need no Avro, and each of Spark's workers imports.
    from hudi_core.services.write.append import LogAppend

    storage = open_data_storage(target.new.uri, target.new.storage_options)
    files, partition = target.new.files, item.file_group.partition
    # Marked rows delete, also where they are inserted: Hudi inserts by a bucket index as it upserts.
    schema = rows_schema(files.schema, path=_UNIT)
    incoming = _Incoming(target, partition, schema, attempt, None, target.routes.positions)
    names_slice = target.change_logs is not None
    with LogAppend(
        storage, files, item, instant, attempt, target.policy, by_name=target.by_name, names_slice=names_slice
    ) as log:
        for rows, deletes, positions in incoming.batches(batches):
            if deletes:
                log.delete(rows.column(RECORD_KEY), positions)
            else:
                log.write(rows, positions)
        file = log.close()
    counts = GroupRows(0, incoming.count, updated=log.updates, deleted=log.deletes)
    return Upserted((file,), counts)


def _merge(
    target: UpsertTarget,
    batches: Iterator[_Piece],
    schema: pa.Schema,
    path: str,
    stack: ExitStack,
    on_change: OnChange | None,
) -> SliceMerge:
    """Returns the merge of a base file with rows, and with the keys of deletes, which need no order."""
    policy, budget = replace(target.policy, in_write=True), target.new.files.config.memory_bytes
    ordering = Ordering.of(policy, target.new.files.schema, path=path)
    merger = LogMerger(schema, policy, ordering, budget=budget)
    stack.enter_context(closing(merger.store))
    for rows, deletes, _ in batches:
        if deletes:
            none = pa.nulls(rows.num_rows, ordering.type)
            merger.add_deletes(rows.column(RECORD_KEY), np.ones(rows.num_rows, np.bool_), none, path=path)
        else:
            merger.add_records(rows, path=path)
    return SliceMerge(merger.finish(), policy, ordering, path=path, budget=budget, on_change=on_change)


class _Piece(NamedTuple):
    """Rows that come to a file group; whether only their keys count, as those of deletes; their places.POSITION."""

    rows: pa.RecordBatch
    deletes: bool
    positions: pa.Array | None


class _Incoming:
    """The rows that come to a file group, with meta columns of this write."""

    def __init__(
        self,
        target: UpsertTarget,
        partition: str,
        schema: pa.Schema,
        attempt: TaskAttempt,
        marks: MergePolicy | None,
        positions: bool = False,
    ) -> None:
        """Rows that `marks` takes for deleted are dropped. `positions` says that the rows have them."""
        self.count = 0
        self.dropped: dict[str, int] = {}
        self._target = target
        self._marks = marks
        self._partition = partition
        self._schema = schema
        self._positions = positions
        self._seqno = f"{target.new.files.instant}_{attempt.partition_id}_"

    def batches(self, batches: Iterator[pa.RecordBatch]) -> Iterator[_Piece]:
        target = self._target
        is_delete = target.operation == Operation.DELETE
        columns = target.rows.columns if is_delete else row_columns(target.new)
        sent = piece_schema(columns)
        if self._positions:
            sent = sent.append(pa.field(POSITION, POSITIONS))
        for batch in batches:
            for key, piece in zip(*batch.columns, strict=True):
                rows = pa.ipc.read_record_batch(piece.as_buffer(), sent)
                if self._marks is not None:
                    flags = delete_flags(rows, self._marks)
                    self.dropped[self._partition] = self.dropped.get(self._partition, 0) + int(flags.sum())
                    rows = rows.filter(pa.array(~flags))
                first, self.count = self.count, self.count + rows.num_rows
                deletes = is_delete or key.as_py() == LEAVING
                positions = rows.column(POSITION) if self._positions else None
                yield _Piece(rows if deletes else self._with_meta_columns(rows, first), deletes, positions)

    def _with_meta_columns(self, rows: pa.RecordBatch, first: int) -> pa.RecordBatch:
        files = self._target.new.files
        commit = files.instant, self._seqno, first
        return meta_columns(rows, self._schema, self._partition, has_meta=files.has_meta, commit=commit)


def _stat(new: WriteStat, counts: GroupRows, base_file: DataFile, upsert_ms: int) -> WriteStat:
    """Returns the write stat `new` of a new file group, with the counts of the file group."""
    return replace(
        new,
        prev_commit=parse_base_file(base_file.name).instant,
        num_deletes=counts.deleted,
        num_update_writes=counts.updated,
        num_inserts=counts.inserted,
        total_upsert_time_ms=upsert_ms,
        total_create_time_ms=0,
        extra={**new.extra, "prevBaseFile": base_file.name},
    )
