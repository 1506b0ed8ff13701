"""The metadata table at the start of a restore: whether it can be restored, and which parts cannot.

It is restored by the order of its deltacommits, the data table by its own order. A commit that stays and was recorded
later than the target (a compaction that completed after it, or a commit that `metadata update` applied) would be
removed from the indexes and its files listed again: rows whose keys no index has. Hudi does so. Here the metadata table
is dropped then, as when it was compacted since.
"""

from __future__ import annotations

import logging

from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.drop import drop_metadata_table, remove_dropped
from hudi_core.metadata_table.write.restore_reach import completed_at, instants_after
from hudi_core.services.context import TableContext
from hudi_core.timeline.actions.restore import RestorePlan
from hudi_core.timeline.instant import COMMIT_ACTIONS

log = logging.getLogger(__name__)


def prepare_metadata(context: TableContext, plan: RestorePlan) -> None:
    """Drops what cannot go back, before any file of the data table goes (MetadataPublisher.prepare_restore).

    The caller holds the table lock; `context` was loaded under it.
    """
    remove_dropped(context.storage, context.config)  # which a run that died may have started
    publisher = context.metadata_publisher()
    if publisher is None:
        return
    late = recorded_late(context, plan)
    if late:
        log.warning(
            "the metadata table is dropped, Hudi's next write builds it anew: it was told of %s after %s",
            ", ".join(late),
            plan.target,
        )
        drop_metadata_table(context.storage)
        return
    publisher.prepare_restore(plan.target)


def recorded_late(context: TableContext, plan: RestorePlan) -> list[str]:
    """The completed commits that stay and were recorded in the metadata table after the target; none without that
    order.
    """
    metadata_timeline = MetadataTimeline(context.storage, context.config)
    timeline = metadata_timeline.active.load()
    until = completed_at(metadata_timeline, timeline, plan.target)
    if until is None:
        return []
    goes = {item.time for item in plan.instants} | {plan.target}
    stays = context.active.load().completed().of_actions(*COMMIT_ACTIONS).requested_times - goes
    return sorted(
        item.requested_time
        for item in instants_after(metadata_timeline, timeline, plan.target, until)
        if item.requested_time in stays
    )
