"""`rollback`: rolls back one instant, the named or the next one that has to go; as a verb and as a service. Only writes
can be rolled back; checks.py says which of them.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from hudi_core.errors import ConfigError, ConflictError, CorruptFileError
from hudi_core.frozen import dataclass
from hudi_core.services.context import TableContext
from hudi_core.services.lifecycle import claimed
from hudi_core.services.rollback.checks import check_rollback, refuse_live_writer
from hudi_core.services.rollback.execution import (
    NOTHING,
    Removed,
    RollbackExecution,
    encode_plan,
    is_planned,
    keeps_plan,
    request,
)
from hudi_core.services.rollback.failed_attempt import roll_back_attempt
from hudi_core.services.rollback.failed_writes import dead_own_writes, dead_rollbacks, failed_writes, nothing_failed
from hudi_core.services.rollback.files_to_roll_back import plan_rollback, sizes_of
from hudi_core.services.rollback.job import RollbackJob, run_rollback
from hudi_core.services.service import Scheduled, Service
from hudi_core.storage.one_look import look_again
from hudi_core.timeline.actions.content import decode_any
from hudi_core.timeline.actions.rollback import decode_rollback_metadata
from hudi_core.timeline.instant import WRITE_ACTIONS, Action, Instant, State
from hudi_core.timeline.pending_plans import pending_rollback_of, planned_file_groups, rollback_target
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim_file import current_claim, has_let_go, is_decided
from hudi_core.transaction.commit import check_inflight
from hudi_core.transaction.owner import Owner


@dataclass(frozen=True, slots=True)
class RollbackResult:
    """The result of a rollback. `instant` is the rollback's own, if any. `target` is what it rolled back. `reason` says
    why nothing was rolled back; then `target` is None, except in a dry run where a run would complete it.
    """

    instant: str | None
    target: str | None
    removed: Removed = NOTHING
    reason: str | None = None

    @property
    def outcome(self) -> str | None:
        """The text for the log of a run that rolls failed writes back."""
        return self.reason or f"the failed write {self.target} was rolled back"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"removed": self.removed.to_dict()}


def clean_failed_writes(
    context: TableContext, owner: Owner, *, only_ours: bool = False, dry_run: bool = False
) -> list[RollbackResult]:
    """Finishes the pending rollbacks without an owner, then rolls failed writes back, newest first. Returns the results
    in that order. `only_ours` takes only the writes of this engine. A write that completes meanwhile is kept; its
    result has a reason. With `dry_run` nothing is written. Raises as `rollback`, after completed rollbacks.
    """
    if not dry_run:
        # Whoever completes a write deletes its claim, and would count as dead by an older look.
        look_again(context.storage)
    pending = dead_rollbacks(context, context.active.load(), dry_run=dry_run)
    results = [rollback(context, instant, owner, dry_run=dry_run) for instant in pending]
    done = {result.target for result in results}
    failed = (dead_own_writes if only_ours else failed_writes)(context, context.active.load(), dry_run=dry_run)
    times = [instant.requested_time for instant in failed if instant.requested_time not in done]
    return results + [rollback(context, time, owner, dry_run=dry_run, unless_completed=True) for time in times]


def rollback(
    context: TableContext, instant: str | None, owner: Owner, *, dry_run: bool = False, unless_completed: bool = False
) -> RollbackResult:
    """Rolls `instant` back: a write that failed, an attempt at a compaction or clustering, or the newest completed
    commit. None: finishes a pending rollback, or else rolls back the newest failed write (failed_writes.py). A pending
    rollback, of `instant` or named by it, is finished under its own instant; a completed one is only cleaned up. With
    `dry_run` nothing is written. `unless_completed` keeps a completed write without inflight rollback.

    Raises ConfigError for an instant that the timeline does not hold, TimelineError (checks.py) when it may not be
    rolled back, ConflictError while a writer is at work on it or another process rolls it back.
    """
    if not dry_run:
        look_again(context.storage)
    timeline = context.active.load()
    if instant is not None:
        return _roll_back(context, timeline, instant, owner, dry_run, unless_completed)
    pending = dead_rollbacks(context, timeline, dry_run=dry_run)
    if pending:
        return _finish(context, pending[0], owner, dry_run)
    failed = failed_writes(context, timeline, dry_run=dry_run)
    if failed:
        return _roll_back(context, timeline, failed[0].requested_time, owner, dry_run, unless_completed=True)
    return RollbackResult(None, None, reason=nothing_failed(context, timeline))


def _roll_back(
    context: TableContext, timeline: Timeline, instant: str, owner: Owner, dry_run: bool, unless_completed: bool
) -> RollbackResult:
    rollback_instant = timeline.find(instant, Action.ROLLBACK)
    if rollback_instant is not None and rollback_instant.pending_action == Action.ROLLBACK:
        return _finish(context, instant, owner, dry_run)
    pending = pending_rollback_of(context.active, timeline, instant)
    if pending is not None:
        return _finish(context, pending, owner, dry_run)
    target = _write_at(context, timeline, instant)
    if target is None:
        done = _completed_rollback_of(context, timeline, instant)
        if done is None:
            what = f"the timeline holds no instant {instant}"
            raise ConfigError(what, path=context.active.folder, remedy="list the instants: `hudictl timeline TABLE`")
        return _finish(context, done, owner, dry_run)
    if target.is_completed and unless_completed:
        return _kept(target)
    if target.state is State.REQUESTED and is_planned(context, target) and not dry_run:
        done = _completed_rollback_of(context, timeline, instant)
        if done is not None:  # a run may have died right after that
            return replace(_back_to_requested(context, target, owner), instant=done, reason="it was rolled back before")
    if dry_run:
        return _would_roll_back(context, timeline, target)
    if keeps_plan(context, target):
        check_rollback(context, timeline, target)
        return _back_to_requested(context, target, owner)
    if not target.is_completed and _completed_now(context, instant, owner):
        if unless_completed:
            return _kept(target)
        what = f"an earlier run had decided to complete {target.action} {instant}, and so it is completed now"
        remedy = "its rows stay; to remove them all the same, run it again"
        raise ConflictError(what, path=context.active.folder, remedy=remedy)
    return _finish(context, request_rollback(context, target, owner), owner, dry_run=False)


def _would_roll_back(context: TableContext, timeline: Timeline, target: Instant) -> RollbackResult:
    instant = target.requested_time
    if not target.is_completed and is_decided(context.storage, instant):
        refuse_live_writer(context, instant, dry_run=True)
        return RollbackResult(None, instant, reason=_decided(target))
    check_rollback(context, timeline, target, dry_run=True)
    files = sizes_of(context, plan_rollback(context, timeline, target))
    return RollbackResult(None, instant, Removed(files, () if keeps_plan(context, target) else (instant,)))


def _kept(target: Instant) -> RollbackResult:
    reason = f"{target.action} {target.requested_time} has completed since it was taken for failed: its rows stay"
    return RollbackResult(None, None, reason=reason)


def _finish(context: TableContext, rollback: str, owner: Owner, dry_run: bool) -> RollbackResult:
    if dry_run:
        timeline = context.active.load()
        if not timeline.get(rollback, Action.ROLLBACK).is_completed and not rollback_target(context.active, rollback):
            return _dropped(rollback)
        execution = RollbackExecution(context, rollback, owner)
        target = execution.target(timeline)
        goes = () if target is not None and keeps_plan(context, target) else (execution.plan.instant,)
        return RollbackResult(None, execution.plan.instant, Removed(sizes_of(context, execution.steps), goes))
    refuse_live_writer(context, rollback)
    job = run_rollback(context, rollback, owner)
    if job.is_dropped:
        return _dropped(rollback)
    return RollbackResult(rollback, job.failed, job.removed)


def _dropped(rollback: str) -> RollbackResult:
    reason = "the plan of this rollback cannot be read, and so it leaves the timeline: it rolls nothing back"
    return RollbackResult(rollback, None, Removed(instants=(rollback,)), reason)


def _back_to_requested(context: TableContext, target: Instant, owner: Owner) -> RollbackResult:
    """Removes what an attempt left, under our claim. The claim stays, so that later epochs count on."""
    instant, action = target.requested_time, target.pending_action
    with claimed(context, instant, owner) as claim:
        if target.state is State.INFLIGHT:
            check_inflight(context.active.load(), instant, action)
        partitions = {group.partition for group in planned_file_groups(context.active, target) or ()}
        done, removed = roll_back_attempt(context, instant, action, partitions, claim.held)
        context.active.roll_back_to_requested(instant, action)
    return RollbackResult(done, instant, Removed(removed))


def _completed_rollback_of(context: TableContext, timeline: Timeline, instant: str) -> str | None:
    for done in reversed(timeline.completed().of_actions(Action.ROLLBACK).instants):
        path = context.active.path_of(done)
        try:
            failed = decode_rollback_metadata(context.active.read_details(done), path=path).instant
        except CorruptFileError:  # empty after a crash; its plan then names the instant (getRollbackedCommits)
            failed = rollback_target(context.active, done.requested_time) or ""
        if failed == instant:
            return done.requested_time
    return None


def _write_at(context: TableContext, timeline: Timeline, time: str) -> Instant | None:
    """Returns the write requested at `time`, or None. Raises ConfigError when only other actions are there."""
    at_time = [item for item in timeline if item.requested_time == time and item.action != Action.SAVEPOINT]
    write = next((item for item in at_time if item.action in WRITE_ACTIONS), None)
    if write is None and at_time:
        what = f"{at_time[0].action} {time} cannot be rolled back"
        remedy = "only writes, compactions and clusterings can; a clean or a rollback is run again until it completes"
        raise ConfigError(what, path=context.active.folder, remedy=remedy)
    return write


def request_rollback(context: TableContext, target: Instant, owner: Owner) -> str:
    """Returns the requested time of the rollback of `target`: a pending one, or one that is requested now. Raises the
    errors of check_rollback, and ConflictError when the instant has changed. The rollback of a completed commit says so
    in its plan, and is inflight at once: other plans take no completed write (RollbackExecution.begin).
    """
    with context.lock(owner) as lock:
        timeline = context.active.load()
        pending = pending_rollback_of(context.active, timeline, target.requested_time)
        if pending is not None:
            return pending
        current = timeline.find(target.requested_time, target.action)
        if current != target:
            now = "gone" if current is None else current.state.value
            what = f"{target.action} {target.requested_time} is {now} since it was looked at"
            raise ConflictError(what, remedy="look at the timeline again")
        check_rollback(context, timeline, target)
        steps = plan_rollback(context, timeline, target)
        rollback = request(context, lock, timeline, target, steps)
        if target.is_completed:
            context.active.to_inflight(rollback, Action.ROLLBACK)
        return rollback


def _completed_now(context: TableContext, instant: str, owner: Owner) -> bool:
    """Whether this call completes the instant, as a dead run decided. Raises ConflictError for a live run."""
    storage = context.storage
    if current_claim(storage, instant) is None or (has_let_go(storage, instant) and not is_decided(storage, instant)):
        return False
    with claimed(context.reloaded(), instant, owner) as claim:
        return claim.completed is not None


def _decided(target: Instant) -> str:
    """Says why a dry run does not roll `target` back."""
    decided = f"an earlier run had decided to complete {target.action} {target.requested_time}"
    return f"{decided}: a run completes it, and its rows stay"


class RollbackService(Service):
    """Plans the rollback of the newest failed write, and runs pending rollbacks without a live writer of Hudi."""

    name = "rollback"
    action = Action.ROLLBACK
    job = RollbackJob

    def pending(self, context: TableContext, timeline: Timeline) -> list[str]:
        # Nothing is written, so ages are measured by this process's clock.
        return dead_rollbacks(context, timeline, dry_run=True)

    def schedule(self, context: TableContext, owner: Owner, *, dry_run: bool) -> Scheduled:
        """Plans one rollback at a time. Completes a write that decided so: Hudi's writers would remove its rows."""
        timeline = context.active.load()
        pending = dead_rollbacks(context, timeline, dry_run=dry_run)
        if pending:
            return Scheduled(None, None, f"rollback {pending[0]} is pending: run it first")
        failed = failed_writes(context, timeline, dry_run=dry_run)
        if not failed:
            return Scheduled(None, None, nothing_failed(context, timeline))
        if dry_run:
            target = next((item for item in failed if not is_decided(context.storage, item.requested_time)), None)
            if target is None:
                return Scheduled(None, None, _decided(failed[0]))
            check_rollback(context, timeline, target, dry_run=True)
            plan = encode_plan(context, target, plan_rollback(context, timeline, target))
            return Scheduled(None, decode_any(plan, path=context.active.path_of(target)))
        target = next((item for item in failed if not _completed_now(context, item.requested_time, owner)), None)
        if target is None:
            return Scheduled(None, None, nothing_failed(context, context.active.load()))
        rollback = request_rollback(context, target, owner)
        return Scheduled(rollback, context.active.read_any(rollback, Action.ROLLBACK, State.REQUESTED))
