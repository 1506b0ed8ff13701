"""Runs rollbacks. Any run ends a pending one under its instant (HUDI-3556): it can stop metadata table compactions."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property, partial

from hudi_core.errors import ConflictError, CorruptFileError, FormatError, TimelineError
from hudi_core.filegroup.write.markers import delete_markers
from hudi_core.metadata_table.records.file_statistics import FileChanges
from hudi_core.model.names import HUDI_HEARTBEATS
from hudi_core.request.results import REMOVED, InstantResult
from hudi_core.services.context import TableContext
from hudi_core.services.lifecycle import Claimed, Completion, Job, Run, claimed, run_instant
from hudi_core.services.rollback.checks import guard
from hudi_core.services.rollback.execution import Removed, RollbackExecution, Steps, changes_of, is_planned, keeps_plan
from hudi_core.services.rollback.failed_writes import finish_restore, restore_target
from hudi_core.timeline.actions.rollback import RollbackMetadata, decode_rollback_metadata, encode_rollback_metadata
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.pending_plans import rollback_target
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim import Claim
from hudi_core.transaction.claim_file import current_claim, forget_claims
from hudi_core.transaction.commit import CheckOwner
from hudi_core.transaction.owner import Owner
from hudi_core.transaction.reconcile import files_of

log = logging.getLogger(__name__)


class RollbackJob(Job[RollbackExecution | None, RollbackMetadata]):
    """Rolls one instant back. After a completed rollback, only cleans up. A rollback whose plan cannot be read is taken
    off the timeline: its target is still complete, or pending and rolled back anew.

    claim → inflight and unpublish (short lock) → remove files → complete (lock: metadata table, the instant's own
    files, the rollback) → clean up
    """

    action = Action.ROLLBACK
    revisits = True

    def __init__(self, run: Run, *, fenced_by: Claim | None = None, extra: Steps = ()) -> None:
        """`fenced_by` is the caller's claim on the instant that goes; then the caller removes its markers and inflight
        file. Without one the instant is claimed here (fenced). `extra` are files that the plan does not name.
        """
        super().__init__(run)
        self._is_fenced = fenced_by is not None
        self._target_claim = fenced_by
        self._extra = extra
        self._stays = False
        self.is_dropped = False
        """Whether the rollback is taken off the timeline because its plan cannot be read (rollback_target)."""

    @cached_property
    def _execution(self) -> RollbackExecution:
        """The plan's execution, read after `find`: a rollback that the timeline does not hold has none."""
        return RollbackExecution(self.context, self.instant, self.owner)

    @property
    def failed(self) -> str:
        return self._execution.plan.instant

    @property
    def removed(self) -> Removed:
        return Removed(self._execution.removed, () if self._stays else (self.failed,))

    def plan(self, timeline: Timeline) -> RollbackExecution | None:
        """Returns the checked plan; None where it cannot be read. Raises TimelineError while a restore is pending,
        FormatError for a plan whose instant is archived, because its files hold rows.
        """
        pending = timeline.pending().of_actions(Action.RESTORE).last()
        if pending is not None:  # it finishes its own rollbacks, and needs the others completed before it starts
            what = f"restore {pending.requested_time} is not finished"
            remedy = f"finish it: {finish_restore(restore_target(self.active, pending), pending.requested_time)}"
            raise TimelineError(what, remedy=remedy)
        if not self.find(timeline).is_completed:
            self.is_dropped = rollback_target(self.active, self.instant) is None
            if self.is_dropped:
                return None
            if self._execution.target(timeline) is None and self._is_archived():
                raise FormatError(
                    f"the plan rolls {self._execution.plan.action} {self.failed} back, which is completed and archived",
                    path=self.active.path(self.instant, Action.ROLLBACK, State.REQUESTED),
                    remedy="remove the rollback's files from the timeline",
                )
            self._execution.check(timeline)
        return self._execution

    def _is_archived(self) -> bool:
        """Whether the instant is completed and archived: not on the timeline, and its files hold rows."""
        return self.context.history().commit(self.failed) is not None

    def fence(self, stack: ExitStack) -> None:
        """Keeps a run of this engine from completing the instant that goes."""
        if self._is_fenced or self.is_dropped:
            return
        target = self._execution.target(self.active.load())
        claim = stack.enter_context(fenced(self.context, self.failed, target, self.owner))
        if claim is None:
            return
        # RollbackExecution.begin drops a rollback that is only requested: Hudi would roll back its target.
        if claim.completed is not None and self.find(self.active.load()).state is not State.REQUESTED:
            raise ConflictError(
                f"an earlier run had decided to complete {self._execution.plan.action} {self.failed}, and so it is "
                "completed now",
                remedy="look at the timeline again",
            )
        self._target_claim = claim.held

    def begin(self, plan: RollbackExecution | None, held: Claim) -> None:
        if plan is not None:
            plan.begin(partial(guard, self.context), keeps_plan=self._is_fenced)

    def execute(self, plan: RollbackExecution | None, held: Claim) -> Completion[RollbackMetadata] | None:
        """Removes the files. A rollback makes storage requests and handles no rows, so it needs no engine."""
        held.check()
        if plan is None:
            with self.context.lock(self.owner) as lock:
                held.check()
                lock.check()
                self.active.drop(self.instant, Action.ROLLBACK)
            return None
        if self._target_claim is not None:
            self._target_claim.check()
        stats = plan.roll_back_files(self._extra)
        metadata = plan.metadata(stats)
        publish = partial(self._publish, held.epoch, changes_of(stats))
        return Completion(encode_rollback_metadata(metadata), metadata, publish)

    def _publish(self, epoch: int, changes: FileChanges, _: CheckOwner) -> None:
        """Updates the metadata table first. Then the instant leaves the timeline, while the rollback still says why."""
        if self._target_claim is not None:
            self._target_claim.check()
        publisher = self.context.reloaded().metadata_publisher(epoch)
        if publisher is not None:
            publisher.roll_back(self.failed, self.instant, changes)
        target = self._execution.target(self.active.load())
        self._stays = target is not None and (self._is_fenced or keeps_plan(self.context, target))
        if target is not None and target.is_completed:
            seen = f"{target.action} {self.failed} was completed while rollback {self.instant} was taking its files"
            log.error("%s away: its writer was alive, and its rows have to be written again", seen)
        if target is not None and not self._stays:
            self.active.delete_instant(self.failed, target.pending_action)

    def clean_up(self, plan: RollbackExecution | None, done: RollbackMetadata) -> None:
        self.clean_up_completed(decided=True)

    def clean_up_completed(self, *, decided: bool) -> None:
        """Removes the markers last: by them the next run finds remaining files. After an earlier rollback, does not
        touch a plan that stayed: it may be running again, or was run again and is archived.
        """
        target = self._execution.target(self.active.load())
        delete_markers(self.storage, self.instant)
        if self._is_fenced:
            return
        if not decided:
            self._stays = target is not None or self._is_archived()
            if not self._stays and self._execution.plan.action != Action.COMPACTION:
                self._delete_late_files()
        if target is not None and decided and keeps_plan(self.context, target):
            self._stays = True
            self.active.roll_back_to_requested(self.failed, target.pending_action)
        if target is None or decided:
            delete_markers(self.storage, self.failed)
        if target is None and current_claim(self.storage, self.failed) is None:
            self.storage.delete(f"{HUDI_HEARTBEATS}/{self.failed}")

    def _delete_late_files(self) -> None:
        """Deletes late files of a writer presumed dead (hudi#18783). Not for a compaction, whose logs others write."""
        partitions = {request.partition for request in self._execution.plan.requests}
        for info, _ in files_of(self.storage, self.failed, partitions):
            log.warning("%s was written after its instant had been rolled back: deleted", info.path)
            self.storage.delete(info.path)
        publisher = self.context.metadata_publisher()
        if publisher is not None and publisher.footprint(self.failed):
            with self.context.lock(self.owner) as lock:
                lock.check()
                publisher.roll_back(self.failed, self.instant)

    def forget(self) -> None:
        """Deletes also the removed instant's claims. Keeps those of a plan that stays: later epochs count on."""
        if self._target_claim is None or self._is_fenced:
            return
        target = self._execution.target(self.active.load())
        if target is None or target.is_completed:
            forget_claims(self.storage, self.failed)

    def refused(self) -> None:
        """Deletes the claims of a rollback whose plan was dropped, because it is never run again."""
        if self.active.load().find(self.instant, Action.ROLLBACK) is None:
            forget_claims(self.storage, self.instant)

    def result(self, done: RollbackMetadata | None, seconds: float) -> InstantResult:
        """Returns what was done, also when it was done before."""
        if self.is_dropped:
            return InstantResult(self.instant, Action.ROLLBACK, REMOVED, seconds=seconds)
        if done is None:
            done = self._recorded()
        if self.run.progress is not None:
            self.run.progress(1, 1)
        return InstantResult(
            self.instant,
            Action.ROLLBACK,
            State.COMPLETED.value,
            files_written=sum(len(part.rollback_log_files) for part in done.partitions),
            bytes_written=sum(sum(part.rollback_log_files.values()) for part in done.partitions),
            files_deleted=done.files_deleted,
            seconds=seconds,
        )

    def _recorded(self) -> RollbackMetadata:
        """Returns what the completed file says; where a crash emptied or cut it, that nothing was deleted."""
        done = self.find(self.active.load())
        try:
            return decode_rollback_metadata(self.active.read_details(done), path=self.active.path_of(done))
        except CorruptFileError as error:
            log.warning("what rollback %s did cannot be read: %s", self.instant, error)
            return RollbackMetadata(self.instant, 0, self.failed, self._execution.plan.action)


def run_rollback(
    context: TableContext, rollback: str, owner: Owner, *, fenced_by: Claim | None = None, extra: Steps = ()
) -> RollbackJob:
    """Runs the rollback. Raises ConflictError while another process runs it, TimelineError like `guard`."""
    job = RollbackJob(Run(context, rollback, owner), fenced_by=fenced_by, extra=extra)
    run_instant(job)
    return job


@contextmanager
def fenced(context: TableContext, instant: str, target: Instant | None, owner: Owner) -> Iterator[Claimed | None]:
    """Holds the claim on an instant to be rolled back (`target` on the timeline), where this engine claimed it or may
    be running it. Also holds one on a completed compaction or clustering: it is pending meanwhile, and the claim keeps
    it from counting as a live write. Raises ConflictError while a run of this engine may be alive.
    """
    is_claimed = current_claim(context.storage, instant) is not None
    if not is_claimed and (target is None or not is_planned(context, target)):
        yield None
        return
    with claimed(context, instant, owner) as claim:
        yield claim
