"""Clusters by sort columns: an exchange brings each row to the new file that has its range of keys.

Where a group becomes several files, or its order is a curve, its slices are sampled first. Then each slice is read
once. A task sorts its rows in parts, cuts each part where the next file begins, and sends it in pieces. The exchange's
key of a piece is its first sort key. A file's pieces arrive in the order of that key, so that a merge holds only a few
pieces of each sorted part in memory. The driver receives the sample and no other rows.

An engine whose executors are processes elsewhere moves each row of an exchange twice, to them and from them. For a
small group that costs more than its sort. So one task reads, sorts and writes a small group (sort_group).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final
from uuid import UUID, uuid5

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.codec.parquet.statistics import SPARK_VERSION, proleptic_version
from hudi_core.engine.exchange import (
    PIECES_PER_BATCH,
    ROWS,
    RunBuffer,
    exchange_pieces,
    exchange_rows,
    fewer_runs,
    merged_rows,
    rows_per_piece,
)
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.engine.serializer import from_text, to_text
from hudi_core.errors import ExecutionError
from hudi_core.filegroup.merge.base_merge import grouped
from hudi_core.filegroup.read.base_file import open_base_file
from hudi_core.filegroup.write.base_file_writer import rows_schema
from hudi_core.frozen import dataclass
from hudi_core.model.partition import check_file_name, check_partition, join
from hudi_core.services.rewriting.new_file_groups import DEFAULT_CODEC, FileGroupWriter, NewFile
from hudi_core.services.rewriting.slice_rows import SliceRows, SliceTarget, open_slice
from hudi_core.services.rewriting.sort_order import SORT_KEY, SortOrder, by_key, merged_pieces, place
from hudi_core.storage.arrow_store import open_data_storage
from hudi_core.storage.base import Storage
from hudi_core.timeline.actions.replacecommit import ClusteringSlice

_UNIT: Final = "clustering unit"
WEIGHT: Final = "_airflow_hudi_weight"
"""The column of a sample that says how many rows each of its rows stands for."""


@dataclass(frozen=True, slots=True)
class SliceCount:
    """The number of rows that a file slice of the plan had, and of corrupt log blocks that were passed over."""

    partition: str
    file_id: str
    rows: int
    corrupt: int = 0

    @staticmethod
    def of(rows: SliceRows) -> SliceCount:
        return SliceCount(rows.planned.partition, rows.planned.file_id, rows.rows, rows.corrupt)


@dataclass(frozen=True, slots=True)
class Clustered:
    """The files that a task wrote, and the rows that it read. A shard of an exchange has one of the two."""

    files: tuple[NewFile, ...] = ()
    counts: tuple[SliceCount, ...] = ()


def writer_for(
    storage: Storage,
    target: SliceTarget,
    slices: Sequence[ClusteringSlice],
    prefix: str,
    attempt: TaskAttempt,
    next_row: int = 0,
) -> FileGroupWriter:
    """Returns a writer of rows of one partition's slices. It writes to file groups `<prefix>-0` and so on. Its codec is
    that of the options, else of the first base file. Reads footers up to the first that names no version of Spark.
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
        next_row=next_row,
        spark_version=proleptic_version(footers),
    )


@dataclass(frozen=True, slots=True)
class SampleUnit:
    """Slices whose sort columns are sampled: `rows` rows of each, up to twice as many, and at most `most` bytes."""

    target: SliceTarget
    slices: tuple[ClusteringSlice, ...]
    order: SortOrder
    rows: int
    most: int


@dataclass(frozen=True, slots=True)
class Sample:
    """Sampled rows as an Arrow IPC stream: the order's columns, and how many rows each row stands for (WEIGHT)."""

    rows: bytes


@dataclass(frozen=True, slots=True)
class SortUnit:
    """Slices whose rows go to shards from `first_shard` on, cut at the keys `cuts`, counted by `count_shard`."""

    target: SliceTarget
    slices: tuple[ClusteringSlice, ...]
    order: SortOrder
    cuts: tuple[bytes, ...]
    first_shard: int
    count_shard: int
    rows_per_batch = PIECES_PER_BATCH


@dataclass(frozen=True, slots=True)
class SortedOutput:
    """The output of one shard: the file groups `<prefix>-0` and so on, with rows of `slices`, all of one partition."""

    prefix: str
    slices: tuple[ClusteringSlice, ...]


def sample_slices(unit: SampleUnit, attempt: TaskAttempt) -> Sample:
    """Samples rows of slices at even distances (UnitTask). Raises as open_slice. Memory: a batch, and the samples."""
    rows = pa.concat_tables([_sampled(unit, item) for item in unit.slices])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return Sample(sink.getvalue().to_pybytes())


def _sampled(unit: SampleUnit, item: ClusteringSlice) -> pa.Table:
    storage = open_data_storage(unit.target.uri, unit.target.storage_options)
    whole = rows_schema(unit.target.files.schema, path=item.file_id)
    schema = pa.schema([whole.field(name) for name in unit.order.read_columns])
    kept = schema.empty_table()
    step, seen = 1, 0
    with open_slice(storage, unit.target, item) as rows:
        batches = (batch.select(schema.names) for batch in rows.batches())
        for batch in batches if rows.base is None else rows.base_rows(schema):
            every = pa.array(np.arange(-seen % step, batch.num_rows, step))
            kept = pa.concat_tables([kept, pa.Table.from_batches([batch if step == 1 else batch.take(every)])])
            seen += batch.num_rows
            while kept.num_rows > 2 * unit.rows or (kept.nbytes > unit.most and kept.num_rows > 1):
                kept, step = kept.take(pa.array(np.arange(0, kept.num_rows, 2))), 2 * step
    weight = pa.scalar(seen / max(1, kept.num_rows), pa.float64())
    return kept.append_column(WEIGHT, pa.repeat(weight, kept.num_rows))


def order_and_cuts(samples: Sequence[Sample], order: SortOrder, outputs: int) -> tuple[SortOrder, tuple[bytes, ...]]:
    """Returns the order of a group, with the bounds of a curve, and the keys at which each file but the first begins.
    The keys divide the sampled rows into `outputs` equal parts. No two are the same.
    """
    rows = pa.concat_tables([pa.ipc.open_stream(item.rows).read_all() for item in samples]).combine_chunks()
    if not rows.num_rows:
        return order, ()
    outputs = min(outputs, rows.num_rows)
    (batch,) = rows.to_batches()
    weights = batch.column(WEIGHT).to_numpy()
    placed = order if order.layout.is_linear else order.sampled(batch, weights)
    keys = placed.keys(batch)
    by_key = pc.sort_indices(keys).to_numpy()
    reached = np.cumsum(weights[by_key])
    at = np.searchsorted(reached, reached[-1] * np.arange(1, outputs) / outputs, side="right")
    chosen = keys.take(pa.array(by_key[np.minimum(at, len(by_key) - 1)])).to_pylist()
    return placed, tuple(dict.fromkeys(chosen))


def produce_sorted(unit: SortUnit, attempt: TaskAttempt) -> Iterator[pa.RecordBatch]:
    """Yields the sorted pieces of a unit, then its row counts (engine.protocol.Produce). Raises as open_slice, and
    ExecutionError where sorting fails. Memory: that of open_slice, and half of the memory budget.
    """
    counts: list[SliceCount] = []
    try:
        for part in grouped(_keyed_rows(unit, counts), max_bytes=unit.target.config.sorted_bytes):
            yield from exchange_pieces(_sorted_part(part, unit))
    except (pa.ArrowException, MemoryError) as error:
        path = unit.slices[min(len(counts), len(unit.slices) - 1)].file_id
        raise ExecutionError(f"sorting a file slice failed: {error!r}", path=path) from error
    for count in counts:
        row = ([unit.count_shard], [count.file_id.encode()], [to_text(count).encode()])
        yield exchange_rows(*(pa.array(value, field.type) for value, field in zip(row, ROWS, strict=True)))


def _keyed_rows(unit: SortUnit, counts: list[SliceCount]) -> Iterator[pa.RecordBatch]:
    """Yields the rows of one slice after the other, with sort keys. `counts` receives the row count of each slice."""
    storage = open_data_storage(unit.target.uri, unit.target.storage_options)
    for item in unit.slices:
        with open_slice(storage, unit.target, item) as rows:
            for batch in rows.batches():
                yield batch.append_column(SORT_KEY, unit.order.keys(batch))
            counts.append(SliceCount.of(rows))


def _sorted_part(batches: list[pa.RecordBatch], unit: SortUnit) -> Iterator[tuple[int, bytes, pa.Table]]:
    """Sorts a part and yields its pieces, each with its shard and its first key."""
    rows = by_key(pa.Table.from_batches(batches))
    batches.clear()  # frees them while the sorted rows are sent and the next ones are read
    keys = rows.column(SORT_KEY).combine_chunks()
    cuts = [place(keys, cut) for cut in unit.cuts]
    step = rows_per_piece(rows, unit.target.config.piece_bytes)
    for number, (start, end) in enumerate(zip([0, *cuts], [*cuts, rows.num_rows], strict=True)):
        for at in range(start, end, step):
            yield unit.first_shard + number, keys[at].as_py(), rows.slice(at, min(step, end - at))


def write_sorted(
    target: SliceTarget,
    outputs: Sequence[SortedOutput],
    shard: int,
    batches: Iterator[pa.RecordBatch],
    attempt: TaskAttempt,
    next_row: int = 0,
) -> Clustered:
    """Writes the files of a shard; the last shard, after all `outputs`, returns the row counts. `next_row` is
    FileGroupWriter's. Memory: WriteConfig.merged_bytes; three times the pieces that overlap, one
    (WriteConfig.piece_bytes) for each sorted part of each slice; a row group of output. Raises ExecutionError.
    """
    if shard == len(outputs):
        values = (value for batch in batches for value in batch.column(1).to_pylist())
        return Clustered(counts=tuple(from_text(SliceCount, value) for value in values))
    output = outputs[shard]
    partition = output.slices[0].partition
    storage = open_data_storage(target.uri, target.storage_options)
    schema = rows_schema(target.files.schema, path=partition)
    try:
        with writer_for(storage, target, output.slices, output.prefix, attempt, next_row) as writer:
            for rows in merged_pieces(batches, schema, target.config.merged_bytes):
                for batch in rows.to_batches(max_chunksize=target.config.batch_rows):
                    writer.write(batch)
            return Clustered(writer.close())
    except (pa.ArrowException, MemoryError) as error:
        raise ExecutionError(f"writing sorted rows failed: {error!r}", path=partition) from error


MOST_BYTES: Final = 128 << 20
"""The most bytes of files of a group that one task sorts. An exchange spreads a larger group over executors."""


@dataclass(frozen=True, slots=True)
class GroupUnit:
    """Slices of one partition that become about `outputs` new files. `sample` is the sampling that comes first, None
    where neither cuts nor bounds are needed. `name` is a UUID from which the ids of the new file groups are made.
    """

    target: SliceTarget
    slices: tuple[ClusteringSlice, ...]
    order: SortOrder
    sample: SampleUnit | None
    outputs: int
    name: str


def sort_group(unit: GroupUnit, attempt: TaskAttempt) -> Clustered:
    """Samples, sorts and writes a group (UnitTask). Raises as sample_slices, produce_sorted and write_sorted, and
    ExecutionError where the folder of temporary files (TMPDIR) is full: it needs room for the rows of the group.
    Memory: that of produce_sorted and a fifth of the memory budget, then that of write_sorted.
    """
    order, cuts = unit.order, tuple[bytes, ...]()
    if unit.sample is not None:
        order, cuts = order_and_cuts([sample_slices(unit.sample, attempt)], order, unit.outputs)
    # The same in every attempt, so that the files of all attempts are in the same file groups.
    prefixes = [str(uuid5(UUID(unit.name), str(number))) for number in range(len(cuts) + 1)]
    outputs = [SortedOutput(prefix, unit.slices) for prefix in prefixes]
    write = partial(write_sorted, unit.target, outputs)
    sort = SortUnit(unit.target, unit.slices, order, cuts, 0, len(outputs))
    files: list[NewFile] = []
    with _temporary_folder() as folder:
        buffer = RunBuffer(folder, "part", unit.target.config.sorted_bytes // 4)
        for batch in produce_sorted(sort, attempt):
            buffer.add(batch)
        runs = fewer_runs(folder, buffer.finish())
        for shard in range(len(outputs)):
            written = sum(file.stat.num_writes for file in files)
            files += write(shard, merged_rows(runs, shard), attempt, written).files
        counts = write(len(outputs), merged_rows(runs, len(outputs)), attempt).counts
    return Clustered(tuple(files), counts)


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    try:
        made = tempfile.TemporaryDirectory(prefix="hudi-sort-", ignore_cleanup_errors=True)
    except OSError as error:
        raise ExecutionError(
            f"no folder of temporary files can be made: {error}", remedy="name another one in TMPDIR"
        ) from error
    with made as name:
        yield Path(name)
