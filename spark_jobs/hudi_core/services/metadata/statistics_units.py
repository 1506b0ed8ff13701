"""Facts of many data files, read by the tasks of an engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from hudi_core.errors import ConfigError
from hudi_core.metadata_table.extract.data_file import Wanted, read_file_facts
from hudi_core.metadata_table.records.file_statistics import DataFileRef, FileFacts
from hudi_core.storage.data_registry import open_data_storage

if TYPE_CHECKING:
    from hudi_core.engine.protocol import Engine, Json, TaskAttempt
    from hudi_core.services.context import TableContext

_UNIT_FILES: Final = 50
"""Files that one task reads the facts of."""


def read_facts(
    context: TableContext, engine: Engine, epoch: int, files: Sequence[DataFileRef], wanted: Wanted
) -> Iterator[FileFacts]:
    """The facts of `files`, in their order; errors as read_file_facts. Memory: what Engine.run keeps, which is all of
    them as JSON.
    """
    common = {"uri": context.uri, "storage_options": dict(context.storage_options), "wanted": wanted.to_json()}
    units = [
        {**common, "files": [item.to_json() for item in files[at : at + _UNIT_FILES]]}
        for at in range(0, len(files), _UNIT_FILES)
    ]
    for result in engine.run(read_facts_task, units, run_epoch=epoch):
        yield from map(FileFacts.from_json, result["facts"])


def read_facts_task(unit: Json, attempt: TaskAttempt) -> Json:
    """Reads the facts of a unit's files; engine.protocol.UnitTask. Returns `{"facts": [FileFacts as JSON]}`."""
    try:
        storage, wanted = open_data_storage(unit["uri"], unit["storage_options"]), Wanted.from_json(unit["wanted"])
        files = [DataFileRef.from_json(item) for item in unit["files"]]
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"a unit of an index is not what this version writes: {error!r}") from error
    return {"facts": [read_file_facts(storage, item, wanted).to_json() for item in files]}
