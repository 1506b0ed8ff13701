"""Initializes and maintains the metadata table without a data write: `metadata create` and `metadata update`.
index_drop.py drops it.

All of it happens under the table lock, as in real Hudi: writers wait for it. In between the lock is released to wait
for two kinds of writes: those that may use a row-level index which is dropped, and those that began without an index
which has to hold all rows (docs/guarantees/metadata-table.md, "Initialization and maintenance").
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NoReturn

from hudi_core.config.metadata_config import REBUILD_ROW_INDEXES
from hudi_core.config.table_config import TableConfig
from hudi_core.engine.protocol import Engine
from hudi_core.errors import ConfigError, ConflictError, UnsupportedError
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.indexed_table import IndexDefinition
from hudi_core.metadata_table.initialize.initialize import MetadataCreation
from hudi_core.metadata_table.partition_type import (
    EXPRESSION_PREFIX,
    FILES_PARTITION,
    PARTITION_STATS,
    RECORD_INDEX,
    is_row_level,
)
from hudi_core.metadata_table.partitions.registry import initialization_order
from hudi_core.metadata_table.read.snapshot import partitions_there
from hudi_core.metadata_table.services.compaction import MetadataCompaction
from hudi_core.metadata_table.services.table_services import ServiceResults, perform_table_services
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.lifetime import drop_partitions, with_dependents
from hudi_core.metadata_table.write.staged_logs import Workers
from hudi_core.services.context import TableContext
from hudi_core.services.metadata.catch_up import catch_up, complete_indexes, missing_actions
from hudi_core.services.metadata.index_drop import (
    delist_for_rebuild,
    forget_rebuild,
    planned_rebuild,
    refuse_compacting,
    users_of,
)
from hudi_core.services.metadata.initialization import (
    Initializations,
    Snapshot,
    index_warnings,
    partitioned_record_index,
)
from hudi_core.services.metadata.row_changes import RowsUnknownError
from hudi_core.services.waiting import deadline_of, may_be_at_work, wait_for_writers, writers_at_work, writes_of_others
from hudi_core.storage.one_look import OneLookStorage, one_look
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.transaction.owner import Owner

log = logging.getLogger(__name__)


def create_metadata(
    context: TableContext, names: Collection[str], engine: Engine, owner: Owner, epoch: int = 0
) -> TableConfig:
    """Initializes the metadata table with `files` where it is missing, the named unlisted partitions, and listed ones
    that are gone (partitions_there). Returns the properties. Secondary and expression indexes must be defined
    (`.hoodie/.index_defs`). A record index is partitioned where its definition or the options say so
    (PARTITIONED_RECORD_INDEX_ENABLE). May be repeated after a crash. Raises, before anything is written,
    UnsupportedError for a name without partition type, or for statistics of partitions on a table without partitions;
    ConflictError as MetadataCreation.check; ConflictError where an index has to hold all rows and writers leave no
    moment without a write for `airflow_hudi.indexing.catchup_minutes`; LockError. Memory here: the listing of the
    table's files, and the records of `files`.
    """
    if PARTITION_STATS in names and not context.config.partition_fields:
        raise UnsupportedError("a table without partitions has no statistics of them", path=context.config.path)
    gone = lost_partitions(context)
    if gone:
        log.warning("listed, but not there: %s; they are built again", ", ".join(sorted(gone)))
    requirements = sorted({*names, *gone} - {FILES_PARTITION}, key=initialization_order)
    defined = partitioned_record_index(context.config, context.options) if RECORD_INDEX in requirements else {}
    workers = context.workers(engine, epoch)
    Initializations(context, workers, defined).check(requirements)
    for warning in index_warnings(context.config, requirements):
        log.warning("%s", warning)
    deadline = deadline_of(context)
    while True:
        with context.lock(owner) as lock:
            creation = MetadataCreation(context.storage, workers.token, context.clock(), lock.check)
            current = _without_lost(replace(context, config=creation.initialize_table()))
            users = _unaware_writes(current, requirements)
            if not users:
                return _begin(current, requirements, workers, lock.check, defined)
        _wait(context, users, deadline)


def lost_partitions(context: TableContext) -> frozenset[str]:
    """The listed partitions of the metadata table that do not exist, with those that are made of them."""
    listed = context.config.metadata_partitions
    return listed & with_dependents(listed - partitions_there(context.storage, context.config)) if listed else listed


def _without_lost(context: TableContext) -> TableContext:
    """Drops lost indexes, and returns the table with the new properties. The caller holds the lock."""
    gone = lost_partitions(context)
    if not gone:
        return context
    refuse_compacting(context, context.config, gone)
    return replace(context, config=drop_partitions(context.storage, context.config, gone))


def _unaware_writes(context: TableContext, names: Iterable[str]) -> frozenset[str]:
    """Returns the pending instants of writers that do not know an unlisted index. It would hide their rows. In version
    6 no index begins beside them (MetadataCreation.check); our own services check the list under the lock.
    """
    new = set(names) - context.config.metadata_partitions
    holds_all = any(is_row_level(name) or name == PARTITION_STATS or name.startswith(EXPRESSION_PREFIX) for name in new)
    if context.config.features.metadata_needs_rest or not holds_all:
        return frozenset()
    others = writes_of_others(context, context.active.load())
    return frozenset(item.requested_time for item in writers_at_work(context, others, may_be_at_work))


def _wait(context: TableContext, users: Collection[str], deadline: float) -> None:
    """Waits for `users`. Raises ConflictError where one of them is still at work at `deadline`."""
    try:
        wait_for_writers(context, users, rule=may_be_at_work, deadline=deadline)
    except ConflictError as error:
        remedy = f"{error.remedy}; `hudictl run indexing TABLE --schedule` builds an index while writers go on"
        raise ConflictError(error.message, path=error.path, remedy=remedy) from error


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
    """The result of an update: instants applied, indexes rebuilt, ranges widened, indexes in doubt, table services."""

    applied: tuple[str, ...]
    rebuilt: tuple[str, ...]
    widened: tuple[str, ...]
    incomplete: tuple[str, ...]
    upkeep: ServiceResults


def update_metadata(context: TableContext, engine: Engine, owner: Owner, epoch: int = 0) -> Updated:
    """Applies missing actions (catch_up), mends what writers left out of indexes (complete_indexes), then rolls back,
    cleans, compacts and archives as the options say (perform_table_services). Where the options allow it
    (REBUILD_ROW_INDEXES), it delists and rebuilds row-level indexes that cannot be updated or may lack rows. It waits,
    without the lock, for the writes that may use them. After a crash the next update continues (index_drop). Raises as
    these functions, ConfigError for a table without a metadata table, ConflictError as wait_for_writers, and LockError.
    """
    _check_there(context)
    workers, applied = context.workers(engine, epoch), list[str]()
    deadline = deadline_of(context)
    users: frozenset[str] | None = None
    delisted = False
    while True:
        with context.lock(owner) as lock:
            current = context.reloaded()
            planned = planned_rebuild(current)
            users = (users_of(current, planned) if users is None else frozenset()) | _unaware_writes(current, planned)
            if not users:
                try:
                    return _update(current, workers, lock.check, applied)
                except RowsUnknownError as error:
                    if delisted or not REBUILD_ROW_INDEXES.read(context.options):
                        raise
                    users = delist_for_rebuild(current.reloaded(), error, workers.token, lock.check)
                    delisted, deadline = True, deadline_of(context)
        try:
            _wait(context, users, deadline)
        except ConflictError:
            # Where writers leave no moment for a rebuild, everything else is done all the same.
            with context.lock(owner) as lock, suppress(RowsUnknownError):
                _update(context.reloaded(), workers, lock.check, applied, rebuilds=False)
            raise


def _check_there(context: TableContext) -> None:
    if not context.has_metadata_table:
        message = "the table has no metadata table"
        remedy = "create one with `hudictl metadata create TABLE`"
        raise ConfigError(message, path=context.config.path, remedy=remedy)


def _update(
    context: TableContext, workers: Workers, guard: Callable[[], None], applied: list[str], *, rebuilds: bool = True
) -> Updated:
    """Runs the steps of an update under the lock. `applied` as in catch_up. Without `rebuilds` these stay planned."""
    token, as_rebuild = workers.token, planned_rebuild(context) if rebuilds else frozenset[str]()
    if as_rebuild:
        MetadataCompaction(context.storage, context.config, token, context.clock(), guard=guard).finish()
        context = replace(context, config=drop_partitions(context.storage, context.config, as_rebuild))
    catch_up(context, workers, guard, applied)
    if as_rebuild:
        order = sorted(as_rebuild, key=lambda name: (name != RECORD_INDEX, name))
        _begin(context.reloaded(), order, workers, guard)
    if rebuilds:
        forget_rebuild(context)
    guard()
    widened, incomplete = complete_indexes(context.reloaded(), workers, as_rebuild)
    guard()
    upkeep = perform_table_services(
        context.storage, TableConfig.load(context.storage), token, context.options, guard, context.clock(), workers
    )
    return Updated(tuple(applied), tuple(sorted(as_rebuild)), widened, incomplete, upkeep)


def updated_already(context: TableContext) -> Updated | None:
    """Returns the result of an update that changes nothing; None where the update would change something. Runs the
    update until it writes, on a view of the table that refuses changes. Takes no lock. Asks before the run for planned
    rebuilds and missing actions, which the update would log as done. Raises as update_metadata.
    """
    _check_there(context)
    if planned_rebuild(context) or missing_actions(context, MetadataTimeline(context.storage, context.config)):
        return None
    storage = _ReadOnlyStorage(context.storage)
    view = replace(context, storage=storage, active=ActiveTimeline(storage, context.config, zone=context.zone))
    workers = view.workers(_NoEngine(), 0)
    with suppress(_ChangeError), one_look(storage):
        view = view.reloaded()
        try:
            return _update(view, workers, _no_lock, [])
        except RowsUnknownError as error:
            if not REBUILD_ROW_INDEXES.read(context.options):
                raise
            delist_for_rebuild(view, error, workers.token, _no_lock)
    return None


class _ChangeError(Exception):
    """The update has something to write, or to run on an engine. Only this module catches it, so it is no HudiError."""


def _no_lock() -> None:
    """The guard of a run that only looks: it holds no lock."""


def _refuse(*_: object, **__: object) -> Any:
    raise _ChangeError


class _NoEngine(Engine):
    name = "none"
    is_remote = False
    run = staticmethod(_refuse)
    exchange = staticmethod(_refuse)


class _ReadOnlyStorage(OneLookStorage):
    """A storage that refuses changes. To delete an absent file is none, and makes no request: it may just appear."""

    def _changing(self, path: str, *, is_there: bool = True) -> NoReturn:
        raise _ChangeError

    def delete(self, path: str) -> bool:
        if self.exists(path):
            raise _ChangeError
        return False

    def delete_folder(self, folder: str) -> list[str]:
        if self.list_files(folder) or self.list_folders(folder):
            raise _ChangeError
        return []
