"""The metadata timeline for writing: instants, file slices, and the content of commits, as Hudi 0.15 and 1.x write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Final

from hudi_core.config.table_config import TableConfig
from hudi_core.config.versions import TableVersion
from hudi_core.errors import StorageNotFoundError, TimelineError
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.partition_type import FILES_PARTITION
from hudi_core.metadata_table.read.file_group import (
    ROOT,
    LatestSlice,
    latest_slices,
    load_metadata_config,
    partition_folders,
    pending_bases,
)
from hudi_core.model.names import FileGroupId, LogFileName
from hudi_core.model.partition import join
from hudi_core.storage.base import Storage
from hudi_core.timeline.actions.commit import SCHEMA_KEY, CommitMetadata, Operation, encode_commit, encode_commit_avro
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.instant_generator import InstantClock

Stats = Mapping[str, tuple[WriteStat, ...]]
NEWER_COUNTS: Final = {"numUpdates": 0, "totalLogReadTimeMs": 0}
"""The members of a write stat that Hudi 1.x added."""


class MetadataTimeline:
    """The timeline of the metadata table of the data table in `storage`. Its properties are read at the first use."""

    def __init__(self, storage: Storage, config: TableConfig, clock: InstantClock | None = None) -> None:
        """Takes the `clock` that draws completion times; the default is in the zone of the data table's properties."""
        self.storage = storage
        self.clock = clock or InstantClock(config.timezone)

    @cached_property
    def active(self) -> ActiveTimeline:
        """The active timeline. Raises MetadataUnavailableError when no metadata table exists that can be read."""
        return ActiveTimeline(self.storage, self.config, ROOT)

    @property
    def features(self) -> TableVersion:
        return self.config.features

    @property
    def history_folder(self) -> str:
        return f"{ROOT}/{self.config.history_folder}"

    @cached_property
    def config(self) -> TableConfig:
        return load_metadata_config(self.storage)

    def completion_time(self, instant: str) -> str | None:
        """Returns a completion time later than all on the timeline; None in layout 1. The caller has the table lock."""
        if not self.features.completion_time_in_name:
            return None
        return self.clock.next(self.active.load(), minimum=instant)

    def complete(self, instant: str, action: str, content: bytes) -> None:
        """Completes an inflight instant. The caller holds the table lock. Raises ActiveTimeline.complete's errors."""
        self.active.complete(instant, action, content, self.completion_time(instant))

    def commit_content(self, metadata: CommitMetadata) -> bytes:
        """Returns the completed file of a commit or deltacommit: JSON in version 6, later Avro."""
        if self.features.json_commits:
            return encode_commit(metadata)
        # The schema's default for the version is 1, but Hudi writes null.
        return encode_commit_avro(replace(metadata, extra={"version": None}))

    def latest_slices(
        self, timeline: Timeline, partition: str, pending: Mapping[FileGroupId, str] | None = None
    ) -> list[LatestSlice]:
        return latest_slices(self.storage, timeline, partition, layout=self.features.layout, pending=pending)

    def all_slices(self, timeline: Timeline) -> list[LatestSlice]:
        """Returns the latest file slices of all partitions that have a folder. Raises StorageNotFoundError when `files`
        has none.
        """
        pending = self.pending_bases(timeline)
        slices: list[LatestSlice] = []
        for partition in {FILES_PARTITION: None} | dict.fromkeys(partition_folders(self.storage)):
            try:
                slices += self.latest_slices(timeline, partition, pending)
            except StorageNotFoundError:
                if partition == FILES_PARTITION:
                    raise  # else the build of an index died before the index had file groups
        return slices

    def pending_bases(self, timeline: Timeline) -> Mapping[FileGroupId, str]:
        """Returns, by file group, the pending compaction whose slice the next log files join; empty but in layout 1."""
        return {} if self.features.log_name_has_delta_commit else pending_bases(self.active, timeline)


@dataclass(frozen=True, slots=True)
class ServiceOutcome:
    """The completed instants, oldest first, with written or deleted files and bytes; or why nothing was to do."""

    instants: tuple[str, ...] = ()
    files: int = 0
    size: int = 0
    reason: str = ""


def delta_commit_content(metadata_timeline: MetadataTimeline, stats: Stats, schema: str | None = None) -> bytes:
    """Returns a deltacommit's inflight file, with `stats` of profile_stat. With `schema`, the schema of records without
    meta fields, it returns the completed file, with `stats` of log_stat. In version 6 Hudi's rollback appends a command
    only for the file groups in the inflight file (ListingBasedRollbackStrategy), else our block would stay valid.
    """
    extra = {} if schema is None else {SCHEMA_KEY: schema}
    return metadata_timeline.commit_content(CommitMetadata(dict(stats), False, Operation.UPSERT_PREPPED, extra))


def latest_schema(active: ActiveTimeline, timeline: Timeline) -> str:
    """Returns the schema text of the latest completed commit that has a schema. Raises TimelineError where none has."""
    for instant in reversed(timeline.commits().instants):
        schema = active.read_commit(instant).schema_text
        if schema is not None:
            return schema
    message = "no completed commit of the metadata table carries a schema"
    remedy = "drop the metadata table and let Hudi's writer rebuild it"
    raise TimelineError(message, path=active.folder, remedy=remedy)


def profile_stat(place: LatestSlice, records: int, *, metadata_instant: bool) -> WriteStat:
    """Returns the entry of one file group in the inflight file, before anything is written (WorkloadStat)."""
    unknown = {"path": None, "partitionPath": None, "runtimeStats": None}
    extra = unknown | NEWER_COUNTS if metadata_instant else unknown
    return WriteStat(place.file_id, "", "", place.base_instant, 0, 0, records, 0, 0, 0, extra=extra)


def log_stat(
    place: LatestSlice, name: LogFileName, size: int, records: int, deletions: int, *, metadata_instant: bool
) -> WriteStat:
    """Returns the entry of one log file in the completed file (HoodieAppendHandle). With `metadata_instant`, the name
    of a log file has the instant that writes it, not the file slice's.
    """
    older = () if metadata_instant else tuple(info.name for info in reversed(place.logs) if info.name != str(name))
    base_file = None if metadata_instant else place.base_file
    return WriteStat(
        file_id=place.file_id,
        path=join(place.partition, str(name)),
        partition_path=place.partition,
        prev_commit=name.instant if metadata_instant else place.base_instant,
        num_writes=records,
        num_deletes=deletions,
        num_update_writes=records,
        num_inserts=0,
        file_size_in_bytes=size,
        total_write_bytes=size,
        log_version=name.version,
        log_offset=0,
        base_file="" if base_file is None else base_file.name,
        log_files=(*older, str(name)),
        extra=NEWER_COUNTS if metadata_instant else {"recordsStats": {"val": None}},
    )
