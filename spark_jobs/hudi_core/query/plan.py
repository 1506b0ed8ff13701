"""From a request to splits that may be read anywhere: planned once, where the timeline and the metadata table are.

Which instant a query as of a time reads is decided here, too (TimelineUtils.validateTimestampAsOf).
"""

from __future__ import annotations

from typing import Any

from hudi_core.errors import ConfigError
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.query.cdc_plan import plan_cdc
from hudi_core.query.commit_range import first_incomplete_write
from hudi_core.query.context import ReadContext
from hudi_core.query.incremental import plan_incremental
from hudi_core.query.read_plan import ReadPlan
from hudi_core.query.request import ReadRequest
from hudi_core.query.slices_plan import SlicesPlanner, reader_spec
from hudi_core.timeline.instant import Action
from hudi_core.timeline.instant_time import resolve_as_of
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import slice_of_base


def plan_read(context: ReadContext, request: ReadRequest) -> ReadPlan:
    """Plans `request` over the table as it is now.

    Raises ConfigError for an unknown column, a predicate that cannot be read, or a time that the table no longer holds;
    FormatError and StorageError as the table is read.
    """
    if request.query == "incremental":
        return plan_incremental(context, request)
    if request.query == "cdc":
        return plan_cdc(context, request)
    return plan_snapshot(context, request)


def plan_snapshot(context: ReadContext, request: ReadRequest) -> ReadPlan:
    """The plan of a query that reads the latest slice of every file group, now or as of the request's time."""
    timeline = context.active.load()
    as_of = None if request.as_of is None else as_of_instant(context, timeline, request.as_of)
    schema = table_schema(context.storage, context.config, timeline, as_of)
    metadata = context.metadata_table(request.metadata, timeline, schema)
    merged = request.query == "snapshot"
    spec = reader_spec(context, schema, timeline, merge_logs=merged, up_to=as_of)
    planner = SlicesPlanner(context, request, spec, metadata, current=as_of is None)
    view = context.view(timeline, listing=context.listing(metadata))
    partitions = planner.partitions(view.partitions())
    if merged:
        return planner.plan([item for name in partitions for item in view.latest_merged_slices(name, as_of)])
    return planner.plan([slice_of_base(base) for name in partitions for base in view.latest_base_files(name, as_of)])


def as_of_instant(context: ReadContext, timeline: Timeline, text: str) -> str:
    """The requested time up to which commits are read, for an instant or a date in the table's zone.

    Raises ConfigError for text that is neither, for a time at or after the first write that is not complete, and for
    one that the cleaner or the archival has passed.
    """
    instant = resolve_as_of(text, context.zone)
    pending = first_incomplete_write(context.active, timeline)
    if pending is not None and instant >= pending.requested_time:
        raise ConfigError(
            f"the table as of {instant} may change: the {pending.action} {pending.requested_time} is not complete",
            path=context.active.folder,
            remedy=f"read as of a time before {pending.requested_time}, or the table as it is now",
        )
    _check_kept(context, timeline, instant)
    return instant


def _check_kept(context: ReadContext, timeline: Timeline, instant: str) -> None:
    clean = timeline.completed().of_actions(Action.CLEAN).last()
    if clean is None:
        return
    metadata: dict[str, Any] = context.active.read_of(clean)
    retained = metadata.get("earliestCommitToRetain")
    if isinstance(retained, str) and retained:
        if instant < retained:
            raise ConfigError(
                f"the clean {clean.requested_time} may have removed what the table held as of {instant}: it keeps "
                f"{retained} and later",
                path=context.active.path_of(clean),
                remedy=f"read as of {retained} or later; {_way_back(timeline, instant)}",
            )
        return
    first = timeline.commits().first()
    if first is not None and instant < first.requested_time:
        raise ConfigError(
            f"the table as of {instant} is older than its timeline, which begins at {first.requested_time}, and the "
            "table is cleaned",
            path=context.active.folder,
            remedy=f"read as of {first.requested_time} or later",
        )


def _way_back(timeline: Timeline, instant: str) -> str:
    """The remedy besides reading later.

    A savepoint keeps the files, but Hudi and this engine check only what cleans retain.
    """
    read = max(
        (commit.requested_time for commit in timeline.commits() if commit.requested_time <= instant), default=None
    )
    if read is not None and read in timeline.savepoints():
        return f"commit {read} is savepointed: `hudictl restore TABLE --instant {read}` takes the table back to it"
    return "a longer retention of the cleaner keeps more from now on"
