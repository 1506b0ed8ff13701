"""What reading a table needs: address, storage, properties, timeline, options; whether it uses the metadata table."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import field

from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.config.rows_config import READ_ZONE
from hudi_core.config.table_config import TableConfig, timeline_zone
from hudi_core.errors import MetadataUnavailableError
from hudi_core.filegroup.read.log_scan import CommittedInstants, latest_read_instant
from hudi_core.filegroup.read.read_spec import ReaderSpec
from hudi_core.frozen import dataclass
from hudi_core.history.archived import ArchivedTimeline, load_history
from hudi_core.metadata_table.partition_type import FILES_PARTITION
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.query.request import MetadataMode
from hudi_core.storage.base import Storage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.schemas import internal_schema_history
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_system_view import FileSystemView, load_view
from hudi_core.view.listing import FileListing, StorageListing

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReadContext:
    """A table as a query sees it. `storage` is the driver's; tasks open `uri` with `storage_options`."""

    uri: str
    storage: Storage
    config: TableConfig
    active: ActiveTimeline
    options: Mapping[str, str] = field(default_factory=dict)
    storage_options: Mapping[str, str] = field(default_factory=dict)

    @property
    def zone(self) -> str:
        return timeline_zone(self.config, self.options)

    def metadata_table(
        self, mode: MetadataMode, timeline: Timeline, schema: AvroSchema | None = None
    ) -> MetadataTable | None:
        """Returns the metadata table at `timeline`; None where it is not used, or where `auto` cannot read it (a
        warning). `schema` is the query's, for the types of statistics. Raises MetadataUnavailableError for `on`.
        """
        if mode == "off" or (mode == "auto" and FILES_PARTITION not in self.config.metadata_partitions):
            return None
        metadata = MetadataTable(self.storage, self.config, timeline, schema)
        try:
            metadata.check_available()
        except MetadataUnavailableError as error:
            if mode == "on":
                raise
            log.warning("%s; the files are listed in storage", error)
            return None
        return metadata

    def listing(self, metadata: MetadataTable | None) -> FileListing:
        """Returns how the files are found: by the metadata table where there is one, else in storage."""
        return StorageListing(self.storage) if metadata is None else metadata

    def history(self) -> ArchivedTimeline:
        return load_history(self.storage, self.config)

    def slice_sizes(self) -> Iterator[int]:
        """Yields the bytes of each file slice of a snapshot query. Lists partitions as the caller goes on."""
        view = self.view(self.active.load())
        for partition in view.partitions():
            yield from (item.size for item in view.latest_merged_slices(partition))

    def view(
        self, timeline: Timeline, metadata: MetadataMode = "auto", *, listing: FileListing | None = None
    ) -> FileSystemView:
        """Returns the file slices at `timeline`, of `listing`; without one, by the metadata table in that mode."""
        files = self.listing(self.metadata_table(metadata, timeline)) if listing is None else listing
        return load_view(self.active, files, timeline, self.history)


def reader_spec(
    context: ReadContext,
    schema: AvroSchema,
    timeline: Timeline,
    *,
    merge_logs: bool,
    commit_times: frozenset[str] | None = None,
    up_to: str | None = None,
    schemas: Timeline | None = None,
) -> ReaderSpec:
    """Returns the reader of a query over a loaded timeline, with all columns and without predicate. `up_to` is as for
    time travel. `schemas` is the timeline of `schema`, if another one, for columns' names in older files.
    """
    history = internal_schema_history(context.storage, timeline if schemas is None else schemas)
    return ReaderSpec(
        context.config,
        schema,
        CommittedInstants.of(timeline),
        latest_read_instant(timeline) if up_to is None else up_to,
        merge_logs,
        commit_times=commit_times,
        zone=READ_ZONE.read(context.options),
        history=None if history is None else (history if up_to is None else history.up_to(up_to)).to_json(),
        options=dict(context.options),
    )
