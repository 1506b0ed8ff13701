"""Whether a pending plan may be dropped: pure, inputs in, error out. A drop must not lose rows logged to the plan's
slices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hudi_core.errors import ConfigError, ConflictError, TimelineError
from hudi_core.services.repair.pending_plan import PendingPlan, finish_restore
from hudi_core.timeline.instant import Action, Instant, State


@dataclass(frozen=True, slots=True)
class DropInputs:
    """`slice_opens`: in this layout a requested compaction opens a slice that writers' logs are named after. `logs`:
    such log files.

    `writers`: pending writes that may be putting log files into that slice.
    """

    slice_opens: bool
    logs: Sequence[str] = ()
    writers: Sequence[Instant] = ()


def check_droppable(plan: PendingPlan) -> None:
    """Raises, with the verb that helps instead, for a pending instant that is no plan that can be dropped."""
    instant = plan.instant.requested_time
    if plan.kind == "write":
        what = f"{plan.instant.action} {instant} is a write, not a plan"
        raise ConfigError(what, remedy=f"roll it back: `hudictl rollback TABLE --instant {instant}`")
    if plan.kind in (Action.ROLLBACK, Action.RESTORE):
        raise TimelineError(
            f"{plan.kind} {instant} is half done: its files may be gone already", remedy=f"finish it: {_finish(plan)}"
        )
    if plan.kind == Action.SAVEPOINT:
        raise ConfigError(
            f"the savepoint of {instant} is not finished",
            remedy=f"give it up: `hudictl savepoint delete TABLE --instant {instant}`",
        )
    if plan.kind == "clean" and plan.instant.state is State.INFLIGHT:
        raise TimelineError(
            f"clean {instant} is inflight: files that it lists may be gone already",
            remedy=f"finish it: `hudictl run clean TABLE --instant {instant}`",
        )


def _finish(plan: PendingPlan) -> str:
    if plan.kind == Action.ROLLBACK:
        return f"hudictl rollback TABLE --instant {plan.instant.requested_time}"
    return finish_restore(plan.restores_to, "TABLE")


def check_no_rows_lost(plan: PendingPlan, inputs: DropInputs) -> None:
    """Raises where rows that writers have logged, or may be logging, belong to the slice that the plan starts."""
    if plan.kind != "compaction" or not inputs.slice_opens:
        return
    instant = plan.instant.requested_time
    if inputs.logs:
        raise TimelineError(
            f"{len(inputs.logs)} log files of later writes belong to the slices that compaction {instant} opened; "
            "without it their rows would be lost",
            path=inputs.logs[0],
            remedy=f"run it: `hudictl run compaction TABLE --instant {instant}`",
        )
    if inputs.writers:
        first = inputs.writers[0]
        raise ConflictError(
            f"{first.action} {first.requested_time} is pending and may be writing to the slices that compaction "
            f"{instant} opened",
            remedy="wait for that write, or roll it back when its writer is dead",
        )
