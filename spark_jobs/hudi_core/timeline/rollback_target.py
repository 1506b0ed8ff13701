"""Which instant a pending rollback rolls back (BaseHoodieTableServiceClient.getPendingRollbackInfo)."""

from __future__ import annotations

from hudi_core.errors import CorruptFileError
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.query import Timeline


def rollback_target(active: ActiveTimeline, rollback: str) -> str:
    """The instant that the plan of `rollback` names. Raises CorruptFileError naming the plan's file when it names none."""
    plan = active.read_any(rollback, Action.ROLLBACK, State.REQUESTED)
    info = plan.get("instantToRollback")
    target = info.get("commitTime") if isinstance(info, dict) else None
    if not isinstance(target, str) or not target:
        raise CorruptFileError(
            "the rollback plan names no instant",
            path=active.path(rollback, Action.ROLLBACK, State.REQUESTED),
            remedy="remove the rollback's files from the timeline; Hudi plans it again",
        )
    return target


def pending_rollback_of(active: ActiveTimeline, timeline: Timeline, instant: str) -> str | None:
    """The latest pending rollback of `instant` on `timeline`; None when there is none."""
    for pending in reversed(timeline.pending().of_actions(Action.ROLLBACK).instants):
        if rollback_target(active, pending.requested_time) == instant:
            return pending.requested_time
    return None
