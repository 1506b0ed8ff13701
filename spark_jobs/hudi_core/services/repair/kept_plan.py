"""Removes the plan of a compaction of layout 1 from the timeline, and restores it where a writer needs it.

A writer that starts at the same moment may have read the plan; its log files then belong to the slice that the plan
starts, and are not read without the plan. Hudi's writers request their deltacommit first and read the timeline after
that (BaseHoodieWriteClient.startCommit, initTable). So a check after the removal finds every such writer, by its
pending deltacommit or its log files, and restores the plan from a copy beside the claim.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from hudi_core.errors import ConflictError, FormatError, StorageNotFoundError, TimelineError
from hudi_core.model.claim_names import ClaimFolder
from hudi_core.model.names import LogFileName, parse_data_file
from hudi_core.services.context import TableContext
from hudi_core.services.repair.pending_plan import PendingPlan, partitions_of
from hudi_core.storage.base import FileInfo
from hudi_core.timeline.actions.compaction import CompactionOperation, decode_compaction_plan, encode_compaction_plan
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.reconcile import files_of, list_partitions


def check_no_rows_lost(context: TableContext, timeline: Timeline, plan: PendingPlan) -> None:
    """Raises where rows that writers have logged, or may be logging, belong to the slice that the plan starts.

    While a clustering that resizes buckets is pending, writers log their rows into the old and the new buckets. The new
    ones are shown once their instant is older than the timeline: without the clustering the rows would be there twice.
    """
    logs, writers = _users_of(context, timeline, plan)
    instant = plan.instant.requested_time
    if logs and plan.kind == Action.CLUSTERING:
        raise TimelineError(
            f"{len(logs)} log files of later writes are in the buckets that clustering {instant} makes",
            path=logs[0],
            remedy="let Hudi run it",
        )
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
    """Log files in the slices that the plan starts, listed now, and pending writes that may put some there."""
    opens = opens_slices(context, plan)
    if not opens and plan.kind != Action.CLUSTERING:
        return [], []
    files = files_of(context.storage, plan.instant.requested_time, partitions_of(context, plan))
    logs = [info.path for info, name in files if isinstance(name, LogFileName)]
    if not opens:
        return sorted(logs), []
    deltas = timeline.pending().of_actions(Action.DELTA_COMMIT)
    return sorted(logs), [item for item in deltas if item.pending_action == Action.DELTA_COMMIT]


def opens_slices(context: TableContext, plan: PendingPlan) -> bool:
    """Whether log files of writers are named after the plan."""
    return plan.kind == "compaction" and not context.config.features.log_name_has_delta_commit


def keep_plan(context: TableContext, instant: str) -> None:
    """Puts a copy of the plan beside the claims of `instant`, with which it goes."""
    context.storage.write(_path(instant), context.active.read_requested(instant, Action.COMPACTION))


def kept_plan(context: TableContext, instant: str) -> PendingPlan | None:
    """The plan of which there is a copy; None where there is none."""
    try:
        data = context.storage.read(_path(instant))
    except StorageNotFoundError:
        return None
    found = Instant(instant, Action.COMPACTION, State.REQUESTED)
    try:
        plan = decode_compaction_plan(data, path=_path(instant), layout=context.active.layout)
    except FormatError as error:
        return PendingPlan(found, "compaction", damaged=error)
    return PendingPlan(found, "compaction", frozenset(operation.file_group for operation in plan.operations))


def restore_if_used(context: TableContext, plan: PendingPlan, *, behind: bool = False) -> None:
    """Checks for a writer that uses the removed plan: then the plan is requested again, and ConflictError raised.

    `behind` a run that was cut off, a pending writer may have started long after and not use the plan: it is waited
    for, also by ConflictError, and only log files restore the plan.
    """
    instant = plan.instant.requested_time
    logs, writers = _users_of(context, context.active.load(), plan)
    if logs or (writers and not behind):
        context.active.create_requested(instant, Action.COMPACTION, _with_newer_logs(context, plan))
        context.storage.delete(_path(instant))
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
    """The plan's content, with log files that a writer which did not see it appended to the slices that it compacts."""
    path = _path(plan.instant.requested_time)
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


def _path(instant: str) -> str:
    return ClaimFolder(instant).dropped_plan
