"""Concurrency of a service: the checks and locks of the transaction package, as the options of the run require."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext

from hudi_core.config.transaction_config import (
    BLOCK_ON_REQUESTED,
    COMPACTION_YIELDS,
    CONCURRENCY_MODE,
    CONFLICT_STRATEGY,
    EARLY_DETECTION,
    FILE_GROUP_LOCKS,
    Strategy,
)
from hudi_core.model.names import FileGroupId
from hudi_core.services.context import TableContext
from hudi_core.services.rollback.failed_writes import heartbeats_of
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim import Claim
from hudi_core.transaction.commit import Precondition
from hudi_core.transaction.concurrent_operations import ConflictCheck, check_markers
from hudi_core.transaction.conflict import ConcurrentOperation, OperationStart, is_compared
from hudi_core.transaction.file_group_locks import FileGroupLocks


def conflict_checks(
    context: TableContext,
    instant: str,
    action: str,
    operation_type: str,
    groups: Collection[FileGroupId],
    operation_start: OperationStart,
) -> tuple[Precondition, ...]:
    """What Completer.complete must check for `action` (the pending name; `clustering` in either layout), which changes
    `groups`.

    Empty where Hudi compares such a commit with nothing. `operation_start` is the timeline's state when the work
    started.
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
    """Raises ConflictError when a live writer has announced a file in one of `groups`; nothing unless the option is
    set.
    """
    if EARLY_DETECTION.read(context.options):
        check_markers(context.storage, timeline, instant, groups, _live_writers(context))


def file_group_locks(
    context: TableContext, claim: Claim, groups: Collection[FileGroupId]
) -> AbstractContextManager[object]:
    """Holds the locks of `groups` for the owner of `claim`; nothing unless the option is set. Raises LockError when one
    is taken.
    """
    return FileGroupLocks(context.storage, claim, groups) if FILE_GROUP_LOCKS.read(context.options) else nullcontext()


def _live_writers(context: TableContext) -> frozenset[str]:
    return heartbeats_of(context, context.active.load(), read_only=False).live()
