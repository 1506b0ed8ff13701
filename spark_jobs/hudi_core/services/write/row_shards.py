"""Sends new rows to shards, by their partitions. shard_files.py makes files of a shard.

A large partition has several shards of its own. Small ones share some, by the hash of their paths. In a table with a
bucket index each bucket of a partition has one shard, by the hash of both.

Rows of one key may become one before they are written (hoodie.combine.before.insert;
HoodieWriteHelper.deduplicateRecords). The row with the greatest ordering value stays. Of equal ones, and in a table
that is ordered by commits, the last one of the source stays, where Hudi takes any. An exchange brings the rows of a key
together, in the order of partition paths, keys and ordering values. The driver gets no rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hudi_core.codec.hashing import group_indexes
from hudi_core.config.services.compaction_config import MAX_FILE_BYTES
from hudi_core.engine.exchange import PIECES_PER_BATCH, exchange_pieces, rows_per_piece
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.filegroup.merge.base_merge import grouped
from hudi_core.filegroup.merge.ordering_values import Ordering
from hudi_core.frozen import dataclass
from hudi_core.model.names import PARTITION_PATH, RECORD_KEY
from hudi_core.services.rewriting.sort_order import SORT_KEY, SortOrder, merged_pieces
from hudi_core.services.source.files import CountedRows, SourcePart, SourceRows, check_ordered, read_part
from hudi_core.services.write.shard_files import RowsTarget, ShardFiles, Written, failed, keyed_schema, row_columns

_POSITION: Final = "position"
_PART_ROWS: Final = 1 << 40
"""More rows than a part has."""
_SHARD: Final = "_airflow_hudi_shard"
_SMALL_SHARDS: Final = 8
"""How many shards small partitions share at least, where there are as many partitions."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Each of the `large` partitions has shards of its own, from a first one on. Others share the `shared` first."""

    shared: int
    large: Mapping[str, tuple[int, int]]

    @property
    def shards(self) -> int:
        """How many shards there are."""
        return self.shared + sum(count for _, count in self.large.values())


@dataclass(frozen=True, slots=True)
class RowsUnit:
    """Rows of the source for the shards of `spread`. `number` is the number of the part among all parts."""

    rows: SourceRows
    part: SourcePart
    spread: Spread
    number: int = 0
    rows_per_batch = PIECES_PER_BATCH


def spread_of(rows: CountedRows, file_bytes: int) -> Spread:
    """Returns the spread. A partition has a shard for each file of `file_bytes`, as estimated; a bucket is one file."""
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
    """Returns how many files the rows become at least."""
    if rows is None:
        return 0
    spread = spread_of(rows, MAX_FILE_BYTES.read(options))
    return len(rows.by_partition) - len(spread.large) + spread.shards - spread.shared


def produce_rows(unit: RowsUnit, attempt: TaskAttempt) -> Iterator[pa.RecordBatch]:
    """Yields the rows of a part in pieces of one partition or bucket each, with their record keys in front
    (engine.protocol.Produce). Raises the errors of keyed_rows. Memory: a batch, and half of the memory budget.
    """
    rows = unit.rows
    for part in grouped(keyed_rows(unit), max_bytes=rows.config.sorted_bytes):
        yield from exchange_pieces(_pieces_of_paths(part, unit.spread, rows.config.piece_bytes))


def keyed_rows(unit: RowsUnit) -> Iterator[pa.RecordBatch]:
    """Yields rows after partition path, or place (Buckets.places), and record key. Raises as read_part and Buckets."""
    rows, columns = unit.rows, unit.rows.columns
    path = f"{rows.uri}/{unit.part.name}"
    schema = keyed_schema(columns)
    for batch in read_part(rows, unit.part):
        paths, keys = rows.keys.partitions(batch, path=path), rows.keys.keys(batch, path=path)
        if rows.buckets is not None:
            paths = rows.buckets.places(paths, keys, path=path)
        yield pa.RecordBatch.from_arrays([paths, keys, *batch.columns[: len(columns)]], schema=schema)


def _pieces_of_paths(
    batches: list[pa.RecordBatch], spread: Spread, piece_bytes: int
) -> Iterator[tuple[int, bytes, pa.Table]]:
    """Yields the pieces of some rows, each of one partition, with its shard and path."""
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
    """Returns the places where a value begins that differs from the one before it."""
    differs = pc.not_equal(values.slice(1), values.slice(0, max(0, len(values) - 1))).to_numpy(zero_copy_only=False)
    starts: list[int] = np.flatnonzero(np.r_[len(values) > 0, differs]).tolist()
    return starts


def _parts(start: int, end: int, shards: tuple[int, int]) -> Iterator[tuple[int, int, int]]:
    """Returns equal parts of the rows from `start` to `end`, each with its shard."""
    first, count = shards
    cuts = [start + (end - start) * number // count for number in range(count + 1)]
    return ((first + number, cuts[number], cuts[number + 1]) for number in range(count))


def produce_combined(unit: RowsUnit, attempt: TaskAttempt) -> Iterator[pa.RecordBatch]:
    """Yields the rows of a part in sorted pieces (engine.protocol.Produce). Raises as read_part and check_ordered.
    Memory: a batch, and half of the budget.
    """
    for part in grouped(ordered_rows(unit), max_bytes=unit.rows.config.sorted_bytes):
        yield from exchange_pieces(_pieces_of_keys(part, unit.spread, unit.rows.config.piece_bytes))


def ordered_rows(unit: RowsUnit) -> Iterator[pa.RecordBatch]:
    """Yields the rows of a part, with the key of their order as last column."""
    path = f"{unit.rows.uri}/{unit.part.name}"
    ordering = unit.rows.ordering
    first = unit.number * _PART_ROWS
    for batch in keyed_rows(unit):
        keys = order_keys(batch, ordering, first, path=path, of_table=unit.rows.scope.is_global)
        yield batch.append_column(SORT_KEY, keys)
        first += batch.num_rows


def order_keys(batch: pa.RecordBatch, ordering: Ordering, first: int, *, path: str, of_table: bool = False) -> pa.Array:
    """Returns the keys (binary) that order keyed rows by partition path (but not with `of_table`), record key, ordering
    values, and place in the source. The places begin at `first`. Raises as check_ordered.
    """
    named = (RECORD_KEY,) if of_table else (PARTITION_PATH, RECORD_KEY)
    values = {name: batch.column(name) for name in named}
    check_ordered(batch, ordering, path=path)
    values |= ordering_columns(batch, ordering)
    values[_POSITION] = pa.array(np.arange(first, first + batch.num_rows))
    return SortOrder(tuple(values)).keys(pa.RecordBatch.from_arrays(list(values.values()), names=list(values)))


def ordering_keys(batch: pa.RecordBatch, keys: pa.Array, ordering: Ordering) -> pa.Array:
    """Returns what orders rows of one key by their ordering values alone, as binary. `keys` are the record keys."""
    values = ordering_columns(batch, ordering)
    rows = pa.RecordBatch.from_arrays([*values.values(), keys], names=[*values, RECORD_KEY])
    return SortOrder(tuple(values)).keys(rows)


def ordering_columns(batch: pa.RecordBatch, ordering: Ordering) -> dict[str, pa.Array]:
    """Returns the columns of the ordering values, under names of their own."""
    return {f"order{number}": column.from_rows(batch) for number, column in enumerate(ordering.columns)}


def _pieces_of_keys(
    batches: list[pa.RecordBatch], spread: Spread, piece_bytes: int
) -> Iterator[tuple[int, bytes, pa.Table]]:
    """Yields the pieces of some rows, each of one shard, with the shard and the first key."""
    rows = pa.Table.from_batches(batches).combine_chunks()
    batches.clear()  # while the sorted rows are sent, and the next ones read
    rows = rows.append_column(_SHARD, pa.array(shards_of(rows, spread), pa.int32()))
    rows = rows.take(pc.sort_indices(rows, sort_keys=[(_SHARD, "ascending"), (SORT_KEY, "ascending")])).combine_chunks()
    shards, keys = (rows.column(name).combine_chunks() for name in (_SHARD, SORT_KEY))
    rows = rows.drop_columns([_SHARD])
    step = rows_per_piece(rows, piece_bytes)
    numbers, starts = np.unique(shards.to_numpy(), return_index=True)
    for shard, start, end in zip(numbers.tolist(), starts.tolist(), [*starts.tolist()[1:], len(shards)], strict=True):
        for at in range(start, end, step):
            yield shard, keys[at].as_py(), rows.slice(at, min(step, end - at))


def shards_of(rows: pa.Table, spread: Spread) -> NDArray[np.int64]:
    """Returns each row's shard: its partition's, by the hash of its key, or the one that the partition shares."""
    paths = rows.column(PARTITION_PATH).combine_chunks().dictionary_encode()
    of_path = paths.indices.to_numpy()
    shared = group_indexes(paths.dictionary, spread.shared) if spread.shared else np.zeros(len(paths.dictionary))
    shards: NDArray[np.int64] = shared.astype(np.int64)[of_path]
    for number, path in enumerate(paths.dictionary.to_pylist()):
        if path in spread.large:
            first, count = spread.large[path]
            places = np.flatnonzero(of_path == number)
            keys = rows.column(RECORD_KEY).combine_chunks().take(pa.array(places))
            shards[places] = first + group_indexes(keys, count)
    return shards


def write_combined(target: RowsTarget, shard: int, batches: Iterator[pa.RecordBatch], attempt: TaskAttempt) -> Written:
    """Writes the files of a shard, partition after partition, with one row of each key. With `target` it is an
    engine.protocol.Consume. Raises ExecutionError where writing fails. Memory: WriteConfig.merged_bytes; three times a
    piece (WriteConfig.piece_bytes) for each sorted part of the source; a row group of output.
    """
    hold = target.files.config.merged_bytes
    try:
        files = ShardFiles(target, shard, attempt)
        with files.writer:
            for rows in newest(merged_pieces(batches, keyed_schema(row_columns(target)), hold), files.drop):
                for partition, part in _by_partition(rows):
                    files.write(partition, part)
            return files.close()
    except (pa.ArrowException, MemoryError) as error:
        raise failed(target, error) from error


def newest(
    tables: Iterator[pa.Table], drop: Callable[[str, int], None], *, of_table: bool = False
) -> Iterator[pa.Table]:
    """Yields each key's last row, in the order of order_keys. `drop` gets the numbers of other rows by partition."""
    last: pa.Table | None = None
    for table in tables:
        rows = (table if last is None else pa.concat_tables([last, table])).combine_chunks()
        if not rows.num_rows:
            continue
        paths, keys = (rows.column(name).combine_chunks() for name in (PARTITION_PATH, RECORD_KEY))
        is_last = _differs(keys) if of_table else pc.or_(_differs(paths), _differs(keys))
        places = np.flatnonzero(is_last.to_numpy(zero_copy_only=False))
        for entry in pc.value_counts(paths.slice(0, len(paths) - 1).filter(pc.invert(is_last))).to_pylist():
            drop(entry["values"], entry["counts"])
        if len(places):
            yield rows.take(pa.array(places))
        last = rows.slice(rows.num_rows - 1)
    if last is not None:
        yield last


def _differs(values: pa.Array) -> pa.Array:
    """For each value but the last, whether the next one differs."""
    return pc.not_equal(values.slice(1), values.slice(0, len(values) - 1))


def _by_partition(rows: pa.Table) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yields each partition path with its rows, without the path."""
    paths = rows.column(PARTITION_PATH).combine_chunks()
    rows = rows.drop_columns([PARTITION_PATH])
    starts = run_starts(paths)
    for start, end in zip(starts, [*starts[1:], len(paths)], strict=True):
        for batch in rows.slice(start, end - start).combine_chunks().to_batches():
            yield paths[start].as_py(), batch
