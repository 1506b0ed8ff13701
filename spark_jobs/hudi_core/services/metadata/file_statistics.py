"""Statistics of data files, read by the tasks of an engine and returned to the driver (records.file_statistics)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hudi_core.metadata_table.extract.data_file import StatisticsRequirements, read_file_statistics
from hudi_core.metadata_table.records.file_statistics import DataFileRef, FileStatistics
from hudi_core.metadata_table.write.staged_logs import Workers
from hudi_core.storage.arrow_store import open_data_storage

if TYPE_CHECKING:
    from hudi_core.engine.protocol import TaskAttempt

_UNIT_FILES: Final = 50
"""Files that one task reads."""


@dataclass(frozen=True, slots=True)
class StatisticsUnit:
    """Files that one task reads, and what is to be known of them."""

    uri: str
    storage_options: Mapping[str, str]
    requirements: StatisticsRequirements
    files: tuple[DataFileRef, ...]


@dataclass(frozen=True, slots=True)
class ReadStatistics:
    """The statistics of a unit's files, in their order."""

    statistics: tuple[FileStatistics, ...]


def read_statistics(
    workers: Workers, files: Sequence[DataFileRef], requirements: StatisticsRequirements
) -> Iterator[FileStatistics]:
    """The statistics of `files`, in their order; errors as read_file_statistics. Memory: what Engine.run keeps, which
    is all of them.
    """
    units = [
        StatisticsUnit(workers.uri, workers.storage_options, requirements, tuple(files[at : at + _UNIT_FILES]))
        for at in range(0, len(files), _UNIT_FILES)
    ]
    for result in workers.engine.run(read_statistics_task, units, run_epoch=workers.epoch):
        yield from result.statistics


def read_statistics_task(unit: StatisticsUnit, attempt: TaskAttempt) -> ReadStatistics:
    """Reads the statistics of a unit's files; engine.protocol.UnitTask."""
    storage = open_data_storage(unit.uri, unit.storage_options)
    return ReadStatistics(tuple(read_file_statistics(storage, item, unit.requirements) for item in unit.files))
