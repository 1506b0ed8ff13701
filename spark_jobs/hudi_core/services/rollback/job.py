"""Runs a pending rollback to its end, under its own instant whoever takes it over (HUDI-3556): another one would stand
in the metadata table's way.

claim → inflight and unpublish (short lock) → undo files → complete (lock: metadata table, the instant's own files, the
rollback) → clean up
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial

from hudi_core.errors import ConflictError, HudiError, TimelineError
from hudi_core.filegroup.write.markers import delete_markers
from hudi_core.filegroup.write.rollback_files import FileUndo
from hudi_core.metadata_table.file_changes import FileChanges
from hudi_core.metadata_table.partition_type import FILES_PARTITION
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.initialized_since import initialized_since
from hudi_core.model.names import parse_data_file
from hudi_core.services.context import TableContext
from hudi_core.services.rollback.execute import RollbackExecution, changes_of, is_planned
from hudi_core.services.rollback.guards import check_may_roll_back
from hudi_core.services.rollback.inputs import read_inputs
from hudi_core.services.rollback.planner import failed_of
from hudi_core.services.rollback.result import Removed
from hudi_core.timeline.actions.rollback import RollbackMetadata, decode_rollback_metadata, encode_rollback_metadata
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim import HUDI_HEARTBEATS, Claim, current_claim, forget_claims
from hudi_core.transaction.owner import Owner
from hudi_core.transaction.reconcile import list_partitions


def check_not_initialized_since(context: TableContext, target: Instant) -> None:
    """Raises TimelineError, before anything is written, where partitions began since `target` completed.

    A write that is pending is in none of them. Asked under the table lock when a rollback begins, which makes its
    instant a pending one: what begins from then on holds nothing of it.
    """
    if not target.is_completed or not context.has_metadata_table:
        return
    late = sorted(
        initialized_since(context.storage, context.config, MetadataTimeline(context.storage, context.config), target)
    )
    if late:
        options = "" if FILES_PARTITION in late else "".join(f" --partition {name}" for name in late)
        raise TimelineError(
            f"{', '.join(late)} of the metadata table began after {target.action} {target.requested_time}, which "
            "cannot be taken out of that",
            path=context.active.path_of(target),
            remedy=(
                f"drop it with `hudictl metadata drop TABLE{options}`, roll the instant back again, then create it anew"
            ),
        )


log = logging.getLogger(__name__)


class RollbackRun:
    """Executes the rollback `rollback`, which is on the timeline in any state; behind a completed one it only cleans
    up.
    """

    def __init__(self, context: TableContext, rollback: str, owner: Owner) -> None:
        self._context = context
        self._storage = context.storage
        self._active = context.active
        self._owner = owner
        self._execution = RollbackExecution(context, rollback, owner)
        self._rollback = rollback
        self._failed = self._execution.plan.instant
        self._keeps_plan = False

    @property
    def target(self) -> str:
        """The instant that it rolls back."""
        return self._failed

    @property
    def removed(self) -> Removed:
        """What this run removed."""
        return Removed(self._execution.removed, () if self._keeps_plan else (self._failed,))

    def run(self, *, fenced_by: Claim | None = None, extra: Sequence[FileUndo] = ()) -> RollbackMetadata:
        """Rolls back and returns what was done, also when it was done before.

        `fenced_by` is the caller's claim on the instant that goes, whose markers and inflight file are then the
        caller's to remove; without one the instant is claimed here (fence). `extra` are files of the instant that the
        plan does not name. Raises ConflictError while somebody else is at it, TimelineError when a completed instant
        may not go any more.
        """
        _refuse_during_restore(self._active.load())
        try:
            metadata, metadata_timeline = self._run_claimed(fenced_by, extra)
        except ConflictError:
            if (
                self._active.load().find(self._rollback, Action.ROLLBACK) is None
            ):  # its plan was dropped: nobody comes back to it
                forget_claims(self._storage, self._rollback)
            raise
        forget_claims(self._storage, self._rollback)
        if metadata_timeline is not None and self._is_over():
            forget_claims(self._storage, self._failed)
        return metadata

    def _is_over(self) -> bool:
        """Whether nobody runs the instant any more. The claims of a plan that waits stay, so that the epochs of later
        attempts count on.
        """
        target = self._execution.target(self._active.load())
        return target is None or target.is_completed

    def _run_claimed(self, fenced_by: Claim | None, extra: Sequence[FileUndo]) -> tuple[RollbackMetadata, Claim | None]:
        """What was done, and the claim on the instant that went, if this run made one."""
        with ExitStack() as stack:
            metadata_timeline = None if fenced_by is not None else self._fence(stack)
            held = stack.enter_context(self._context.claim(self._rollback, self._owner))
            decided = self._context.completer(held, self._owner).finish_decided(self._rollback) is not None
            pending = not self._active.load().get(self._rollback, Action.ROLLBACK).is_completed
            if pending:
                self._execute(held, fenced_by or metadata_timeline, extra)
            done = self._active.load().get(self._rollback, Action.ROLLBACK)
            metadata = decode_rollback_metadata(self._active.read_details(done), path=self._active.path_of(done))
            self._clean_up(executed=pending or decided, fenced=fenced_by is not None)
        return metadata, metadata_timeline

    def _fence(self, stack: ExitStack) -> Claim | None:
        """Keeps a run of ours from completing the instant that goes."""
        held = fence(self._context, self._failed, self._execution.target(self._active.load()), self._owner)
        if held is None:
            return None
        stack.enter_context(held)
        if self._context.completer(held, self._owner).finish_decided(self._failed) is not None:
            raise ConflictError(
                f"an earlier run had decided to complete {self._execution.plan.action} {self._failed}, and "
                "so it is "
                "completed now",
                remedy="look at the timeline again",
            )
        return held

    def _execute(self, held: Claim, fenced_by: Claim | None, extra: Sequence[FileUndo]) -> None:
        execution = self._execution
        execution.begin(partial(guard, self._context))
        held.check()
        if fenced_by is not None:
            fenced_by.check()
        undone = execution.undo_files(extra)
        metadata = execution.metadata(undone)
        content = encode_rollback_metadata(
            metadata.start_time, metadata.time_taken_ms, metadata.instant, metadata.action, metadata.partitions
        )
        publish = partial(self._publish, held.epoch, changes_of(undone), fenced_by)
        self._context.completer(held, self._owner).complete(self._rollback, Action.ROLLBACK, content, publish=publish)
        log.info("rollback %s of %s %s completed", self._rollback, execution.plan.action, self._failed)

    def _publish(self, epoch: int, changes: FileChanges, fenced_by: Claim | None) -> None:
        """The metadata table first; then the instant leaves the timeline, while the rollback is still there to say
        why.
        """
        if fenced_by is not None:
            fenced_by.check()
        publisher = self._context.reloaded().metadata_publisher(epoch)
        if publisher is not None:
            publisher.roll_back(self._failed, self._rollback, changes)
        target = self._execution.target(self._active.load())
        self._keeps_plan = target is not None and keeps_plan(self._context, target)
        if target is not None and target.is_completed:
            log.error(
                "%s %s was completed while rollback %s was taking its files away: its writer was alive, "
                "and its rows "
                "have to be written again",
                target.action,
                self._failed,
                self._rollback,
            )
        if target is not None and not self._keeps_plan:
            self._active.undo(self._failed, target.pending_action)

    def _clean_up(self, *, executed: bool, fenced: bool) -> None:
        """Markers last: they are what tells the next run that there may be files.

        A plan that stayed is left alone behind a rollback of the past: it may be running again.
        """
        target = self._execution.target(self._active.load())
        delete_markers(self._storage, self._rollback)
        if fenced:
            return
        if target is None and not executed and self._execution.plan.action != Action.COMPACTION:
            self._delete_late_files()
        if target is not None and executed and keeps_plan(self._context, target):
            self._keeps_plan = True
            self._active.revert_to_requested(self._failed, target.pending_action)
        if target is None or executed:
            delete_markers(self._storage, self._failed)
        if target is None and current_claim(self._storage, self._failed) is None:
            self._storage.delete(f"{HUDI_HEARTBEATS}/{self._failed}")

    def _delete_late_files(self) -> None:
        """What a writer that was taken for dead has written since: nobody may see it, and it would show once the
        rollback is archived (hudi#18783). Where the plan found files, more may have come. Not for a compaction: log
        files may carry its instant and others' rows.
        """
        partitions = {request.partition for request in self._execution.plan.requests}
        for _, files in list_partitions(self._storage, partitions):
            for info in files:
                name = parse_data_file(info.name)
                if name is not None and name.instant == self._failed:
                    log.warning("%s was written after its instant had been rolled back: deleted", info.path)
                    self._storage.delete(info.path)
        publisher = self._context.metadata_publisher()
        if publisher is not None and publisher.footprint(self._failed):
            with self._context.lock(self._owner) as lock:
                lock.check()
                publisher.roll_back(self._failed, self._rollback)


def _refuse_during_restore(timeline: Timeline) -> None:
    """A restore finishes the rollbacks that it began, and needs the others to be done before it begins."""
    pending = timeline.pending().of_actions(Action.RESTORE).last()
    if pending is not None:
        raise TimelineError(
            f"restore {pending.requested_time} is not finished",
            remedy=(
                f"finish it: `hudictl restore TABLE --instant T`; `hudictl show TABLE {pending.requested_time}` names T"
            ),
        )


def fence(context: TableContext, instant: str, target: Instant | None, owner: Owner) -> Claim | None:
    """The claim on an instant that is to go, where this engine ever claimed it or may be running it; the caller
    releases it.

    Also on a completed compaction or clustering, which shows as pending while it goes: by the claim it is known to be
    nobody's write. `target` is the instant as the timeline shows it. Raises ConflictError while a run of ours may be
    alive.
    """
    claimed = current_claim(context.storage, instant) is not None
    if not claimed and (target is None or not is_planned(context, target)):
        return None
    return context.claim(instant, owner)


def keeps_plan(context: TableContext, target: Instant) -> bool:
    """Whether a rollback leaves the instant requested: a compaction or clustering that is inflight.

    A log compaction only where its files go as a whole. Where a command block cancels its blocks, that would hide from
    some readers what another attempt writes under the same instant, so it goes with its plan
    (HoodieTable.rollbackInflightLogCompaction).
    """
    if target.state is not State.INFLIGHT or not is_planned(context, target):
        return False
    return target.pending_action != Action.LOG_COMPACTION or context.config.features.rollback_deletes_logs


def guard(context: TableContext, timeline: Timeline, target: Instant) -> None:
    """Raises when the instant may not be rolled back as `timeline` shows it: services.rollback.guards, and the metadata
    table's own rule.
    """
    try:
        check_may_roll_back(timeline, target, read_inputs(context, timeline, failed_of(context, target)))
    except HudiError as error:
        error.path = error.path or context.active.path_of(target)  # which the rules, being pure, do not know
        raise
    current = context.reloaded()
    check_not_initialized_since(current, target)
    publisher = current.metadata_publisher()
    if publisher is not None and publisher.footprint(target.requested_time):
        publisher.check_roll_back(target.requested_time)
