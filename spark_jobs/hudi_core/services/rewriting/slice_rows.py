"""Reads the rows of a file slice that a plan names, its base file merged with its log files. Appends them to new base
files: rows that no log touches are copied by row groups or pages, not decoded.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.codec.parquet.splice import RowGroupSource, WholeRowGroup
from hudi_core.config.rows_config import WriteConfig
from hudi_core.errors import ExecutionError
from hudi_core.filegroup.merge.base_merge import GROUP_SHARE, SliceMerge
from hudi_core.filegroup.merge.ordering_values import Ordering
from hudi_core.filegroup.merge.record_keys import key_texts
from hudi_core.filegroup.merge.table_policy import MergePolicy
from hudi_core.filegroup.read.base_file import base_batches, open_replaced_file
from hudi_core.filegroup.read.log_scan import AFTER_ALL, CommittedInstants, ScanResult, scan_log_files
from hudi_core.filegroup.read.slice_reader import merging
from hudi_core.filegroup.write.base_file_writer import rows_schema
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.extract.data_file import StatisticsRequirements
from hudi_core.model.names import RECORD_KEY, parse_log_file
from hudi_core.model.partition import join
from hudi_core.services.rewriting.new_file_groups import FileGroupWriter, NewFiles
from hudi_core.services.rewriting.row_group_copies import BaseRows, CopyPlan, copy_source, keys_remain
from hudi_core.storage.base import Storage
from hudi_core.storage.overlapped import both
from hudi_core.timeline.actions.compaction import CompactionOperation
from hudi_core.timeline.actions.replacecommit import ClusteringSlice
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import DataFile

if TYPE_CHECKING:
    from hudi_core.services.rewriting.job import RewriteJob

_GROUP_ROWS: Final = 4
"""How many base rows are looked up at once for each log record."""


@dataclass(frozen=True, slots=True)
class SliceTarget:
    """What all tasks of a rewrite know. Log blocks count if `committed` says so. `policy` is None without log files."""

    uri: str
    storage_options: Mapping[str, str]
    files: NewFiles
    committed: CommittedInstants
    policy: MergePolicy | None

    @staticmethod
    def of(
        job: RewriteJob[Any],
        schema: AvroSchema,
        timeline: Timeline,
        requirements: StatisticsRequirements | None,
        policy: MergePolicy | None,
        *,
        target_bytes: int = sys.maxsize,
        stamps_rows: bool = False,
    ) -> SliceTarget:
        """Returns the target. The arguments are those of NewFiles.of; `timeline` decides which log blocks count."""
        context = job.context
        files = NewFiles.of(context, job.instant, schema, target_bytes, requirements, stamps_rows=stamps_rows)
        committed = CommittedInstants.of(timeline)
        return SliceTarget(context.uri, dict(context.storage_options), files, committed, policy)

    @property
    def config(self) -> WriteConfig:
        return self.files.config

    def rules(self, file_id: str) -> MergePolicy:
        """Returns how log files are merged. Raises ExecutionError naming the file group where there are no rules."""
        if self.policy is None:
            raise ExecutionError("the file slice has log files, and the task no rules to merge them by", path=file_id)
        return self.policy


@dataclass
class SliceRows:
    """An open slice. `base` is its base file. `merge` is what the log blocks of `scan` hold; None where nothing is
    merged. `log_bytes` are those of the log files. `corrupt` counts skipped log blocks. `compacts` is as in open_slice.
    """

    target: SliceTarget
    planned: CompactionOperation | ClusteringSlice
    schema: pa.Schema
    base: ParquetBaseFile | None
    merge: SliceMerge | None
    scan: ScanResult
    log_bytes: int
    corrupt: int
    compacts: bool
    rows: int = 0

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields all rows. Raises ExecutionError at the end where some were lost or doubled on the way."""
        yield from self._merged()
        yield from self._inserts()
        self.check()

    def append_to(self, writer: FileGroupWriter) -> int:
        """Appends all rows, and returns how many of them were copied: row groups, and pieces of them, with no key in
        the logs. Where there are log files, only compactions copy.
        """
        base, merge, target = self.base, self.merge, self.target
        copied = 0
        if base is not None:
            copies = self.compacts or (merge is None and base.num_rows > 0 and not target.files.stamps_rows)
            source = copy_source(base, writer.handle.schema, target.policy, target.config) if copies else None
            joins = source is not None if merge is None else self.compacts and keys_remain(merge.records)
            with writer.joining(base) if joins else nullcontext(False) as joined:
                copied = self._append_base(base, writer, source, with_keys=not joined)
        for batch in self._inserts():
            writer.write(batch)
        return copied

    def _append_base(
        self, base: ParquetBaseFile, writer: FileGroupWriter, source: RowGroupSource | None, *, with_keys: bool
    ) -> int:
        copied, merge = 0, self.merge
        parts: Iterable[BaseRows] = [BaseRows(list(range(base.metadata.num_row_groups)), copied=False)]
        if source is not None:
            keys, positions = pa.array([], pa.string()) if self.target.files.has_meta else None, None
            if merge is not None:
                keys, positions = merge.records.keys, merge.records.positions
            codec = writer.handle.codec
            plan = CopyPlan(source, keys, self.target.config, codec, with_keys=with_keys, positions=positions)
            parts = plan.parts()
        for part in parts:
            if source is not None and part.copied:
                rows = part.piece or WholeRowGroup(source, part.numbers[0])
                writer.copy(rows, part.keys)
                if merge is not None:
                    merge.pass_over(rows.num_rows)
                copied += rows.num_rows
                continue
            with nullcontext(base) if part.piece is None else part.piece.file() as file:
                for batch in self._merged(file, part.numbers if part.piece is None else None):
                    writer.write(batch)
        self.rows += copied
        return copied

    def base_rows(
        self,
        schema: pa.Schema | None = None,
        file: ParquetBaseFile | None = None,
        row_groups: Sequence[int] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yields rows of the base file in `schema`, of some row groups; of `file` if it has some of its rows. Raises
        CorruptFileError for a missing key.
        """
        if self.base is None:
            return
        config = self.target.config
        for batch in base_batches(
            file or self.base,
            schema or self.schema,
            batch_rows=config.batch_rows,
            batch_bytes=config.memory_bytes // GROUP_SHARE,
            row_groups=row_groups,
        ):
            if self.target.files.has_meta and not self.compacts and RECORD_KEY in batch.schema.names:
                key_texts(batch.column(RECORD_KEY), path=self.base.path)
            yield batch

    def _merged(
        self, file: ParquetBaseFile | None = None, row_groups: Sequence[int] | None = None
    ) -> Iterator[pa.RecordBatch]:
        base = self.base_rows(file=file, row_groups=row_groups)
        for batch in base if self.merge is None else self.merge.merged(base, group_rows=_GROUP_ROWS):
            self.rows += batch.num_rows
            yield batch

    def _inserts(self) -> Iterator[pa.RecordBatch]:
        for batch in () if self.merge is None else self.merge.inserts(self.target.config.batch_rows):
            self.rows += batch.num_rows
            yield batch

    def check(self) -> None:
        """Raises ExecutionError unless all rows were read."""
        in_base = 0 if self.base is None else self.base.num_rows
        counts = [(self.rows, in_base)]
        if self.merge is not None:
            counts = [(self.merge.counts.base, in_base), (self.rows, self.merge.counts.written)]
        for read, due in counts:
            if read != due:
                path = join(self.planned.partition, self.planned.file_id)
                raise ExecutionError(f"{read} of {due} rows of the file slice were read", path=path)


def _scan(storage: Storage, target: SliceTarget, logs: Sequence[DataFile]) -> tuple[ScanResult, int]:
    """Scans the log files; returns their blocks, and the number of corrupt ones that are passed over."""
    # Hudi 0.15 ends the scan at a block newer than the last commit (AbstractHoodieLogRecordReader). This scan goes on:
    # a block of a completed write may be behind that of a pending one, and no reader would find it any more.
    scan = scan_log_files(storage, logs, target.committed, latest_instant=AFTER_ALL, stop_at_newer=False)
    if not scan.corrupt and not scan.corrupt_removed:
        return scan, 0
    # Imported here: a compaction's tasks need the timeline for nothing else, and each of Spark's workers imports.
    from hudi_core.filegroup.read.torn_tails import pass_over_torn_tails

    return scan, pass_over_torn_tails(storage, scan, allow_lost=target.config.allow_corrupt_log_blocks)


@contextmanager
def open_slice(
    storage: Storage,
    target: SliceTarget,
    planned: CompactionOperation | ClusteringSlice,
    *,
    sizes: Sequence[int] = (),
    compacts: bool = False,
) -> Iterator[SliceRows]:
    """Opens the slice for the block. Its rows come with the columns of the new files except the file's name. They are
    merged as by queries and by Hudi 0.15 (HoodieFileSliceReader): of base rows with one key only the first counts. With
    `compacts` they are merged as by compactions, also where no log block counts; in Hudi 0.15 each of those base rows
    counts then.

    `sizes` are those of the log files, else the storage is asked. Memory: a batch of rows; with log files that of the
    merge. Raises StorageNotFoundError for a file that is gone, CorruptFileError for a broken one and (unless allowed)
    for a corrupt log block of a completed write (torn_tails), UnsupportedError, also for change operations.
    """
    names = planned.data_logs
    sizes = sizes or [storage.stat(join(planned.partition, name)).size for name in names]
    logs = [DataFile(planned.partition, name, size) for name, size in zip(names, sizes, strict=True)]
    logs.sort(key=lambda file: parse_log_file(file.name).scan_order)
    schema = rows_schema(target.files.schema, path=planned.file_id)
    with ExitStack() as stack:

        def open_base() -> ParquetBaseFile | None:
            if planned.base_file is None:
                return None
            return stack.enter_context(open_replaced_file(storage, join(planned.partition, planned.base_file)))

        (scan, corrupt), base = both(storage, partial(_scan, storage, target, logs), open_base)
        merge = None
        if scan.blocks or (compacts and base is not None):
            policy = target.rules(planned.file_id)
            merge = stack.enter_context(
                merging(
                    storage,
                    scan,
                    schema,
                    policy,
                    Ordering.of(policy, target.files.schema, path=planned.file_id),
                    base=None if base is None else base.path,
                    first_only=not compacts or target.files.as_hudi_1,
                    budget=target.config.memory_bytes,
                )
            )
        log_bytes = sum(file.size for file in logs)
        yield SliceRows(target, planned, schema, base, merge, scan, log_bytes, corrupt, compacts)
