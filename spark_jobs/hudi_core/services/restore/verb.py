"""`restore`: finishes the pending restore, or plans and runs one: the table goes back to its state after a commit. All
writers have to be stopped, as with Hudi. request/services.py names the other services.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from hudi_core.errors import ConflictError, TimelineError
from hudi_core.frozen import dataclass
from hudi_core.services.context import TableContext
from hudi_core.services.lifecycle import Run, run_instant
from hudi_core.services.restore.candidates import Restorable, RestoreCandidates
from hudi_core.services.restore.job import RestoreJob
from hudi_core.services.rollback.execution import NOTHING, Removed
from hudi_core.services.rollback.failed_writes import finish_restore, heartbeats_of, pending_rollbacks, restore_target
from hudi_core.services.rollback.files_to_roll_back import rollback_steps, sizes_of
from hudi_core.services.rollback.job import run_rollback
from hudi_core.timeline.actions.rollback import RestoredInstant, RestorePlan, encode_restore_plan
from hudi_core.timeline.instant import Action, Instant
from hudi_core.timeline.pending_plans import read_restore_plan
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim_file import current_claim
from hudi_core.transaction.owner import Owner

_NOTHING_LATER = "nothing was written after it"


@dataclass(frozen=True, slots=True)
class RestoreResult:
    """The result of a restore. `instant` is the restore's own; None in a dry run. Where nothing had to go, `reason`
    says so, and `instant` is the last restore to that commit, if any. `target` is the commit that the table went back
    to. `restorable`, of a dry run, are all completed commits, and why the table cannot be restored to them.
    `dropped_indexes` are the partitions of the metadata table that were dropped because they cannot go back.
    """

    instant: str | None
    target: str | None
    removed: Removed = NOTHING
    reason: str | None = None
    restorable: tuple[Restorable, ...] = ()
    dropped_indexes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        document = asdict(self) | {"removed": self.removed.to_dict(), "restorable": [*map(asdict, self.restorable)]}
        if not self.restorable and self.target is not None:
            del document["restorable"]
        if not self.dropped_indexes:
            del document["dropped_indexes"]
        return document


def restore(context: TableContext, instant: str, owner: Owner, *, dry_run: bool = False) -> RestoreResult:
    """Rolls back all writes after the completed commit `instant`, savepointed or not. Finishes a pending restore to
    `instant` under its own instant; else finishes pending rollbacks first. With `dry_run` writes nothing. Raises
    ConfigError where `instant` is no completed commit of the timeline, TimelineError when its files may be gone or
    something after it must stay (candidates.py), ConflictError while a writer is alive or another process restores.
    """
    timeline = context.active.load()
    pending = _pending_restore(context, timeline, instant)
    if dry_run:
        return _preview(context, timeline, instant)
    if pending is None:
        RestoreCandidates(context, timeline).check(instant)  # before anything is written; again under the lock
        for rollback in pending_rollbacks(context.active, timeline):
            run_rollback(context, rollback, owner)
        pending = _request(context, instant, owner)
    if pending is None:
        done = _last_restore(context, instant)
        if done is not None and (behind := RestoreJob(Run(context, done, owner))).leftovers():
            run_instant(behind)
        return RestoreResult(done, instant, reason=_NOTHING_LATER)
    job = RestoreJob(Run(context, pending, owner))
    run_instant(job)
    return RestoreResult(pending, instant, job.removed, dropped_indexes=job.dropped_indexes)


def nothing_to_restore(context: TableContext, instant: str, owner: Owner) -> RestoreResult | None:
    """Returns the result of a restore without work, else None. Writes nothing. Raises as restore, no ConflictError."""
    timeline = context.active.load()
    if _pending_restore(context, timeline, instant) is not None:
        return None
    candidates = RestoreCandidates(context, timeline)
    if candidates.after(candidates.check(instant)) or pending_rollbacks(context.active, timeline):
        return None
    done = _last_restore(context, instant)
    if done is not None and RestoreJob(Run(context, done, owner)).leftovers():
        return None
    return RestoreResult(done, instant, reason=_NOTHING_LATER)


def _pending_restore(context: TableContext, timeline: Timeline, target: str) -> str | None:
    """Returns the pending restore to `target`, if any. Raises TimelineError for one to another commit."""
    pending = timeline.pending().of_actions(Action.RESTORE).last()
    if pending is None:
        return None
    plan = read_restore_plan(context.active, pending.requested_time)
    if not plan.target:
        what = "is not finished, and its plan does not say which commit the table goes back to"
        raise TimelineError(
            f"restore {pending.requested_time} {what}", remedy=finish_restore("", pending.requested_time)
        )
    if plan.target != target:
        what = f"restore {pending.requested_time} to {plan.target} is not finished"
        raise TimelineError(what, remedy=f"finish it first: `hudictl restore TABLE --instant {plan.target}`")
    return pending.requested_time


def _preview(context: TableContext, timeline: Timeline, instant: str) -> RestoreResult:
    candidates = RestoreCandidates(context, timeline)
    target = candidates.check(instant)
    going = candidates.after(target)
    files: dict[str, int] = {}
    for item in going:
        steps = rollback_steps(context, item, timeline, restoring=True)
        files.update(sizes_of(context, steps))
    removed = Removed(files, tuple(item.requested_time for item in going))
    return RestoreResult(None, instant, removed, None if going else _NOTHING_LATER, tuple(candidates.all()))


def _request(context: TableContext, instant: str, owner: Owner) -> str | None:
    """Requests the restore under the lock, and returns its instant. Returns None when nothing has to go."""
    context.check_recordable()
    with context.lock(owner) as lock:
        timeline = context.active.load()
        candidates = RestoreCandidates(context, timeline)
        going = candidates.after(candidates.check(instant))
        _refuse_live_writers(context, timeline, going)
        if not going:
            return None
        restore_instant = context.new_instant(timeline)
        plan = RestorePlan(instant, tuple(RestoredInstant(item.requested_time, item.action) for item in going))
        lock.check()
        context.active.create_requested(restore_instant, Action.RESTORE, encode_restore_plan(plan))
        return restore_instant


def _refuse_live_writers(context: TableContext, timeline: Timeline, going: list[Instant]) -> None:
    """Raises ConflictError while a writer is at work on an instant that goes. An instant that this engine claimed is
    checked by its claim, which its rollback takes over.
    """
    pending = [
        item.requested_time
        for item in going
        if not item.is_completed and current_claim(context.storage, item.requested_time) is None
    ]
    if not pending:
        return
    live = heartbeats_of(context, timeline, read_only=True).live().intersection(pending)
    if live:
        what = f"a writer is at work on instant {min(live)}"
        remedy = "stop all writers of the table and wait until their heartbeats expire; then restore"
        raise ConflictError(what, remedy=remedy)


def _last_restore(context: TableContext, target: str) -> str | None:
    last = context.active.load().completed().of_actions(Action.RESTORE).last()
    if last is None or restore_target(context.active, last) != target:
        return None
    return last.requested_time
