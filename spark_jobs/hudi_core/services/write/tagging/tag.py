"""Finds the file groups that hold the keys of new rows: by the keys of base files, of a partition or of the table
(HoodieSimpleIndex, HoodieGlobalSimpleIndex), or by the bucket of a key (HoodieSimpleBucketIndex).

An exchange brings the keys of base files and the new rows to shards, by the hash of the key. A shard keeps the newest
row of each key (HoodieWriteHelper.deduplicateRecords), and stages its rows with the numbers of their file groups
(places.py). A key that is in several file groups goes to each of them, as in Hudi. The driver gets only counts.

Memory of a shard: the keys of base files, twice (KEYS_PER_SHARD says how many it gets); what row_shards.write_combined
states for rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from itertools import chain
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hudi_core.engine.protocol import TaskAttempt
from hudi_core.errors import ExecutionError, UnsupportedError
from hudi_core.filegroup.merge.record_keys import delete_flags
from hudi_core.filegroup.write.buckets import place_of
from hudi_core.frozen import dataclass
from hudi_core.model.names import PARTITION_PATH
from hudi_core.model.partition import join
from hudi_core.services.rewriting.sort_order import merged_pieces
from hudi_core.services.source.files import SourceRows
from hudi_core.services.write.row_shards import newest
from hudi_core.services.write.shard_files import keyed_schema
from hudi_core.services.write.tagging.keys import OF_SOURCE, OF_TABLE, ordering_of
from hudi_core.services.write.tagging.places import (
    GROUP,
    KEYS_AT_POSITIONS,
    LEAVES,
    NEW,
    POSITION,
    POSITIONS,
    TABLE_KEYS,
    Placed,
    Places,
)
from hudi_core.storage.arrow_store import open_data_storage

_MOST_KEY_BYTES: Final = (1 << 31) - 1


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
    `dropped`, both by partition. `absent` keys of a delete are not in the table. `repeated` are the places that rows
    have beside their first.
    """

    name: str
    in_groups: Mapping[str, int] = field(default_factory=dict)
    new: Mapping[str, int] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    absent: int = 0
    repeated: int = 0


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
    pass_name = "-by-rows" if target.rows.scope.by_rows else ""  # a second pass leaves the files of the first
    name = f"{shard}-{attempt.stage_id}-{attempt.attempt_id}{pass_name}.arrow"
    try:
        places, sorted_rows = _split(target, batches)
        rows = merged_pieces(sorted_rows, schema, target.rows.config.merged_bytes)
        rows = newest(rows, drop, of_table=target.rows.scope.is_global) if target.rows.combines else rows
        storage, written, absent, repeated = open_data_storage(target.uri, target.storage_options), 0, 0, 0
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
                repeated += len(groups) - table.num_rows
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
            repeated=repeated,
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
        of_table = pc.starts_with(firsts, pattern=OF_TABLE)
        count = pc.sum(of_table).as_py() or 0
        keys += [pa.ipc.read_record_batch(piece.as_buffer(), schema) for piece in batch.column(1)[:count]]
        if count < batch.num_rows:
            rest = chain([batch.slice(count)], batches)
            return Places.of(keys, target.partitions, scope, ordering, schema=schema), map(_without_prefix, rest)
    return Places.of(keys, target.partitions, scope, ordering, schema=schema), iter(())


def _without_prefix(batch: pa.RecordBatch) -> pa.RecordBatch:
    # Arrow 26 counts bytes with the end of the slice: without one its number of several keys overflows.
    keys = pc.binary_slice(batch.column(0), len(OF_SOURCE), _MOST_KEY_BYTES)
    return pa.RecordBatch.from_arrays([keys, batch.column(1)], schema=batch.schema)
