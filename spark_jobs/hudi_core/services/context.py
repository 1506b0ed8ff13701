"""What every service needs of an opened table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hudi_core.config.table_config import TableConfig
from hudi_core.metadata_table.file_group import FILES_PARTITION
from hudi_core.storage.base import Storage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant_time import new_instant
from hudi_core.timeline.query import Timeline


@dataclass(frozen=True, slots=True)
class TableContext:
    """An opened table: its address, storage, properties and timeline, and the options of the run (Hudi's own names)."""

    uri: str
    storage: Storage
    config: TableConfig
    active: ActiveTimeline
    options: Mapping[str, str] = field(default_factory=dict)
    storage_options: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_metadata_table(self) -> bool:
        """Whether readers may list this table by its metadata table, so that every commit must go there first."""
        return FILES_PARTITION in self.config.metadata_partitions

    def new_instant(self, timeline: Timeline) -> str:
        """An instant newer than everything on `timeline`, in the table's zone."""
        return new_instant(timeline.requested_times, self.config.timezone)
