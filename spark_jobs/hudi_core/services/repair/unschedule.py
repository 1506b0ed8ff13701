"""`unschedule`: drops a plan that will not be run, so that what waited for it can continue; the files that attempts at
it wrote are deleted by services/rollback/failed_attempt.py (CompactionAdminClient.unscheduleCompactionPlan).

Hudi renames the log files that were written after a compaction of layout 1, without an update of its metadata table.
This engine refuses there: those files must stay, and the plan with them (kept_plan.py).
"""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass
from typing import Any

from hudi_core.errors import ConfigError, ConflictError, HudiError, TimelineError
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.lifetime import drop_metadata_table
from hudi_core.request.results import REMOVED
from hudi_core.services.clean.job import UnscheduledClean, gone_files
from hudi_core.services.context import TableContext
from hudi_core.services.lifecycle import Run, claimed, run_instant
from hudi_core.services.metadata.index_drop import planned_partitions, refuse_in_use, remove_build
from hudi_core.services.repair.kept_plan import (
    check_no_rows_lost,
    keep_plan,
    kept_plan,
    opens_slices,
    restore_if_used,
)
from hudi_core.services.repair.pending_plan import (
    UNBLOCKS_NOTHING,
    PendingPlan,
    find_pending,
    partitions_of,
    unblocked_by,
)
from hudi_core.services.rollback.execution import NOTHING, Removed
from hudi_core.services.rollback.failed_attempt import find_leftovers, roll_back_attempt
from hudi_core.services.rollback.failed_writes import finish_restore
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.pending_plans import rollback_target
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim_file import current_claim, forget_claims
from hudi_core.transaction.owner import Owner

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Unscheduled:
    """The plan that went, or in a dry run would go, with what attempts at it had written, and what that unblocks."""

    instant: str
    action: str
    dry_run: bool
    removed: Removed
    unblocks: dict[str, Any]
    reason: str | None = None
    """Why there was nothing to drop, or why the plan was not dropped but completed."""

    def to_dict(self) -> dict[str, Any]:
        """The document of `hudictl unschedule --json`."""
        return asdict(self) | {"removed": self.removed.to_dict()}


def unschedule(context: TableContext, instant: str, owner: Owner, *, dry_run: bool = False) -> Unscheduled:
    """Drops the pending plan at `instant`, also one with a damaged file.

    The files of its attempts are deleted first, of an indexing also the partial index, then its inflight and requested
    files, under the lock. It may be repeated after a crash, and behind its end: of an instant that is
    neither on the timeline nor archived there is nothing to drop, which the result's `reason` says. Of an inflight
    clean that has deleted files the plan stays: it is completed with these (clean/job.py). A restore is dropped
    while it is only requested, and where its plan cannot be read: the rollbacks that it began are then finished as any
    others. A rollback is dropped only where its plan cannot be read.

    Raises ConfigError or TimelineError for another instant, ConflictError while a run is alive, or where a writer of
    layout 1 started at the same moment; then the plan is restored.
    """
    timeline = context.active.load()
    is_left_behind = not timeline.contains(instant) and current_claim(context.storage, instant) is not None
    if is_left_behind or not timeline.contains_or_before_start(instant):
        if is_left_behind and not dry_run:
            _clean_up_behind(context, instant, owner)
        reason = f"the timeline holds no instant {instant}: it was dropped before, or never was there"
        return Unscheduled(instant, "", dry_run, NOTHING, UNBLOCKS_NOTHING, reason)
    plan = find_pending(context, timeline, instant)
    try:
        _check_droppable(context, timeline, plan)
    except HudiError as error:
        error.path = error.path or context.active.path_of(plan.instant)
        raise
    check_no_rows_lost(context, timeline, plan)
    unblocks = unblocked_by(context, timeline, plan)
    if plan.kind == "clean" and plan.instant.state is State.INFLIGHT:
        return _drop_inflight_clean(context, timeline, instant, owner, unblocks, dry_run)
    if dry_run:
        return Unscheduled(instant, plan.kind, True, Removed(_attempted(context, plan), (instant,)), unblocks)
    removed = _drop(context, plan, owner)
    forget_claims(context.storage, instant)
    return Unscheduled(instant, plan.kind, False, Removed(removed, (instant,)), unblocks)


def _check_droppable(context: TableContext, timeline: Timeline, plan: PendingPlan) -> None:
    """Raises, with the verb that helps instead, for a pending instant that is no plan that can be dropped."""
    instant = plan.instant.requested_time
    if plan.kind == "write":
        what = f"{plan.instant.action} {instant} is a write, not a plan"
        raise ConfigError(what, remedy=f"roll it back: `hudictl rollback TABLE --instant {instant}`")
    if plan.kind == Action.ROLLBACK and rollback_target(context.active, instant) is not None:
        raise _half_done(plan, f"hudictl rollback TABLE --instant {instant}")
    if plan.kind == Action.RESTORE and plan.instant.state is not State.REQUESTED and plan.damaged is None:
        raise _half_done(plan, finish_restore(plan.restores_to, instant))
    if plan.kind == Action.SAVEPOINT:
        raise ConfigError(
            f"the savepoint of {instant} is not finished",
            remedy=f"delete it: `hudictl savepoint delete TABLE --instant {instant}`",
        )


def _half_done(plan: PendingPlan, finish: str) -> TimelineError:
    what = f"{plan.kind} {plan.instant.requested_time} is half done: its files may be gone already"
    return TimelineError(what, remedy=f"finish it: {finish}")


def _drop_inflight_clean(
    context: TableContext, timeline: Timeline, instant: str, owner: Owner, unblocks: dict[str, Any], dry_run: bool
) -> Unscheduled:
    if dry_run:
        is_dropped = not gone_files(context, timeline, instant).files
    else:
        is_dropped = run_instant(UnscheduledClean(Run(context, instant, owner))).state == REMOVED
    if is_dropped:
        return Unscheduled(instant, "clean", dry_run, Removed({}, (instant,)), unblocks)
    done = "would be completed" if dry_run else "was completed"
    reason = f"clean {instant} has deleted files of its plan: it {done} with these, and deletes no others"
    return Unscheduled(instant, "clean", dry_run, NOTHING, unblocks, reason)


def _attempted(context: TableContext, plan: PendingPlan) -> dict[str, int]:
    """What attempts at the plan left: sizes in bytes by path."""
    partitions = partitions_of(context, plan)
    if not partitions:
        return {}
    left = find_leftovers(context, plan.instant.requested_time, plan.instant.pending_action, partitions)
    return {info.path: info.size for info in left.files}


def _drop(context: TableContext, plan: PendingPlan, owner: Owner) -> dict[str, int]:
    """Returns the files of attempts that went, with their sizes in bytes by path."""
    target = plan.instant
    instant, action = target.requested_time, target.pending_action
    removed: dict[str, int] = {}
    with claimed(context, instant, owner) as found:
        if found.completed is not None:
            raise ConflictError(
                f"an earlier run had decided to complete {action} {instant}, and it is completed now",
                path=context.active.folder,
            )
        partitions = partitions_of(context, plan)
        if partitions:
            _, removed = roll_back_attempt(context, instant, action, partitions, found.held)
        with context.lock(owner) as lock:
            found.held.check()
            timeline = context.active.load()
            check_no_rows_lost(context, timeline, plan)
            opens = opens_slices(context, plan)
            if opens:
                keep_plan(context, instant)
            if plan.kind == "indexing":
                built = planned_partitions(context, timeline, instant)
                refuse_in_use(context, built)
                remove_build(context, instant, built)
            if plan.kind == Action.RESTORE:
                _drop_half_restored_metadata(context, instant)
            lock.check()
            # A restore that began meanwhile is refused: without its inflight file it would look as if it had not.
            is_requested = plan.kind == Action.RESTORE and target.state is State.REQUESTED
            for state in (State.REQUESTED,) if is_requested else (State.INFLIGHT, State.REQUESTED):
                context.active.remove(instant, action, state)
            if opens:
                restore_if_used(context, plan)
    return removed


def _drop_half_restored_metadata(context: TableContext, restore: str) -> None:
    """The metadata table's own restore cannot be continued without the plan of the table's. The caller holds the lock.

    Before it began, the metadata table holds all that the rollbacks of the restore are going to take out of it.
    """
    current = context.reloaded()
    if not current.has_metadata_table:
        return
    metadata_timeline = MetadataTimeline(current.storage, current.config)
    if len(metadata_timeline.active.load().of_actions(Action.RESTORE).after(restore)):
        log.warning("the metadata table is dropped, Hudi's next write rebuilds it: restore %s had changed it", restore)
        drop_metadata_table(current.storage)


def _clean_up_behind(context: TableContext, instant: str, owner: Owner) -> None:
    """The claim, heartbeat and lock of a run that died after the drop go, and its copy of the plan if unused."""
    with context.claim(instant, owner), context.lock(owner):
        plan = kept_plan(context, instant)
        if plan is not None:
            restore_if_used(context, plan, behind=True)
        log.info("instant %s was dropped by a run that died right after", instant)
    forget_claims(context.storage, instant)
