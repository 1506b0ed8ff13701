"""Row-level indexes that `metadata update` drops and rebuilds, as missing actions cannot be applied to them.

Their names are kept in a file until all are rebuilt: after a crash the next update continues.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from hudi_core.errors import CorruptFileError, HudiError, StorageNotFoundError
from hudi_core.metadata_table.index_definitions import load_index_definitions
from hudi_core.metadata_table.initialize.initialize import MetadataCreation
from hudi_core.metadata_table.partition_type import FILES_PARTITION, RECORD_INDEX, is_row_level
from hudi_core.metadata_table.services.compaction import MetadataCompaction
from hudi_core.model.partition import check_file_name
from hudi_core.services.metadata.retired import delist, users_of

if TYPE_CHECKING:
    from hudi_core.model.names import WriteToken
    from hudi_core.services.context import TableContext

log = logging.getLogger(__name__)

PLAN: Final = ".hoodie/.airflow_hudi/metadata_rebuild.json"
_INDEXES: Final = "indexes"


def retire_rows(context: TableContext, error: HudiError, token: WriteToken) -> frozenset[str]:
    """Delists the table's row-level indexes for a rebuild because of `error`; returns the pending instants that may use
    them.

    The caller holds the table lock, `context.config` was loaded under it. Obstacles to the rebuild are checked first:
    raises as MetadataCreation.check, before anything is written, and as MetadataCompaction.finish, since a pending
    compaction's plan names files to be deleted.
    """
    names = frozenset(filter(is_row_level, context.config.metadata_partitions))
    MetadataCreation(context.storage, token, context.clock()).check()
    MetadataCompaction(context.storage, context.config, token, context.clock()).finish()
    _put(context, names.union(_read(context)))
    log.warning("the indexes %s are taken away, to be built anew: %s", ", ".join(sorted(names)), error.message)
    delist(context, names)
    return users_of(context, names)


def planned_rebuild(context: TableContext) -> frozenset[str]:
    """The indexes that an update dropped and that were not rebuilt since. Raises CorruptFileError for a damaged
    file.
    """
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
