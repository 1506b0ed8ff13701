"""The rows of a file slice that a clustering plan names: its base file, merged with its log files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.codec.parquet.statistics import SPARK_VERSION, proleptic_version
from hudi_core.config.rows_config import WriteConfig
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.errors import ExecutionError
from hudi_core.filegroup.merge.base_merge import GROUP_SHARE, SliceMerge
from hudi_core.filegroup.merge.ordering_values import Ordering
from hudi_core.filegroup.merge.record_keys import key_texts
from hudi_core.filegroup.merge.table_policy import MergePolicy
from hudi_core.filegroup.read.base_file import base_batches, open_base_file, open_replaced_file
from hudi_core.filegroup.read.log_scan import AFTER_ALL, CommittedInstants, scan_log_files
from hudi_core.filegroup.read.slice_reader import merging
from hudi_core.filegroup.read.torn_tails import pass_over_torn_tails
from hudi_core.filegroup.write.base_file_writer import rows_schema
from hudi_core.model.names import RECORD_KEY
from hudi_core.model.partition import check_file_name, check_partition, join
from hudi_core.services.rewriting.new_file_groups import DEFAULT_CODEC, GROUP_ROWS, FileGroupWriter, NewFile, NewFiles
from hudi_core.storage.base import Storage
from hudi_core.timeline.actions.replacecommit import ClusteringSlice
from hudi_core.view.file_group import DataFile

_UNIT: Final = "clustering unit"


@dataclass(frozen=True, slots=True)
class ClusteringTarget:
    """What all tasks of a clustering know: log blocks count if `committed`; `policy` is None without log files."""

    uri: str
    storage_options: Mapping[str, str]
    files: NewFiles
    committed: CommittedInstants
    policy: MergePolicy | None

    @property
    def config(self) -> WriteConfig:
        return self.files.config


@dataclass(frozen=True, slots=True)
class SliceCount:
    """How many rows a file slice of the plan had, and corrupt log blocks that were passed over."""

    partition: str
    file_id: str
    rows: int
    corrupt: int = 0


@dataclass(frozen=True, slots=True)
class Clustered:
    """What a task wrote and read. A shard of an exchange does one of the two."""

    files: tuple[NewFile, ...] = ()
    counts: tuple[SliceCount, ...] = ()


@dataclass
class SliceRows:
    """An open slice. `base` is its base file; `merge` what its log files hold, None where no log block counts."""

    target: ClusteringTarget
    item: ClusteringSlice
    schema: pa.Schema
    base: ParquetBaseFile | None
    merge: SliceMerge | None
    corrupt: int = 0
    rows: int = 0

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows. Raises ExecutionError at the end where some were lost or doubled on the way."""
        base, most = self.base_rows(), self.target.config.batch_rows
        rows = base if self.merge is None else self.merge.rows(base, batch_rows=most, group_rows=GROUP_ROWS)
        for batch in rows:
            self.rows += batch.num_rows
            yield batch
        self.check()

    def base_rows(
        self, schema: pa.Schema | None = None, row_groups: Sequence[int] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Those of the base file: columns of `schema`, some row groups. Raises CorruptFileError for no key."""
        if self.base is None:
            return
        config = self.target.config
        for batch in base_batches(
            self.base,
            schema or self.schema,
            batch_rows=config.batch_rows,
            batch_bytes=config.memory_bytes // GROUP_SHARE,
            row_groups=row_groups,
        ):
            if self.target.files.has_meta and RECORD_KEY in batch.schema.names:
                key_texts(batch.column(RECORD_KEY), path=self.base.path)
            yield batch

    def count(self) -> SliceCount:
        return SliceCount(self.item.partition, self.item.file_id, self.rows, self.corrupt)

    def check(self) -> None:
        """Raises ExecutionError unless all rows went by."""
        in_base = 0 if self.base is None else self.base.num_rows
        counts = [(self.rows, in_base)]
        if self.merge is not None:
            counts = [(self.merge.counts.base, in_base), (self.rows, self.merge.counts.written)]
        for read, due in counts:
            if read != due:
                path = join(self.item.partition, self.item.file_id)
                raise ExecutionError(f"{read} of {due} rows of the file slice were read", path=path)


@contextmanager
def open_slice(storage: Storage, target: ClusteringTarget, item: ClusteringSlice) -> Iterator[SliceRows]:
    """The slice, closed at the end of the block; its rows come with the columns of the new files but their name, merged
    as by queries and by Hudi 0.15 (HoodieFileSliceReader): of base rows with one key the first alone. Memory: a batch
    of rows; with log files that of the merge. Raises StorageNotFoundError for a file that is gone, CorruptFileError
    for a broken one and for a corrupt log block of a completed write (torn_tails; unless allowed), UnsupportedError,
    also for change operations.
    """
    logs = ((name, join(item.partition, name)) for name in item.data_logs)
    files = [DataFile(item.partition, name, storage.stat(path).size) for name, path in logs]
    scan = scan_log_files(storage, files, target.committed, latest_instant=AFTER_ALL, stop_at_newer=False)
    corrupt = pass_over_torn_tails(storage, scan, allow_lost=target.config.allow_corrupt_log_blocks)
    policy = target.policy
    schema = rows_schema(target.files.schema, path=item.file_id)
    with ExitStack() as stack:
        base = merge = None
        if item.base_file is not None:
            base = stack.enter_context(open_replaced_file(storage, join(item.partition, item.base_file)))
        if scan.blocks:
            if policy is None:
                what = "the file slice has log files, and the task no rules to merge them by"
                raise ExecutionError(what, path=item.file_id)
            merge = stack.enter_context(
                merging(
                    storage,
                    scan,
                    schema,
                    policy,
                    Ordering.of(policy, target.files.schema, path=item.file_id),
                    base=None if base is None else base.path,
                    first_only=True,
                    budget=target.config.memory_bytes,
                )
            )
        yield SliceRows(target, item, schema, base, merge, corrupt)


def writer_for(
    storage: Storage,
    target: ClusteringTarget,
    slices: Sequence[ClusteringSlice],
    prefix: str,
    attempt: TaskAttempt,
    first_row: int = 0,
) -> FileGroupWriter:
    """Writes rows of slices of one partition to file groups `<prefix>-0` and so on, compressed as the options say, else
    as the first base file. Reads the footers of the base files, up to one that names no version of Spark.
    """
    codec, footers = target.config.parquet_codec, []
    for item in slices:
        if item.base_file is not None:
            with open_base_file(storage, join(item.partition, item.base_file)) as base:
                codec = codec or base.compression
                footers.append(base.footer)
            if SPARK_VERSION not in footers[-1]:
                break
    return FileGroupWriter(
        storage,
        target.files,
        check_partition(slices[0].partition, source=_UNIT),
        check_file_name(prefix, source=_UNIT),
        codec or DEFAULT_CODEC,
        attempt,
        first_row=first_row,
        spark_version=proleptic_version(footers),
    )
