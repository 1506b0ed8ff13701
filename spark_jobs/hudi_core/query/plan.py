"""Turns a request into splits that may be read anywhere. A query is planned once, on the driver. For a query as of a
time, says which instant that is (TimelineUtils.validateTimestampAsOf), and whether the table still holds it.

Hudi compares the time with the last clean's earliest commit to retain, which cleans by file versions do not have. After
such a clean it answers with the rows that are left. It does the same after a clean by hours of Hudi up to 0.14.0, which
kept no slice before that commit (HUDI-7226). This engine looks at the files that such cleans removed, also those of
archived cleans, and of one that is at work, or has died at it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hudi_core.config.services.retention_config import KEEP_LATEST_BY_HOURS
from hudi_core.errors import ConfigError
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.frozen import dataclass
from hudi_core.model.names import FileGroupId, parse_data_file
from hudi_core.model.partition import join
from hudi_core.query.cdc_plan import plan_cdc
from hudi_core.query.commit_range import first_incomplete_write
from hudi_core.query.context import ReadContext, reader_spec
from hudi_core.query.incremental import plan_incremental
from hudi_core.query.read_plan import ReadPlan
from hudi_core.query.request import ReadRequest
from hudi_core.query.slices_plan import SlicesPlanner
from hudi_core.timeline.actions.clean import RemovedFiles, decode_clean_plan, decode_removed_files, removed_files_of
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.instant_time import resolve_as_of
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import slice_of_base
from hudi_core.view.file_system_view import FileSystemView


def plan_read(context: ReadContext, request: ReadRequest) -> ReadPlan:
    """Plans `request` over the table as it is now. Raises ConfigError for an unknown column, a predicate that cannot be
    read, or a time that the table no longer holds; FormatError and StorageError as the table is read.
    """
    if request.query == "incremental":
        return plan_incremental(context, request)
    if request.query == "cdc":
        return plan_cdc(context, request)
    return plan_snapshot(context, request)


def plan_snapshot(context: ReadContext, request: ReadRequest) -> ReadPlan:
    """Returns the plan of a query that reads the latest slice of every file group, now or as of the request's time."""
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
    """Returns the requested time up to which commits are read, for an instant or a date in the table's zone. Raises
    ConfigError for other text, a time not before the first pending write, and one that a clean or archival has passed.
    """
    instant = resolve_as_of(text, context.zone)
    pending = first_incomplete_write(context.active, timeline)
    if pending is not None and instant >= pending.requested_time:
        message = f"the table as of {instant} may change: the {pending.action} {pending.requested_time} is not complete"
        remedy = f"read as of a time before {pending.requested_time}, or the table as it is now"
        raise ConfigError(message, path=context.active.folder, remedy=remedy)
    _check_kept(context, timeline, instant)
    return instant


def _check_kept(context: ReadContext, timeline: Timeline, instant: str) -> None:
    """Raises ConfigError where a clean after `instant` may have removed what the table held then."""
    by_files = []
    for clean in _later_cleans(context, timeline, instant):
        earliest = clean.removed.earliest
        if not earliest or (instant >= earliest and clean.removed.policy == KEEP_LATEST_BY_HOURS):
            by_files.append(clean)
        elif instant < earliest:
            raise _passed(timeline, clean, instant, f"it keeps {earliest} and later", f"read as of {earliest} or later")
    first = timeline.commits().first()
    if by_files and first is not None and instant < first.requested_time:
        raise ConfigError(
            f"the table as of {instant} is older than its timeline, which begins at {first.requested_time}, and the "
            "table is cleaned",
            path=context.active.folder,
            remedy=f"read as of {first.requested_time} or later",
        )
    view = context.view(timeline) if by_files else None
    for clean in by_files:
        for partition, names in clean.removed.files.items():
            needed = view and next(_needed(view, partition, names, instant), None)
            if needed:
                why = f"it removed {join(partition, needed)}"
                raise _passed(timeline, clean, instant, why, "read the table as it is now, or as of a later time")


@dataclass(frozen=True, slots=True)
class _Clean:
    """A clean that has started, the file that says what it removes, and what it removes."""

    instant: str
    path: str
    removed: RemovedFiles


def _later_cleans(context: ReadContext, timeline: Timeline, instant: str) -> Iterator[_Clean]:
    """Yields the cleans requested after `instant`: first the inflight ones, then the completed ones, latest first.
    Archived ones are last: archivals take the oldest cleans off the timeline first.
    """
    inflight = timeline.filter(lambda item: item.action == Action.CLEAN and item.state is State.INFLIGHT)
    for clean in inflight.after(instant):
        path = context.active.path(clean.requested_time, Action.CLEAN, State.REQUESTED)
        data = context.active.read_requested(clean.requested_time, Action.CLEAN)
        if data:  # an empty plan removes nothing
            plan = decode_clean_plan(data, path=path)
            earliest = "" if plan.earliest is None else plan.earliest.timestamp
            yield _Clean(clean.requested_time, path, RemovedFiles(earliest, plan.files, plan.policy))
    cleans = timeline.completed().of_actions(Action.CLEAN)
    for clean in reversed(cleans.after(instant).instants):
        path = context.active.path_of(clean)
        removed = decode_removed_files(context.active.read_details(clean), path=path)
        yield _Clean(clean.requested_time, path, removed)
    first = cleans.first()
    if first is not None and first.requested_time <= instant:
        return
    history, folder = context.history(), context.config.history_folder
    for clean in reversed(history.instants(instant, None if first is None else first.requested_time)):
        if clean.action == Action.CLEAN and not timeline.contains(clean.requested_time):
            yield _Clean(clean.requested_time, folder, removed_files_of(history.content(clean), path=folder))


def _needed(view: FileSystemView, partition: str, names: Iterable[str], instant: str) -> Iterator[str]:
    """Yields those of the deleted files `names` that a query as of `instant` would read."""
    bases = {item.file_group.file_id: item.base_instant for item in view.latest_merged_slices(partition, instant)}
    for name in names:
        file = parse_data_file(name)
        if file is None or file.instant > instant:
            continue
        replaced_at = view.replaced_at(FileGroupId(partition, file.file_id))
        is_replaced = replaced_at is not None and replaced_at <= instant
        if not is_replaced and bases.get(file.file_id, "") <= file.instant:
            yield name


def _passed(timeline: Timeline, clean: _Clean, instant: str, why: str, way: str) -> ConfigError:
    message = f"the clean {clean.instant} may have removed what the table held as of {instant}: {why}"
    return ConfigError(message, path=clean.path, remedy=f"{way}; {_way_back(timeline, instant)}")


def _way_back(timeline: Timeline, instant: str) -> str:
    """Returns the remedy besides reading later. A savepoint keeps files, but the check ignores savepoints."""
    read = max(
        (commit.requested_time for commit in timeline.commits() if commit.requested_time <= instant), default=None
    )
    if read is not None and read in timeline.savepoints():
        return f"commit {read} is savepointed: `hudictl restore TABLE --instant {read}` restores the table to it"
    return "a longer retention of the cleaner keeps more from now on"
