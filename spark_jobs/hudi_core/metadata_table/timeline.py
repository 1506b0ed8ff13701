"""The metadata timeline, loaded for writing: its instants complete here, and its file slices are found here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

from hudi_core.config.table_config import TableConfig
from hudi_core.config.versions import TableVersion
from hudi_core.errors import ConfigError, MetadataUnavailableError, StorageNotFoundError
from hudi_core.metadata_table.partition_type import FILES_PARTITION
from hudi_core.metadata_table.read.file_group import ROOT, LatestSlice, latest_slices, partition_folders, pending_bases
from hudi_core.model.names import FileGroupId
from hudi_core.storage.base import Storage
from hudi_core.timeline.actions.commit import CommitMetadata, encode_commit, encode_commit_avro
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.instant_generator import InstantClock


class MetadataTimeline:
    """Of the metadata table of the data table in `storage`. Its properties are read at the first use."""

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

    @cached_property
    def config(self) -> TableConfig:
        """The metadata table's own properties; errors as active."""
        try:
            return TableConfig.load(self._storage, base=ROOT)
        except ConfigError as error:
            message = f"the table's metadata table cannot be read: {error.message}"
            raise MetadataUnavailableError(message, path=error.path) from error

    def completion_time(self, instant: str) -> str | None:
        """A time at which `instant` may complete, later than everything on the timeline; None in layout 1. The caller
        holds the table lock.
        """
        if not self.features.completion_time_in_name:
            return None
        return self.clock.next(self.active.load(), minimum=instant)

    def complete(self, instant: str, action: str, content: bytes) -> None:
        """Completes an inflight instant. The caller holds the table lock. Errors as ActiveTimeline.complete."""
        self.active.complete(instant, action, content, self.completion_time(instant))

    def commit_content(self, metadata: CommitMetadata) -> bytes:
        """The completed file of a commit or deltacommit: JSON in version 6, later Avro."""
        if self.features.json_commits:
            return encode_commit(metadata)
        # The schema's default for it is 1, but Hudi writes null.
        return encode_commit_avro(replace(metadata, extra={"version": None}))

    def latest_slices(
        self, timeline: Timeline, partition: str, pending: Mapping[FileGroupId, str] | None = None
    ) -> list[LatestSlice]:
        """The latest slices of a partition's file groups; see read.file_group.latest_slices."""
        return latest_slices(self._storage, timeline, partition, layout=self.features.layout, pending=pending)

    def all_slices(self, timeline: Timeline) -> list[LatestSlice]:
        """The latest slices of all file groups of all partitions that have a folder. Raises StorageNotFoundError when
        `files` has none.
        """
        pending = self.pending_bases(timeline)
        slices: list[LatestSlice] = []
        for partition in {FILES_PARTITION: None} | dict.fromkeys(partition_folders(self._storage)):
            try:
                slices += self.latest_slices(timeline, partition, pending)
            except StorageNotFoundError:
                if partition == FILES_PARTITION:
                    raise  # else an index whose building died before it had file groups
        return slices

    def pending_bases(self, timeline: Timeline) -> Mapping[FileGroupId, str]:
        """By file group, the pending compaction that its next log files join: in layout 1 only."""
        return {} if self.features.log_name_has_delta_commit else pending_bases(self.active, timeline)
