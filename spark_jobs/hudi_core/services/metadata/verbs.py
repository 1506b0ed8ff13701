"""The metadata table's verbs of a run request, and their documents."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConfigError
from hudi_core.metadata_table.file_group import FILES_PARTITION
from hudi_core.services.metadata.maintain import create_metadata, drop_metadata, update_metadata
from hudi_core.services.metadata.validate.run import validate
from hudi_core.storage.data_registry import open_data_storage

if TYPE_CHECKING:
    from hudi_core.model.engine import Engine, Json
    from hudi_core.request.model import RunRequest
    from hudi_core.services.context import TableContext
    from hudi_core.transaction.owner import Owner

_EPOCHS: Final = 1 << 30
"""Attempts at these verbs have no claim that numbers them: a random number in the names of files keeps two of them apart."""


def perform_metadata(context: TableContext, request: RunRequest, engine: Engine, owner: Owner) -> Json:
    """Does what `request.verb` (`metadata_…`) says; the document is that of hudictl's command. Errors as maintain's functions and validate."""
    epoch = 1 + secrets.randbelow(_EPOCHS)
    match request.verb:
        case "metadata_create":
            return _create(context, request.partitions, engine, owner, epoch)
        case "metadata_update":
            return _update(context, request.partitions, engine, owner, epoch)
        case "metadata_drop":
            return _drop(context, request.partitions, owner)
        case "metadata_validate":
            return validate(context, open_data_storage(context.uri, context.storage_options)).to_dict()
    raise ValueError(f"{request.verb!r} is no verb of the metadata table")


def _create(context: TableContext, names: tuple[str, ...], engine: Engine, owner: Owner, epoch: int) -> Json:
    before = context.config.metadata_partitions
    after = create_metadata(context, names, engine, owner, epoch).metadata_partitions
    return {"created": sorted(after - before), "partitions": sorted(after), "reason": None if after - before else "all of them are there"}


def _update(context: TableContext, names: tuple[str, ...], engine: Engine, owner: Owner, epoch: int) -> Json:
    """Deltacommits are of the table as a whole: `names` have to be listed, and what else is there is updated with them."""
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
        "rolled_back": list(kept.rolled_back),
        "compacted": {"instants": list(kept.compacted.instants), "files": kept.compacted.files, "bytes": kept.compacted.size},
        "cleaned": {"instants": list(kept.cleaned.instants), "files": kept.cleaned.files},
        "archived": len(kept.archived.instants),
        "partitions": sorted(TableConfig.load(context.storage).metadata_partitions),
    }


def _drop(context: TableContext, names: tuple[str, ...], owner: Owner) -> Json:
    before = context.config.metadata_partitions
    after = drop_metadata(context, names or (FILES_PARTITION,), owner).metadata_partitions
    return {"dropped": sorted(before - after), "partitions": sorted(after), "reason": None if before - after else "none of them was there"}
