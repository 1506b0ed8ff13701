"""The metadata table's verbs of a run request, and their documents."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from hudi_core.config.metadata_config import STATISTICS_COLUMNS
from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConfigError
from hudi_core.metadata_table.partition_type import COLUMN_STATS, FILES_PARTITION
from hudi_core.request.requests import (
    MetadataCreateRequest,
    MetadataDropRequest,
    MetadataRequest,
    MetadataUpdateRequest,
    MetadataValidateRequest,
)
from hudi_core.services.metadata.columns import add_columns, check_columns, drop_columns
from hudi_core.services.metadata.index_drop import left_over
from hudi_core.services.metadata.initialization import index_warnings
from hudi_core.services.metadata.maintain import create_metadata, drop_metadata, lost_partitions, update_metadata
from hudi_core.services.metadata.validate.run import validate
from hudi_core.storage.arrow_store import open_data_storage

if TYPE_CHECKING:
    from hudi_core.engine.protocol import Engine, Json
    from hudi_core.services.context import TableContext
    from hudi_core.transaction.owner import Owner

_THERE: Final = "all of them are there"
_NOT_THERE: Final = "none of them was there"
_EPOCHS: Final = 1 << 30
"""Attempts at these verbs have no claim that numbers them: a random number in the names of files keeps two of them
apart.
"""


def perform_metadata(context: TableContext, request: MetadataRequest, engine: Engine, owner: Owner) -> Json:
    """Does what the request says; the document is that of hudictl's command. Errors as maintain's
    functions and validate.
    """
    epoch = 1 + secrets.randbelow(_EPOCHS)
    match request:
        case MetadataCreateRequest():
            return _create(context, request, engine, owner, epoch)
        case MetadataUpdateRequest():
            return _update(context, request.partitions, engine, owner, epoch)
        case MetadataDropRequest():
            return _drop(context, request, owner)
        case MetadataValidateRequest():
            return validate(context, open_data_storage(context.uri, context.storage_options)).to_dict()


def _create(context: TableContext, request: MetadataCreateRequest, engine: Engine, owner: Owner, epoch: int) -> Json:
    """The named columns initialize `column_stats`, or are added to an existing one."""
    before, columns = context.config.metadata_partitions - lost_partitions(context), request.columns
    is_new = bool(columns) and COLUMN_STATS not in before
    if columns:
        check_columns(context, columns)
    options = {**context.options, STATISTICS_COLUMNS.name: ",".join(columns)} if is_new else context.options
    names = {*request.partitions, *((COLUMN_STATS,) if is_new else ())}
    config = create_metadata(replace(context, options=options), names, engine, owner, epoch)
    added = tuple(columns)
    if columns and not is_new:
        added = add_columns(replace(context, config=config), columns, engine, owner, epoch)
    after = config.metadata_partitions
    nothing = not (after - before or added)
    warnings = index_warnings(config, names - before)
    return {
        "created": sorted(after - before),
        "partitions": sorted(after),
        "columns": list(added),
        "reason": _THERE if nothing else None,
    } | ({"warnings": warnings} if warnings else {})


def nothing_to_create(context: TableContext, request: MetadataCreateRequest) -> Json | None:
    """The document of a request whose partitions are all there, with every column; None where some are missing."""
    there = context.config.metadata_partitions
    if request.columns or not {FILES_PARTITION, *request.partitions} <= there or lost_partitions(context):
        return None
    return {"created": [], "partitions": sorted(there), "columns": [], "reason": _THERE}


def nothing_to_drop(context: TableContext, request: MetadataDropRequest) -> Json | None:
    """The document of a request whose partitions are not there and left nothing; None otherwise, and for columns."""
    there = context.config.metadata_partitions
    names = request.partitions or (FILES_PARTITION,)
    if request.columns or there & {*names} or left_over(context.storage, context.config, names):
        return None
    return {"dropped": [], "partitions": sorted(there), "columns": [], "reason": _NOT_THERE}


def _update(context: TableContext, names: tuple[str, ...], engine: Engine, owner: Owner, epoch: int) -> Json:
    """Deltacommits are of the table as a whole: `names` have to be listed, and what else is there is updated with
    them.
    """
    absent = sorted({*names} - context.config.metadata_partitions) if context.has_metadata_table else []
    if absent:
        raise ConfigError(
            f"the metadata table has no partition {', '.join(absent)}",
            path=context.config.path,
            remedy="create it with `hudictl metadata create TABLE --partition …`",
        )
    done = update_metadata(context, engine, owner, epoch)
    kept = done.upkeep
    return {
        "applied": list(done.applied),
        "rebuilt": sorted(done.rebuilt),
        "widened": list(done.widened),
        "incomplete": list(done.incomplete),
        "rolled_back": list(kept.rolled_back),
        "compacted": {
            "instants": list(kept.compacted.instants),
            "files": kept.compacted.files,
            "bytes": kept.compacted.size,
        },
        "cleaned": {"instants": list(kept.cleaned.instants), "files": kept.cleaned.files},
        "archived": len(kept.archived.instants),
        "partitions": sorted(TableConfig.load(context.storage).metadata_partitions),
    }


def _drop(context: TableContext, request: MetadataDropRequest, owner: Owner) -> Json:
    before = context.config.metadata_partitions
    if request.columns:
        dropped = drop_columns(context, request.columns, owner)
        return {
            "dropped": [],
            "partitions": sorted(before),
            "columns": list(dropped),
            "reason": None if dropped else _NOT_THERE,
        }
    names = request.partitions or (FILES_PARTITION,)
    before = before.union(left_over(context.storage, context.config, names))  # which an interrupted drop delisted
    after = drop_metadata(context, names, owner).metadata_partitions
    return {
        "dropped": sorted(before - after),
        "partitions": sorted(after),
        "columns": [],
        "reason": None if before - after else _NOT_THERE,
    }
