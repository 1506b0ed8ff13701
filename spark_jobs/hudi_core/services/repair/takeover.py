"""`takeover`: an instant with a dead owner is freed, so that its next run starts at once from the requested state."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from hudi_core.errors import ConfigError, CorruptFileError
from hudi_core.services.context import TableContext
from hudi_core.services.lifecycle import claimed
from hudi_core.services.repair.pending_plan import (
    UNBLOCKS_NOTHING,
    PendingPlan,
    advice,
    find_pending,
    partitions_of,
    unblocked_by,
)
from hudi_core.services.rollback.execution import NOTHING, Removed
from hudi_core.services.rollback.failed_attempt import find_leftovers, roll_back_attempt
from hudi_core.timeline.instant import State
from hudi_core.transaction.claim_file import current_claim, is_free
from hudi_core.transaction.owner import Owner


@dataclass(frozen=True, slots=True)
class TakenOver:
    """An instant that is free to run: its former owner, its state and the files of an attempt at it. `unblocks` names
    what can continue now, nothing unless the instant is completed; `after_the_run` what waits until the instant is run
    or dropped. `reason` says why there was nothing to free.
    """

    instant: str
    action: str
    state: str
    previous_owner: str | None
    removed: Removed
    unblocks: dict[str, Any]
    after_the_run: dict[str, Any]
    next: str
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The document of `hudictl takeover --json`."""
        return asdict(self) | {"removed": self.removed.to_dict()}


def takeover(context: TableContext, instant: str, owner: Owner) -> TakenOver:
    """Claims the pending instant, rolls a compaction's or clustering's attempt back to requested, and releases it.

    A completion that the old owner had decided on is carried out first. Without an owner and without files of an
    attempt nothing is written, so that a repeated takeover adds no claim. The claim stays until the instant is
    completed or dropped: were it removed, an old owner that wakes up could take the next one's epoch for its own.
    Raises ConflictError, with the owner and its last sign of life, while that one may be alive; ConfigError for a write
    of Hudi, which is rolled back instead; CorruptFileError for an unreadable plan.
    """
    free = nothing_to_free(context, instant)
    if free is not None:
        return free
    timeline = context.active.load()
    plan = find_pending(context, timeline, instant)
    waiting = unblocked_by(context, timeline, plan)
    before = current_claim(context.storage, instant)
    with claimed(context, instant, owner) as mine:
        removed: dict[str, int] = {}
        if mine.completed is None and plan.file_groups:
            partitions = partitions_of(context, plan)
            _, removed = roll_back_attempt(context, instant, plan.instant.pending_action, partitions, mine.held)
            context.active.revert_to_requested(instant, plan.instant.pending_action)
    current = context.active.load().find(instant, plan.instant.pending_action)
    state = State.COMPLETED if current is None else current.state
    name = None if before is None else before.owner.describe()
    if state is State.COMPLETED:
        now, later, command = waiting, UNBLOCKS_NOTHING, "nothing: the instant is completed"
    else:
        now, later, command = UNBLOCKS_NOTHING, waiting, advice(plan)
    return TakenOver(instant, plan.kind, state.value, name, Removed(removed), now, later, command)


def nothing_to_free(context: TableContext, instant: str) -> TakenOver | None:
    """The result of takeover where the pending instant has no owner and no attempt left anything; None where it has.

    Nothing is written. Raises as takeover but for ConflictError.
    """
    timeline = context.active.load()
    plan = find_pending(context, timeline, instant)
    if plan.kind == "write":
        what = f"{plan.instant.action} {instant} is a write: only its own writer could go on with it"
        remedy = f"roll it back when its writer is dead: `hudictl rollback TABLE --instant {instant}`"
        raise ConfigError(what, path=context.active.path_of(plan.instant), remedy=remedy)
    if plan.damaged is not None:
        remedy = f"drop it: `hudictl unschedule TABLE {instant}`"
        raise CorruptFileError(
            f"{plan.damaged.message}; no run can carry this plan out", path=plan.damaged.path, remedy=remedy
        )
    if not is_free(context.storage, instant) or _has_started(context, plan):
        return None
    reason = "there was nothing to free: the instant has no owner, and no attempt at it left anything"
    state, later = plan.instant.state.value, unblocked_by(context, timeline, plan)
    return TakenOver(instant, plan.kind, state, None, NOTHING, UNBLOCKS_NOTHING, later, advice(plan), reason)


def _has_started(context: TableContext, plan: PendingPlan) -> bool:
    """Whether an attempt at a compaction or clustering has to go before the next one."""
    if not plan.file_groups:
        return False
    instant, partitions = plan.instant, partitions_of(context, plan)
    leftovers = find_leftovers(context, instant.requested_time, instant.pending_action, partitions)
    return instant.state is not State.REQUESTED or bool(leftovers)
