"""Rolls back what an attempt at a planned instant left, so that the plan can be run again, or dropped by `unschedule`
(HoodieTable.rollbackInflightCompaction).

The requested file stays: a plan is sticky. The files of the instant, its markers, its deltacommit in the metadata table
and its inflight file are removed. A rollback instant on the data timeline records that, as in real Hudi. An attempt
that had decided to complete is never rolled back: transaction/commit.py completes it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from hudi_core.errors import ConflictError
from hudi_core.filegroup.write.markers import delete_markers, list_markers, marker_folder
from hudi_core.frozen import dataclass
from hudi_core.model.names import CLAIMS, BaseFileName
from hudi_core.services.context import TableContext
from hudi_core.services.rollback.execution import request
from hudi_core.services.rollback.files_to_roll_back import deletion_of
from hudi_core.services.rollback.job import run_rollback
from hudi_core.storage.base import FileInfo
from hudi_core.timeline.actions.rollback import RollbackStep
from hudi_core.timeline.instant import REPLACING_ACTIONS, Action, State
from hudi_core.timeline.pending_plans import pending_rollback_of, rollback_target
from hudi_core.transaction.claim import Claim
from hudi_core.transaction.reconcile import files_of, log_files_of

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What earlier attempts at an instant left. An inflight file alone needs no rollback: the next run resumes it."""

    files: tuple[FileInfo, ...]
    in_metadata_table: bool
    pending_rollback: str | None

    def __bool__(self) -> bool:
        return bool(self.files) or self.in_metadata_table or self.pending_rollback is not None


def find_leftovers(context: TableContext, instant: str, action: str, partitions: Iterable[str]) -> Leftovers:
    """Returns what attempts at `instant`, a pending `action`, left, and where markers are. Needs no claim."""
    publisher = context.metadata_publisher()
    return Leftovers(
        tuple(attempt_files(context, instant, action, partitions)),
        publisher is not None and bool(publisher.footprint(instant)),
        pending_rollback_of(context.active, context.active.load(), instant),
    )


def attempt_files(context: TableContext, instant: str, action: str, partitions: Iterable[str]) -> list[FileInfo]:
    """Returns files of attempts: no log files named after a clustering, or in version 6 after a compaction."""
    by_name = context.config.features.log_name_has_delta_commit
    logs = action not in REPLACING_ACTIONS and by_name
    marked = {marker.partition for marker in list_markers(context.storage, instant)}
    if action == Action.LOG_COMPACTION:
        return log_files_of(context.storage, instant, {*partitions, *marked}, by_name=by_name)
    files = files_of(context.storage, instant, {*partitions, *marked})
    return [info for info, name in files if logs or isinstance(name, BaseFileName)]


def roll_back_attempt(
    context: TableContext, instant: str, action: str, partitions: Iterable[str], claim: Claim
) -> tuple[str | None, dict[str, int]]:
    """Rolls leftovers at `instant` back, under the caller's `claim` on it. Returns the instant of the rollback (None
    where nothing had to go), and the sizes in bytes of the deleted files by path. May be repeated after a crash. In the
    end the instant is requested, unless nothing but its inflight file was there.
    """
    if is_first_attempt(context, instant, action, claim) and not has_markers(context, instant):
        return None, {}
    leftovers = find_leftovers(context, instant, action, partitions)
    removed = {info.path: info.size for info in leftovers.files}
    if not leftovers:
        _clean_up_behind(context, instant, claim)
        delete_markers(context.storage, instant)
        return None, removed
    steps = list(map(deletion_of, leftovers.files))
    if action == Action.LOG_COMPACTION and not context.config.features.rollback_deletes_logs:
        # A rollback of version 6 deletes no log file. An attempt's log file is its own, and no reader sees it.
        for info in leftovers.files:
            claim.check()
            context.storage.delete(info.path)
        steps = []
        if not leftovers.in_metadata_table and leftovers.pending_rollback is None:
            delete_markers(context.storage, instant)
            return None, removed
    rollback = leftovers.pending_rollback or _request(context, instant, action, steps, claim)
    log.info(
        "rolling back an earlier attempt at %s %s as %s: %d files", action, instant, rollback, len(leftovers.files)
    )
    run_rollback(context, rollback, claim.owner, fenced_by=claim, extra=steps)
    delete_markers(context.storage, instant)
    context.active.remove(instant, action, State.INFLIGHT)
    return rollback, removed


def has_markers(context: TableContext, instant: str) -> bool:
    """Whether attempts at an instant left markers. Makes one request."""
    return bool(context.storage.list_tree(marker_folder(instant)))


def is_first_attempt(context: TableContext, instant: str, action: str, claim: Claim) -> bool:
    """Whether nobody claimed the instant before, and the timeline shows no attempt at it: every writer makes the
    instant inflight first, and a rollback makes it requested last. Without markers nothing was written, either.
    """
    if claim.epoch > 1:
        return False
    timeline = context.active.load()
    plan = timeline.find(instant, action)
    return (
        plan is not None
        and plan.state is State.REQUESTED
        and pending_rollback_of(context.active, timeline, instant) is None
    )


def _clean_up_behind(context: TableContext, instant: str, claim: Claim) -> None:
    """Removes the claims and markers of a rollback of `instant` whose run died right after it had completed it."""
    timeline = context.active.load()
    for folder in context.storage.list_folders(CLAIMS):
        done = timeline.find(folder.rpartition("/")[2], Action.ROLLBACK)
        if done is not None and done.is_completed and rollback_target(context.active, done.requested_time) == instant:
            run_rollback(context, done.requested_time, claim.owner, fenced_by=claim)


def _request(context: TableContext, instant: str, action: str, steps: list[RollbackStep], claim: Claim) -> str:
    with context.lock(claim.owner) as lock:
        claim.check()
        # A zombie's files may be found at a requested instant, which would go as a whole (RollbackExecution.begin).
        context.active.to_inflight(instant, action)
        timeline = context.active.load()
        failed = timeline.find(instant, action)
        if failed is None or failed.state is not State.INFLIGHT:
            raise ConflictError(
                f"{action} {instant} is {'gone' if failed is None else failed.state.value} and not inflight, so that "
                "an attempt at it is not rolled back",
                path=context.active.path(instant, action, State.INFLIGHT),
                remedy="look at the timeline, and run it again",
            )
        return request(context, lock, timeline, failed, steps)
