"""Writes the rows of an overwrite to new file groups of their partitions.

An exchange brings the rows of a partition together, so that a task has one file open at a time, however many partitions
there are: a large partition has several shards of its own, small ones share some by the hash of their paths. Nothing of
the rows comes to the driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final
from uuid import UUID, uuid4, uuid5

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.codec.hashing import group_indexes
from hudi_core.config.services.compaction_config import MAX_FILE_BYTES
from hudi_core.config.write_config import WriteConfig
from hudi_core.engine.exchange import exchange_pieces, rows_per_piece
from hudi_core.errors import ExecutionError
from hudi_core.filegroup.merge.merge_mode import reads_as_hudi_1
from hudi_core.filegroup.read.slice_merge import grouped
from hudi_core.filegroup.write.base_file_writer import rows_schema
from hudi_core.metadata_table.extract.data_file import StatisticsRequirements
from hudi_core.model.names import COMMIT_SEQNO, COMMIT_TIME, PARTITION_PATH, RECORD_KEY
from hudi_core.model.partition import PARTITION_METADATA, check_partition, join
from hudi_core.services.compaction.merge_slice import DEFAULT_CODEC
from hudi_core.services.lifecycle import Run
from hudi_core.services.new_file_groups import FileGroupWriter, NewFile, NewFiles
from hudi_core.services.overwrite.source import CountedRows, SourcePart, SourceRows, read_part
from hudi_core.storage.arrow_store import open_data_storage
from hudi_core.storage.base import Storage
from hudi_core.transaction.claim import Claim

if TYPE_CHECKING:
    from hudi_core.engine.protocol import TaskAttempt

_UNIT: Final = "unit of an overwrite"
_SMALL_SHARDS: Final = 8
"""Shards that small partitions share at least, where there are as many."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Which shard a row goes to. `large` are the partitions with shards of their own: the first, and how many. All
    others share the first `shared` shards.
    """

    shared: int
    large: Mapping[str, tuple[int, int]]

    @property
    def shards(self) -> int:
        """All of them."""
        return self.shared + sum(count for _, count in self.large.values())


@dataclass(frozen=True, slots=True)
class RowsUnit:
    """Rows of the source for the shards of `spread`."""

    rows: SourceRows
    part: SourcePart
    spread: Spread


@dataclass(frozen=True, slots=True)
class RowsTarget:
    """What all tasks that write know. `seed` makes the ids of file groups: the same in each attempt at a shard."""

    uri: str
    storage_options: Mapping[str, str]
    files: NewFiles
    seed: str


@dataclass(frozen=True, slots=True)
class Written:
    """The new files of one shard."""

    files: tuple[NewFile, ...] = ()


def spread_of(rows: CountedRows, file_bytes: int) -> Spread:
    """A partition of more than `file_bytes`, by its part of the source's bytes, has a shard for each file to be."""
    per_row = rows.size / max(1, rows.count)
    files = {name: -(-int(count * per_row) // file_bytes) for name, count in rows.by_partition.items()}
    small = sum(1 for count in files.values() if count <= 1)
    bytes_small = sum(per_row * rows.by_partition[name] for name, count in files.items() if count <= 1)
    shared = min(small, max(_SMALL_SHARDS, int(bytes_small) // file_bytes))
    large: dict[str, tuple[int, int]] = {}
    first = shared
    for name, count in files.items():
        if count > 1:
            large[name] = (first, count)
            first += count
    return Spread(shared, large)


def expected_files(rows: CountedRows | None, options: Mapping[str, str]) -> int:
    """How many files the rows become at least."""
    if rows is None:
        return 0
    spread = spread_of(rows, MAX_FILE_BYTES.read(options))
    return len(rows.by_partition) - len(spread.large) + spread.shards - spread.shared


def write_rows(
    run: Run,
    rows: CountedRows,
    schema: AvroSchema,
    requirements: StatisticsRequirements | None,
    held: Claim,
) -> list[Written]:
    """Lets the engine write all rows; errors as produce_rows and write_shard."""
    context = run.context
    config = WriteConfig.of(context.options)
    file_bytes = MAX_FILE_BYTES.read(context.options)
    spread = spread_of(rows, file_bytes)
    if not spread.shards:
        return []
    files = NewFiles(
        run.instant,
        schema,
        config,
        file_bytes,
        as_hudi_1=reads_as_hudi_1(context.config),
        stamps_rows=True,
        requirements=requirements,
    )
    target = RowsTarget(context.uri, dict(context.storage_options), files, str(uuid4()))
    return run.engine.exchange(
        produce_rows,
        [RowsUnit(rows.rows, part, spread) for part in rows.parts],
        partial(write_shard, target),
        shards=spread.shards,
        run_epoch=held.epoch,
        progress=run.progress,
    )


def produce_rows(unit: RowsUnit, attempt: TaskAttempt) -> Iterator[pa.RecordBatch]:
    """engine.protocol.Produce: the rows of a part in pieces of one partition each, with their record keys before them.
    Errors as read_part.

    Memory: a batch, and half of the memory budget.
    """
    rows = unit.rows
    for part in grouped(_keyed(unit), max_bytes=rows.config.sorted_bytes):
        yield from exchange_pieces(_pieces(part, unit.spread))


def _keyed(unit: RowsUnit) -> Iterator[pa.RecordBatch]:
    """The rows of a part with the path of their partition and their record key before them."""
    rows, columns = unit.rows, unit.rows.columns
    path = f"{rows.uri}/{unit.part.name}"
    schema = _piece_schema(columns).insert(0, pa.field(PARTITION_PATH, pa.string()))
    for batch in read_part(rows, unit.part):
        paths, keys = rows.keys.partitions(batch, path=path), rows.keys.keys(batch, path=path)
        yield pa.RecordBatch.from_arrays([paths, keys, *batch.columns[: len(columns)]], schema=schema)


def _piece_schema(columns: pa.Schema) -> pa.Schema:
    return columns.insert(0, pa.field(RECORD_KEY, pa.string()))


def _pieces(batches: list[pa.RecordBatch], spread: Spread) -> Iterator[tuple[int, bytes, pa.Table]]:
    """The pieces of some rows, each of one partition, with its shard and path."""
    rows = pa.Table.from_batches(batches)
    rows = rows.take(pc.sort_indices(rows, sort_keys=[(PARTITION_PATH, "ascending")])).combine_chunks()
    batches.clear()  # while the sorted rows are sent, and the next ones read
    paths = rows.column(PARTITION_PATH).combine_chunks()
    differs = pc.not_equal(paths.slice(1), paths.slice(0, max(0, len(paths) - 1))).to_numpy(zero_copy_only=False)
    starts = np.flatnonzero(np.r_[len(paths) > 0, differs]).tolist()
    step = rows_per_piece(rows)
    rows = rows.drop_columns([PARTITION_PATH])
    firsts = paths.take(pa.array(starts, pa.int64()))
    hashed = group_indexes(firsts, spread.shared).tolist() if spread.shared else [0] * len(starts)
    for start, end, path, shared in zip(starts, [*starts[1:], len(paths)], firsts.to_pylist(), hashed, strict=True):
        for shard, low, high in _parts(start, end, spread.large.get(path, (shared, 1))):
            for at in range(low, high, step):
                yield shard, path.encode(), rows.slice(at, min(step, high - at))


def _parts(start: int, end: int, shards: tuple[int, int]) -> Iterator[tuple[int, int, int]]:
    """Equal parts of the rows from `start` to `end`, each with its shard."""
    first, count = shards
    cuts = [start + (end - start) * number // count for number in range(count + 1)]
    return ((first + number, cuts[number], cuts[number + 1]) for number in range(count))


def write_shard(target: RowsTarget, shard: int, batches: Iterator[pa.RecordBatch], attempt: TaskAttempt) -> Written:
    """The files of a shard, partition after partition; with `target`, engine.protocol.Consume.

    Memory: a piece of 1 MiB, and a row group of output. Raises ExecutionError where writing fails.
    """
    storage = open_data_storage(target.uri, target.storage_options)
    done: list[NewFile] = []
    first_row = 0
    schema = rows_schema(target.files.schema, path=_UNIT)
    most = target.files.config.batch_rows
    pieces = ((key.as_py(), value.as_buffer()) for batch in batches for key, value in zip(*batch.columns, strict=True))
    try:
        for key, of_partition in groupby(pieces, itemgetter(0)):
            partition = key.decode()
            with _writer(storage, target, partition, shard, attempt, first_row) as writer:
                for _, piece in of_partition:
                    rows = pa.ipc.read_record_batch(piece, _piece_schema(_columns(schema)))
                    for at in range(0, rows.num_rows, most):
                        writer.write(_with_meta_columns(rows.slice(at, most), partition, schema))
                done += writer.close()
                first_row = writer.next_row
    except (pa.ArrowException, MemoryError) as error:
        raise ExecutionError(f"writing the rows of an overwrite failed: {error!r}", path=target.uri) from error
    return Written(tuple(done))


def _writer(
    storage: Storage, target: RowsTarget, partition: str, shard: int, attempt: TaskAttempt, first_row: int
) -> FileGroupWriter:
    check_partition(partition, source=_UNIT)
    put_partition_metadata(storage, partition, target.files.instant)
    prefix = str(uuid5(UUID(target.seed), f"{shard}/{partition}"))
    codec = target.files.config.parquet_codec or DEFAULT_CODEC
    return FileGroupWriter(storage, target.files, partition, prefix, codec, attempt, first_row=first_row)


def put_partition_metadata(storage: Storage, partition: str, instant: str) -> None:
    """Makes the folder of a partition known as one, where it is not yet (HoodiePartitionMetadata.trySave)."""
    path = join(partition, PARTITION_METADATA)
    if not storage.exists(path):
        depth = partition.count("/") + 1 if partition else 0
        storage.write(path, f"#partition metadata\ncommitTime={instant}\npartitionDepth={depth}\n".encode("ascii"))


def _columns(schema: pa.Schema) -> pa.Schema:
    """Without the meta columns, of which rows lack the file's name here."""
    meta = (COMMIT_TIME, COMMIT_SEQNO, RECORD_KEY, PARTITION_PATH)
    return pa.schema([field for field in schema if field.name not in meta])


def _with_meta_columns(rows: pa.RecordBatch, partition: str, schema: pa.Schema) -> pa.RecordBatch:
    unset = pa.nulls(rows.num_rows, pa.string())  # the writer knows them (NewFiles.stamps_rows)
    made = {
        COMMIT_TIME: unset,
        COMMIT_SEQNO: unset,
        PARTITION_PATH: pa.repeat(pa.scalar(partition), rows.num_rows),
    }
    arrays = [made[name] if name in made else rows.column(rows.schema.get_field_index(name)) for name in schema.names]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
