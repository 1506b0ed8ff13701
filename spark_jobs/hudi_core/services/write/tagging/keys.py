"""Reads the keys that a write compares: those of base files (HoodieSimpleIndex, HoodieBloomIndex), those that only log
files have, and those of the rows that come. Pieces of them go to shards by the hash of the key (tag.py).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
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
from hudi_core.filegroup.merge.base_merge import grouped
from hudi_core.filegroup.merge.ordering_values import Ordering
from hudi_core.filegroup.merge.record_keys import record_keys
from hudi_core.filegroup.merge.winning_version import compares_with_base
from hudi_core.filegroup.read.base_file import open_base_file
from hudi_core.frozen import dataclass
from hudi_core.model.names import RECORD_KEY
from hudi_core.services.rewriting.sort_order import SORT_KEY
from hudi_core.services.source.files import SourcePart, SourceRows
from hudi_core.services.write.log_keys import rows_of_slice
from hudi_core.services.write.row_shards import RowsUnit, Spread, ordered_rows, ordering_keys
from hudi_core.services.write.tagging.places import HERE, KEYS_AT_POSITIONS, TABLE_KEYS
from hudi_core.storage.arrow_store import open_data_storage
from hudi_core.view.file_group import FileSlice

KEYS_PER_SHARD: Final = 1 << 20
OF_TABLE: Final = b"\x00"
OF_SOURCE: Final = b"\x01"
_KEYS_AT_ONCE: Final = 64 << 10


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
            yield shard, OF_TABLE, part


def _table_keys(unit: KeysUnit, wanted: pa.Array | None) -> Iterator[tuple[pa.Array, pa.Array, pa.Array | None]]:
    """Yields record keys with places.ORDER and, where the unit asks for them, places.POSITION."""
    file_slice, by_rows = unit.file_slice, unit.rows.scope.by_rows
    base = None if file_slice is None else file_slice.base_file
    if file_slice is None or base is None:
        return
    storage, ordering = open_data_storage(unit.uri, unit.storage_options), ordering_of(unit.rows)
    with open_base_file(storage, base.path) as file:
        row_groups = None if wanted is None else _row_groups(file, unit.key_fields, wanted)
        is_needed = row_groups != []
        if is_needed and (ordering is None or file_slice.log_files):
            is_here = pa.scalar(None if file_slice.log_files or not by_rows else HERE, pa.binary())
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
    if policy is None or not rows.scope.moves or not compares_with_base(replace(policy, in_write=True)):
        return None
    return rows.ordering if rows.ordering.columns else None


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
    return any_between(ordered, low.as_py(), high.as_py())


def any_between(ordered: Sequence[bytes], low: str | None, high: str | None) -> bool:
    """Whether one of the keys, in the order of their bytes, may be from `low` to `high`; True where an end is None."""
    if low is None or high is None:
        return True
    return bisect_left(ordered, low.encode()) < bisect_right(ordered, high.encode())


def _source_pieces(rows: pa.Table, shards: int, piece_bytes: int) -> Iterator[tuple[int, bytes, pa.Table]]:
    rows = rows.take(pc.sort_indices(rows, sort_keys=[(SORT_KEY, "ascending")])).combine_chunks()
    step = rows_per_piece(rows, piece_bytes)
    keys = rows.column(RECORD_KEY).combine_chunks()
    for shard, part in _by_shard(rows, group_indexes(keys, shards)):
        first = part.column(SORT_KEY)
        for at in range(0, part.num_rows, step):
            yield shard, OF_SOURCE + first[at].as_py(), part.slice(at, min(step, part.num_rows - at))


def _by_shard(rows: pa.Table, shards: NDArray[np.int32]) -> Iterator[tuple[int, pa.Table]]:
    """Yields the rows of each shard, in their order."""
    if not len(shards):
        return
    order = np.argsort(shards, kind="stable")
    numbers, starts = np.unique(shards[order], return_index=True)
    for number, start, end in zip(numbers.tolist(), starts, [*starts[1:], len(order)], strict=True):
        yield number, rows.take(pa.array(order[start:end])).combine_chunks()
