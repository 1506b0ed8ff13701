"""Carries out a restore's plan: each instant is rolled back, newest first, and the restore alone completes.

restore claimed → inflight → per instant: rollback requested, unpublished, files undone → complete (lock: metadata
table, the instants' own files, restore) → the rollbacks go

The instants stay on the timeline, pending, until the metadata table has gone back: as long as one is pending no reader
takes what the metadata table has of it. (Real Hudi removes each at once, and readers of its metadata table fail until
the restore is done.) The rollbacks stay pending as well: by them a restore that died in between knows what it did.
"""

from __future__ import annotations

import logging
import time
from functools import partial

from hudi_core.errors import TimelineError
from hudi_core.filegroup.write.markers import delete_markers
from hudi_core.model.partition import join
from hudi_core.services.context import TableContext
from hudi_core.services.restore.candidates import RestoreCandidates
from hudi_core.services.restore.metadata import prepare_metadata
from hudi_core.services.rollback.execute import RollbackExecution, encode_plan
from hudi_core.services.rollback.job import fence
from hudi_core.services.rollback.planner import failed_of, plan_undo
from hudi_core.services.rollback.result import Removed
from hudi_core.timeline.actions.restore import (
    RestoredInstant,
    RestoreMetadata,
    RestorePlan,
    decode_restore_plan,
    encode_restore_metadata,
)
from hudi_core.timeline.actions.rollback import RollbackMetadata
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.pending_plans import pending_rollback_of, rollback_target
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim import HUDI_HEARTBEATS, Claim, forget_claims
from hudi_core.transaction.owner import Owner

log = logging.getLogger(__name__)


class RestoreRun:
    """Executes the restore `restore`, which is on the timeline in any state; behind a completed one it only cleans
    up.
    """

    def __init__(self, context: TableContext, restore: str, owner: Owner) -> None:
        self._context = context
        self._storage = context.storage
        self._active = context.active
        self._owner = owner
        self._restore = restore
        self._plan = read_restore_plan(context, restore)
        self._files: dict[str, int] = {}
        self._made: set[str] = set()

    @property
    def removed(self) -> Removed:
        """The files that this run removed, but for those that restoring made, and the instants of the plan."""
        return Removed(self._files, tuple(item.time for item in self._plan.instants))

    def run(self) -> None:
        """Restores. Raises ConflictError while somebody else does, or a run of an instant that has to go is alive."""
        with self._context.claim(self._restore, self._owner) as held:
            self._context.completer(held, self._owner).finish_decided(self._restore)
            if not self._active.load().get(self._restore, Action.RESTORE).is_completed:
                self._execute(held)
            self._clean_up()
        forget_claims(self._storage, self._restore)

    def _execute(self, held: Claim) -> None:
        started = time.monotonic()
        with self._context.lock(self._owner):  # taking the lock also breaks the one that a dead run may have left
            held.check()
            self._active.to_inflight(self._restore, Action.RESTORE)
            prepare_metadata(self._context.reloaded(), self._plan)
        rollbacks: dict[str, RollbackMetadata] = {}
        for item in self._plan.instants:
            held.check()
            done = self._take_away(item, held)
            if done is not None:
                rollbacks[item.time] = done
        took = int((time.monotonic() - started) * 1000)
        content = encode_restore_metadata(RestoreMetadata(self._restore, took, self._plan.instants, rollbacks))
        self._context.completer(held, self._owner).complete(
            self._restore, Action.RESTORE, content, publish=partial(self._publish, held.epoch)
        )
        log.info(
            "restore %s to %s completed: %d instants gone", self._restore, self._plan.target, len(self._plan.instants)
        )

    def _publish(self, epoch: int) -> None:
        """The properties are read anew: the metadata table may have been dropped when the restore began."""
        publisher = self._context.reloaded().metadata_publisher(epoch)
        if publisher is not None:
            publisher.restore(self._plan.target, self._restore)
        timeline = self._active.load()
        for item in self._plan.instants:
            target = timeline.find(item.time, item.action)
            if target is not None:
                self._active.undo(item.time, target.pending_action)

    def _take_away(self, item: RestoredInstant, held: Claim) -> RollbackMetadata | None:
        """Rolls one instant back; None when it is gone without a rollback of it, by somebody else's hand."""
        timeline = self._active.load()
        held_instant = fence(self._context, item.time, timeline.find(item.time, item.action), self._owner)
        try:
            if held_instant is not None:
                # What an earlier run had decided to complete is completed, and goes as a completed instant.
                self._context.completer(held_instant, self._owner).finish_decided(item.time)
            rollback = self._request(item)
            if rollback is None:
                return None
            execution = RollbackExecution(self._context, rollback, self._owner)
            execution.begin(_refuse_savepoint, restores=True)
            held.check()
            undone = execution.undo_files()
            self._files.update({path: size for path, size in execution.removed.items() if path not in self._made})
            # Log files of command blocks: they go with the instant that began their slice.
            self._made.update(join(part.partition, name) for part in undone for name in part.commands)
        finally:
            if held_instant is not None:
                held_instant.release()
        return execution.metadata(undone)

    def _request(self, item: RestoredInstant) -> str | None:
        """The rollback of one instant: the pending one of an earlier run, or one that is planned now."""
        with self._context.lock(self._owner) as lock:
            timeline = self._active.load()
            pending = pending_rollback_of(self._active, timeline, item.time)
            if pending is not None:
                return pending
            target = timeline.find(item.time, item.action)
            if target is None:
                return None
            steps = plan_undo(
                self._context, failed_of(self._context, target), timeline, use_markers=False, restoring=True
            )
            rollback = self._context.new_instant(timeline)
            lock.check()
            self._active.create_requested(rollback, Action.ROLLBACK, encode_plan(self._context, target, steps))
            return rollback

    def _clean_up(self) -> None:
        """Removes the rollbacks behind the target, as Hudi does: those of this restore, and those before it, which
        would hold up the metadata table's compaction. A rollback that began after the restore is somebody else's.
        """
        gone = {item.time for item in self._plan.instants}
        timeline = self._active.load()
        for rollback in reversed(timeline.of_actions(Action.ROLLBACK).after(self._plan.target).instants):
            time_of = rollback.requested_time
            if time_of < self._restore or (
                not rollback.is_completed and rollback_target(self._active, time_of) in gone
            ):
                delete_markers(self._storage, time_of)
                self._storage.delete(f"{HUDI_HEARTBEATS}/{time_of}")
                self._active.undo(time_of, Action.ROLLBACK)
        for item in self._plan.instants:
            if timeline.find(item.time, item.action) is None:
                delete_markers(self._storage, item.time)
                self._storage.delete(f"{HUDI_HEARTBEATS}/{item.time}")
                forget_claims(self._storage, item.time)
        self._warn_of_newcomers(timeline)

    def _warn_of_newcomers(self, timeline: Timeline) -> None:
        """SavepointHelpers.validateSavepointRestore, which comes too late to change anything."""
        target = next((instant for instant in timeline.commits() if instant.requested_time == self._plan.target), None)
        newer = [] if target is None else RestoreCandidates(self._context, timeline).after(target)
        if newer:
            log.warning(
                "%s %s was written while the table was restored to %s",
                newer[0].action,
                newer[0].requested_time,
                self._plan.target,
            )


def read_restore_plan(context: TableContext, restore: str) -> RestorePlan:
    """The plan of a restore, whatever its state."""
    path = context.active.path(restore, Action.RESTORE, State.REQUESTED)
    return decode_restore_plan(context.active.read_requested(restore, Action.RESTORE), path=path)


def _refuse_savepoint(timeline: Timeline, target: Instant) -> None:
    if timeline.completed().of_actions(Action.SAVEPOINT).contains(target.requested_time):
        raise TimelineError(
            f"{target.action} {target.requested_time} was savepointed while the table was restored to an older commit",
            remedy=f"delete it: `hudictl savepoint delete TABLE --instant {target.requested_time}`; then restore again",
        )
