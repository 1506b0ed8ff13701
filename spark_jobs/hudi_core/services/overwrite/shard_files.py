"""Writes the rows of a shard to new file groups, one file at a time however many partitions there are. Where rows of a
query are kept until then: staged_rows.py. Which shard a row is in: row_shards.py.

Rows that are marked as deleted are not written (HoodieCreateHandle).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final
from uuid import UUID, uuid5

import pyarrow as pa

from hudi_core.codec.parquet.statistics import proleptic_version
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.errors import ExecutionError
from hudi_core.filegroup.merge.record_keys import delete_flags
from hudi_core.filegroup.merge.table_policy import MergePolicy
from hudi_core.filegroup.write.base_file_writer import rows_schema
from hudi_core.filegroup.write.buckets import bucket_file_id, place_of
from hudi_core.model.names import COMMIT_SEQNO, COMMIT_TIME, PARTITION_PATH, RECORD_KEY
from hudi_core.model.partition import PARTITION_METADATA, check_partition, join
from hudi_core.services.overwrite.row_shards import piece_schema
from hudi_core.services.rewriting.new_file_groups import DEFAULT_CODEC, FileGroupWriter, NewFile, NewFiles
from hudi_core.storage.arrow_store import open_data_storage
from hudi_core.storage.base import Storage

_UNIT: Final = "unit of an overwrite"


@dataclass(frozen=True, slots=True)
class RowsTarget:
    """What tasks know. `seed` makes ids of file groups, the same in each attempt. By `policy` rows are deleted."""

    uri: str
    storage_options: Mapping[str, str]
    files: NewFiles
    seed: str
    policy: MergePolicy | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """The new files of one shard, and of how many rows, by partition, none was made."""

    files: tuple[NewFile, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)


def write_shard(target: RowsTarget, shard: int, batches: Iterator[pa.RecordBatch], attempt: TaskAttempt) -> Written:
    """engine.protocol.Consume, with `target`. Memory: a piece of 1 MiB, and a row group. ExecutionError."""
    sent = piece_schema(row_columns(target))
    try:
        with ShardFiles(target, shard, attempt) as files:
            for batch in batches:
                for key, piece in zip(*batch.columns, strict=True):
                    files.write(key.as_py().decode(), pa.ipc.read_record_batch(piece.as_buffer(), sent))
            return files.close()
    except (pa.ArrowException, MemoryError) as error:
        raise failed(target, error) from error


def failed(target: RowsTarget, error: BaseException) -> ExecutionError:
    """Why a shard was not written."""
    return ExecutionError(f"writing the rows of an overwrite failed: {error!r}", path=target.uri)


class ShardFiles:
    """Rows of a shard come place after place: one file is open. Leaving its `with` by an error removes that."""

    def __init__(self, target: RowsTarget, shard: int, attempt: TaskAttempt) -> None:
        self._target = target
        self._shard = shard
        self._attempt = attempt
        self._storage = open_data_storage(target.uri, target.storage_options)
        self._schema = rows_schema(target.files.schema, path=_UNIT)
        self._stack = ExitStack()
        self._writer: FileGroupWriter | None = None
        self._place: str | None = None
        self._first_row = 0
        self._done: list[NewFile] = []
        self._dropped: Counter[str] = Counter()

    def write(self, place: str, rows: pa.RecordBatch) -> None:
        """Appends rows of a place (buckets.place_of) with record keys, but those that are marked as deleted."""
        partition, digits = place_of(place)
        if self._writer is None or self._place != place:
            self._end()
            self._place = place
            self._writer = self._stack.enter_context(self._new_writer(partition, digits))
        if self._target.policy is not None:
            flags = delete_flags(rows, self._target.policy)
            if flags.any():
                self.drop(place, int(flags.sum()))
                rows = rows.filter(pa.array(~flags))
        most = self._target.files.config.batch_rows
        for at in range(0, rows.num_rows, most):
            self._writer.write(self._with_meta_columns(rows.slice(at, most), partition))

    def drop(self, place: str, rows: int) -> None:
        """Counts rows that are not written."""
        self._dropped[place_of(place)[0]] += rows

    def close(self) -> Written:
        """Completes the last file; all of them."""
        self._end()
        return Written(tuple(self._done), dict(self._dropped))

    def _with_meta_columns(self, rows: pa.RecordBatch, partition: str) -> pa.RecordBatch:
        unset = pa.nulls(rows.num_rows, pa.string())
        made = {COMMIT_TIME: unset, COMMIT_SEQNO: unset}  # the writer knows them (NewFiles.stamps_rows)
        if self._target.files.has_meta:
            made[PARTITION_PATH] = pa.repeat(pa.scalar(partition), rows.num_rows)
        else:
            made |= {RECORD_KEY: unset, PARTITION_PATH: unset}
        columns = {**dict(zip(rows.schema.names, rows.columns, strict=True)), **made}
        return pa.RecordBatch.from_arrays([columns[name] for name in self._schema.names], schema=self._schema)

    def _end(self) -> None:
        if self._writer is not None:
            self._done += self._writer.close()
            self._first_row = self._writer.next_row
            self._writer = None
            self._stack.close()

    def _new_writer(self, partition: str, digits: str | None) -> FileGroupWriter:
        target, files = self._target, self._target.files
        check_partition(partition, source=_UNIT)
        put_partition_metadata(self._storage, partition, files.instant)
        prefix = str(uuid5(UUID(target.seed), f"{self._shard}/{self._place}"))
        if digits is not None:
            prefix = bucket_file_id(prefix, digits)
        codec = files.config.parquet_codec or DEFAULT_CODEC
        return FileGroupWriter(
            self._storage,
            files,
            partition,
            prefix,
            codec,
            self._attempt,
            first_row=self._first_row,
            # Rows of a source in the other calendar are refused where they are read.
            spark_version=proleptic_version([]),
        )

    def __enter__(self) -> ShardFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)


def put_partition_metadata(storage: Storage, partition: str, instant: str) -> None:
    """Makes the folder of a partition known as one, where it is not yet (HoodiePartitionMetadata.trySave)."""
    path = join(partition, PARTITION_METADATA)
    if not storage.exists(path):
        depth = partition.count("/") + 1 if partition else 0
        storage.write(path, f"#partition metadata\ncommitTime={instant}\npartitionDepth={depth}\n".encode("ascii"))


def row_columns(target: RowsTarget) -> pa.Schema:
    """The table's columns as rows have them on their way, without meta columns."""
    schema = rows_schema(target.files.schema, path=_UNIT)
    meta = (COMMIT_TIME, COMMIT_SEQNO, RECORD_KEY, PARTITION_PATH)
    return pa.schema([field for field in schema if field.name not in meta])
