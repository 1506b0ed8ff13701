"""`rollback`: one instant goes, or the next one that has to."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from hudi_core.errors import ConfigError, ConflictError, CorruptFileError
from hudi_core.services.context import TableContext
from hudi_core.services.lifecycle import claimed
from hudi_core.services.rollback.checks import refuse_live_writer
from hudi_core.services.rollback.failed_attempt import roll_back_attempt
from hudi_core.services.rollback.failed_writes import dead_own_writes, dead_rollbacks, failed_writes, nothing_failed
from hudi_core.services.rollback.files_to_undo import sizes_of
from hudi_core.services.rollback.job import keeps_plan, run_rollback
from hudi_core.services.rollback.planner import (
    check_rollback,
    completed_now,
    decided,
    plan_rollback,
    request_rollback,
    write_at,
)
from hudi_core.services.rollback.units import NOTHING, Removed, RollbackExecution, is_planned
from hudi_core.timeline.actions.rollback import decode_rollback_metadata
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.pending_plans import pending_rollback_of, planned_file_groups, rollback_target
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim_file import is_decided
from hudi_core.transaction.commit import check_inflight
from hudi_core.transaction.owner import Owner


@dataclass(frozen=True, slots=True)
class RollbackResult:
    """`instant` is the rollback's own, None in a dry run and where only the timeline changed; `target` what it rolled
    back.

    `reason` says why nothing was undone; `target` is None then, but in a dry run where a run would complete it.
    """

    instant: str | None
    target: str | None
    removed: Removed = NOTHING
    reason: str | None = None

    @property
    def outcome(self) -> str | None:
        """For the log of a run that rolls failed writes back."""
        return self.reason or f"the failed write {self.target} was rolled back"

    def to_dict(self) -> dict[str, Any]:
        """The document of `hudictl rollback --json`."""
        return asdict(self) | {"removed": self.removed.to_dict()}


def clean_failed_writes(
    context: TableContext, owner: Owner, *, eager: bool = False, only_ours: bool = False, dry_run: bool = False
) -> list[RollbackResult]:
    """Finishes the pending rollbacks without an owner, then rolls failed writes back, newest first; results in that
    order.

    A write failed when its heartbeat expired, or by the table's policy (`hoodie.cleaner.policy.failed.writes`). `eager`
    takes all pending writes for failed: correct only without other writers; `only_ours` takes those of this engine
    alone. One that completes meanwhile is kept; its result has a reason. With `dry_run` nothing is written. Errors as
    services.rollback.verb.rollback; rollbacks completed before an error remain.
    """
    timeline = context.active.load()
    pending = dead_rollbacks(context, timeline, eager=eager, dry_run=dry_run)
    results = [rollback(context, instant, owner, dry_run=dry_run) for instant in pending]
    done = {result.target for result in results}
    timeline = context.active.load()
    if only_ours:
        failed = dead_own_writes(context, timeline, dry_run=dry_run)
    else:
        failed = failed_writes(context, timeline, eager=eager, dry_run=dry_run)
    times = [instant.requested_time for instant in failed if instant.requested_time not in done]
    return results + [rollback(context, time, owner, dry_run=dry_run, unless_completed=True) for time in times]


def rollback(
    context: TableContext, instant: str | None, owner: Owner, *, dry_run: bool = False, unless_completed: bool = False
) -> RollbackResult:
    """Rolls `instant` back: a write that failed, an attempt at a compaction or clustering, or the newest completed
    commit.

    None: a pending rollback is finished, else the newest write that failed goes (services.rollback.failed_writes). A
    pending rollback of `instant` is finished under its own instant; so is `instant` when it is one itself. A completed
    rollback is only cleaned up. With `dry_run` nothing is written. With `unless_completed` a write that has completed
    stays, unless its rollback is inflight: the caller presumed it failed.

    Raises ConfigError for an instant that the timeline does not hold, TimelineError (services.rollback.checks) when it
    may not be rolled back, ConflictError while it is at work or being rolled back elsewhere.
    """
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
    target = write_at(context, timeline, instant)
    if target is None:
        done = _completed_rollback_of(context, timeline, instant)
        if done is None:
            raise ConfigError(
                f"the timeline holds no instant {instant}",
                path=context.active.folder,
                remedy="list the instants: `hudictl timeline TABLE`",
            )
        return _finish(context, done, owner, dry_run)
    if target.is_completed and unless_completed:
        return _kept(target)
    if target.state is State.REQUESTED and is_planned(context, target) and not dry_run:
        done = _completed_rollback_of(context, timeline, instant)
        if done is not None:  # by a run that may have died right after it
            return replace(_back_to_requested(context, target, owner), instant=done, reason="it was rolled back before")
    if dry_run:
        return _would_roll_back(context, timeline, target)
    if keeps_plan(context, target):
        check_rollback(context, timeline, target)
        return _back_to_requested(context, target, owner)
    if not target.is_completed and completed_now(context, instant, owner):
        if unless_completed:
            return _kept(target)
        raise ConflictError(
            f"an earlier run had decided to complete {target.action} {instant}, and so it is completed now",
            path=context.active.folder,
            remedy="its rows stay; to remove them all the same, run it again",
        )
    return _finish(context, request_rollback(context, target, owner), owner, dry_run=False)


def _would_roll_back(context: TableContext, timeline: Timeline, target: Instant) -> RollbackResult:
    instant = target.requested_time
    if not target.is_completed and is_decided(context.storage, instant):
        refuse_live_writer(context, instant, dry_run=True)
        return RollbackResult(None, instant, reason=decided(target))
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
        return RollbackResult(None, execution.plan.instant, Removed(execution.planned(), goes))
    refuse_live_writer(context, rollback)
    job = run_rollback(context, rollback, owner)
    if job.is_dropped:
        return _dropped(rollback)
    return RollbackResult(rollback, job.failed, job.removed)


def _dropped(rollback: str) -> RollbackResult:
    reason = "the plan of this rollback cannot be read, and so it leaves the timeline: it undoes nothing"
    return RollbackResult(rollback, None, Removed(instants=(rollback,)), reason)


def _back_to_requested(context: TableContext, target: Instant, owner: Owner) -> RollbackResult:
    """What an attempt left goes, under our claim; the claim stays, so that later epochs count on."""
    with claimed(context, target.requested_time, owner) as found:
        if target.state is State.INFLIGHT:
            check_inflight(context.active.load(), target.requested_time, target.pending_action)
        partitions = {group.partition for group in planned_file_groups(context.active, target) or ()}
        done, removed = roll_back_attempt(context, target.requested_time, target.pending_action, partitions, found.held)
        context.active.revert_to_requested(target.requested_time, target.pending_action)
    return RollbackResult(done, target.requested_time, Removed(removed))


def _completed_rollback_of(context: TableContext, timeline: Timeline, instant: str) -> str | None:
    """The newest completed rollback of `instant`."""
    for done in reversed(timeline.completed().of_actions(Action.ROLLBACK).instants):
        path = context.active.path_of(done)
        try:
            undone = decode_rollback_metadata(context.active.read_details(done), path=path).instant
        except CorruptFileError:  # empty after a crash; its plan then names the instant (getRollbackedCommits)
            undone = rollback_target(context.active, done.requested_time) or ""
        if undone == instant:
            return done.requested_time
    return None
