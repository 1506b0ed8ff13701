"""Carries out the plan of a restore: rolls back each instant in the plan's order, and completes the restore alone.
candidates.py says which instants these are, and in which order.

A restore that was requested is always continued, under its own instant and to the same target; verb.py finds it. Only
services/unschedule.py drops it, while it is not inflight or where its plan cannot be read.

The instants stay on the timeline, pending, until the metadata table has gone back: no reader takes what the metadata
table has of a pending instant. (Real Hudi removes each instant at once, and readers of its metadata table fail until
the restore is done.) The rollbacks stay pending as well: they tell the next run what a restore that died had done.

The metadata table is restored by the order of its deltacommits, the data table by its own order. A commit that stays
may be recorded later than the target: a compaction that completed after it, or a commit that `metadata update` applied.
To restore the metadata table would remove it from the indexes and list its files again, so that no index has the keys
of its rows. Hudi does so. Here the metadata table is dropped then, as where it was compacted since.
"""

from __future__ import annotations

import logging
import time
from functools import partial
from typing import NoReturn

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import FormatError, TimelineError
from hudi_core.filegroup.write.markers import delete_markers, marker_folder
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.lifetime import drop_metadata_table, remove_dropped
from hudi_core.metadata_table.write.restore_reach import completed_at, instants_after
from hudi_core.model.names import HUDI_HEARTBEATS, ClaimFolder
from hudi_core.model.partition import join
from hudi_core.services.context import TableContext
from hudi_core.services.lifecycle import Completion, Job, Run
from hudi_core.services.restore.candidates import RestoreCandidates, commit_at
from hudi_core.services.rollback.execution import Removed, RollbackExecution, request
from hudi_core.services.rollback.files_to_roll_back import rollback_steps
from hudi_core.services.rollback.job import fenced
from hudi_core.storage.base import Storage
from hudi_core.timeline.actions.rollback import (
    RestoredInstant,
    RestoreMetadata,
    RestorePlan,
    RollbackMetadata,
    encode_restore_metadata,
)
from hudi_core.timeline.instant import COMMIT_ACTIONS, WRITE_ACTIONS, Action, Instant, State
from hudi_core.timeline.pending_plans import pending_rollback_of, read_restore_plan, rollback_target
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim import Claim
from hudi_core.transaction.claim_file import forget_claims
from hudi_core.transaction.commit import CheckOwner

log = logging.getLogger(__name__)


class RestoreJob(Job[RestorePlan, None]):
    """Rolls back each instant of the plan, newest first. After a completed restore, only cleans up.

    claim → inflight → per instant: rollback requested, unpublished, files removed → complete (lock: metadata table, the
    instants' own files, restore) → rollbacks removed
    """

    action = Action.RESTORE
    revisits = True

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._plan = read_restore_plan(self.active, run.instant)
        self._files: dict[str, int] = {}
        self._made: set[str] = set()
        self._started = time.monotonic()
        self.dropped_indexes: tuple[str, ...] = ()
        """The partitions of the metadata table that this run dropped because they cannot go back."""

    @property
    def removed(self) -> Removed:
        """The files that this run removed, except those that the restore itself made, and the instants of the plan."""
        return Removed(self._files, tuple(item.time for item in self._plan.instants))

    def find(self, timeline: Timeline) -> Instant:
        """Returns the restore. Raises TimelineError where it is gone."""
        return timeline.get(self.instant, Action.RESTORE)

    def plan(self, timeline: Timeline) -> RestorePlan:
        """Returns the plan that was requested. Checks the pending rollbacks that the restore finishes before any file
        is deleted. Raises FormatError for a plan that cannot be followed, or that goes back to something else than its
        target; TimelineError where an instant that has to go was savepointed.
        """
        if any(item.time == self._plan.target for item in self._plan.instants):
            self._refuse(f"takes away {self._plan.target}, to which it restores")
        if not self.find(timeline).is_completed:
            self._check(timeline)
        going = {item.time for item in self._plan.instants}
        for item in self._plan.instants:
            pending = pending_rollback_of(self.active, timeline, item.time)
            if pending is not None:
                RollbackExecution(self.context, pending, self.owner).check(timeline, going)
        return self._plan

    def _check(self, timeline: Timeline) -> None:
        """Refuses a plan that does not name what RestoreCandidates.after names, as a plan of real Hudi does. The
        restore's own instant is later than all of these. An earlier run has rolled back those that are gone or pending.
        """
        candidates = RestoreCandidates(self.context, timeline)
        target = commit_at(timeline, self._plan.target)
        if target is None:
            return
        named = {item.time for item in self._plan.instants}
        after = candidates.after(target)
        going = {item.requested_time for item in after}
        for item in timeline.of_actions(*WRITE_ACTIONS):
            if item.requested_time in named - going:
                self._refuse(f"names {item.action} {item.requested_time}, which is not after {self._plan.target}")
            if item.requested_time in named:
                _refuse_savepoint(timeline, item)
        for item in after:
            if item.is_completed and item.requested_time not in named and item.completed_at < self.instant:
                self._refuse(f"leaves {item.action} {item.requested_time}, which is after {self._plan.target}")

    def _refuse(self, what: str) -> NoReturn:
        raise FormatError(
            f"the restore's plan {what}",
            path=self.active.path(self.instant, Action.RESTORE, State.REQUESTED),
            remedy=f"where it is only requested, drop it with `hudictl unschedule TABLE {self.instant}` and restore "
            "again; else restore with Hudi",
        )

    def begin(self, plan: RestorePlan, held: Claim) -> None:
        """Makes the restore inflight. First drops the metadata that cannot go back, before a data file is deleted."""
        self._started = time.monotonic()
        with self.context.lock(self.owner):  # taking the lock also breaks the one that a dead run may have left
            held.check()
            self.active.to_inflight(self.instant, Action.RESTORE)
            context = self.context.reloaded()
            prepare_metadata(context, plan)
            kept = TableConfig.load(self.storage).metadata_partitions
            self.dropped_indexes = tuple(sorted(context.config.metadata_partitions - kept))

    def execute(self, plan: RestorePlan, held: Claim) -> Completion[None]:
        """Rolls back the instants. Raises ConflictError while a run of an instant that has to go is alive."""
        rollbacks: dict[str, RollbackMetadata] = {}
        for item in plan.instants:
            held.check()
            done = self._roll_back(item, held)
            if done is not None:
                rollbacks[item.time] = done
        took = int((time.monotonic() - self._started) * 1000)
        content = encode_restore_metadata(RestoreMetadata(self.instant, took, plan.instants, rollbacks))
        log.info("restore %s to %s: %d instants rolled back", self.instant, plan.target, len(plan.instants))
        return Completion(content, None, partial(self._publish, held.epoch))

    def leftovers(self) -> bool:
        timeline = self.active.load()
        times = (self.instant, *(item.time for item in self._gone(timeline)))
        return bool(self._rollbacks(timeline)) or any(_has_leftovers(self.storage, time) for time in times)

    def clean_up(self, plan: RestorePlan, done: None) -> None:
        self.clean_up_completed(decided=True)

    def _publish(self, epoch: int, _: CheckOwner) -> None:
        """Restores the metadata table by current properties, which `begin` may have changed. Removes the instants."""
        publisher = self.context.reloaded().metadata_publisher(epoch)
        if publisher is not None:
            publisher.restore(self._plan.target, self.instant)
        timeline = self.active.load()
        for item in self._plan.instants:
            target = timeline.find(item.time, item.action)
            if target is not None:
                self.active.delete_instant(item.time, target.pending_action)

    def _roll_back(self, item: RestoredInstant, held: Claim) -> RollbackMetadata | None:
        """Rolls one instant back. Returns None where another process removed it without a rollback."""
        timeline = self.active.load()
        target = timeline.find(item.time, item.action)
        # An instant that an earlier run had decided to complete is completed first, and goes as a completed one.
        with fenced(self.context, item.time, target, self.owner):
            rollback = self._request(item)
            if rollback is None:
                return None
            execution = RollbackExecution(self.context, rollback, self.owner)
            execution.begin(_refuse_savepoint, restores=True)
            held.check()
            stats = execution.roll_back_files()
            self._files.update({path: size for path, size in execution.removed.items() if path not in self._made})
            # Log files of command blocks are deleted with the base instant of their slice.
            self._made.update(join(part.partition, name) for part in stats for name in part.commands)
        return execution.metadata(stats)

    def _request(self, item: RestoredInstant) -> str | None:
        """Returns the rollback of one instant: the pending one of an earlier run, or one that is planned now."""
        with self.context.lock(self.owner) as lock:
            timeline = self.active.load()
            pending = pending_rollback_of(self.active, timeline, item.time)
            if pending is not None:
                return pending
            target = timeline.find(item.time, item.action)
            if target is None:
                return None
            steps = rollback_steps(self.context, target, self._without_compactions(timeline, item), restoring=True)
            return request(self.context, lock, timeline, target, steps)

    def _without_compactions(self, timeline: Timeline, item: RestoredInstant) -> Timeline:
        """Returns the timeline as real Hudi has it when it rolls `item` back: the compactions that were rolled back
        before are gone. They are pending here, and no view has a file group in two pending compactions.
        """
        gone = {earlier.time for earlier in self._plan.instants[: self._plan.instants.index(item)]}
        return timeline.filter(
            lambda found: found.pending_action != Action.COMPACTION or found.requested_time not in gone
        )

    def clean_up_completed(self, *, decided: bool) -> None:
        """Removes the rollbacks after the target, as Hudi does, and what is left of the instants of the plan."""
        timeline = self.active.load()
        for rollback in self._rollbacks(timeline):
            delete_markers(self.storage, rollback)
            self.storage.delete(f"{HUDI_HEARTBEATS}/{rollback}")
            self.active.delete_instant(rollback, Action.ROLLBACK)
        for item in self._gone(timeline):
            delete_markers(self.storage, item.time)
            self.storage.delete(f"{HUDI_HEARTBEATS}/{item.time}")
            forget_claims(self.storage, item.time)
        # As SavepointHelpers.validateSavepointRestore: this comes too late to change anything.
        target = commit_at(timeline, self._plan.target)
        newer = [] if target is None else RestoreCandidates(self.context, timeline).after(target)
        if newer:
            named = f"{newer[0].action} {newer[0].requested_time}"
            log.warning("%s was written while the table was restored to %s", named, self._plan.target)

    def _rollbacks(self, timeline: Timeline) -> list[str]:
        """Returns rollbacks of this restore, and earlier ones after its target that block compactions; newest first."""
        named = {item.time for item in self._plan.instants}
        behind = timeline.of_actions(Action.ROLLBACK).after(self._plan.target).instants
        return [
            item.requested_time
            for item in reversed(behind)
            if item.requested_time < self.instant
            or (not item.is_completed and rollback_target(self.active, item.requested_time) in named)
        ]

    def _gone(self, timeline: Timeline) -> list[RestoredInstant]:
        return [item for item in self._plan.instants if timeline.find(item.time, item.action) is None]


def _has_leftovers(storage: Storage, time: str) -> bool:
    markers = marker_folder(time)
    return bool(
        storage.list_files(markers)
        or storage.list_folders(markers)
        or storage.exists(f"{HUDI_HEARTBEATS}/{time}")
        or storage.list_files(ClaimFolder(time).path)
    )


def _refuse_savepoint(timeline: Timeline, target: Instant) -> None:
    if target.requested_time in timeline.savepoints():
        raise TimelineError(
            f"{target.action} {target.requested_time} was savepointed while the table was restored to an older commit",
            remedy=f"delete it: `hudictl savepoint delete TABLE --instant {target.requested_time}`; then restore again",
        )


def prepare_metadata(context: TableContext, plan: RestorePlan) -> None:
    """Drops metadata that cannot go back, before files are deleted. Needs the lock, and `context` loaded under it."""
    remove_dropped(context.storage, context.config)  # a run that died may have started that
    publisher = context.metadata_publisher()
    if publisher is None:
        return
    late = recorded_late(context, plan)
    if late:
        log.warning(
            "the metadata table is dropped, Hudi's next write rebuilds it: %s was recorded in it after %s",
            ", ".join(late),
            plan.target,
        )
        drop_metadata_table(context.storage)
        return
    publisher.prepare_restore(plan.target)


def recorded_late(context: TableContext, plan: RestorePlan) -> list[str]:
    """Returns the completed commits that stay and were recorded in the metadata table after the target."""
    metadata_timeline = MetadataTimeline(context.storage, context.config)
    timeline = metadata_timeline.active.load()
    until = completed_at(metadata_timeline, timeline, plan.target)
    if until is None:
        return []
    goes = {item.time for item in plan.instants} | {plan.target}
    stays = context.active.load().completed().of_actions(*COMMIT_ACTIONS).requested_times - goes
    recorded = instants_after(metadata_timeline, timeline, plan.target, until)
    return sorted(item.requested_time for item in recorded if item.requested_time in stays)
