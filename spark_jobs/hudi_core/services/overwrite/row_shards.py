"""Sends the rows of an overwrite to shards, by their partitions. Which row of a key stays: combined_rows.py. How a
shard becomes files: shard_files.py.

A large partition has several shards of its own, small ones share some by the hash of their paths. In a table with a
bucket index each bucket of a partition has one shard, by the hash of both. How large a partition becomes, base files of
the table show: the source may be compressed in another way, or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.codec.hashing import group_indexes
from hudi_core.config.rows_config import RECORD_SIZE_THRESHOLD, SMALL_FILE_BYTES
from hudi_core.config.services.compaction_config import MAX_FILE_BYTES
from hudi_core.engine.exchange import PIECES_PER_BATCH, exchange_pieces, rows_per_piece
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.errors import FormatError, StorageNotFoundError
from hudi_core.filegroup.merge.base_merge import grouped
from hudi_core.filegroup.read.base_file import open_base_file
from hudi_core.model.names import PARTITION_PATH, RECORD_KEY, BaseFileName, parse_data_file
from hudi_core.services.context import TableContext
from hudi_core.services.overwrite.source import CountedRows, SourcePart, SourceRows, read_part
from hudi_core.timeline.actions.commit import Operation
from hudi_core.timeline.instant import Instant
from hudi_core.timeline.timeline import Timeline

_SMALL_SHARDS: Final = 8
"""Shards that small partitions share at least, where there are as many."""


@dataclass(frozen=True, slots=True)
class Spread:
    """`large` partitions have shards of their own, from a first one so many; all others share the first `shared`."""

    shared: int
    large: Mapping[str, tuple[int, int]]

    @property
    def shards(self) -> int:
        """All of them."""
        return self.shared + sum(count for _, count in self.large.values())


@dataclass(frozen=True, slots=True)
class RowsUnit:
    """Rows of the source for the shards of `spread`; `number` is the part's among all."""

    rows: SourceRows
    part: SourcePart
    spread: Spread
    number: int = 0
    rows_per_batch = PIECES_PER_BATCH


def spread_of(rows: CountedRows, file_bytes: int) -> Spread:
    """A partition of more than `file_bytes`, as estimated, has a shard for each file to be; a bucket is one file."""
    buckets = rows.rows.buckets
    if buckets is not None:
        most = len(rows.by_partition) * buckets.count
        return Spread(min(most, max(_SMALL_SHARDS, rows.size // file_bytes)), {})
    per_row = rows.size / max(1, rows.count)
    files = {name: -(-int(count * per_row) // file_bytes) for name, count in rows.by_partition.items()}
    small = [per_row * rows.by_partition[name] for name, count in files.items() if count <= 1]
    shared = min(len(small), max(_SMALL_SHARDS, int(sum(small)) // file_bytes))
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


def produce_rows(unit: RowsUnit, attempt: TaskAttempt) -> Iterator[pa.RecordBatch]:
    """engine.protocol.Produce: the rows of a part in pieces of one partition or bucket each, with their record keys
    before them. Errors as keyed_rows. Memory: a batch, and half of the memory budget.
    """
    rows = unit.rows
    for part in grouped(keyed_rows(unit), max_bytes=rows.config.sorted_bytes):
        yield from exchange_pieces(_pieces(part, unit.spread, rows.config.piece_bytes))


def keyed_rows(unit: RowsUnit) -> Iterator[pa.RecordBatch]:
    """With partition path, or place (Buckets.places), and record key before them. Errors as read_part, Buckets."""
    rows, columns = unit.rows, unit.rows.columns
    path = f"{rows.uri}/{unit.part.name}"
    schema = keyed_schema(columns)
    for batch in read_part(rows, unit.part):
        paths, keys = rows.keys.partitions(batch, path=path), rows.keys.keys(batch, path=path)
        if rows.buckets is not None:
            paths = rows.buckets.places(paths, keys, path=path)
        yield pa.RecordBatch.from_arrays([paths, keys, *batch.columns[: len(columns)]], schema=schema)


def keyed_schema(columns: pa.Schema) -> pa.Schema:
    """Of keyed_rows; `columns` are the table's."""
    return piece_schema(columns).insert(0, pa.field(PARTITION_PATH, pa.string()))


def piece_schema(columns: pa.Schema) -> pa.Schema:
    """Of the rows of one partition, as produce_rows sends them."""
    return columns.insert(0, pa.field(RECORD_KEY, pa.string()))


def _pieces(batches: list[pa.RecordBatch], spread: Spread, piece_bytes: int) -> Iterator[tuple[int, bytes, pa.Table]]:
    """The pieces of some rows, each of one partition, with its shard and path."""
    rows = pa.Table.from_batches(batches)
    rows = rows.take(pc.sort_indices(rows, sort_keys=[(PARTITION_PATH, "ascending")])).combine_chunks()
    batches.clear()  # while the sorted rows are sent, and the next ones read
    paths = rows.column(PARTITION_PATH).combine_chunks()
    starts = run_starts(paths)
    step = rows_per_piece(rows, piece_bytes)
    rows = rows.drop_columns([PARTITION_PATH])
    firsts = paths.take(pa.array(starts, pa.int64()))
    hashed = group_indexes(firsts, spread.shared).tolist() if spread.shared else [0] * len(starts)
    for start, end, path, shared in zip(starts, [*starts[1:], len(paths)], firsts.to_pylist(), hashed, strict=True):
        for shard, low, high in _parts(start, end, spread.large.get(path, (shared, 1))):
            for at in range(low, high, step):
                yield shard, path.encode(), rows.slice(at, min(step, high - at))


def run_starts(values: pa.Array) -> list[int]:
    """Where a value begins that is another than the one before it."""
    differs = pc.not_equal(values.slice(1), values.slice(0, max(0, len(values) - 1))).to_numpy(zero_copy_only=False)
    starts: list[int] = np.flatnonzero(np.r_[len(values) > 0, differs]).tolist()
    return starts


def _parts(start: int, end: int, shards: tuple[int, int]) -> Iterator[tuple[int, int, int]]:
    """Equal parts of the rows from `start` to `end`, each with its shard."""
    first, count = shards
    cuts = [start + (end - start) * number // count for number in range(count + 1)]
    return ((first + number, cuts[number], cuts[number + 1]) for number in range(count))


_COMMITS: Final = 5
"""Commits that are read, the newest first (HoodieWriteConfig.RECORD_SIZE_ESTIMATOR_MAX_COMMITS)."""
_LEAST_FILE: Final = 8 << 20
"""Bytes from which a file of a commit counts: of a smaller one the filter of its keys is too large a part."""
_FILES: Final = 16
"""Base files whose footers are read where the commits do not show it."""
_LEAST_COLUMNS: Final = 1 << 20
"""Bytes of their columns that are enough: of fewer the headers and dictionaries are too large a part."""


def bytes_per_row(context: TableContext, timeline: Timeline) -> float | None:
    """Bytes of a row in a base file, by the newest commit that wrote enough of them, else by the footers of some latest
    base files; None where these are too small, too. As AverageRecordSizeUtils of Hudi 0.15 and
    AverageRecordSizeEstimator of 1.x, but that overwrites count, and no small file does. Raises StorageError.
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
