"""`metadata create`, `update` and `drop`: the metadata table begun, kept in shape and taken away without any write of data.

All of it happens under the table lock, as in real Hudi: writers wait for it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConfigError, UnsupportedError
from hudi_core.metadata_table.compaction.group_task import compact_group_task
from hudi_core.metadata_table.create.create import Beginning, MetadataCreation
from hudi_core.metadata_table.drop import drop_partitions
from hudi_core.metadata_table.file_group import FILES_PARTITION
from hudi_core.metadata_table.index_definitions import load_index_definitions, put_index_definitions
from hudi_core.metadata_table.upkeep.run import Upkeep, keep_up
from hudi_core.model.ids import WriteToken
from hudi_core.services.metadata.beginnings import Beginnings, Snapshot
from hudi_core.services.metadata.catch_up import catch_up
from hudi_core.services.metadata.pending_indexing import give_up_builds

if TYPE_CHECKING:
    from hudi_core.model.engine import Engine
    from hudi_core.services.context import TableContext
    from hudi_core.transaction.owner import Owner

PARTITION_STATS: Final = "partition_stats"
_ORDER: Final = (FILES_PARTITION, "column_stats", "bloom_filters", "record_index", PARTITION_STATS)
_THREADS: Final = 16


def create_metadata(context: TableContext, names: Collection[str], engine: Engine, owner: Owner, epoch: int = 0) -> TableConfig:
    """Begins the metadata table with `files`, where there is none, and those of the named partitions that are not listed; the properties then.

    Secondary and expression indexes must be defined (`.hoodie/.index_defs`). May be repeated after a crash. Raises UnsupportedError for a
    partition that no kind keeps, or statistics of partitions on a table without them, before anything is written; ConflictError as
    MetadataCreation.check; LockError. Memory here: the records of one partition but for indexes of rows, whose rows stay with the tasks; of
    `bloom_filters` that are 430 KB for each base file with Hudi's defaults.
    """
    if PARTITION_STATS in names and not context.config.partition_fields:
        raise UnsupportedError("a table without partitions has no statistics of them", path=context.config.path)
    wanted = sorted({*names} - {FILES_PARTITION}, key=lambda name: (_ORDER.index(name) if name in _ORDER else len(_ORDER), name))
    Beginnings(context, engine, epoch).check(wanted)
    with context.lock(owner) as lock:
        creation = MetadataCreation(context.storage, WriteToken(0, epoch, 0), context.clock())
        config = creation.begin_table()
        for name in wanted:
            lock.check()
            if name not in config.metadata_partitions:
                config = creation.begin(_beginning(replace(context, config=config), engine, epoch, name))
    return config


@dataclass(frozen=True, slots=True)
class Updated:
    """What an update did: the instants that some writer had left out, and the metadata table's own services."""

    applied: tuple[str, ...]
    upkeep: Upkeep


def update_metadata(context: TableContext, engine: Engine, owner: Owner, epoch: int = 0) -> Updated:
    """Applies what the metadata table was not told of (catch_up), then rolls back, cleans, compacts and archives as the options say (keep_up).

    Raises as these, ConfigError for a table without a metadata table, and LockError.
    """
    if not context.has_metadata_table:
        raise ConfigError("the table has no metadata table", path=context.config.path, remedy="create one with `hudictl metadata create TABLE`")
    with context.lock(owner) as lock:
        current = replace(context, config=TableConfig.load(context.storage))
        applied = catch_up(current, engine, epoch, lock.check)
        lock.check()
        upkeep = keep_up(
            context.storage,
            TableConfig.load(context.storage),
            WriteToken(0, epoch, 0),
            context.options,
            lock.check,
            context.clock(),
            run_units=lambda units: engine.run(compact_group_task, units, run_epoch=epoch),
            uri=context.uri,
            storage_options=context.storage_options,
        )
    return Updated(applied, upkeep)


def drop_metadata(context: TableContext, names: Collection[str], owner: Owner) -> TableConfig:
    """Takes the named indexes away, with `files` the whole metadata table; returns the properties as they are then.

    Indexing actions that are pending for one of them go first, with what they have built. Raises ConflictError while one runs, and LockError.
    The definitions of dropped secondary and expression indexes go, too; real Hudi's writer would build the indexes anew by them.
    """
    give_up_builds(context, names, owner)
    with context.lock(owner):
        config = drop_partitions(context.storage, TableConfig.load(context.storage), names)
        gone = load_index_definitions(context.storage, config).keys() if FILES_PARTITION in names else names
        return put_index_definitions(context.storage, config, [], [*gone])


def _beginning(context: TableContext, engine: Engine, epoch: int, name: str) -> Beginning:
    """From the table as it is now: the caller holds the lock."""
    beginnings, snapshot = Beginnings(context, engine, epoch), Snapshot.of(context)
    return beginnings.beginning(name, snapshot, beginnings.rows_by_partition([name], snapshot))
