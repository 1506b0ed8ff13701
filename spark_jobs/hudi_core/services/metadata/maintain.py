"""`metadata create`, `update` and `drop`: initializes, maintains and drops the metadata table without a data write.

All of it happens under the table lock, as in real Hudi: writers wait for it. Only the drop of a row-level index
releases the lock in between, until the writes that may use it have ended.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hudi_core.config.metadata_config import REBUILD_ROW_INDEXES
from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConfigError, ConflictError, UnsupportedError
from hudi_core.metadata_table.index_definitions import IndexDefinition, load_index_definitions, put_index_definitions
from hudi_core.metadata_table.initialize.initialize import MetadataCreation
from hudi_core.metadata_table.partition_type import FILES_PARTITION, PARTITION_STATS, RECORD_INDEX
from hudi_core.metadata_table.partitions.registry import initialization_order
from hudi_core.metadata_table.services.compaction import MetadataCompaction
from hudi_core.metadata_table.services.table_services import ServiceResults, perform_table_services
from hudi_core.metadata_table.write.drop import drop_partitions, with_dependents
from hudi_core.metadata_table.write.staged_logs import Workers
from hudi_core.services.metadata.catch_up import catch_up
from hudi_core.services.metadata.incomplete_indexes import complete_indexes
from hudi_core.services.metadata.index_drop import (
    delist_for_rebuild,
    delist_row_level,
    forget_rebuild,
    left_over,
    planned_rebuild,
    refuse_compacting,
    row_level_among,
    users_of,
)
from hudi_core.services.metadata.initialization import (
    Initializations,
    Snapshot,
    index_warnings,
    partitioned_record_index,
)
from hudi_core.services.metadata.pending_indexing import abandon_builds, inflight_build, refuse_running_builds
from hudi_core.services.metadata.row_changes import RowsUnknownError
from hudi_core.services.waiting import wait_for_writers

if TYPE_CHECKING:
    from hudi_core.engine.protocol import Engine
    from hudi_core.services.context import TableContext
    from hudi_core.transaction.owner import Owner

log = logging.getLogger(__name__)


def create_metadata(
    context: TableContext, names: Collection[str], engine: Engine, owner: Owner, epoch: int = 0
) -> TableConfig:
    """Initializes the metadata table with `files` where it is missing, and the named unlisted partitions; returns the
    properties.

    Secondary and expression indexes must be defined (`.hoodie/.index_defs`); a record index is one of each data
    partition where it is defined so, or the options say so (PARTITIONED_RECORD_INDEX_ENABLE). May be repeated after a
    crash. Raises UnsupportedError for a name without partition type, or statistics of partitions on a table without
    them, before anything is written; ConflictError as MetadataCreation.check; LockError. Memory here: the listing of
    the table's files, and the records of `files`; all others stay with the tasks.
    """
    if PARTITION_STATS in names and not context.config.partition_fields:
        raise UnsupportedError("a table without partitions has no statistics of them", path=context.config.path)
    requirements = sorted({*names} - {FILES_PARTITION}, key=initialization_order)
    defined = partitioned_record_index(context.config, context.options) if RECORD_INDEX in requirements else {}
    workers = context.workers(engine, epoch)
    Initializations(context, workers, defined).check(requirements)
    for warning in index_warnings(context.config, requirements):
        log.warning("%s", warning)
    with context.lock(owner) as lock:
        creation = MetadataCreation(context.storage, workers.token, context.clock(), lock.check)
        config = creation.initialize_table()
        return _begin(replace(context, config=config), requirements, workers, lock.check, defined)


def _begin(
    context: TableContext,
    names: Sequence[str],
    workers: Workers,
    guard: Callable[[], None],
    defined: Mapping[str, IndexDefinition] | None = None,
) -> TableConfig:
    """Initializes the named unlisted partitions from the current table. The caller holds the lock."""
    creation = MetadataCreation(context.storage, workers.token, context.clock(), guard)
    config = context.config
    for name in names:
        guard()
        if name not in config.metadata_partitions:
            current = replace(context, config=config)
            initializations, snapshot = Initializations(current, workers, defined), Snapshot.of(current)
            rows = initializations.rows_by_partition([name], snapshot)
            config = creation.begin(initializations.initialization(name, snapshot, rows), snapshot.timeline)
    return config


@dataclass(frozen=True, slots=True)
class Updated:
    """The result of an update: the missing instants applied, the indexes rebuilt, the data partitions whose ranges were
    too narrow, the indexes that still lack rows or may, and the metadata table's services.
    """

    applied: tuple[str, ...]
    rebuilt: tuple[str, ...]
    widened: tuple[str, ...]
    incomplete: tuple[str, ...]
    upkeep: ServiceResults


def update_metadata(context: TableContext, engine: Engine, owner: Owner, epoch: int = 0) -> Updated:
    """Applies missing actions (catch_up), mends what writers left out of indexes (complete_indexes), then rolls back,
    cleans, compacts and archives as the options say (perform_table_services).

    Row-level indexes that cannot be updated, and secondary indexes that lack rows, are delisted and rebuilt where the
    options allow it (REBUILD_ROW_INDEXES); the writes that may use them are waited for without the lock. After a crash
    the next update continues (index_drop). Raises as these, ConfigError for a table without a metadata table,
    ConflictError as wait_for_writers, and LockError.
    """
    if not context.has_metadata_table:
        raise ConfigError(
            "the table has no metadata table",
            path=context.config.path,
            remedy="create one with `hudictl metadata create TABLE`",
        )
    workers, applied = context.workers(engine, epoch), list[str]()
    users: frozenset[str] | None = None
    delisted = False
    while True:
        with context.lock(owner) as lock:
            current = context.reloaded()
            users = users_of(current, planned_rebuild(current)) if users is None else frozenset()
            if not users:
                try:
                    return _update(current, workers, lock.check, applied)
                except RowsUnknownError as error:
                    if delisted or not REBUILD_ROW_INDEXES.read(context.options):
                        raise
                    users = delist_for_rebuild(current.reloaded(), error, workers.token, error.indexes)
                    delisted = True
        wait_for_writers(context, users)


def _update(context: TableContext, workers: Workers, guard: Callable[[], None], applied: list[str]) -> Updated:
    """Everything that an update does, with the lock held; the old files of planned rebuilds are no longer used.
    `applied` as in catch_up.
    """
    token, as_rebuild = workers.token, planned_rebuild(context)
    if as_rebuild:
        MetadataCompaction(context.storage, context.config, token, context.clock()).finish()
        context = replace(context, config=drop_partitions(context.storage, context.config, as_rebuild))
    catch_up(context, workers, guard, applied)
    if as_rebuild:
        order = sorted(as_rebuild, key=lambda name: (name != RECORD_INDEX, name))
        _begin(context.reloaded(), order, workers, guard)
    forget_rebuild(context)
    guard()
    widened, incomplete = complete_indexes(context.reloaded(), workers, as_rebuild)
    guard()
    upkeep = perform_table_services(
        context.storage,
        TableConfig.load(context.storage),
        token,
        context.options,
        guard,
        context.clock(),
        workers,
    )
    return Updated(tuple(applied), tuple(sorted(as_rebuild)), widened, incomplete, upkeep)


def drop_metadata(context: TableContext, names: Collection[str], owner: Owner) -> TableConfig:
    """Drops the named indexes, with `files` the whole metadata table; returns the new properties.

    `column_stats` is dropped with `partition_stats`. Indexing actions that are pending for one of them are removed
    first, with their files. The definitions of dropped indexes are removed as well; Hudi's writer would rebuild the
    indexes by them. Row-level indexes are delisted first, and the writes that may use them are waited for without the
    lock (index_drop). Raises ConflictError while an indexing runs, for an index while a compaction of the metadata
    table is pending, whose plan names its files, and as wait_for_writers, after which this can be run again; LockError.
    """
    names = with_dependents(names)
    refuse_running_builds(context, names)
    with context.lock(owner):
        users = delist_row_level(context, names)
    wait_for_writers(context, users)
    abandon_builds(context, names, owner)
    with context.lock(owner):
        initialized = inflight_build(context, names)
        if initialized is not None:
            raise ConflictError(
                f"indexing {initialized} began meanwhile", path=context.active.folder, remedy="run this again"
            )
        config = TableConfig.load(context.storage)
        again = [name for name in row_level_among(context, config, names) if name in config.metadata_partitions]
        if again:
            raise ConflictError(
                f"a writer rebuilt {', '.join(again)} meanwhile",
                path=config.path,
                remedy="take the index out of the options of all writers, then run this again",
            )
        if FILES_PARTITION not in names and (
            left_over(context.storage, config, names) or not config.metadata_partitions.isdisjoint(names)
        ):
            refuse_compacting(context, config, names)
        config = drop_partitions(context.storage, config, names)
        forget_rebuild(context, names)
        gone = load_index_definitions(context.storage, config).keys() if FILES_PARTITION in names else names
        return put_index_definitions(context.storage, config, [], [*gone])
