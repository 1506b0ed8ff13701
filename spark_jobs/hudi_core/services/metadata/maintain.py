"""`metadata create`, `update` and `drop`: the metadata table begun, kept in shape and taken away without any write of data.

All of it happens under the table lock, as in real Hudi: writers wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from hudi_core.config.indexing_config import PARTITIONED_RECORD_INDEX_ENABLE
from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConfigError, ConflictError, UnsupportedError
from hudi_core.metadata_table.compaction.group_task import compact_group_task
from hudi_core.metadata_table.create.create import MetadataCreation
from hudi_core.metadata_table.create.of_rows import record_index_definition
from hudi_core.metadata_table.drop import drop_partitions, with_dependents
from hudi_core.metadata_table.file_group import FILES_PARTITION
from hudi_core.metadata_table.index_definitions import IndexDefinition, load_index_definitions, put_index_definitions
from hudi_core.metadata_table.own import OwnTimeline
from hudi_core.metadata_table.record_index import PARTITION as RECORD_INDEX
from hudi_core.metadata_table.upkeep.run import Upkeep, keep_up
from hudi_core.model.ids import WriteToken
from hudi_core.services.metadata.beginnings import PARTITION_STATS, Beginnings, Snapshot
from hudi_core.services.metadata.catch_up import catch_up
from hudi_core.services.metadata.pending_indexing import give_up_builds, inflight_build
from hudi_core.timeline.active import ActiveTimeline

if TYPE_CHECKING:
    from hudi_core.model.engine import Engine
    from hudi_core.services.context import TableContext
    from hudi_core.transaction.owner import Owner

_ORDER: Final = (FILES_PARTITION, "column_stats", "bloom_filters", RECORD_INDEX, PARTITION_STATS)


def create_metadata(context: TableContext, names: Collection[str], engine: Engine, owner: Owner, epoch: int = 0) -> TableConfig:
    """Begins the metadata table with `files`, where there is none, and those of the named partitions that are not listed; the properties then.

    Secondary and expression indexes must be defined (`.hoodie/.index_defs`); a record index is one of each data partition where it is defined so,
    or the options say so (PARTITIONED_RECORD_INDEX_ENABLE). May be repeated after a crash. Raises UnsupportedError for a
    partition that no kind keeps, or statistics of partitions on a table without them, before anything is written; ConflictError as
    MetadataCreation.check; LockError. Memory here: the listing of the table's files, and the records of `files`; all others stay with the tasks.
    """
    if PARTITION_STATS in names and not context.config.partition_fields:
        raise UnsupportedError("a table without partitions has no statistics of them", path=context.config.path)
    wanted = sorted({*names} - {FILES_PARTITION}, key=lambda name: (_ORDER.index(name) if name in _ORDER else len(_ORDER), name))
    defined = _defined(context, wanted)
    Beginnings(context, engine, epoch, defined).check(wanted)
    with context.lock(owner) as lock:
        creation = MetadataCreation(context.storage, WriteToken(0, epoch, 0), context.clock())
        config = creation.begin_table()
        return _begin(replace(context, config=config), creation, wanted, engine, epoch, lock.check, defined)


def _defined(context: TableContext, names: Collection[str]) -> dict[str, IndexDefinition]:
    """The definitions that the options ask for and the table does not have."""
    if RECORD_INDEX not in names or not PARTITIONED_RECORD_INDEX_ENABLE.read(context.options):
        return {}
    definition = record_index_definition(context.config.features, partitioned=True)
    if definition is None:
        raise UnsupportedError(
            "a record index of each data partition needs table version 9",
            path=context.config.path,
            remedy=f"leave {PARTITIONED_RECORD_INDEX_ENABLE.name} out",
        )
    return {RECORD_INDEX: definition}


def _refuse_compacting(own: ActiveTimeline) -> None:
    compacting = own.load().pending_compactions().first()
    if compacting is not None:
        raise ConflictError(
            f"compaction {compacting.requested_time} of the metadata table is pending, and its plan names files of all partitions",
            path=own.path_of(compacting),
            remedy="finish it with `hudictl metadata update TABLE`, then run this again",
        )


def _begin(
    context: TableContext,
    creation: MetadataCreation,
    names: Sequence[str],
    engine: Engine,
    epoch: int,
    guard: Callable[[], None],
    defined: Mapping[str, IndexDefinition] | None = None,
) -> TableConfig:
    """Begins those of the named partitions that are not listed, from the table as it is now: the caller holds the lock."""
    config = context.config
    for name in names:
        guard()
        if name not in config.metadata_partitions:
            current = replace(context, config=config)
            beginnings, snapshot = Beginnings(current, engine, epoch, defined), Snapshot.of(current)
            config = creation.begin(beginnings.beginning(name, snapshot, beginnings.rows_by_partition([name], snapshot)))
    return config


@dataclass(frozen=True, slots=True)
class Updated:
    """What an update did: the instants that some writer had left out, the indexes built anew for it, and the metadata table's own services."""

    applied: tuple[str, ...]
    rebuilt: tuple[str, ...]
    upkeep: Upkeep


def update_metadata(context: TableContext, engine: Engine, owner: Owner, epoch: int = 0) -> Updated:
    """Applies what the metadata table was not told of (catch_up), then rolls back, cleans, compacts and archives as the options say (keep_up).

    Indexes that catch_up had to take away are built anew before that; who dies in between leaves a table without them, as its log says. Raises as
    these, ConfigError for a table without a metadata table, and LockError.
    """
    if not context.has_metadata_table:
        raise ConfigError("the table has no metadata table", path=context.config.path, remedy="create one with `hudictl metadata create TABLE`")
    with context.lock(owner) as lock:
        current = replace(context, config=TableConfig.load(context.storage))
        caught = catch_up(current, engine, epoch, lock.check)
        if caught.dropped:
            current = replace(context, config=TableConfig.load(context.storage))
            creation = MetadataCreation(context.storage, WriteToken(0, epoch, 0), context.clock())
            _begin(current, creation, caught.dropped, engine, epoch, lock.check)
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
    return Updated(caught.applied, caught.dropped, upkeep)


def drop_metadata(context: TableContext, names: Collection[str], owner: Owner) -> TableConfig:
    """Takes the named indexes away, with `files` the whole metadata table; returns the properties as they are then.

    `column_stats` takes `partition_stats` with it. Indexing actions that are pending for one of them go first, with what they have built. The
    definitions of dropped indexes go, too; real Hudi's writer would build the indexes anew by them. Raises ConflictError while an indexing runs, and
    for an index while a compaction of the metadata table is pending, whose plan names its files; LockError.

    A writer of Hudi's that tags by the record index and read the properties before must be over: among files that go one by one it finds no keys,
    and inserts rows that are there (indexing.resize waits for such writers).
    """
    names = with_dependents(names)
    give_up_builds(context, names, owner)
    with context.lock(owner):
        begun = inflight_build(context, names)
        if begun is not None:
            raise ConflictError(f"indexing {begun} began meanwhile", path=context.active.folder, remedy="run this again")
        config = TableConfig.load(context.storage)
        if FILES_PARTITION not in names and not config.metadata_partitions.isdisjoint(names):
            _refuse_compacting(OwnTimeline(context.storage, config).active)
        config = drop_partitions(context.storage, config, names)
        gone = load_index_definitions(context.storage, config).keys() if FILES_PARTITION in names else names
        return put_index_definitions(context.storage, config, [], [*gone])
