"""The content of deltacommits on the metadata timeline, as Hudi 0.15 and 1.x write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hudi_core.errors import TimelineError
from hudi_core.metadata_table.read.file_group import LatestSlice
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.model.names import LogFileName
from hudi_core.model.partition import join
from hudi_core.model.stats import WriteStat
from hudi_core.timeline.actions.commit import SCHEMA_KEY, CommitMetadata, Operation
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.timeline import Timeline

Stats = Mapping[str, tuple[WriteStat, ...]]
NEWER_COUNTS: Final = {"numUpdates": 0, "totalLogReadTimeMs": 0}
"""Members of a write stat that Hudi 1.x added."""


def delta_commit_content(metadata_timeline: MetadataTimeline, stats: Stats, schema: str | None = None) -> bytes:
    """The inflight file of a deltacommit, of profile_stat, or with `schema` the completed one, of log_stat.

    `schema` is the Avro schema of the metadata table's records without meta fields. The inflight file is used by Hudi's
    rollback after a crash before completion: in version 6 it appends a rollback command only for the file groups that
    the inflight file names (ListingBasedRollbackStrategy), so an empty inflight file would leave our block valid.
    """
    extra = {} if schema is None else {SCHEMA_KEY: schema}
    return metadata_timeline.commit_content(CommitMetadata(dict(stats), False, Operation.UPSERT_PREPPED, extra))


def latest_schema(active: ActiveTimeline, timeline: Timeline) -> str:
    """The schema text of the latest completed commit that has one. Raises TimelineError for a metadata table without
    any.
    """
    for instant in reversed(timeline.commits().instants):
        schema = active.read_commit(instant).schema_text
        if schema is not None:
            return schema
    raise TimelineError(
        "no completed commit of the metadata table carries a schema",
        path=active.folder,
        remedy="drop the metadata table and let Hudi's writer rebuild it",
    )


def profile_stat(place: LatestSlice, records: int, *, metadata_instant: bool) -> WriteStat:
    """What the inflight file says of one file group, before anything is written: path and sizes are not known
    (WorkloadStat).
    """
    unknown = {"path": None, "partitionPath": None, "runtimeStats": None}
    extra = unknown | NEWER_COUNTS if metadata_instant else unknown
    return WriteStat(place.file_id, "", "", place.base_instant, 0, 0, records, 0, 0, 0, extra=extra)


def log_stat(
    place: LatestSlice, name: LogFileName, size: int, records: int, deletions: int, *, metadata_instant: bool
) -> WriteStat:
    """What the completed file says of one log file of `size` bytes (HoodieAppendHandle).

    `metadata_instant`: log names carry the instant that writes them, and then it says nothing of the slice that the
    file joins.
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
