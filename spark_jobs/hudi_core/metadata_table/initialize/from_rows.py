"""Partitions that say something of each row begin by an exchange: executors read the rows' keys and write a base file
for each file group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from hudi_core.errors import ConfigError
from hudi_core.metadata_table.extract.slice_change import SliceChange
from hudi_core.metadata_table.initialize.initialize import Initialization
from hudi_core.metadata_table.initialize.shard_file import write_shard, written_files
from hudi_core.metadata_table.initialize.target import NewBaseFile, NewPartition
from hudi_core.metadata_table.partitions.group_content import base_cells
from hudi_core.metadata_table.partitions.registry import row_level_type
from hudi_core.metadata_table.partitions.row_level import Counts
from hudi_core.metadata_table.partitions.row_units import index_unit, produce_index_rows, rows_from_json
from hudi_core.storage.data_registry import open_data_storage

if TYPE_CHECKING:
    import pyarrow as pa

    from hudi_core.engine.protocol import Engine, Json, TaskAttempt
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
        rows = index.rows(counts, target.schema, zone or table.config.timezone)
        units = [index_unit(uri, options, spec, rows, SliceChange(None, item)) for item in slices]
        shard = {"uri": uri, "storage_options": options, "index": rows.to_json(), "target": target.to_json()}
        found = engine.exchange(
            produce_index_rows, units, partial(write_base_shard, shard), shards=rows.shards, run_epoch=run_epoch
        )
        return written_files(found)

    return Initialization(name, index.row_file_ids(counts), fill, index.definition())


def write_base_shard(unit: Json, shard: int, batches: Iterator[pa.RecordBatch], attempt: TaskAttempt) -> Json:
    """Writes the base file of one file group; with `unit` given, engine.protocol.Consume. Returns `{"file": NewBaseFile
    as JSON}`, None without rows.

    Memory: see MetadataBaseFile, and one batch.
    """
    try:
        storage, rows = open_data_storage(unit["uri"], unit["storage_options"]), rows_from_json(unit["index"])
        target = NewPartition.from_json(unit["target"])
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"a unit of an index is not what this version writes: {error!r}") from error
    return write_shard(storage, target, shard, base_cells(rows, batches), attempt)
