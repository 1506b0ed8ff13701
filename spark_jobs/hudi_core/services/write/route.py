"""Sends rows to the shards that write them: those of a file group to one shard. Says which small file groups
take new rows (UpsertPartitioner).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hudi_core.codec.hashing import string_hashes
from hudi_core.config.rows_config import SMALL_FILE_BYTES
from hudi_core.config.services.compaction_config import MAX_FILE_BYTES
from hudi_core.engine.exchange import PIECES_PER_BATCH, exchange_pieces, rows_per_piece
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.errors import ExecutionError
from hudi_core.filegroup.merge.base_merge import grouped
from hudi_core.filegroup.write.buckets import Buckets
from hudi_core.frozen import dataclass
from hudi_core.model.names import PARTITION_PATH, RECORD_KEY
from hudi_core.model.partition import check_file_name, join
from hudi_core.services.concurrent_changes import Groups
from hudi_core.services.context import TableContext
from hudi_core.services.source.files import CountedRows, SourcePart, SourceRows
from hudi_core.services.write.plan import WritePlan
from hudi_core.services.write.row_shards import RowsUnit, Spread, keyed_rows, shards_of, spread_of
from hudi_core.services.write.tagging.places import GROUP, LEAVES, NEW, POSITION
from hudi_core.services.write.tagging.tag import Tagged
from hudi_core.storage.arrow_store import open_data_storage
from hudi_core.timeline.pending_plans import PLANS_OF_FILE_GROUPS, planned_file_groups
from hudi_core.timeline.timeline import Timeline

_UNIT: Final = "unit of a write"
_SHARD: Final = "_airflow_hudi_shard"
LEAVING: Final = b"\xff"
"""The key of pieces whose rows leave the file group (places.LEAVES): no partition path begins so in UTF-8."""
_MIX: Final = np.uint32(2_654_435_769)
"""Spreads the hashes of keys that differ in their last digits: these are close to each other (Knuth, volume 3, 6.4)."""
FRACTIONS: Final = 4096
"""Parts of the hash range of keys, of which file groups get some."""


@dataclass(frozen=True, slots=True)
class Routes:
    """Where rows go. The shard i writes the file group `touched[i]`, a number of WritePlan.slices. Later shards write
    new files by `spread`. `small` are the shares that file groups take of a partition's new rows: with each its number,
    and the part of FRACTIONS where its share ends. In a merge-on-read table `appended` are the file groups whose rows
    go to log files, with their `positions` (places.POSITION) where these are known; the others are merged.
    """

    touched: tuple[int, ...]
    spread: Spread
    appended: frozenset[int] = frozenset()
    small: Mapping[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    positions: bool = False

    @property
    def shards(self) -> int:
        return len(self.touched) + self.spread.shards


def routes_of(
    context: TableContext, timeline: Timeline, plan: WritePlan, rows: CountedRows, tagged: Sequence[Tagged] | None
) -> Routes:
    """Returns the routes of `tagged` rows, or where None of all `rows` as new ones."""
    new = new_by_partition(rows, tagged)
    touched = set() if tagged is None else {int(number) for item in tagged for number in item.in_groups}
    row_bytes = rows.size / max(1, rows.count)
    small = {} if plan.buckets is not None else _small_shares(context, timeline, plan, new, row_bytes)
    left = {name: count * (FRACTIONS - _end(small.get(name, ()))) // FRACTIONS for name, count in new.items()}
    filled = {number for shares in small.values() for number, _ in shares}
    appended = touched - filled if context.config.is_merge_on_read else set()
    touched |= filled
    spread = spread_of(
        replace(rows, by_partition={name: max(1, count) for name, count in left.items()}, row_bytes=row_bytes),
        MAX_FILE_BYTES.read(context.options),
    )
    return Routes(tuple(sorted(touched)), spread, frozenset(appended), small, plan.positions)


def new_by_partition(rows: CountedRows, tagged: Sequence[Tagged] | None) -> Counter[str]:
    """Returns how many of the `tagged` rows go to new places, or where None all `rows`, by partition."""
    if tagged is None:
        return Counter(rows.by_partition)
    return sum((Counter(shard.new) for shard in tagged), Counter())


def groups_of(plan: WritePlan, routes: Routes, buckets: Buckets | None = None) -> Groups:
    """Returns the file groups of the rows."""
    merged = (plan.slices[number].file_group for number in routes.touched if number not in routes.appended)
    appended = {plan.slices[number].file_group: plan.log_instants[number] for number in routes.appended}
    by_hash = buckets is not None and buckets.by_hash
    hashed = frozenset(plan.partitions if by_hash else ())
    return Groups(frozenset(merged), appended, by_hash=by_hash, hashed=hashed)


def _end(shares: Sequence[tuple[int, int]]) -> int:
    return shares[-1][1] if shares else 0


def _small_shares(
    context: TableContext, timeline: Timeline, plan: WritePlan, new: Mapping[str, int], row_bytes: float
) -> dict[str, tuple[tuple[int, int], ...]]:
    """Returns Routes.small: small file groups are filled first (UpsertPartitioner.getSmallFiles), but none with a
    pending plan or log files. In a merge-on-read table change logs count as such (SparkUpsertDeltaCommitPartitioner).
    """
    limit, full = SMALL_FILE_BYTES.read(context.options), MAX_FILE_BYTES.read(context.options)
    pending = timeline.pending().of_actions(*PLANS_OF_FILE_GROUPS)
    planned = frozenset().union(*(planned_file_groups(context.active, item) or () for item in pending))
    shares: dict[str, list[tuple[int, int]]] = {}
    for number, item in sorted(enumerate(plan.slices), key=lambda numbered: numbered[1].size):
        partition = item.file_group.partition
        count, start = new.get(partition, 0), _end(shares.get(partition, ()))
        has_logs = item.log_files or (item.cdc_files and context.config.is_merge_on_read)
        is_small = item.size < min(limit, full) and not has_logs and item.file_group not in planned
        room = int((full - item.size) / max(1.0, row_bytes))
        if not count or not is_small or start >= FRACTIONS or room < 1:
            continue
        end = min(FRACTIONS, start + -(-FRACTIONS * room // count))
        shares.setdefault(partition, []).append((number, end))
    return {name: tuple(of_partition) for name, of_partition in shares.items()}


@dataclass(frozen=True, slots=True)
class RouteUnit:
    """The tagged rows of one file (tag.py) in `folder` of the table, or the rows of a `part` of the source, all new."""

    rows: SourceRows
    uri: str
    storage_options: Mapping[str, str]
    routes: Routes
    folder: str
    name: str = ""
    part: SourcePart | None = None
    rows_per_batch = PIECES_PER_BATCH


def produce_routed(unit: RouteUnit, attempt: TaskAttempt) -> Iterator[pa.RecordBatch]:
    """Yields rows in pieces of one shard and partition each (engine.protocol.Produce). Raises the errors of keyed_rows,
    and ExecutionError for a damaged file of tagged rows. Memory: a batch, and half of the memory budget.
    """
    config = unit.rows.config
    for batches in grouped(_with_groups(unit), max_bytes=config.sorted_bytes):
        rows = pa.Table.from_batches(batches).combine_chunks()
        batches.clear()
        yield from exchange_pieces(_pieces(rows, unit.routes, config.piece_bytes))


def _with_groups(unit: RouteUnit) -> Iterator[pa.RecordBatch]:
    if unit.part is not None:
        for batch in keyed_rows(RowsUnit(unit.rows, unit.part, Spread(1, {}))):
            groups, leaves = np.full(batch.num_rows, NEW, np.int32), np.zeros(batch.num_rows, np.bool_)
            yield batch.append_column(GROUP, pa.array(groups)).append_column(LEAVES, pa.array(leaves))
        return
    storage = open_data_storage(unit.uri, unit.storage_options)
    path = join(unit.folder, check_file_name(unit.name, source=_UNIT))
    try:
        with storage.open_input(path) as file, pa.ipc.open_stream(file) as stream:
            yield from stream
    except (pa.ArrowException, OSError) as error:  # of a decompressor; the storage has errors of its own
        raise ExecutionError(f"tagged rows of a write were not read: {error!r}", path=path) from error


def _pieces(rows: pa.Table, routes: Routes, piece_bytes: int) -> Iterator[tuple[int, bytes, pa.Table]]:
    """Yields pieces with their shard, and their partition path or LEAVING."""
    paths = rows.column(PARTITION_PATH).combine_chunks()
    groups = _small_groups(rows, paths, routes)
    shards = np.empty(len(groups), np.int64)
    is_new = groups == NEW
    shards[~is_new] = np.searchsorted(np.array(routes.touched, np.int64), groups[~is_new])
    if is_new.any():
        shards[is_new] = len(routes.touched) + shards_of(rows.filter(pa.array(is_new)), routes.spread)
    rows = rows.drop_columns([GROUP]).append_column(_SHARD, pa.array(shards))
    order = [(_SHARD, "ascending"), (PARTITION_PATH, "ascending"), (LEAVES, "ascending")]
    rows = rows.take(pc.sort_indices(rows, sort_keys=order)).combine_chunks()
    step = rows_per_piece(rows, piece_bytes)
    paths = rows.column(PARTITION_PATH).combine_chunks().dictionary_encode()
    sorted_shards = rows.column(_SHARD).to_numpy()
    codes = paths.indices.to_numpy()
    leaves = rows.column(LEAVES).combine_chunks().to_numpy(zero_copy_only=False)
    changes = (np.diff(sorted_shards) != 0) | (np.diff(codes) != 0) | (leaves[1:] != leaves[:-1])
    starts = np.r_[0, np.flatnonzero(changes) + 1]
    rows = rows.drop_columns([_SHARD, PARTITION_PATH, LEAVES])
    bare = rows.drop_columns([POSITION]) if routes.positions else rows
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(codes)], strict=True):
        shard, key = int(sorted_shards[start]), paths.dictionary[codes[start]].as_py().encode()
        key = LEAVING if leaves[start] else key
        sent = rows if shard < len(routes.touched) and routes.touched[shard] in routes.appended else bare
        for at in range(start, end, step):
            yield shard, key, sent.slice(at, min(step, end - at))


def _small_groups(rows: pa.Table, paths: pa.Array, routes: Routes) -> NDArray[np.int32]:
    """Returns the file groups of rows, with those that small file groups take of the new ones (Routes.small)."""
    groups: NDArray[np.int32] = rows.column(GROUP).combine_chunks().to_numpy().copy()
    for partition, shares in routes.small.items():
        places = np.flatnonzero((groups == NEW) & pc.equal(paths, partition).to_numpy(zero_copy_only=False))
        if not len(places):
            continue
        keys = rows.column(RECORD_KEY).combine_chunks().take(pa.array(places))
        numbers, ends = (np.array(values) for values in zip(*shares, strict=True))
        share = np.searchsorted(ends, _fractions(keys), side="right")
        taken = share < len(numbers)
        groups[places[taken]] = numbers[share[taken]]
    return groups


def _fractions(keys: pa.Array) -> NDArray[np.uint64]:
    """Returns for each key one of FRACTIONS parts, which get about equal shares also of numbered keys."""
    mixed: NDArray[np.uint32] = string_hashes(keys).view(np.uint32) * _MIX
    fractions: NDArray[np.uint64] = mixed.astype(np.uint64) * np.uint64(FRACTIONS) >> np.uint64(32)
    return fractions
