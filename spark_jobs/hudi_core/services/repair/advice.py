"""What to do about a pending plan: only commands that this release carries out."""

from __future__ import annotations

from hudi_core.request.services import SERVICES
from hudi_core.services.repair.pending_plan import PendingPlan
from hudi_core.timeline.instant import Action


def advice(plan: PendingPlan, table: str = "TABLE") -> str:
    """The command that runs the plan, or where this release cannot run it, what helps instead. `table` is the table's
    address in the command.
    """
    instant, kind = plan.instant.requested_time, plan.kind
    if kind == "write":
        return f"hudictl rollback {table} --instant {instant}"
    if kind == Action.RESTORE:
        return finish_restore(plan.restores_to, table)
    if kind == Action.SAVEPOINT:
        return f"hudictl savepoint create {table} --instant {instant}"
    if kind in SERVICES:
        return f"hudictl run {kind} {table} --instant {instant}"
    return not_run_here(kind, instant, table)


def finish_restore(target: str, table: str) -> str:
    """The way out of a pending restore to the commit `target`: it can be finished, and not be dropped."""
    if not target:
        return "run it with the Hudi that began it; its plan does not say which commit the table goes back to"
    return f"hudictl restore {table} --instant {target}"


def not_run_here(kind: str, instant: str, table: str) -> str:
    """The way out of a plan that this release does not run on the table."""
    service = kind.replace("_", " ")
    return (
        f"this release does not run it on this table: let Hudi's own {service} do so, or drop it: hudictl "
        f"unschedule {table} {instant}"
    )
