"""Finds the file groups that hold the keys of new rows: by the keys of base files, of a partition or of the table
(HoodieSimpleIndex, HoodieGlobalSimpleIndex), or by the bucket of a key (HoodieSimpleBucketIndex).

An exchange brings the keys of base files and the new rows to shards, by the hash of the key. A shard keeps the newest
row of each key (HoodieWriteHelper.deduplicateRecords), and stages its rows with the numbers of their file groups
(places.py). A key that is in several file groups goes to each of them, as in Hudi. The driver gets only counts.

Memory of a shard: the keys of base files, twice (KEYS_PER_SHARD says how many it gets); what row_shards.write_combined
states for rows.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hudi_core.codec.bloom import BloomFilter, filter_in_footer
from hudi_core.codec.hashing import group_indexes
from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.codec.parquet.statistics import ChunkRanges, chunk_ranges, leaf_columns
from hudi_core.engine.exchange import PIECES_PER_BATCH, exchange_pieces, rows_per_piece
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.errors import ExecutionError, UnsupportedError
from hudi_core.filegroup.merge.base_merge import grouped
from hudi_core.filegroup.merge.ordering_values import Ordering
from hudi_core.filegroup.merge.record_keys import delete_flags, record_keys
from hudi_core.filegroup.merge.winning_version import compares_with_base
from hudi_core.filegroup.read.base_file import open_base_file
from hudi_core.filegroup.write.buckets import place_of
from hudi_core.model.names import PARTITION_PATH, RECORD_KEY
from hudi_core.model.partition import join
from hudi_core.services.rewriting.sort_order import SORT_KEY, merged_pieces
from hudi_core.services.source.files import SourcePart, SourceRows
from hudi_core.services.write.log_keys import rows_of_slice
from hudi_core.services.write.places import (
    GROUP,
    HERE,
    KEYS_AT_POSITIONS,
    LEAVES,
    NEW,
    POSITION,
    POSITIONS,
    TABLE_KEYS,
    Placed,
    Places,
)
from hudi_core.services.write.row_shards import RowsUnit, Spread, newest, ordered_rows, ordering_keys
from hudi_core.services.write.shard_files import keyed_schema
from hudi_core.storage.arrow_store import open_data_storage
from hudi_core.view.file_group import FileSlice

KEYS_PER_SHARD: Final = 1 << 20
_OF_TABLE: Final = b"\x00"
_OF_SOURCE: Final = b"\x01"
_KEYS_AT_ONCE: Final = 64 << 10
_MOST_KEY_BYTES: Final = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class KeysUnit:
    """A `part` of the source, or the `file_slice` of the file group `number`. Of a slice only the keys `wanted`
    count; all where it is None. With a `reader` (log_keys.rows_of_slice) the slice is read with its log files, which
    may have keys of their own where it is `logged`. With `positions` keys have their positions in the base file.
    """

    rows: SourceRows
    uri: str
    storage_options: Mapping[str, str]
    key_fields: tuple[str, ...]
    shards: int
    number: int
    part: SourcePart | None = None
    file_slice: FileSlice | None = None
    wanted: tuple[str, ...] | None = None
    logged: bool = False
    reader: str = ""
    positions: bool = False
    rows_per_batch = PIECES_PER_BATCH

    @property
    def schema(self) -> pa.Schema:
        """The columns of keys."""
        return KEYS_AT_POSITIONS if self.positions else TABLE_KEYS


@dataclass(frozen=True, slots=True)
class TagTarget:
    """What shards need. Rows are staged in `folder`. `partitions` are those of the file groups, by number. `buckets`
    are the numbers of buckets, by place (Buckets.places); with a bucket index rows have their place for the partition
    path.
    """

    uri: str
    storage_options: Mapping[str, str]
    folder: str
    rows: SourceRows
    partitions: tuple[str, ...]
    buckets: Mapping[str, int] | None = None
    drops_new: bool = False
    """Whether rows with new keys are dropped, as a delete does."""
    merges_fields: bool = False
    """Whether rows are merged field by field: two rows with one key, and rows that move, are refused."""
    positions: bool = False
    """Whether rows get the positions of their keys."""


@dataclass(frozen=True, slots=True)
class Tagged:
    """The rows of a shard, in a file of the folder; "" where there are none. How many go to each file group, by its
    number as text, and to new places, by partition. Of the source are `rows`, one of each key, and older ones that were
    `dropped`, both by partition. `absent` keys of a delete are not in the table.
    """

    name: str
    in_groups: Mapping[str, int] = field(default_factory=dict)
    new: Mapping[str, int] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    absent: int = 0


def produce_keys(unit: KeysUnit, attempt: TaskAttempt) -> Iterator[pa.RecordBatch]:
    """Yields the keys of a base file, or the rows of a part of the source (engine.protocol.Produce). Raises the errors
    of ordered_rows for the source, and of open_base_file and record_keys for a base file.
    """
    if unit.part is None:
        yield from exchange_pieces(_table_pieces(unit))
        return
    config = unit.rows.config
    of_part = RowsUnit(unit.rows, unit.part, Spread(unit.shards, {}), unit.number)
    for batches in grouped(ordered_rows(of_part), max_bytes=config.sorted_bytes):
        rows = pa.Table.from_batches(batches).combine_chunks()
        batches.clear()
        yield from exchange_pieces(_source_pieces(rows, unit.shards, config.piece_bytes))


def _table_pieces(unit: KeysUnit) -> Iterator[tuple[int, bytes, pa.Table]]:
    wanted = None if unit.wanted is None else pa.array(unit.wanted, pa.string())
    for keys, orders, positions in _table_keys(unit, wanted):
        groups = pa.array(np.full(len(keys), unit.number, np.int32))
        columns = [keys, groups, orders, *([] if positions is None else [positions])]
        rows = pa.Table.from_arrays(columns, schema=unit.schema)
        if wanted is not None:
            rows = rows.filter(pc.is_in(keys, value_set=wanted)).combine_chunks()
        for shard, part in _by_shard(rows, group_indexes(rows.column(0).combine_chunks(), unit.shards)):
            yield shard, _OF_TABLE, part


def _table_keys(unit: KeysUnit, wanted: pa.Array | None) -> Iterator[tuple[pa.Array, pa.Array, pa.Array | None]]:
    """Yields record keys with places.ORDER and, where the unit asks for them, places.POSITION."""
    file_slice, is_global = unit.file_slice, unit.rows.scope.is_global
    base = None if file_slice is None else file_slice.base_file
    if file_slice is None or base is None:
        return
    storage, ordering = open_data_storage(unit.uri, unit.storage_options), ordering_of(unit.rows)
    with open_base_file(storage, base.path) as file:
        row_groups = None if wanted is None else _row_groups(file, unit.key_fields, wanted)
        is_needed = row_groups != []
        if is_needed and (ordering is None or file_slice.log_files):
            is_here = pa.scalar(None if file_slice.log_files or not is_global else HERE, pa.binary())
            positions = _positions(file, row_groups) if unit.positions else None
            for batch in file.batches(list(unit.key_fields), _KEYS_AT_ONCE, row_groups):
                keys = record_keys(batch, unit.key_fields, path=base.path)
                orders = pa.repeat(is_here, len(keys))
                if positions is None:
                    yield keys, orders, None
                else:
                    yield keys, orders, pa.array(positions[: len(keys)])
                    positions = positions[len(keys) :]
    if not unit.reader or not (is_needed or unit.logged):
        return
    columns = [] if ordering is None else [column.name for column in ordering.columns]
    for batch in rows_of_slice(storage, unit.reader, file_slice, [*unit.key_fields, *columns]):
        keys = record_keys(batch, unit.key_fields, path=base.path)
        orders = pa.repeat(HERE, len(keys)) if ordering is None else ordering_keys(batch, keys, ordering)
        yield keys, orders, pa.nulls(len(keys), pa.int64()) if unit.positions else None


def _positions(file: ParquetBaseFile, row_groups: Sequence[int] | None) -> NDArray[np.int64]:
    """Returns the numbers of the rows of row groups, of all where None."""
    counts = [file.metadata.row_group(number).num_rows for number in range(file.metadata.num_row_groups)]
    ends = np.r_[0, np.cumsum(counts)].astype(np.int64)
    chosen = range(len(counts)) if row_groups is None else row_groups
    return np.concatenate([np.arange(ends[at], ends[at + 1]) for at in chosen] or [ends[:0]])


def ordering_of(rows: SourceRows) -> Ordering | None:
    """Returns the ordering where a stored row may win over one that comes from another partition; else None."""
    policy = rows.policy
    if policy is None or not rows.scope.moves or not compares_with_base(policy):
        return None
    ordering = Ordering.of(policy, rows.schema, path=rows.uri)
    return ordering if ordering.columns else None


def _row_groups(file: ParquetBaseFile, key_fields: Sequence[str], wanted: pa.Array) -> list[int] | None:
    """Returns the row groups that may have one of the keys, by the footer's Bloom filter (HoodieBloomIndex) and the
    ranges of row groups; None for all.
    """
    column = leaf_columns(file.metadata).get((RECORD_KEY,))
    if tuple(key_fields) != (RECORD_KEY,) or column is None:
        return None
    bloom = filter_in_footer(file.footer)
    if bloom is not None and not BloomFilter.parse(bloom[1], bloom[0], path=file.path).may_have_any(wanted):
        return []
    ranges = chunk_ranges(file.metadata, column, pa.string())
    if ranges is None:
        return None
    ordered = sorted(key.encode() for key in wanted.to_pylist())
    return [number for number in range(file.metadata.num_row_groups) if _may_hold(ranges, number, ordered)]


def _may_hold(ranges: ChunkRanges, number: int, ordered: Sequence[bytes]) -> bool:
    low, high = ranges.minimum[number], ranges.maximum[number]
    if not (low.is_valid and high.is_valid):
        return True
    return bisect_left(ordered, low.as_py().encode()) < bisect_right(ordered, high.as_py().encode())


def _source_pieces(rows: pa.Table, shards: int, piece_bytes: int) -> Iterator[tuple[int, bytes, pa.Table]]:
    rows = rows.take(pc.sort_indices(rows, sort_keys=[(SORT_KEY, "ascending")])).combine_chunks()
    step = rows_per_piece(rows, piece_bytes)
    keys = rows.column(RECORD_KEY).combine_chunks()
    for shard, part in _by_shard(rows, group_indexes(keys, shards)):
        first = part.column(SORT_KEY)
        for at in range(0, part.num_rows, step):
            yield shard, _OF_SOURCE + first[at].as_py(), part.slice(at, min(step, part.num_rows - at))


def _by_shard(rows: pa.Table, shards: NDArray[np.int32]) -> Iterator[tuple[int, pa.Table]]:
    """Yields the rows of each shard, in their order."""
    if not len(shards):
        return
    order = np.argsort(shards, kind="stable")
    numbers, starts = np.unique(shards[order], return_index=True)
    for number, start, end in zip(numbers.tolist(), starts, [*starts[1:], len(order)], strict=True):
        yield number, rows.take(pa.array(order[start:end])).combine_chunks()


def tag_shard(target: TagTarget, shard: int, batches: Iterator[pa.RecordBatch], attempt: TaskAttempt) -> Tagged:
    """Stages the newest row of each key with its file groups; with `target` it is an engine.protocol.Consume. Raises
    ExecutionError where that fails.
    """
    dropped: dict[str, int] = {}
    in_groups: dict[str, int] = {}
    new: dict[str, int] = {}
    unique: dict[str, int] = {}

    def drop(partition: str, count: int) -> None:
        if count and target.merges_fields:
            name, _ = place_of(partition)
            raise UnsupportedError(
                f"{count} rows of partition {name!r} have the key of another row, and the table merges rows by fields",
                path=target.rows.uri,
                remedy="combine them in the source",
            )
        if count:
            dropped[partition] = dropped.get(partition, 0) + count

    schema = keyed_schema(target.rows.columns)
    name = f"{shard}-{attempt.stage_id}-{attempt.attempt_id}.arrow"
    try:
        places, sorted_rows = _split(target, batches)
        rows = merged_pieces(sorted_rows, schema, target.rows.config.merged_bytes)
        rows = newest(rows, drop, of_table=target.rows.scope.is_global) if target.rows.combines else rows
        storage, written, absent = open_data_storage(target.uri, target.storage_options), 0, 0
        tagged = schema.append(pa.field(GROUP, pa.int32())).append(pa.field(LEAVES, pa.bool_()))
        if target.positions:
            tagged = tagged.append(pa.field(POSITION, POSITIONS))
        with (
            storage.open_output(join(target.folder, name)) as file,
            pa.ipc.new_stream(file, tagged, options=pa.ipc.IpcWriteOptions(compression="lz4")) as stream,
        ):
            for table in rows:
                placed = _placed(target, places, table)
                groups = placed.groups
                keeps = groups != NEW if target.drops_new else np.ones(len(groups), np.bool_)
                _count(unique, table.column(PARTITION_PATH).combine_chunks())
                _count(new, placed.paths.filter(pa.array(keeps & (groups == NEW))))
                numbers, counts = np.unique(groups[groups != NEW], return_counts=True)
                for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
                    in_groups[str(number)] = in_groups.get(str(number), 0) + count
                kept = table.take(pa.array(placed.rows[keeps]))
                paths, marks = (values.filter(pa.array(keeps)) for values in (placed.paths, pa.array(placed.leaves)))
                absent += int((~keeps).sum())
                written += kept.num_rows
                columns = [paths, *kept.columns[1:], pa.array(groups[keeps]), marks]
                if placed.positions is not None:
                    columns.append(placed.positions.filter(pa.array(keeps)))
                stream.write_table(pa.Table.from_arrays(columns, schema=tagged))
        return Tagged(
            name if written else "",
            in_groups,
            new=_by_partition(new),
            rows=_by_partition(unique),
            dropped=_by_partition(dropped),
            absent=absent,
        )
    except (pa.ArrowException, MemoryError) as error:
        raise ExecutionError(f"tagging the rows of a write failed: {error!r}", path=target.uri) from error


def _placed(target: TagTarget, places: Places, table: pa.Table) -> Placed:
    """Raises UnsupportedError for rows that would move where rows are merged field by field."""
    if target.buckets is not None:
        return _in_buckets(table, target.buckets)
    policy = target.rows.policy
    is_delete = np.ones(table.num_rows, np.bool_)  # A delete by key has no policy. Within partitions none moves.
    if policy is not None and target.rows.scope.is_global and table.num_rows:
        is_delete = delete_flags(table.combine_chunks().to_batches()[0], policy)
    placed = places.of_rows(table, is_delete)
    if target.merges_fields and placed.leaves.any():
        raise UnsupportedError(
            f"{int(placed.leaves.sum())} rows move to another partition, and the table merges rows by fields",
            path=target.rows.uri,
            remedy="set hoodie.*.index.update.partition.path=false of the index, or write with Hudi",
        )
    return placed


def _in_buckets(rows: pa.Table, buckets: Mapping[str, int]) -> Placed:
    """Returns the places of all rows, like Places.of_rows."""
    paths = rows.column(PARTITION_PATH).combine_chunks()
    places = paths.dictionary_encode()
    numbers = np.array([buckets.get(place, NEW) for place in places.dictionary.to_pylist()], np.int32)
    groups: NDArray[np.int32] = numbers[places.indices.to_numpy()]
    return Placed(np.arange(rows.num_rows), groups, paths, np.zeros(rows.num_rows, np.bool_))


def _by_partition(counts: Mapping[str, int]) -> dict[str, int]:
    """Returns counts by place as counts by partition."""
    by_partition: dict[str, int] = {}
    for place, count in counts.items():
        partition, _ = place_of(place)
        by_partition[partition] = by_partition.get(partition, 0) + count
    return by_partition


def _count(counts: dict[str, int], paths: pa.Array) -> None:
    for entry in pc.value_counts(paths).to_pylist():
        counts[entry["values"]] = counts.get(entry["values"], 0) + entry["counts"]


def _split(target: TagTarget, batches: Iterator[pa.RecordBatch]) -> tuple[Places, Iterator[pa.RecordBatch]]:
    """Reads the keys of the table, which come first, and returns them with the pieces of the source."""
    keys: list[pa.RecordBatch] = []
    scope, ordering = target.rows.scope, ordering_of(target.rows)
    schema = KEYS_AT_POSITIONS if target.positions else TABLE_KEYS
    for batch in batches:
        firsts = batch.column(0)
        of_table = pc.starts_with(firsts, pattern=_OF_TABLE)
        count = pc.sum(of_table).as_py() or 0
        keys += [pa.ipc.read_record_batch(piece.as_buffer(), schema) for piece in batch.column(1)[:count]]
        if count < batch.num_rows:
            rest = chain([batch.slice(count)], batches)
            return Places.of(keys, target.partitions, scope, ordering, schema=schema), map(_without_prefix, rest)
    return Places.of(keys, target.partitions, scope, ordering, schema=schema), iter(())


def _without_prefix(batch: pa.RecordBatch) -> pa.RecordBatch:
    # Arrow 26 counts bytes with the end of the slice: without one its number of several keys overflows.
    keys = pc.binary_slice(batch.column(0), len(_OF_SOURCE), _MOST_KEY_BYTES)
    return pa.RecordBatch.from_arrays([keys, batch.column(1)], schema=batch.schema)
