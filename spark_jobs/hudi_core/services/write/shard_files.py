"""Writes the rows of a shard to new file groups, one file at a time however many partitions there are. row_shards.py
says which shard a row is in.

Rows that are marked as deleted are not written (HoodieCreateHandle).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Final
from uuid import UUID, uuid5

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.codec.parquet.statistics import proleptic_version
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.errors import ExecutionError
from hudi_core.filegroup.merge.record_keys import delete_flags
from hudi_core.filegroup.merge.table_policy import MergePolicy
from hudi_core.filegroup.write.base_file_writer import rows_schema
from hudi_core.filegroup.write.buckets import bucket_file_id, place_of
from hudi_core.frozen import dataclass
from hudi_core.model.names import (
    COMMIT_SEQNO,
    COMMIT_TIME,
    PARTITION_PATH,
    RECORD_KEY,
)
from hudi_core.model.partition import PARTITION_METADATA, check_partition, join
from hudi_core.services.rewriting.new_file_groups import DEFAULT_CODEC, FileGroupWriter, NewFile, NewFiles
from hudi_core.storage.arrow_store import open_data_storage
from hudi_core.storage.base import Storage

_UNIT: Final = "unit of a write"


@dataclass(frozen=True, slots=True)
class RowsTarget:
    """What tasks need to write rows. `seed` makes the same file ids in each attempt. `policy` finds deleted rows."""

    uri: str
    storage_options: Mapping[str, str]
    files: NewFiles
    seed: str
    policy: MergePolicy | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """The new files of one shard, and by partition how many rows were not written."""

    files: tuple[NewFile, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)


def write_shard(target: RowsTarget, shard: int, batches: Iterator[pa.RecordBatch], attempt: TaskAttempt) -> Written:
    """Writes the rows of a shard; with `target` it is an engine.protocol.Consume. Raises ExecutionError where writing
    fails. Memory: a piece of 1 MiB, and a row group.
    """
    sent = piece_schema(row_columns(target))
    try:
        files = ShardFiles(target, shard, attempt)
        with files.writer:
            for batch in batches:
                for key, piece in zip(*batch.columns, strict=True):
                    files.write(key.as_py().decode(), pa.ipc.read_record_batch(piece.as_buffer(), sent))
            return files.close()
    except (pa.ArrowException, MemoryError) as error:
        raise failed(target, error) from error


def failed(target: RowsTarget, error: BaseException) -> ExecutionError:
    """Returns the error that says why a shard was not written."""
    return ExecutionError(f"writing the rows of a write failed: {error!r}", path=target.uri)


class ShardFiles:
    """Passes rows, place after place, to a `writer` that has one file open. Removes that file on an error."""

    def __init__(self, target: RowsTarget, shard: int, attempt: TaskAttempt) -> None:
        self.writer = FileGroupWriter(
            open_data_storage(target.uri, target.storage_options),
            target.files,
            partition="",
            prefix="",
            codec=target.files.config.parquet_codec or DEFAULT_CODEC,
            attempt=attempt,
            # Rows of a source in the other calendar are refused where they are read.
            spark_version=proleptic_version([]),
        )
        self._target = target
        self._shard = shard
        self._schema = rows_schema(target.files.schema, path=_UNIT)
        self._place: str | None = None
        self._dropped: Counter[str] = Counter()

    def write(self, place: str, rows: pa.RecordBatch) -> None:
        """Appends rows of a place (buckets.place_of) with record keys, except those that are marked as deleted."""
        if self._place != place:
            self._turn_to(place)
        if self._target.policy is not None:
            flags = delete_flags(rows, self._target.policy)
            if flags.any():
                self.drop(place, int(flags.sum()))
                rows = rows.filter(pa.array(~flags))
        most = self._target.files.config.batch_rows
        for at in range(0, rows.num_rows, most):
            self.writer.write(self._with_meta_columns(rows.slice(at, most)))

    def drop(self, place: str, rows: int) -> None:
        """Counts rows that are not written."""
        self._dropped[place_of(place)[0]] += rows

    def close(self) -> Written:
        """Completes the last file, and returns all of them."""
        return Written(self.writer.close(), dict(self._dropped))

    def _with_meta_columns(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        # The writer knows commit times and sequence numbers (NewFiles.stamps_rows).
        return meta_columns(rows, self._schema, self.writer.partition, has_meta=self._target.files.has_meta)

    def _turn_to(self, place: str) -> None:
        partition, start = place_of(place)
        prefix = str(uuid5(UUID(self._target.seed), f"{self._shard}/{place}"))
        if start is not None:
            prefix = bucket_file_id(prefix, start)
        is_next = self._place is None or partition != self.writer.partition
        self.writer.turn_to(check_partition(partition, source=_UNIT), prefix)
        if is_next:  # and no other bucket of the same one
            put_partition_metadata(self.writer.storage, partition, self._target.files.instant)
        self._place = place


def meta_columns(
    rows: pa.RecordBatch,
    schema: pa.Schema,
    partition: str,
    *,
    has_meta: bool,
    commit: tuple[str, str, int] | None = None,
) -> pa.RecordBatch:
    """Returns rows with record keys as rows of `schema`, with meta columns. Without `has_meta` all of these are null.
    `commit` has the commit time, the start of sequence numbers, and the first of these; None leaves both null.
    """
    unset = pa.nulls(rows.num_rows, pa.string())
    made = {COMMIT_TIME: unset, COMMIT_SEQNO: unset}
    if has_meta:
        made[PARTITION_PATH] = pa.repeat(pa.scalar(partition), rows.num_rows)
    else:
        made |= {RECORD_KEY: unset, PARTITION_PATH: unset}
    if has_meta and commit is not None:
        time, start, first = commit
        numbers = pa.array(np.arange(first, first + rows.num_rows)).cast(pa.string())
        made[COMMIT_TIME] = pa.repeat(pa.scalar(time), rows.num_rows)
        made[COMMIT_SEQNO] = pc.binary_join_element_wise(pa.scalar(start), numbers, "")
    columns = {**dict(zip(rows.schema.names, rows.columns, strict=True)), **made}
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


def put_partition_metadata(storage: Storage, partition: str, instant: str) -> None:
    """Writes the partition metadata of a folder that has none yet (HoodiePartitionMetadata.trySave)."""
    path = join(partition, PARTITION_METADATA)
    if not storage.exists(path):
        depth = partition.count("/") + 1 if partition else 0
        storage.write(path, f"#partition metadata\ncommitTime={instant}\npartitionDepth={depth}\n".encode("ascii"))


def row_columns(target: RowsTarget) -> pa.Schema:
    """Returns the table's columns as tasks exchange them, without meta columns."""
    schema = rows_schema(target.files.schema, path=_UNIT)
    meta = (COMMIT_TIME, COMMIT_SEQNO, RECORD_KEY, PARTITION_PATH)
    return pa.schema([field for field in schema if field.name not in meta])


def keyed_schema(columns: pa.Schema) -> pa.Schema:
    """Returns the schema of keyed_rows; `columns` are the table's."""
    return piece_schema(columns).insert(0, pa.field(PARTITION_PATH, pa.string()))


def piece_schema(columns: pa.Schema) -> pa.Schema:
    """Returns the schema of the rows of one partition, as produce_rows sends them."""
    return columns.insert(0, pa.field(RECORD_KEY, pa.string()))
