"""A plan that waits on the timeline: which it is, what waits for it, and the command that helps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from hudi_core.errors import ConfigError, CorruptFileError, FormatError, StorageNotFoundError
from hudi_core.filegroup.write.markers import list_markers
from hudi_core.model.names import FileGroupId
from hudi_core.request.services import SERVICES, service_of_action
from hudi_core.services.context import TableContext
from hudi_core.services.rewriting.checks import resizes_buckets
from hudi_core.services.rollback.failed_writes import finish_restore, pending_rollbacks
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.pending_plans import planned_file_groups, read_restore_plan
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.listing import StorageListing


@dataclass(frozen=True, slots=True)
class PendingPlan:
    """A pending instant and the file groups of its plan; `kind` is the service, `write` for an ingestion's instant.

    `damaged` says why the plan cannot be read, or is refused: it cannot be run, and its file groups are unknown.
    `restores_to` is the commit that a restore goes back to, empty where its plan, one of an old Hudi, does not say.
    """

    instant: Instant
    kind: str
    file_groups: frozenset[FileGroupId] = frozenset()
    damaged: FormatError | None = None
    restores_to: str = ""
    runs_here: bool = True
    """Whether this release runs its service on this table, where it has one."""

    @property
    def is_run_here(self) -> bool:
        """Whether this release has its service, and runs it on this table."""
        return self.kind in SERVICES and self.runs_here


def find_pending(context: TableContext, timeline: Timeline, instant: str) -> PendingPlan:
    """What is pending at `instant`. Raises ConfigError when nothing is, saying what is there instead."""
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
    except FormatError as error:  # also a plan that is refused as it names what no plan may
        if has_plan:
            return PendingPlan(target, kind, damaged=error)
        has_started = target.state is not State.REQUESTED or list_markers(context.storage, instant)
        if has_started or not isinstance(error, CorruptFileError):
            raise  # what was written may be that of an overwrite
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
    """Where attempts at the plan may have written: its partitions, or all of the table's when it cannot be read; none
    of a restore, which writes nothing before it is inflight.
    """
    if plan.damaged is not None and plan.kind != Action.RESTORE:
        return frozenset(StorageListing(context.storage).partitions())
    return frozenset(group.partition for group in plan.file_groups)


UNBLOCKS_NOTHING: Final[dict[str, Any]] = {"file_groups": 0, "partitions": [], "work": []}


def unblocked_by(context: TableContext, timeline: Timeline, plan: PendingPlan) -> dict[str, Any]:
    """What an end of `plan` sets free: how many file groups, in which partitions, and which work by name."""
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
    """The command that runs the plan of the table at `table`, or what helps where this release does not run it."""
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
