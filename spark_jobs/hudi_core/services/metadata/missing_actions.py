"""The actions of the data table that the metadata table lacks, and whether they can still be applied.

A writer that runs without the metadata table, or by other means than Hudi's, leaves an instant on the data table's
timeline that the metadata table's has no deltacommit of. Since every block of it would count as soon as it is there, it
can be written at any later time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from hudi_core.errors import TimelineError
from hudi_core.history.archived import load_history
from hudi_core.metadata_table.instants import data_instant, is_solo
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.validity import rolled_back_by
from hudi_core.services.context import TableContext
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action, Instant
from hudi_core.timeline.timeline import Timeline

REBUILD: Final = (
    "run `hudictl metadata drop TABLE`, then `hudictl metadata create TABLE` with the partitions that it had"
)
_RECORDED: Final = COMMIT_ACTIONS | {Action.CLEAN}
"""Each of these has a deltacommit of the same instant."""


def missing_actions(context: TableContext, metadata_timeline: MetadataTimeline) -> list[Instant]:
    """The completed actions that the metadata table lacks, in the order of their completion; a rollback or restore is
    one of them.

    Those older than the metadata table are in it by its initialization. The caller holds the table lock. Raises
    TimelineError for one that the data table has archived: blocks of archived instants do not count, so that it can no
    longer be applied.

    Cost: both active timelines; the metadata table's archive only where its active timeline lacks something, the data
    table's for what is newer than the oldest deltacommit there.
    """
    data, mine = context.active.load(), metadata_timeline.active.load()
    known = {item.requested_time for item in mine.completed()}
    suspects = [item for item in data.completed() if _is_suspect(item, metadata_timeline, mine, known)]
    archived = [item for item in _archived(context, mine) if item.requested_time not in known]
    if suspects or archived:
        older = load_history(context.storage, metadata_timeline.config, ROOT).timeline()
        start = _start([*older, *mine.completed()], metadata_timeline)
        suspects, archived = (
            [item for item in items if not _is_known(item, older) and _order(item, metadata_timeline) > start]
            for items in (suspects, archived)
        )
    if archived:
        raise TimelineError(
            f"the metadata table was not told of {archived[0].action} {archived[0].requested_time}, and "
            "the table has "
            "archived it",
            path=ROOT,
            remedy=REBUILD,
        )
    undone = [
        item
        for item in data.completed().of_actions(Action.ROLLBACK)
        if _current(item, context, metadata_timeline, data, mine)
    ]
    return sorted({*suspects, *undone}, key=lambda item: (item.completed_at, item.requested_time))


def _is_known(item: Instant, mine: Timeline) -> bool:
    """Whether an instant of the metadata table records it. A restore is followed by a restore of the metadata table."""
    if item.action == Action.RESTORE:
        return any(other.requested_time > item.requested_time for other in mine.completed().of_actions(Action.RESTORE))
    return item.requested_time in mine.requested_times


def _is_suspect(item: Instant, metadata_timeline: MetadataTimeline, mine: Timeline, known: Collection[str]) -> bool:
    """In version 6 a rollback has a deltacommit, too."""
    if item.action == Action.RESTORE:
        return not _is_known(item, mine)
    recorded = item.action in _RECORDED or (
        item.action == Action.ROLLBACK and not metadata_timeline.features.rollback_deletes_logs
    )
    return recorded and item.requested_time not in known


def _archived(context: TableContext, mine: Timeline) -> list[Instant]:
    """Archived actions of the data table that the metadata table's active timeline should know."""
    first = min(
        (item.requested_time for item in mine.completed() if not is_solo(item.requested_time)),
        default=None,
    )
    return (
        []
        if first is None
        else [item for item in context.history().instants(data_instant(first)) if item.action in _RECORDED]
    )


def _start(items: Iterable[Instant], metadata_timeline: MetadataTimeline) -> str:
    """The start of the metadata table: it contains everything completed by then."""
    return min(data_instant(_order(item, metadata_timeline)) for item in items if item.action == Action.DELTA_COMMIT)


def _order(item: Instant, metadata_timeline: MetadataTimeline) -> str:
    return item.completed_at if metadata_timeline.features.completion_time_in_name else item.requested_time


def _current(
    rollback: Instant, context: TableContext, metadata_timeline: MetadataTimeline, data: Timeline, mine: Timeline
) -> bool:
    """Whether files of the rolled-back instant are valid; an instant that was run again since, as a compaction is, may
    have some.
    """
    if not metadata_timeline.features.rollback_deletes_logs:
        return False
    failed = rolled_back_by(context.active, rollback)
    return any(mine.find(time, Action.DELTA_COMMIT) is not None and not data.contains(time) for time in failed)
