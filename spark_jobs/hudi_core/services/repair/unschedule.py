"""`unschedule`: drops a plan that will not be run, so that what waited for it can continue
(CompactionAdminClient.unscheduleCompactionPlan).

Hudi renames the log files that were written after a compaction of layout 1, without an update of its metadata table.
This engine refuses there.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from hudi_core.errors import ConflictError, HudiError
from hudi_core.services.context import TableContext
from hudi_core.services.lifecycle import claimed
from hudi_core.services.metadata.index_drop import refuse_in_use
from hudi_core.services.metadata.pending_indexing import planned_partitions, remove_build
from hudi_core.services.repair.guards import check_droppable, check_no_rows_lost
from hudi_core.services.repair.kept_plan import give_back_if_needed, keep_plan, kept_plan, opens_slices, read_inputs
from hudi_core.services.repair.pending_plan import (
    UNBLOCKS_NOTHING,
    PendingPlan,
    find_pending,
    partitions_of,
    unblocked_by,
)
from hudi_core.services.rollback.attempt import AttemptRollback, AttemptSearch
from hudi_core.services.rollback.units import NOTHING, Removed
from hudi_core.timeline.instant import State
from hudi_core.transaction.claim_file import current_claim, forget_claims
from hudi_core.transaction.owner import Owner

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Unscheduled:
    """The plan that went, or in a dry run would go, with what attempts at it had written, and what that unblocks."""

    instant: str
    action: str
    removed: Removed
    unblocks: dict[str, Any]
    dry_run: bool

    def to_dict(self) -> dict[str, Any]:
        """The document of `hudictl unschedule --json`."""
        return {
            "instant": self.instant,
            "action": self.action,
            "dry_run": self.dry_run,
            "removed": self.removed.to_dict(),
            "unblocks": self.unblocks,
        }


def unschedule(context: TableContext, instant: str, owner: Owner, *, dry_run: bool = False) -> Unscheduled:
    """Drops the pending plan at `instant`, also one with a damaged file.

    The files of its attempts are deleted first, of an indexing also the partial index, then its inflight and requested
    files, under the lock. It may be repeated after a crash.

    Raises ConfigError or TimelineError for another instant, ConflictError while a run is alive, or where a writer of
    layout 1 started at the same moment; then the plan is restored.
    """
    timeline = context.active.load()
    if not dry_run and not timeline.contains(instant) and current_claim(context.storage, instant) is not None:
        _clean_up_behind(context, instant, owner)
        return Unscheduled(instant, "", NOTHING, UNBLOCKS_NOTHING, dry_run)
    plan = find_pending(context, timeline, instant)
    try:
        check_droppable(plan)
    except HudiError as error:
        error.path = error.path or context.active.path_of(plan.instant)  # which the rules, being pure, do not know
        raise
    check_no_rows_lost(plan, read_inputs(context, timeline, plan))
    unblocks = unblocked_by(context, timeline, plan)
    if dry_run:
        return Unscheduled(instant, plan.kind, Removed(_attempted(context, plan), (instant,)), unblocks, dry_run=True)
    removed = _drop(context, plan, owner)
    forget_claims(context.storage, instant)
    return Unscheduled(instant, plan.kind, Removed(removed, (instant,)), unblocks, dry_run=False)


def _attempted(context: TableContext, plan: PendingPlan) -> dict[str, int]:
    """What attempts at the plan left: sizes in bytes by path."""
    partitions = partitions_of(context, plan)
    if not partitions:
        return {}
    left = AttemptSearch(context, plan.instant.requested_time, plan.instant.pending_action, partitions).find()
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
            attempt = AttemptRollback(context, instant, action, partitions, found.held)
            attempt.run()
            removed = attempt.removed
        with context.lock(owner) as lock:
            found.held.check()
            timeline = context.active.load()
            check_no_rows_lost(plan, read_inputs(context, timeline, plan))
            opens = opens_slices(context, plan)
            if opens:
                keep_plan(context, instant)
            if plan.kind == "indexing":
                built = planned_partitions(context, timeline, instant)
                refuse_in_use(context, built)
                remove_build(context, instant, built)
            lock.check()
            for state in (State.INFLIGHT, State.REQUESTED):
                context.active.remove(instant, action, state)
            if opens:
                give_back_if_needed(context, plan)
    return removed


def _clean_up_behind(context: TableContext, instant: str, owner: Owner) -> None:
    """An earlier try dropped the plan and was cut off behind it: its claim, its heartbeat and the lock that it may have
    held go.

    So does its copy of the plan, if no writer turns out to be behind that; else ConflictError.
    """
    with context.claim(instant, owner), context.lock(owner):
        plan = kept_plan(context, instant)
        if plan is not None:
            give_back_if_needed(context, plan, behind=True)
        log.info("instant %s was dropped by a run that died right after", instant)
    forget_claims(context.storage, instant)
