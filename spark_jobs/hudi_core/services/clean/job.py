"""Clean: the files that the plan names are deleted."""

from __future__ import annotations

import logging
import time
from functools import partial

from hudi_core.config.services.clean_config import CleanConfig
from hudi_core.errors import ConflictError
from hudi_core.metadata_table.records.file_statistics import FileChanges
from hudi_core.request.results import REMOVED, InstantResult
from hudi_core.services.clean.checks import check_abandoned, check_recordable
from hudi_core.services.clean.kept_files import drop_partitions
from hudi_core.services.clean.units import clean_units, delete_files, prove
from hudi_core.services.context import provenance
from hudi_core.services.lifecycle import Completion, Job, Run
from hudi_core.timeline.actions.clean import (
    CleanedPartition,
    CleanMetadata,
    CleanPlan,
    encode_clean_metadata,
)
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.pending_plans import read_clean_plan
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim import Claim
from hudi_core.transaction.commit import CheckOwner

log = logging.getLogger(__name__)


class CleanJob(Job[CleanPlan | None, int]):
    """Deletes what the plan names. A clean is never rolled back: deletes may be repeated, so the next attempt goes on
    where the last one stopped. What an attempt is done with: how many files there were to delete.
    """

    action = Action.CLEAN

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._config = CleanConfig.of(run.context.options)
        self._started = time.monotonic()
        self._state = State.COMPLETED.value
        self._is_checked = False

    def plan(self, timeline: Timeline) -> CleanPlan | None:
        """The plan of the requested file, else of the inflight one; None when both are empty, as a crash leaves them.

        Raises UnsupportedError where the metadata table cannot record the deletes, FormatError for an unsafe plan,
        ConflictError while something needs one of the files. A clean that is inflight is checked for that by `begin`
        only: an earlier run may have deleted everything and decided to complete it.
        """
        check_recordable(self.context)
        found = read_clean_plan(self.active, self.instant)
        if found is None:
            return None
        plan, path = found
        self._is_checked = self.find(timeline).state is State.REQUESTED
        if self._is_checked:
            check_abandoned(self.context, timeline, plan, path=path)
        return plan

    def begin(self, plan: CleanPlan | None, held: Claim) -> None:
        """Raises ConflictError while something needs one of the files of a clean that is inflight (`plan`)."""
        if plan is None:
            return
        path = self.active.path(self.instant, Action.CLEAN, State.REQUESTED)
        if not self._is_checked:
            check_abandoned(self.context, self.active.load(), plan, path=path)
        held.check()
        in_inflight = self.context.config.features.clean_plan_in_inflight
        self.active.to_inflight(self.instant, Action.CLEAN, self.storage.read(path) if in_inflight else b"")

    def execute(self, plan: CleanPlan | None, held: Claim) -> Completion[int] | None:
        """See Job. An earlier attempt may have deleted some of the files."""
        if plan is None:
            self._remove(held)
            return None
        context, run = self.context, self.run
        units = clean_units(
            plan, uri=context.uri, storage_options=context.storage_options, parallelism=self._config.parallelism
        )
        deleted = prove(plan, run.engine.run(delete_files, units, run_epoch=held.epoch, progress=run.progress))
        log.info("clean %s: %d files deleted now, %d planned", self.instant, deleted, plan.file_count)
        gone = self._drop_partitions(plan, held)
        changes = FileChanges(
            deleted={partition: frozenset(names) for partition, names in plan.files.items()},
            dropped_partitions=gone,
        )
        content = encode_clean_metadata(self._metadata(plan, gone, int((time.monotonic() - self._started) * 1000)))
        return Completion(content, deleted, partial(self._publish, held.epoch, changes, gone))

    def _publish(self, epoch: int, changes: FileChanges, gone: frozenset[str], _: CheckOwner) -> None:
        """Under the lock. A partition that a writer has created again since the drop must stay in the metadata table.

        The current indexes are updated: one initialized while the files were deleted may still list them.
        """
        for partition in sorted(gone):
            if self.storage.list_names(partition):
                raise ConflictError(
                    f"partition {partition} is in use again since it was dropped",
                    path=partition,
                    remedy="run the clean again",
                )
        publisher = self.context.reloaded().metadata_publisher(epoch)
        if publisher is not None:
            publisher.publish_deletes(self.instant, changes)

    def _drop_partitions(self, plan: CleanPlan, held: Claim) -> frozenset[str]:
        if not plan.dropped_partitions:
            return frozenset()
        with self.context.lock(self.owner):
            held.check()
            return drop_partitions(self.storage, plan, self.active.load())

    def _metadata(self, plan: CleanPlan, gone: frozenset[str], took_ms: int) -> CleanMetadata:
        """With the partitions that went without files of the plan, which the metadata table's catch-up needs, too."""
        return CleanMetadata(
            start_time=self.instant,
            policy=plan.policy,
            partitions={
                partition: CleanedPartition(plan.files.get(partition, ()), partition in gone)
                for partition in (*plan.files, *sorted(gone - plan.files.keys()))
            },
            earliest="" if plan.earliest is None else plan.earliest.timestamp,
            last_completed=plan.last_completed,
            time_taken_ms=took_ms,
            extra_metadata={**plan.extra_metadata, **provenance(self.owner)},
        )

    def _remove(self, held: Claim) -> None:
        """An empty plan would only keep the next clean from being planned (CleanActionExecutor)."""
        log.warning("the plan of clean %s is empty: the instant is taken off the timeline", self.instant)
        held.check()
        self._take_off()

    def _take_off(self) -> None:
        self.active.drop(self.instant, Action.CLEAN)
        self._state = REMOVED

    def result(self, done: int | None, seconds: float) -> InstantResult:
        """The files deleted."""
        return InstantResult(self.instant, Action.CLEAN, self._state, seconds=seconds, files_deleted=done or 0)
