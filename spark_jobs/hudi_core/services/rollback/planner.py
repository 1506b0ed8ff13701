"""From an instant to a rollback of it on the timeline: the plan, requested under the lock. Rollback as a service."""

from __future__ import annotations

from hudi_core.config.transaction_config import ROLLBACK_USING_MARKERS
from hudi_core.errors import ConfigError, ConflictError, TimelineError
from hudi_core.filegroup.write.rollback_files import FileUndo
from hudi_core.services.context import TableContext
from hudi_core.services.lifecycle import Run, claimed
from hudi_core.services.rollback.checks import guard, refuse_live_writer
from hudi_core.services.rollback.failed_writes import dead_rollbacks, failed_writes, nothing_failed
from hudi_core.services.rollback.files_to_undo import failed_of, plan_undo
from hudi_core.services.rollback.job import RollbackJob
from hudi_core.services.rollback.units import encode_plan, is_planned, used_log_file
from hudi_core.services.service import InstantService, Scheduled
from hudi_core.timeline.actions.content import decode_any
from hudi_core.timeline.instant import WRITE_ACTIONS, Action, Instant, State
from hudi_core.timeline.pending_plans import pending_rollback_of
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim_file import current_claim, has_let_go, is_decided
from hudi_core.transaction.owner import Owner


def write_at(context: TableContext, timeline: Timeline, time: str) -> Instant | None:
    """The write requested at `time`. Raises ConfigError when only other actions are there."""
    at_time = [item for item in timeline if item.requested_time == time and item.action != Action.SAVEPOINT]
    found = next((item for item in at_time if item.action in WRITE_ACTIONS), None)
    if found is None and at_time:
        raise ConfigError(
            f"{at_time[0].action} {time} cannot be rolled back",
            path=context.active.folder,
            remedy="only writes, compactions and clusterings can; a clean or a rollback is run again until it "
            "completes",
        )
    return found


def check_rollback(context: TableContext, timeline: Timeline, target: Instant, *, dry_run: bool = False) -> None:
    """Raises, before anything is written, where `target` may not be rolled back; ConflictError for a live writer."""
    if target.state is State.REQUESTED and is_planned(context, target):
        raise TimelineError(
            f"{target.action} {target.requested_time} is only planned: there is nothing to roll back",
            path=context.active.path_of(target),
            remedy=f"drop the plan: `hudictl unschedule TABLE {target.requested_time}`",
        )
    publisher = context.metadata_publisher()
    if publisher is not None:
        publisher.check()
    guard(context, timeline, target)
    if not target.is_completed:
        refuse_live_writer(context, target.requested_time, dry_run=dry_run)


def plan_rollback(context: TableContext, timeline: Timeline, target: Instant) -> list[FileUndo]:
    """What a rollback of `target` has to undo. Raises TimelineError where log files would go that hold rows of another
    completed instant (units.used_log_file).
    """
    steps = plan_undo(
        context, failed_of(context, target), timeline, use_markers=ROLLBACK_USING_MARKERS.read(context.options)
    )
    used = used_log_file(context, timeline, target.requested_time, steps)
    if used is not None:
        raise TimelineError(
            f"{target.action} {target.requested_time} cannot be undone: another completed write has rows in the log "
            f"file {used}, which would go with it",
            path=context.active.path_of(target),
            remedy="restore the table to a commit before both: `hudictl restore TABLE --dry-run` lists them",
        )
    return steps


def request_rollback(context: TableContext, target: Instant, owner: Owner) -> str:
    """The requested time of the rollback of `target`: a pending one is continued, else one is planned and requested
    now.

    Raises as check_rollback, and ConflictError when the instant moved on meanwhile. The rollback of a completed commit
    says so in its plan, and is inflight at once: one that is only requested and does not say so was planned for a write
    that had not completed, and must not undo it when it has (RollbackExecution.begin).
    """
    with context.lock(owner) as lock:
        timeline = context.active.load()
        pending = pending_rollback_of(context.active, timeline, target.requested_time)
        if pending is not None:
            return pending
        found = timeline.find(target.requested_time, target.action)
        if found != target:
            now = "gone" if found is None else found.state.value
            raise ConflictError(
                f"{target.action} {target.requested_time} is {now} since it was looked at",
                remedy="look at the timeline again",
            )
        check_rollback(context, timeline, target)
        steps = plan_rollback(context, timeline, target)
        rollback = context.new_instant(timeline)
        lock.check()
        context.active.create_requested(rollback, Action.ROLLBACK, encode_plan(context, target, steps))
        if target.is_completed:
            context.active.to_inflight(rollback, Action.ROLLBACK)
        return rollback


def completed_now(context: TableContext, instant: str, owner: Owner) -> bool:
    """Whether a run of ours that died had decided to complete the pending instant, which is carried out here. Raises
    ConflictError while one is at work on it: a rollback that is requested stops it.
    """
    storage = context.storage
    if current_claim(storage, instant) is None or (has_let_go(storage, instant) and not is_decided(storage, instant)):
        return False
    with claimed(context.reloaded(), instant, owner) as found:
        return found.completed is not None


def decided(target: Instant) -> str:
    """Why a dry run rolls `target` back no more."""
    return (
        f"an earlier run had decided to complete {target.action} {target.requested_time}: a run completes it, and its "
        "rows stay"
    )


class RollbackService(InstantService):
    """Plans the rollback of the newest failed write, and runs pending rollbacks without a live writer of Hudi."""

    name = "rollback"
    action = Action.ROLLBACK

    def pending(self, context: TableContext, timeline: Timeline) -> list[str]:
        """See InstantService. Nothing is written, so ages are measured by this process's clock."""
        return dead_rollbacks(context, timeline, dry_run=True)

    def schedule(self, context: TableContext, owner: Owner, *, dry_run: bool) -> Scheduled:
        """See InstantService. One rollback at a time: the next failed write is planned when this one is done. One that
        had decided to complete is completed: a rollback of it would take its rows away where a writer of Hudi runs it.
        """
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
                return Scheduled(None, None, decided(failed[0]))
            check_rollback(context, timeline, target, dry_run=True)
            plan = encode_plan(context, target, plan_rollback(context, timeline, target))
            return Scheduled(None, decode_any(plan, path=context.active.path_of(target)))
        target = next((item for item in failed if not completed_now(context, item.requested_time, owner)), None)
        if target is None:
            return Scheduled(None, None, nothing_failed(context, context.active.load()))
        rollback = request_rollback(context, target, owner)
        return Scheduled(rollback, context.active.read_any(rollback, Action.ROLLBACK, State.REQUESTED))

    def job(self, run: Run) -> RollbackJob:
        return RollbackJob(run)
