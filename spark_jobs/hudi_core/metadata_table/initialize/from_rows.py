"""Partitions that say something of each row begin by an exchange: executors read the rows' keys and write a base file
for each file group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from hudi_core.metadata_table.initialize.initialize import Initialization
from hudi_core.metadata_table.initialize.shard_file import WrittenShard, write_shard, written_files
from hudi_core.metadata_table.initialize.target import NewBaseFile, NewPartition
from hudi_core.metadata_table.partitions.registry import row_level_type
from hudi_core.metadata_table.partitions.row_exchange import (
    IndexUnit,
    RowsOfIndex,
    base_cells,
    produce_index_rows,
)
from hudi_core.metadata_table.partitions.row_level import Counts, SliceChange
from hudi_core.storage.arrow_store import open_data_storage

if TYPE_CHECKING:
    import pyarrow as pa

    from hudi_core.engine.protocol import Engine, TaskAttempt
    from hudi_core.metadata_table.indexed_table import IndexedTable
    from hudi_core.view.file_group import FileSlice


def initialization_from_rows(
    name: str,
    table: IndexedTable,
    counts: Counts,
    slices: Sequence[FileSlice],
    spec: str,
    engine: Engine,
    *,
    uri: str,
    storage_options: Mapping[str, str] | None = None,
    run_epoch: int = 0,
    zone: str | None = None,
) -> Initialization:
    """The beginning of a record index or a secondary index; `counts` are its file groups (row_level.group_counts).

    `slices` are the latest merged ones of the table, `spec` is ReaderSpec.to_text of a snapshot query; tasks open the
    table by `uri` and `storage_options`. `zone` is that of instants, as the properties say by default. Errors of the
    fill: those of row_level.index_rows, of Engine.exchange and of reading the slices.
    """
    options, index = dict(storage_options or {}), row_level_type(name, table)

    def fill(target: NewPartition) -> list[NewBaseFile]:
        made = index.rows(counts, target.schema, zone or table.config.timezone)
        rows = RowsOfIndex.of(made)
        units = [IndexUnit(uri, options, spec, rows, SliceChange(None, item)) for item in slices]
        shards = IndexShards(uri, options, rows, target)
        found = engine.exchange(
            produce_index_rows, units, partial(write_base_shard, shards), shards=made.shards, run_epoch=run_epoch
        )
        return written_files(found)

    return Initialization(name, index.row_file_ids(counts), fill, index.definition())


@dataclass(frozen=True, slots=True)
class IndexShards:
    """Where the rows of a new row-level index go."""

    uri: str
    storage_options: Mapping[str, str]
    index: RowsOfIndex
    target: NewPartition


def write_base_shard(
    shards: IndexShards, shard: int, batches: Iterator[pa.RecordBatch], attempt: TaskAttempt
) -> WrittenShard:
    """Writes the base file of one file group; with `shards` given, engine.protocol.Consume. Memory: see
    MetadataBaseFile, and one batch.
    """
    storage = open_data_storage(shards.uri, shards.storage_options)
    return write_shard(storage, shards.target, shard, base_cells(shards.index.rows, batches), attempt)
