"""When the metadata table is compacted, under which instant, and what of it
(HoodieBackedTableMetadataWriter.compactIfNecessary).

It is due after `hoodie.metadata.compact.max.delta.commits` deltacommits (10 unless set). Every file group of every
partition is compacted at once: the data table archives up to the compaction's instant (UnBoundedCompactionStrategy).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from hudi_core.config.metadata_config import METADATA_DELTA_COMMITS
from hudi_core.config.versions import TableVersion
from hudi_core.metadata_table.instants import OperationSuffix, latest_compaction
from hudi_core.metadata_table.read.file_group import LatestSlice
from hudi_core.model.names import parse_base_file, parse_log_file
from hudi_core.storage.base import FileInfo
from hudi_core.timeline.actions.compaction import CompactionOperation, CompactionPlan, slice_metrics
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.instant_time import earlier
from hudi_core.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Due:
    """`before` is None in layout 1, else logs that completed at or after it stay out."""

    instant: str
    before: str | None


def due(
    data: Timeline, metadata_timeline: Timeline, features: TableVersion, *, trigger: int, draw: Callable[[], str]
) -> Due | str:
    """The compaction that is due after `trigger` deltacommits, or why none is. Pure but for `draw`, which gives a new
    instant.

    `data` and `metadata_timeline` were loaded under the table lock; nothing of the latter that could be finished or
    rolled back is pending.
    """
    deltas = metadata_timeline.completed().of_actions(Action.DELTA_COMMIT)
    latest = deltas.last()
    if latest is None:
        return "the metadata table holds no deltacommit"
    merging = metadata_timeline.pending_log_compactions().first()
    if merging is not None:
        return f"log compaction {merging.requested_time} of the metadata table is pending"
    last = latest_compaction(metadata_timeline)
    if last is None:
        since = len(deltas)
    elif features.completion_time_in_name:
        since = len(deltas.filter(lambda item: item.completed_at > last.requested_time))
    else:
        since = len(deltas.after(last.requested_time))
    if since < trigger:
        return f"{since} deltacommits since the last compaction, but {METADATA_DELTA_COMMITS.name} is {trigger}"
    building = _building(data, metadata_timeline)
    if building is not None:
        return (
            f"indexing {building.requested_time} is building an index: compacted now, the index would lose what was "
            "there before it"
        )
    if features.metadata_needs_rest:
        return _due_at_rest(data, metadata_timeline, latest.requested_time)
    recorded = metadata_timeline.completed().requested_times
    # A write that is recorded but pending on the data table may yet be rolled back: it stays out, and so does what came
    # after it.
    first = next((item for item in data.pending_changes() if item.requested_time in recorded), None)
    instant = draw() if first is None else earlier(first.requested_time, 1)
    if instant in recorded or (last is not None and instant <= last.requested_time):
        return (
            f"the metadata table was compacted at {instant} or later, and {first.requested_time if first else ''} is "
            "pending since"
        )
    return Due(instant, instant)


def _building(data: Timeline, metadata_timeline: Timeline) -> Instant | None:
    """What builds an index now: below a newer base file no reader would find its base files."""
    inflight = (item for item in data.pending().of_actions(Action.INDEXING) if item.state is State.INFLIGHT)
    recorded = metadata_timeline.completed().requested_times
    return next((item for item in inflight if item.requested_time not in recorded), None)


def _due_at_rest(data: Timeline, metadata_timeline: Timeline, latest: str) -> Due | str:
    pending = [item.requested_time for item in data.pending_changes() if item.requested_time <= latest]
    if pending:
        return f"actions of the table are pending that the metadata table may have recorded: {', '.join(pending)}"
    instant = OperationSuffix.COMPACTION.of(latest)
    if instant in metadata_timeline.completed().requested_times:
        return f"the metadata table was compacted at {instant}, and nothing was written to it since"
    earlier = [
        item.requested_time
        for item in metadata_timeline.pending()
        if item.action == Action.DELTA_COMMIT and item.requested_time <= instant
    ]
    if earlier:
        return f"deltacommits of the metadata table are pending: {', '.join(earlier)}"
    return Due(instant, None)


def compaction_plan(
    places: Iterable[LatestSlice], metadata_timeline: Timeline, before: str | None, features: TableVersion
) -> CompactionPlan:
    """One operation for every file group with log files, of those that completed before `before`."""
    completions = {item.requested_time: item.completed_at for item in metadata_timeline.commits()}
    operations = []
    for place in places:
        logs = [
            info
            for info in place.logs
            if before is None or _is_planned(parse_log_file(info.name).instant, place, before, completions)
        ]
        if logs:
            operations.append(_operation(place, logs))
    return CompactionPlan(tuple(operations), extra_metadata={} if features.merge_modes else None)


def _operation(place: LatestSlice, logs: Sequence[FileInfo]) -> CompactionOperation:
    base_bytes = None if place.base_file is None else place.base_file.size
    metrics = slice_metrics(base_bytes, (info.size for info in logs))
    base_file = None if place.base_file is None else place.base_file.name
    names = tuple(info.name for info in logs)
    return CompactionOperation(place.partition, place.file_id, place.base_instant, base_file, names, metrics)


def _is_planned(instant: str, place: LatestSlice, before: str, completions: dict[str, str]) -> bool:
    """One that is not on the timeline is archived; one older than the base file was merged: Hudi may clean its log."""
    if (
        instant not in completions
        and place.base_file is not None
        and instant < parse_base_file(place.base_file.name).instant
    ):
        return False
    return completions.get(instant, "") < before
