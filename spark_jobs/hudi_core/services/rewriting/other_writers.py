"""Finds other writers beside a service that rewrites or replaces: which may not see its plan, and which conflict.

In layout 1 a log file is named after the slice that its writer found. So a write that began before the plan was put
adds log files to the slice that is compacted, and they would be lost behind the new base file. In either layout, what
such a write adds to a file group would be lost once a clustering has replaced it. Hudi plans no compaction beside a
pending write, unless the writers find such conflicts themselves (ScheduleCompactionActionExecutor of 0.15;
hoodie.write.concurrency.mode). For clusterings it relies on the writers.

A dead writer's write is never committed. Only a compaction of layout 1 waits for it, as in 0.15.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from hudi_core.config.concurrency_config import (
    BLOCK_ON_REQUESTED,
    COMPACTION_YIELDS,
    CONCURRENCY_MODE,
    CONFLICT_STRATEGY,
    EARLY_DETECTION,
    FAILED_WRITES_POLICY,
    Strategy,
)
from hudi_core.errors import ConflictError
from hudi_core.model.names import FileGroupId
from hudi_core.services.context import TableContext
from hudi_core.services.rollback.failed_writes import heartbeats_of
from hudi_core.timeline.instant import REPLACING_ACTIONS, Action, Instant, State
from hudi_core.timeline.pending_plans import pending_ingestion
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.commit import Precondition
from hudi_core.transaction.concurrent_operations import ConflictCheck, check_markers
from hudi_core.transaction.conflict import ConcurrentOperation, OperationStart, is_compared
from hudi_core.transaction.writer_heartbeats import FailedWrites, failed_writes_policy, may_be_alive, silent_seconds

_SINGLE_WRITER: Final = (None, "SINGLE_WRITER")


def live_writer(context: TableContext, timeline: Timeline, action: str) -> Instant | None:
    """Returns a pending write that stops the planning of `action`, the pending one; None where nothing stops it."""
    return next((writer for writer, _ in _live(context, timeline, action)), None)


def failed_eager_write(context: TableContext, timeline: Timeline, action: str) -> Instant | None:
    """Returns a pending write that stops the planning of a compaction or log compaction of layout 1 until it is rolled
    back. Its writer is EAGER, by the options or because it makes no heartbeats. That writer rolls the write back before
    its next write, and fails behind a later commit (BaseRollbackActionExecutor.validateRollbackCommitSequence). Hudi
    makes other plans nevertheless.
    """
    is_guarded = action in (Action.COMPACTION, Action.LOG_COMPACTION) and context.active.layout == 1
    if not is_guarded or not may_be_eager(context):
        return None
    pending = list(pending_ingestion(context.active, timeline))
    if not pending or FAILED_WRITES_POLICY.is_set(context.options):
        return next(iter(pending), None)
    beating = heartbeats_of(context, timeline, read_only=True).last
    return next((item for item in pending if item.requested_time not in beating), None)


def may_be_eager(context: TableContext) -> bool:
    """Whether the table's writer may have the EAGER policy, Hudi's default, as far as the options say."""
    policy = failed_writes_policy(context.options) if FAILED_WRITES_POLICY.is_set(context.options) else None
    return policy in (None, FailedWrites.EAGER) and CONCURRENCY_MODE.read(context.options) in _SINGLE_WRITER


def check_plan_seen(context: TableContext, timeline: Timeline, instant: str, action: str = Action.COMPACTION) -> None:
    """Raises ConflictError while a write is pending that began before the plan at `instant` was there, by the storage's
    clock. The plan's file has `action`. What a completed write wrote is compared with the plan.
    """
    plan = context.active.path(instant, action, State.REQUESTED)
    for writer, changed in _live(context, timeline, action):
        planned = changed.get(plan)
        began = changed.get(context.active.path(writer.requested_time, writer.pending_action, State.REQUESTED))
        if planned is None or began is None or began <= planned:
            raise ConflictError(
                f"{writer.action} {writer.requested_time} began before {action} {instant} was planned, and may still "
                "write to the file groups of its plan",
                path=context.active.path_of(writer),
                remedy="run it again when that write has ended",
            )


def _live(context: TableContext, timeline: Timeline, action: str) -> Iterator[tuple[Instant, Mapping[str, float]]]:
    """Yields the pending writes that may be alive and find no conflicts, like alive_among. Writers without blocking
    compare nothing but bulk inserts (HoodieWriteConfig.needResolveWriteConflict). A compaction or log compaction keeps
    what they append, but in a file group that is replaced it is lost.
    """
    opens_slices = action == Action.COMPACTION and context.config.features.log_name_has_delta_commit
    mode = CONCURRENCY_MODE.read(context.options)
    is_unseen = action in REPLACING_ACTIONS and mode == "NON_BLOCKING_CONCURRENCY_CONTROL"
    if not opens_slices and (mode in _SINGLE_WRITER or is_unseen):
        yield from alive_among(context, timeline, list(pending_ingestion(context.active, timeline)))


def alive_among(
    context: TableContext, timeline: Timeline, pending: Sequence[Instant]
) -> Iterator[tuple[Instant, Mapping[str, float]]]:
    """Yields pending writes of live writers, each with ActiveTimeline.modified, which is listed only if needed."""
    if pending:
        changed = context.active.modified()
        heartbeats = heartbeats_of(context, timeline, read_only=True, silent=silent_seconds(context.options))
        yield from ((item, changed) for item in pending if may_be_alive(item, context.active, changed, heartbeats))


def conflict_checks(
    context: TableContext,
    instant: str,
    action: str,
    operation_type: str,
    groups: Collection[FileGroupId],
    operation_start: OperationStart,
) -> tuple[Precondition, ...]:
    """Returns what Completer.complete must check for `action` (the pending name; `clustering` in either layout), which
    changes `groups`. Returns nothing where Hudi compares nothing. `operation_start` is the timeline then.
    """
    strategy = CONFLICT_STRATEGY.read(context.options)
    compared = is_compared(action, operation_type, CONCURRENCY_MODE.read(context.options), strategy)
    if not compared and not (action == Action.COMPACTION and COMPACTION_YIELDS.read(context.options)):
        return ()
    check = ConflictCheck(
        context.active,
        ConcurrentOperation(instant, action, State.INFLIGHT, operation_type, frozenset(groups)),
        operation_start,
        strategy,
        context.config.features.conflict_release,
        merge_on_read=context.config.is_merge_on_read,
        live=lambda: _live_writers(context),
        blocks_on_requested=strategy is Strategy.PREFER_WRITER and BLOCK_ON_REQUESTED.read(context.options),
    )
    return (check,)


def check_early(context: TableContext, timeline: Timeline, instant: str, groups: Collection[FileGroupId]) -> None:
    """Raises ConflictError when a live writer has announced a file in one of `groups`, where the option is set."""
    if EARLY_DETECTION.read(context.options):
        check_markers(context.storage, timeline, instant, groups, _live_writers(context))


def _live_writers(context: TableContext) -> frozenset[str]:
    return heartbeats_of(context, context.active.load(), read_only=False).live()
