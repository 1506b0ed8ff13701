"""`takeover`: an instant whose owner is dead is freed, so that the next run of it begins at once and from the start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hudi_core.errors import ConfigError, CorruptFileError
from hudi_core.services.context import TableContext
from hudi_core.services.restore.execute import read_restore_plan
from hudi_core.services.rollback.attempt import AttemptRollback, planned_partitions
from hudi_core.services.rollback.result import Removed
from hudi_core.services.stuck.pending_plan import PendingPlan, find_pending, unblocked_by
from hudi_core.timeline.instant import Action, State
from hudi_core.transaction.claim import current_claim
from hudi_core.transaction.owner import Owner


@dataclass(frozen=True, slots=True)
class TakenOver:
    """An instant that anybody may run now: who had it, in which state it is, what an attempt at it had written, and what waits for it."""

    instant: str
    action: str
    state: str
    previous_owner: str | None
    removed: Removed
    unblocks: dict[str, Any]
    next: str

    def to_dict(self) -> dict[str, Any]:
        """The document of `hudictl takeover --json`."""
        return {
            "instant": self.instant,
            "action": self.action,
            "state": self.state,
            "previous_owner": self.previous_owner,
            "removed": self.removed.to_dict(),
            "unblocks": self.unblocks,
            "next": self.next,
        }


def takeover(context: TableContext, instant: str, owner: Owner) -> TakenOver:
    """Claims the pending instant for `owner`, rolls a compaction's or clustering's attempt back to requested, and lets go of it.

    A completion that the old owner had decided on is carried out first. Raises ConflictError, with the owner and its last sign of life,
    while that one may be alive; ConfigError for a write of Hudi, which is rolled back instead; CorruptFileError for a plan that nobody can read.
    """
    timeline = context.active.load()
    plan = find_pending(context, timeline, instant)
    if plan.kind == "write":
        raise ConfigError(
            f"{plan.instant.action} {instant} is a write: only its own writer could go on with it",
            remedy=f"roll it back when its writer is dead: `hudictl rollback --instant {instant}`",
        )
    if plan.damaged is not None:
        remedy = f"drop it: `hudictl unschedule TABLE {instant}`"
        raise CorruptFileError(f"{plan.damaged.message}; nobody can run this plan", path=plan.damaged.path, remedy=remedy)
    before = current_claim(context.storage, instant)
    with context.claim(instant, owner) as held:
        completed = context.completer(held, owner).finish_decided(instant)
        removed: dict[str, int] = {}
        if completed is None and plan.file_groups:
            partitions = planned_partitions(context, plan.instant)
            attempt = AttemptRollback(context, instant, plan.instant.pending_action, partitions, held, lambda: context.lock(owner))
            removed = {info.path: info.size for info in attempt.find().files}
            attempt.run()
            context.active.revert_to_requested(instant, plan.instant.pending_action)
    found = context.active.load().find(instant, plan.instant.pending_action)
    state = State.COMPLETED if found is None else found.state
    name = None if before is None else before.owner.describe()
    unblocks = unblocked_by(context, timeline, plan)
    return TakenOver(instant, plan.kind, state.value, name, Removed(removed), unblocks, _next(context, plan, state))


def _next(context: TableContext, plan: PendingPlan, state: State) -> str:
    """The command that finishes the instant."""
    instant = plan.instant.requested_time
    if state is State.COMPLETED:
        return "nothing: the instant is completed"
    if plan.kind == Action.RESTORE:
        return f"hudictl restore TABLE --instant {read_restore_plan(context, instant).target}"
    if plan.kind == Action.SAVEPOINT:
        return f"hudictl savepoint create TABLE --instant {instant}"
    return f"hudictl run {plan.kind} TABLE --instant {instant}"
