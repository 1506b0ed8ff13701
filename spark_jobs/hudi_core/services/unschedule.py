"""`unschedule` drops a plan that will not be run, so that the work that waited for it can continue
(CompactionAdminClient.unscheduleCompactionPlan). services/rollback/failed_attempt.py deletes the files that attempts at
the plan wrote. takeover.py frees a plan that is to be run again.

Hudi renames the log files that were written after a compaction of layout 1, and does not update its metadata table.
This engine refuses to drop such a plan: those log files must stay, and the plan with them. A writer that starts at the
same moment may have read the plan. Its log files then belong to the slice that the plan starts, and are not read
without the plan. Hudi's writers first request their deltacommit, and then read the timeline
(BaseHoodieWriteClient.startCommit, initTable). So a check after the removal finds every such writer, by its pending
deltacommit or its log files, and requests the plan again from a copy beside the claim.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

from hudi_core.errors import ConfigError, ConflictError, FormatError, HudiError, StorageNotFoundError, TimelineError
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.lifetime import drop_metadata_table
from hudi_core.model.names import ClaimFolder, LogFileName, parse_data_file
from hudi_core.request.results import REMOVED
from hudi_core.services.clean.job import UnscheduledClean, gone_files
from hudi_core.services.context import TableContext
from hudi_core.services.lifecycle import Run, claimed, run_instant
from hudi_core.services.metadata.index_drop import planned_partitions, refuse_in_use, remove_build
from hudi_core.services.rollback.execution import NOTHING, Removed
from hudi_core.services.rollback.failed_attempt import find_leftovers, roll_back_attempt
from hudi_core.services.rollback.failed_writes import finish_restore
from hudi_core.services.takeover import (
    UNBLOCKS_NOTHING,
    PendingPlan,
    find_pending,
    partitions_of,
    unblocked_by,
)
from hudi_core.storage.base import FileInfo
from hudi_core.timeline.actions.compaction import CompactionOperation, decode_compaction_plan, encode_compaction_plan
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.pending_plans import rollback_target
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim_file import current_claim, forget_claims
from hudi_core.transaction.owner import Owner
from hudi_core.transaction.reconcile import files_of, list_partitions

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Unscheduled:
    """The plan that was dropped, or would be in a dry run; files of attempts at it; what the drop unblocks."""

    instant: str
    action: str
    dry_run: bool
    removed: Removed
    unblocks: dict[str, Any]
    reason: str | None = None
    """Why there was nothing to drop, or why the plan was completed instead."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"removed": self.removed.to_dict()}


def unschedule(context: TableContext, instant: str, owner: Owner, *, dry_run: bool = False) -> Unscheduled:
    """Drops the pending plan at `instant`, also one with a damaged file. First deletes the files of its attempts, then
    under the lock the partial index of an indexing, and the inflight and requested files. May be repeated. The plan of
    an inflight clean that has deleted files stays: the clean is completed with these (clean/job.py). A restore is
    dropped while it is only requested, or where its plan cannot be read; a rollback only where its plan cannot be read.

    Raises ConfigError or TimelineError for an instant that cannot be dropped, ConflictError while a run is alive. Also
    raises ConflictError where a writer of layout 1 started at the same moment; then the plan is requested again.
    """
    timeline = context.active.load()
    is_left_behind = not timeline.contains(instant) and current_claim(context.storage, instant) is not None
    if is_left_behind or not timeline.contains_or_before_start(instant):
        if is_left_behind and not dry_run:
            _clean_up_behind(context, instant, owner)
        reason = f"the timeline holds no instant {instant}: it was dropped before, or never was there"
        return Unscheduled(instant, "", dry_run, NOTHING, UNBLOCKS_NOTHING, reason)
    plan = find_pending(context, timeline, instant)
    try:
        _check_droppable(context, plan)
    except HudiError as error:
        error.path = error.path or context.active.path_of(plan.instant)
        raise
    _check_no_rows_lost(context, timeline, plan)
    unblocks = unblocked_by(context, timeline, plan)
    if plan.kind == "clean" and plan.instant.state is State.INFLIGHT:
        return _drop_inflight_clean(context, timeline, instant, owner, unblocks, dry_run)
    if dry_run:
        partitions = partitions_of(context, plan)
        leftovers = find_leftovers(context, instant, plan.instant.pending_action, partitions) if partitions else None
        removed = {} if leftovers is None else {info.path: info.size for info in leftovers.files}
        return Unscheduled(instant, plan.kind, True, Removed(removed, (instant,)), unblocks)
    removed = _drop(context, plan, owner)
    forget_claims(context.storage, instant)
    return Unscheduled(instant, plan.kind, False, Removed(removed, (instant,)), unblocks)


def _check_droppable(context: TableContext, plan: PendingPlan) -> None:
    """Raises an error, with the command that helps instead, for a pending instant that is no plan to drop."""
    instant = plan.instant.requested_time
    if plan.kind == "write":
        what = f"{plan.instant.action} {instant} is a write, not a plan"
        raise ConfigError(what, remedy=f"roll it back: `hudictl rollback TABLE --instant {instant}`")
    finish = None
    if plan.kind == Action.ROLLBACK and rollback_target(context.active, instant) is not None:
        finish = f"hudictl rollback TABLE --instant {instant}"
    if plan.kind == Action.RESTORE and plan.instant.state is not State.REQUESTED and plan.damaged is None:
        finish = finish_restore(plan.restores_to, instant)
    if finish is not None:
        what = f"{plan.kind} {instant} is half done: its files may be gone already"
        raise TimelineError(what, remedy=f"finish it: {finish}")
    if plan.kind == Action.SAVEPOINT:
        what = f"the savepoint of {instant} is not finished"
        raise ConfigError(what, remedy=f"delete it: `hudictl savepoint delete TABLE --instant {instant}`")


def _drop_inflight_clean(
    context: TableContext, timeline: Timeline, instant: str, owner: Owner, unblocks: dict[str, Any], dry_run: bool
) -> Unscheduled:
    if dry_run:
        is_dropped = not gone_files(context, timeline, instant).files
    else:
        is_dropped = run_instant(UnscheduledClean(Run(context, instant, owner))).state == REMOVED
    if is_dropped:
        return Unscheduled(instant, "clean", dry_run, Removed({}, (instant,)), unblocks)
    done = "would be completed" if dry_run else "was completed"
    reason = f"clean {instant} has deleted files of its plan: it {done} with these, and deletes no others"
    return Unscheduled(instant, "clean", dry_run, NOTHING, unblocks, reason)


def _drop(context: TableContext, plan: PendingPlan, owner: Owner) -> dict[str, int]:
    """Drops the plan. Returns the deleted files of attempts, with their sizes in bytes by path."""
    target = plan.instant
    instant, action = target.requested_time, target.pending_action
    removed: dict[str, int] = {}
    with claimed(context, instant, owner) as claim:
        if claim.completed is not None:
            what = f"an earlier run had decided to complete {action} {instant}, and it is completed now"
            raise ConflictError(what, path=context.active.folder)
        partitions = partitions_of(context, plan)
        if partitions:
            _, removed = roll_back_attempt(context, instant, action, partitions, claim.held)
        with context.lock(owner) as lock:
            claim.held.check()
            timeline = context.active.load()
            _check_no_rows_lost(context, timeline, plan)
            opens = _opens_slices(context, plan)
            if opens:
                kept = context.active.read_requested(instant, Action.COMPACTION)
                context.storage.write(ClaimFolder(instant).dropped_plan, kept)
            if plan.kind == "indexing":
                built = planned_partitions(context, timeline, instant)
                refuse_in_use(context, built)
                remove_build(context, instant, built)
            if plan.kind == Action.RESTORE:
                _drop_half_restored_metadata(context, instant)
            lock.check()
            # A restore that began meanwhile is refused: without its inflight file it would look only requested.
            is_requested = plan.kind == Action.RESTORE and target.state is State.REQUESTED
            for state in (State.REQUESTED,) if is_requested else (State.INFLIGHT, State.REQUESTED):
                context.active.remove(instant, action, state)
            if opens:
                _restore_if_used(context, plan)
    return removed


def _drop_half_restored_metadata(context: TableContext, restore: str) -> None:
    """Drops a metadata table that the restore has changed: its own restore cannot be continued without the plan. A
    metadata table that the restore has not changed lacks nothing, and stays. Runs under the lock.
    """
    current = context.reloaded()
    if not current.has_metadata_table:
        return
    metadata_timeline = MetadataTimeline(current.storage, current.config)
    if len(metadata_timeline.active.load().of_actions(Action.RESTORE).after(restore)):
        log.warning("the metadata table is dropped, Hudi's next write rebuilds it: restore %s had changed it", restore)
        drop_metadata_table(current.storage)


def _clean_up_behind(context: TableContext, instant: str, owner: Owner) -> None:
    """Removes the claim, heartbeat and lock of a run that died after the drop, and its unused copy of the plan."""
    with context.claim(instant, owner), context.lock(owner):
        plan = _kept_plan(context, instant)
        if plan is not None:
            _restore_if_used(context, plan, behind=True)
        log.info("instant %s was dropped by a run that died right after", instant)
    forget_claims(context.storage, instant)


def _check_no_rows_lost(context: TableContext, timeline: Timeline, plan: PendingPlan) -> None:
    """Raises where rows that writers log, or have logged, belong to the slice that the plan starts. While a clustering
    that resizes buckets is pending, writers log rows in the old and in the new buckets; else both are read.
    """
    logs, writers = _users_of(context, timeline, plan)
    instant = plan.instant.requested_time
    if logs and plan.kind == Action.CLUSTERING:
        what = f"{len(logs)} log files of later writes are in the buckets that clustering {instant} makes"
        raise TimelineError(what, path=logs[0], remedy="let Hudi run it")
    if logs:
        raise TimelineError(
            f"{len(logs)} log files of later writes belong to the slices that compaction {instant} opened; "
            "without it their rows would be lost",
            path=logs[0],
            remedy=f"run it: `hudictl run compaction TABLE --instant {instant}`",
        )
    if writers:
        raise ConflictError(
            f"{writers[0].action} {writers[0].requested_time} is pending and may be writing to the slices that "
            f"compaction {instant} opened",
            remedy="wait for that write, or roll it back when its writer is dead",
        )


def _users_of(context: TableContext, timeline: Timeline, plan: PendingPlan) -> tuple[list[str], list[Instant]]:
    """Returns log files in the slices that the plan starts, and pending writes that may put some there."""
    opens = _opens_slices(context, plan)
    if not opens and plan.kind != Action.CLUSTERING:
        return [], []
    files = files_of(context.storage, plan.instant.requested_time, partitions_of(context, plan))
    logs = [info.path for info, name in files if isinstance(name, LogFileName)]
    if not opens:
        return sorted(logs), []
    deltas = timeline.pending().of_actions(Action.DELTA_COMMIT)
    return sorted(logs), [item for item in deltas if item.pending_action == Action.DELTA_COMMIT]


def _opens_slices(context: TableContext, plan: PendingPlan) -> bool:
    """Whether writers name their log files after the plan."""
    return plan.kind == "compaction" and not context.config.features.log_name_has_delta_commit


def _kept_plan(context: TableContext, instant: str) -> PendingPlan | None:
    requested, path = Instant(instant, Action.COMPACTION, State.REQUESTED), ClaimFolder(instant).dropped_plan
    try:
        plan = decode_compaction_plan(context.storage.read(path), path=path, layout=context.active.layout)
    except StorageNotFoundError:
        return None
    except FormatError as error:
        return PendingPlan(requested, "compaction", damaged=error)
    return PendingPlan(requested, "compaction", frozenset(operation.file_group for operation in plan.operations))


def _restore_if_used(context: TableContext, plan: PendingPlan, *, behind: bool = False) -> None:
    """Raises ConflictError where a writer uses the removed plan, and requests the plan again. `behind` a run that was
    cut off, only log files are a reason to request it: a pending writer may have started long after, without the plan.
    """
    instant = plan.instant.requested_time
    logs, writers = _users_of(context, context.active.load(), plan)
    if logs or (writers and not behind):
        context.active.create_requested(instant, Action.COMPACTION, _with_newer_logs(context, plan))
        context.storage.delete(ClaimFolder(instant).dropped_plan)
    if logs:
        raise ConflictError(
            f"a writer put {len(logs)} log files behind compaction {instant} while the plan was dropped; the plan is "
            "back",
            path=logs[0],
            remedy=f"run it: `hudictl run compaction TABLE --instant {instant}`",
        )
    if writers:
        raise ConflictError(
            f"{writers[0].action} {writers[0].requested_time} began while the plan of compaction {instant} was dropped"
            + ("" if behind else "; the plan is back"),
            path=context.active.path_of(writers[0]),
            remedy="wait for that write, or roll it back when its writer is dead; then drop the plan again",
        )


def _with_newer_logs(context: TableContext, plan: PendingPlan) -> bytes:
    """Returns the plan's content, with the log files that a writer appended to its slices without seeing the plan."""
    path = ClaimFolder(plan.instant.requested_time).dropped_plan
    data = context.storage.read(path)
    if plan.damaged is not None:
        return data
    old = decode_compaction_plan(data, path=path, layout=context.active.layout)
    listed = dict(list_partitions(context.storage, partitions_of(context, plan)))
    new = replace(old, operations=tuple(_add_logs(operation, listed) for operation in old.operations))
    return data if new == old else encode_compaction_plan(new)


def _add_logs(operation: CompactionOperation, listed: Mapping[str, Iterable[FileInfo]]) -> CompactionOperation:
    known, slice_of = {*operation.log_files, *operation.cdc_files}, (operation.file_id, operation.base_instant)
    added = [
        (parsed.scan_order, info.name)
        for info in listed.get(operation.partition, ())
        for parsed in [parse_data_file(info.name)]
        if isinstance(parsed, LogFileName) and (parsed.file_id, parsed.instant) == slice_of and info.name not in known
    ]
    return replace(operation, log_files=(*operation.log_files, *(name for _, name in sorted(added))))
