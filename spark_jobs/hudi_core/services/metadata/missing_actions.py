"""The actions of the data table that the metadata table lacks, and whether they can still be applied.

A writer that runs without the metadata table, or by other means than Hudi's, leaves an instant on the data table's
timeline that the metadata table's has no deltacommit of. Since every block of it would count as soon as it is there, it
can be written at any later time.
"""

from __future__ import annotations

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
    data, recorded = context.active.load(), metadata_timeline.active.load()
    suspects = [item for item in data.completed() if _is_unrecorded(item, metadata_timeline, recorded)]
    known = recorded.completed().requested_times
    archived = [item for item in _archived(context, recorded) if item.requested_time not in known]
    if suspects or archived:
        older = load_history(context.storage, metadata_timeline.config, ROOT).timeline()
        by_completion = metadata_timeline.features.completion_time_in_name

        def order(item: Instant) -> str:
            return item.completed_at if by_completion else item.requested_time

        # The start of the metadata table, which contains everything completed by then.
        deltacommits = (item for item in [*older, *recorded.completed()] if item.action == Action.DELTA_COMMIT)
        start = min(data_instant(order(item)) for item in deltacommits)
        suspects, archived = (
            [item for item in items if not _is_known(item, older) and order(item) > start]
            for items in (suspects, archived)
        )
    if archived:
        raise TimelineError(
            f"the metadata table lacks {archived[0].action} {archived[0].requested_time}, and the table has archived "
            "it",
            path=ROOT,
            remedy=REBUILD,
        )
    undone = [
        item
        for item in data.completed().of_actions(Action.ROLLBACK)
        if metadata_timeline.features.rollback_deletes_logs and _is_undone(item, context, data, recorded)
    ]
    return sorted({*suspects, *undone}, key=lambda item: (item.completed_at, item.requested_time))


def _is_known(item: Instant, recorded: Timeline) -> bool:
    """Whether an instant of the metadata table records it. A restore is followed by a restore of the metadata table."""
    if item.action == Action.RESTORE:
        restores = recorded.completed().of_actions(Action.RESTORE)
        return any(other.requested_time > item.requested_time for other in restores)
    return item.requested_time in recorded.requested_times


def _is_unrecorded(item: Instant, metadata_timeline: MetadataTimeline, recorded: Timeline) -> bool:
    """In version 6 a rollback has a deltacommit, too."""
    if (
        item.action == Action.RESTORE
        or item.action in _RECORDED
        or (item.action == Action.ROLLBACK and not metadata_timeline.features.rollback_deletes_logs)
    ):
        return not _is_known(item, recorded.completed())
    return False


def _archived(context: TableContext, recorded: Timeline) -> list[Instant]:
    """Archived actions of the data table that the metadata table's active timeline should have."""
    times = [item.requested_time for item in recorded.completed() if not is_solo(item.requested_time)]
    if not times:
        return []
    return [item for item in context.history().instants(data_instant(min(times))) if item.action in _RECORDED]


def _is_undone(rollback: Instant, context: TableContext, data: Timeline, recorded: Timeline) -> bool:
    """Whether files of the rolled-back instant are valid; an instant that was run again since, as a compaction is, may
    have some.
    """
    failed = rolled_back_by(context.active, rollback)
    return any(recorded.find(time, Action.DELTA_COMMIT) is not None and not data.contains(time) for time in failed)
