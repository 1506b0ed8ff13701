"""Writes the rows of a shard to new file groups, one file at a time however many partitions there are. row_shards.py
says which shard a row is in.

Rows that are marked as deleted are not written (HoodieCreateHandle). Base files of the table show how large a row
becomes: the source may be compressed in another way, or not at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Final
from uuid import UUID, uuid5

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.codec.parquet.statistics import proleptic_version
from hudi_core.config.rows_config import RECORD_SIZE_THRESHOLD, SMALL_FILE_BYTES
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.errors import ExecutionError, FormatError, StorageNotFoundError
from hudi_core.filegroup.merge.record_keys import delete_flags
from hudi_core.filegroup.merge.table_policy import MergePolicy
from hudi_core.filegroup.read.base_file import open_base_file
from hudi_core.filegroup.write.base_file_writer import rows_schema
from hudi_core.filegroup.write.buckets import bucket_file_id, place_of
from hudi_core.model.names import (
    COMMIT_SEQNO,
    COMMIT_TIME,
    PARTITION_PATH,
    RECORD_KEY,
    BaseFileName,
    parse_data_file,
)
from hudi_core.model.partition import PARTITION_METADATA, check_partition, join
from hudi_core.services.context import TableContext
from hudi_core.services.rewriting.new_file_groups import DEFAULT_CODEC, FileGroupWriter, NewFile, NewFiles
from hudi_core.storage.arrow_store import open_data_storage
from hudi_core.storage.base import Storage
from hudi_core.timeline.actions.commit import Operation
from hudi_core.timeline.instant import Instant
from hudi_core.timeline.timeline import Timeline

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
        partition, digits = place_of(place)
        prefix = str(uuid5(UUID(self._target.seed), f"{self._shard}/{place}"))
        if digits is not None:
            prefix = bucket_file_id(prefix, digits)
        self.writer.turn_to(check_partition(partition, source=_UNIT), prefix)
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


_COMMITS: Final = 5
"""How many commits are read, newest first (HoodieWriteConfig.RECORD_SIZE_ESTIMATOR_MAX_COMMITS)."""
_LEAST_FILE: Final = 8 << 20
"""Bytes from which a file of a commit counts. In a smaller one the filter of its keys is too large a part."""
_FILES: Final = 16
"""How many base files have their footers read where the commits do not show the size of a row."""
_LEAST_COLUMNS: Final = 1 << 20
"""Bytes of columns that are enough. In fewer the headers and dictionaries are too large a part."""


def bytes_per_row(context: TableContext, timeline: Timeline) -> float | None:
    """Returns the bytes of a row in a base file, by the newest commit that wrote enough of them, or else by the footers
    of some latest base files. None where these are too small, too. Works like AverageRecordSizeUtils of Hudi 0.15 and
    AverageRecordSizeEstimator of 1.x, but overwrites count, and small files do not. Raises StorageError.
    """
    newest = islice(reversed(timeline.commits().instants), _COMMITS)
    sizes = (_of_commit(context, item) for item in newest)
    return next(filter(None, sizes), None) or _of_files(context, timeline)


def _of_commit(context: TableContext, item: Instant) -> float | None:
    try:
        metadata = context.active.read_commit(item)
    except (FormatError, StorageNotFoundError):
        return None
    if metadata.operation_type == Operation.CLUSTER:
        return None  # sorted rows are smaller
    stats = [stat for stat in metadata.write_stats() if isinstance(parse_data_file(stat.name), BaseFileName)]
    written = sum(stat.total_write_bytes for stat in stats)
    if written <= RECORD_SIZE_THRESHOLD.read(context.options) * SMALL_FILE_BYTES.read(context.options):
        return None
    whole = [stat for stat in stats if stat.total_write_bytes >= _LEAST_FILE]
    return sum(stat.total_write_bytes for stat in whole) / max(1, sum(stat.num_writes for stat in whole))


def _of_files(context: TableContext, timeline: Timeline) -> float | None:
    view = context.view(timeline)
    files = (base for partition in view.partitions() for base in view.latest_base_files(partition))
    size = rows = 0
    for base in islice(files, _FILES):
        try:
            with open_base_file(context.storage, base.path) as file:
                footer = file.metadata
        except (FormatError, StorageNotFoundError):
            continue
        groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
        size += sum(group.column(at).total_compressed_size for group in groups for at in range(group.num_columns))
        rows += footer.num_rows
    return size / rows if size >= _LEAST_COLUMNS else None
