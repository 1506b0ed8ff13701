"""Deltacommits of the metadata table's timeline, as Hudi 0.15 writes them."""

from __future__ import annotations

from collections.abc import Mapping

from hudi_core.errors import TimelineError
from hudi_core.model.stats import WriteStat
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.commit_metadata import SCHEMA_KEY, CommitMetadata, Operation, encode_commit
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.query import Timeline

Stats = Mapping[str, tuple[WriteStat, ...]]


def write_delta_commit_start(active: ActiveTimeline, instant: str, profile: Stats) -> None:
    """Creates the requested and inflight files of a deltacommit that is not on the timeline.

    `profile` is what real Hudi's rollback goes by when we die before completion: it appends a rollback command only for the file groups
    that the inflight file names (ListingBasedRollbackStrategy), so an empty inflight file would leave our block standing.
    """
    active.create_requested(instant, Action.DELTA_COMMIT)
    active.to_inflight(instant, Action.DELTA_COMMIT, _content(profile, {}))


def complete_delta_commit(active: ActiveTimeline, instant: str, stats: Stats, schema: str) -> None:
    """Completes an inflight deltacommit; `schema` is the Avro schema of the metadata table's records without meta fields."""
    active.complete(instant, Action.DELTA_COMMIT, _content(stats, {SCHEMA_KEY: schema}))


def write_empty_delta_commit(active: ActiveTimeline, timeline: Timeline, instant: str, schema: str) -> None:
    """Brings a deltacommit that writes nothing to its completion, from whatever state an earlier attempt left it in.

    Hudi 0.15 leaves one at the instant of every data table rollback (HoodieBackedTableMetadataWriter.update(HoodieRollbackMetadata)).
    """
    found = timeline.find(instant, Action.DELTA_COMMIT)
    if found is not None and found.is_completed:
        return
    if found is None:
        active.create_requested(instant, Action.DELTA_COMMIT)
    if found is None or found.state is State.REQUESTED:
        active.to_inflight(instant, Action.DELTA_COMMIT, _content({}, {}))
    complete_delta_commit(active, instant, {}, schema)


def latest_schema(active: ActiveTimeline, timeline: Timeline) -> str:
    """The schema text of the latest completed commit that has one. Raises TimelineError for a metadata table without any."""
    for instant in reversed(timeline.commits().instants):
        schema = active.read_commit(instant).schema_text
        if schema is not None:
            return schema
    raise TimelineError(
        "no completed commit of the metadata table carries a schema",
        path=active.folder,
        remedy="drop the metadata table and let Hudi's writer rebuild it",
    )


def _content(stats: Stats, extra: Mapping[str, str]) -> bytes:
    return encode_commit(CommitMetadata(dict(stats), False, Operation.UPSERT_PREPPED, dict(extra)))
