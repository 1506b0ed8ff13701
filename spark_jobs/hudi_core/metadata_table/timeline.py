"""The metadata timeline, loaded for writing, and the completion times of its instants."""

from __future__ import annotations

from functools import cached_property

from hudi_core.config.table_config import TableConfig
from hudi_core.config.versions import TableVersion
from hudi_core.errors import ConfigError, MetadataUnavailableError
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.storage.base import Storage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.transaction.instant_generator import InstantClock


class MetadataTimeline:
    """Of the metadata table of the data table in `storage`. Its properties are read at the first question."""

    def __init__(self, storage: Storage, config: TableConfig, clock: InstantClock | None = None) -> None:
        """`config` is the data table's. `clock` draws completion times; the default one is in the zone of the table's
        properties.
        """
        self._storage = storage
        self.clock = clock or InstantClock(config.timezone)

    @cached_property
    def active(self) -> ActiveTimeline:
        """The timeline. Raises MetadataUnavailableError when there is no metadata table that could be read."""
        return ActiveTimeline(self._storage, self.config, ROOT)

    @property
    def features(self) -> TableVersion:
        """What the metadata table's version has; errors as active."""
        return self.config.features

    @property
    def history_folder(self) -> str:
        """Folder of the archived timeline, below the data table's base path; errors as active."""
        return f"{ROOT}/{self.config.history_folder}"

    def completion_time(self, instant: str) -> str | None:
        """A time at which `instant` may complete, later than everything on the timeline; None in layout 1. The caller
        holds the table lock.
        """
        if not self.features.completion_time_in_name:
            return None
        return self.clock.next(self.active.load(), minimum=instant)

    @cached_property
    def config(self) -> TableConfig:
        """The metadata table's own properties; errors as active."""
        try:
            return TableConfig.load(self._storage, base=ROOT)
        except ConfigError as error:
            raise MetadataUnavailableError(
                f"the table's metadata table cannot be read: {error.message}",
                path=error.path,
                remedy=(
                    "take `files` out of hoodie.table.metadata.partitions: Hudi's next write builds the metadata "
                    "table anew"
                ),
            ) from error
