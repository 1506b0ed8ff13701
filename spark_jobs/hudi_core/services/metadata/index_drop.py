"""Drop of indexes from the metadata table, and rebuild of row-level ones that missing actions cannot be applied to.

A row-level index is delisted first; its files are deleted when no writer can hold the older properties. The number of
file groups is not stored: a lookup counts them in the folder and hashes the key by that number. A lookup during the
deletion would find nothing, and a writer of Hudi that tags by the record index would insert existing rows again. It
reads the properties again after it has put its instant on the timeline: so the writes that are pending when the index
is delisted are waited for.

The names of indexes that `metadata update` rebuilds are kept in a file until all are rebuilt: after a crash the next
update continues.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Iterable
from typing import Final

from hudi_core.config.properties_update import update_properties
from hudi_core.config.table_config import METADATA, TableConfig
from hudi_core.errors import ConflictError, CorruptFileError, HudiError, StorageNotFoundError
from hudi_core.metadata_table.index_definitions import load_index_definitions
from hudi_core.metadata_table.initialize.initialize import MetadataCreation
from hudi_core.metadata_table.partition_type import FILES_PARTITION, RECORD_INDEX, is_row_level
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.services.compaction import MetadataCompaction
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.model.names import WriteToken
from hudi_core.model.partition import check_file_name
from hudi_core.services.context import TableContext
from hudi_core.services.waiting import is_at_work, pending_writers, writers_at_work
from hudi_core.storage.base import Storage

log = logging.getLogger(__name__)

PLAN: Final = ".hoodie/.airflow_hudi/metadata_rebuild.json"
_INDEXES: Final = "indexes"
_FINISH: Final = "finish it with `hudictl metadata update TABLE`, or by a write of Hudi, then run this again"


def delist(context: TableContext, names: Collection[str]) -> TableConfig:
    """Takes indexes off the list in the properties; files and definitions stay. The caller holds the table lock."""
    config = TableConfig.load(context.storage)
    return update_properties(
        context.storage, {METADATA.name: ",".join(sorted(config.metadata_partitions.difference(names)))}
    )


def refuse_compacting(context: TableContext, config: TableConfig, names: Iterable[str]) -> None:
    """Raises ConflictError while a compaction is pending, whose plan may name files of `names`."""
    metadata_timeline = MetadataTimeline(context.storage, config, context.clock()).active
    timeline = metadata_timeline.load()
    pending = [*timeline.pending_compactions(), *timeline.pending_log_compactions()]
    if pending:
        raise ConflictError(
            f"compaction {pending[0].requested_time} of the metadata table is pending, and its plan may name files of "
            f"{', '.join(sorted(names))}",
            path=metadata_timeline.path_of(pending[0]),
            remedy=_FINISH,
        )


def counts_early(config: TableConfig, names: Iterable[str]) -> bool:
    """Whether file groups of `names` count while they are built, so that a plan to compact may name their files."""
    return config.features.metadata_needs_rest and not config.metadata_partitions_inflight.isdisjoint(names)


def left_over(storage: Storage, config: TableConfig, names: Iterable[str]) -> list[str]:
    """Those of `names` that are delisted and still have files: a writer may hold older properties."""
    unknown = set(names) - config.metadata_partitions - config.metadata_partitions_inflight
    return sorted(name for name in unknown if storage.list_files(f"{ROOT}/{name}"))


def users_of(context: TableContext, names: Iterable[str]) -> frozenset[str]:
    """The pending instants with a live writer that may use delisted indexes with files."""
    if not left_over(context.storage, TableConfig.load(context.storage), names):
        return frozenset()
    alive = writers_at_work(context, pending_writers(context.active.load()), is_at_work)
    return frozenset(item.requested_time for item in alive)


def row_level_among(context: TableContext, config: TableConfig, names: Collection[str]) -> list[str]:
    """The row-level indexes among `names`, with `files` all that are listed or have a folder; sorted."""
    found = set(names)
    if FILES_PARTITION in names:
        found.update(
            config.metadata_partitions, (folder.rpartition("/")[2] for folder in context.storage.list_folders(ROOT))
        )
    return sorted(filter(is_row_level, found))


def refuse_in_use(context: TableContext, names: Collection[str]) -> None:
    """Raises ConflictError while a write is at work that may use one of the delisted indexes among `names`."""
    indexes = sorted(filter(is_row_level, names))
    users = sorted(users_of(context, indexes))
    if users:
        raise ConflictError(
            f"{', '.join(indexes)} may be in use by {users[0]}, which began before",
            path=context.active.folder,
            remedy="run this again when that write has ended",
        )


def delist_row_level(context: TableContext, names: Collection[str]) -> frozenset[str]:
    """Delists the row-level indexes among `names`, with `files` all; returns the pending instants that may use them,
    and that the deletion of the files waits for. The caller holds the table lock. May be repeated. Raises as
    refuse_compacting where the metadata table stays.
    """
    config = TableConfig.load(context.storage)
    rows = row_level_among(context, config, names)
    listed = config.metadata_partitions.intersection(rows)
    if listed:
        if FILES_PARTITION not in names:
            refuse_compacting(context, config, listed)
        log.info(
            "the indexes %s are delisted; their files are deleted when no writer can use them",
            ", ".join(sorted(listed)),
        )
        delist(context, listed)
    return users_of(context, rows)


def delist_for_rebuild(
    context: TableContext,
    error: HudiError,
    token: WriteToken,
    indexes: Collection[str] | None,
    guard: Callable[[], None],
) -> frozenset[str]:
    """Delists row-level indexes, all or `indexes`, for a rebuild because of `error`; returns the pending instants that
    may use them.

    The caller holds the table lock, `guard` raises when it is lost; `context.config` was loaded under it. Raises,
    before anything is written, as MetadataCreation.check, and as MetadataCompaction.finish, since a pending
    compaction's plan names files to be deleted.
    """
    names = frozenset(filter(is_row_level, context.config.metadata_partitions))
    names = names if indexes is None else names.intersection(indexes)
    MetadataCreation(context.storage, token, context.clock()).check()
    MetadataCompaction(context.storage, context.config, token, context.clock(), guard=guard).finish()
    _put(context, names.union(_read(context)))
    log.warning("the indexes %s are delisted, to be rebuilt: %s", ", ".join(sorted(names)), error.message)
    delist(context, names)
    return users_of(context, names)


def planned_rebuild(context: TableContext) -> frozenset[str]:
    """The indexes that an update dropped and did not rebuild. Raises CorruptFileError for a damaged file."""
    planned = _read(context)
    defined = load_index_definitions(context.storage, context.config).keys() if planned else frozenset[str]()
    there = context.config.metadata_partitions | context.config.metadata_partitions_inflight
    return frozenset(name for name in planned - there if name == RECORD_INDEX or name in defined)


def forget_rebuild(context: TableContext, names: Collection[str] = (FILES_PARTITION,)) -> None:
    """The named indexes, with `files` all, are no longer to be rebuilt. The caller holds the table lock."""
    planned = _read(context)
    left = frozenset[str]() if FILES_PARTITION in names else planned.difference(names)
    if left:
        _put(context, left)
    elif planned:
        context.storage.delete(PLAN)


def _put(context: TableContext, names: Collection[str]) -> None:
    context.storage.write(PLAN, json.dumps({_INDEXES: sorted(names)}).encode())


def _read(context: TableContext) -> frozenset[str]:
    try:
        data = context.storage.read(PLAN)
    except StorageNotFoundError:
        return frozenset()
    try:
        document = json.loads(data)
        names = document[_INDEXES]
        if not isinstance(names, list) or not all(isinstance(name, str) and is_row_level(name) for name in names):
            raise ValueError(f"{_INDEXES} are {names!r}")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CorruptFileError(
            f"it does not say which indexes are to be built: {error!r}", path=PLAN, remedy="delete it"
        ) from error
    return frozenset(check_file_name(name, source=PLAN) for name in names)
