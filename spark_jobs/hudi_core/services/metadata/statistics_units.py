"""Statistics of many data files, read by the tasks of an engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from hudi_core.errors import ConfigError
from hudi_core.metadata_table.extract.data_file import StatisticsRequirements, read_file_statistics
from hudi_core.metadata_table.records.file_statistics import DataFileRef, FileStatistics
from hudi_core.storage.data_registry import open_data_storage

if TYPE_CHECKING:
    from hudi_core.engine.protocol import Engine, Json, TaskAttempt
    from hudi_core.services.context import TableContext

_UNIT_FILES: Final = 50
"""The number of files that one task reads."""


def read_statistics(
    context: TableContext,
    engine: Engine,
    epoch: int,
    files: Sequence[DataFileRef],
    requirements: StatisticsRequirements,
) -> Iterator[FileStatistics]:
    """The statistics of `files`, in their order; errors as read_file_statistics. Memory: what Engine.run keeps, which
    is all of them as JSON.
    """
    common = {"uri": context.uri, "storage_options": dict(context.storage_options), "wanted": requirements.to_json()}
    units = [
        {**common, "files": [item.to_json() for item in files[at : at + _UNIT_FILES]]}
        for at in range(0, len(files), _UNIT_FILES)
    ]
    for result in engine.run(read_statistics_task, units, run_epoch=epoch):
        yield from map(FileStatistics.from_json, result["facts"])


def read_statistics_task(unit: Json, attempt: TaskAttempt) -> Json:
    """Reads the statistics of a unit's files; engine.protocol.UnitTask. Returns `{"facts": [FileStatistics as
    JSON]}`.
    """
    try:
        storage, requirements = (
            open_data_storage(unit["uri"], unit["storage_options"]),
            StatisticsRequirements.from_json(unit["wanted"]),
        )
        files = [DataFileRef.from_json(item) for item in unit["files"]]
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"a unit of an index is not what this version writes: {error!r}") from error
    return {"facts": [read_file_statistics(storage, item, requirements).to_json() for item in files]}
