"""A plan that waits on the timeline: its kind, what waits for it, and the command that helps. `takeover` frees an
instant of a dead owner, so that its next run starts at once from the requested state. unschedule.py drops a plan.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, Final

from hudi_core.errors import ConfigError, CorruptFileError, FormatError, StorageNotFoundError
from hudi_core.filegroup.write.markers import list_markers
from hudi_core.frozen import dataclass
from hudi_core.model.names import FileGroupId
from hudi_core.request.services import SERVICES, service_of_action
from hudi_core.services.context import TableContext
from hudi_core.services.lifecycle import claimed
from hudi_core.services.rewriting.checks import resizes_buckets
from hudi_core.services.rollback.execution import NOTHING, Removed
from hudi_core.services.rollback.failed_attempt import find_leftovers, roll_back_attempt
from hudi_core.services.rollback.failed_writes import finish_restore, pending_rollbacks
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.pending_plans import planned_file_groups, read_restore_plan
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim_file import current_claim, is_free
from hudi_core.transaction.owner import Owner
from hudi_core.view.listing import StorageListing


@dataclass(frozen=True, slots=True)
class PendingPlan:
    """A pending instant and the file groups of its plan. `kind` is the service, or `write` for the instant of an
    ingestion. `damaged` says why the plan cannot be run; then its file groups are unknown. `restores_to` is the commit
    that a restore goes back to; it is empty where the plan of an old Hudi does not name one.
    """

    instant: Instant
    kind: str
    file_groups: frozenset[FileGroupId] = frozenset()
    damaged: FormatError | None = None
    restores_to: str = ""
    runs_here: bool = True

    @property
    def is_run_here(self) -> bool:
        return self.kind in SERVICES and self.runs_here


def find_pending(context: TableContext, timeline: Timeline, instant: str) -> PendingPlan:
    """Returns what is pending at `instant`. Where nothing is, raises ConfigError, which says what is there instead."""
    target = next((item for item in timeline if item.requested_time == instant and not item.is_completed), None)
    if target is None:
        raise _nothing_pending(context, timeline, instant)
    action = target.pending_action
    if action == Action.RESTORE:
        try:
            return PendingPlan(target, action, restores_to=read_restore_plan(context.active, instant).target)
        except CorruptFileError as error:
            return PendingPlan(target, action, damaged=error)
        except StorageNotFoundError as error:
            return PendingPlan(target, action, damaged=CorruptFileError("the plan is missing", path=error.path))
    kind = action if action == Action.SAVEPOINT else service_of_action(action) or "write"
    # In layout 1 an overwrite has the same action as a clustering, which only a readable plan identifies.
    has_plan = action in (Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING)
    try:
        groups = planned_file_groups(context.active, target)
    except FormatError as error:  # also a plan that is refused because it names what no plan may
        if has_plan:
            return PendingPlan(target, kind, damaged=error)
        has_started = target.state is not State.REQUESTED or list_markers(context.storage, instant)
        if has_started or not isinstance(error, CorruptFileError):
            raise  # the files may be those of an overwrite
        return PendingPlan(target, Action.CLUSTERING, damaged=error)
    if groups is None and has_plan:
        path = context.active.path(instant, action, State.REQUESTED)
        remedy = "it may be a write that was cut short"
        return PendingPlan(target, kind, damaged=CorruptFileError("the file holds no plan", path=path, remedy=remedy))
    if groups is None or action in (Action.COMPACTION, Action.LOG_COMPACTION):
        return PendingPlan(target, kind, groups or frozenset())
    return PendingPlan(target, Action.CLUSTERING, groups, runs_here=not resizes_buckets(context))


def _nothing_pending(context: TableContext, timeline: Timeline, instant: str) -> ConfigError:
    state = "the timeline does not hold it"
    done = next((item.action for item in timeline if item.requested_time == instant), None)
    if done is not None:
        state = f"its {done} is completed"
    elif timeline.contains_or_before_start(instant):
        state = "it is older than the timeline: `hudictl timeline TABLE --archived` shows whether it is archived"
    what = f"nothing is pending at instant {instant}: {state}"
    remedy = "list the pending instants with `hudictl timeline TABLE --state requested` and `--state inflight`"
    return ConfigError(what, path=context.active.folder, remedy=remedy)


def partitions_of(context: TableContext, plan: PendingPlan) -> frozenset[str]:
    """Returns where attempts may have written: the plan's partitions, all if damaged, none for a restore."""
    if plan.damaged is not None and plan.kind != Action.RESTORE:
        return frozenset(StorageListing(context.storage).partitions())
    return frozenset(group.partition for group in plan.file_groups)


UNBLOCKS_NOTHING: Final[dict[str, Any]] = {"file_groups": 0, "partitions": [], "work": []}


def unblocked_by(context: TableContext, timeline: Timeline, plan: PendingPlan) -> dict[str, Any]:
    """Returns what the end of `plan` sets free: how many file groups, in which partitions, and which work by name."""
    return {
        "file_groups": len(plan.file_groups),
        "partitions": sorted({group.partition for group in plan.file_groups}),
        "work": sorted(_waiting(context, timeline, plan)),
    }


def _waiting(context: TableContext, timeline: Timeline, plan: PendingPlan) -> Iterable[str]:
    oldest = timeline.pending().first()
    if oldest is not None and oldest.requested_time == plan.instant.requested_time:
        yield "archival of later instants"
        if context.has_metadata_table:
            yield "compaction of the metadata table"
    if plan.file_groups:
        yield "cleaning of the plan's files"
        yield "compaction and clustering of its file groups"
    if plan.kind == "clustering":
        yield "writes to its file groups"
    if plan.kind == "clean":
        yield "the next clean"
    if plan.kind == Action.ROLLBACK and plan.instant.requested_time in pending_rollbacks(context.active, timeline):
        yield "writes of the instant that it rolls back"


def advice(plan: PendingPlan, table: str = "TABLE") -> str:
    """Returns the command that runs the plan of `table`, or what helps where this release does not run it."""
    instant, kind = plan.instant.requested_time, plan.kind
    if kind == "write":
        return f"hudictl rollback {table} --instant {instant}"
    if kind == Action.RESTORE:
        return finish_restore(plan.restores_to, instant, table)
    if kind == Action.SAVEPOINT:
        return f"hudictl savepoint create {table} --instant {instant}"
    if plan.is_run_here:
        return f"hudictl run {kind} {table} --instant {instant}"
    runs = f"let Hudi's own {kind.replace('_', ' ')} do so"
    return f"this release does not run it on this table: {runs}, or drop it: hudictl unschedule {table} {instant}"


@dataclass(frozen=True, slots=True)
class TakenOver:
    """An instant that is free to run: its former owner, its state, and the deleted files of an attempt at it.
    `unblocks` names what can continue, `after_the_run` what still waits. `reason` says why there was nothing to free.
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
        return asdict(self) | {"removed": self.removed.to_dict()}


def takeover(context: TableContext, instant: str, owner: Owner) -> TakenOver:
    """Claims the pending instant, rolls the attempt at a compaction or clustering back to requested, and releases the
    instant. Where the old owner had decided to complete, carries out that completion first. The claim stays until the
    instant is completed or dropped: otherwise an old owner that wakes up could take the next epoch for its own.

    Raises ConflictError, with the owner and its last sign of life, while that owner may be alive; ConfigError for a
    write of Hudi, which is rolled back instead; CorruptFileError for an unreadable plan.
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
            context.active.roll_back_to_requested(instant, plan.instant.pending_action)
    current = context.active.load().find(instant, plan.instant.pending_action)
    state = State.COMPLETED if current is None else current.state
    name = None if before is None else before.owner.describe()
    if state is State.COMPLETED:
        now, later, command = waiting, UNBLOCKS_NOTHING, "nothing: the instant is completed"
    else:
        now, later, command = UNBLOCKS_NOTHING, waiting, advice(plan)
    return TakenOver(instant, plan.kind, state.value, name, Removed(removed), now, later, command)


def nothing_to_free(context: TableContext, instant: str) -> TakenOver | None:
    """Returns the result of takeover where the instant has no owner and no leftovers; else None. Writes nothing. Raises
    the errors of takeover except ConflictError.
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
    """Whether an attempt at a compaction or clustering has to be rolled back before the next one."""
    if not plan.file_groups:
        return False
    instant, partitions = plan.instant, partitions_of(context, plan)
    leftovers = find_leftovers(context, instant.requested_time, instant.pending_action, partitions)
    return instant.state is not State.REQUESTED or bool(leftovers)
