"""Drop of row-level indexes: they are delisted first, their files are deleted when no writer can hold the older
properties.

The number of file groups is not stored: a lookup counts them in the folder and hashes the key by that number. A lookup
during the deletion would read wrong groups and find nothing. A writer of Hudi that tags by the record index then
inserts existing rows again. It reads the properties again after it has put its instant on the timeline: so the writes
are waited for that are pending when the index is delisted.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from typing import Final

from hudi_core.config.properties_update import update_properties
from hudi_core.config.table_config import METADATA, TableConfig
from hudi_core.errors import ConflictError
from hudi_core.metadata_table.partition_type import FILES_PARTITION, is_row_level
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.services.context import TableContext
from hudi_core.services.waiting import is_at_work, pending_writers, writers_at_work
from hudi_core.storage.base import Storage

log = logging.getLogger(__name__)

_FINISH: Final = "finish it with `hudictl metadata update TABLE`, or by a write of Hudi, then run this again"


def delist(context: TableContext, names: Collection[str]) -> TableConfig:
    """Removes indexes from the list in the properties; their files and definitions stay. Returns the properties.

    The caller holds the table lock. May be repeated.
    """
    config = TableConfig.load(context.storage)
    return update_properties(
        context.storage, {METADATA.name: ",".join(sorted(config.metadata_partitions.difference(names)))}
    )


def refuse_compacting(context: TableContext, config: TableConfig, names: Iterable[str]) -> None:
    """Raises ConflictError while a compaction of the metadata table is pending: its plan may name files of `names`, and
    could not be finished.
    """
    metadata_timeline = MetadataTimeline(context.storage, config, context.clock()).active
    timeline = metadata_timeline.load()
    pending = [*timeline.pending_compactions(), *timeline.pending_log_compactions()]
    if pending:
        raise ConflictError(
            f"compaction {pending[0].requested_time} of the metadata table is pending, and its plan may "
            "name files of "
            f"{', '.join(sorted(names))}",
            path=metadata_timeline.path_of(pending[0]),
            remedy=_FINISH,
        )


def counts_early(config: TableConfig, names: Iterable[str]) -> bool:
    """Whether the file groups of any of `names` count while it is built, so that a plan to compact may name their
    files.
    """
    return config.features.metadata_needs_rest and not config.metadata_partitions_inflight.isdisjoint(names)


def left_over(storage: Storage, config: TableConfig, names: Iterable[str]) -> list[str]:
    """Those of `names` that are delisted and still have files: a writer may hold older properties that list them."""
    unknown = set(names) - config.metadata_partitions - config.metadata_partitions_inflight
    return sorted(name for name in unknown if storage.list_files(f"{ROOT}/{name}"))


def users_of(context: TableContext, names: Iterable[str]) -> frozenset[str]:
    """The pending instants with a live writer that may use delisted indexes with files.

    The caller holds the table lock, or the files stay.
    """
    if not left_over(context.storage, TableConfig.load(context.storage), names):
        return frozenset()
    alive = writers_at_work(context, pending_writers(context.active.load()), is_at_work)
    return frozenset(item.requested_time for item in alive)


def rows_among(context: TableContext, config: TableConfig, names: Collection[str]) -> list[str]:
    """The row-level indexes among `names`, with `files` all that are listed or have a folder; sorted."""
    found = set(names)
    if FILES_PARTITION in names:
        found.update(
            config.metadata_partitions, (folder.rpartition("/")[2] for folder in context.storage.list_folders(ROOT))
        )
    return sorted(filter(is_row_level, found))


def refuse_in_use(context: TableContext, names: Collection[str]) -> None:
    """Raises ConflictError while a write is at work that may use one of the delisted indexes `names`, whose files are
    to go.
    """
    users = sorted(users_of(context, filter(is_row_level, names)))
    if users:
        raise ConflictError(
            f"{', '.join(sorted(filter(is_row_level, names)))} may be in use by {users[0]}, which began before",
            path=context.active.folder,
            remedy="run this again when that write has ended",
        )


def retire(context: TableContext, names: Collection[str]) -> frozenset[str]:
    """Delists the row-level indexes among `names`, with `files` all; returns the pending instants that may use them.

    Their files may go when these have ended (waiting.wait_for_writers). The caller holds the table lock. May be
    repeated. Raises as refuse_compacting where an index is dropped and the metadata table stays.
    """
    config = TableConfig.load(context.storage)
    rows = rows_among(context, config, names)
    listed = config.metadata_partitions.intersection(rows)
    if listed:
        if FILES_PARTITION not in names:
            refuse_compacting(context, config, listed)
        log.info("the indexes %s are off the list; their files go when nobody can use them", ", ".join(sorted(listed)))
        delist(context, listed)
    return users_of(context, rows)
