"""Drops an inflight clean that no run would finish, as something needs a file of its plan by now (checks.py).

With all files of its plan there it leaves the timeline. Where some are gone, it is the only record of that: by it
restores and savepoints know which commits have lost files (savepoint/job.last_commit_retained,
rollback/checks.cleans_since). So it is completed with what is gone, and deletes nothing more. Its other files go with a
later clean that looks at their partitions.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from functools import partial

from hudi_core.errors import ConflictError, TimelineError
from hudi_core.metadata_table.records.file_statistics import FileChanges
from hudi_core.services.clean.checks import check_abandoned, check_recordable
from hudi_core.services.clean.job import CleanJob
from hudi_core.services.context import TableContext
from hudi_core.services.lifecycle import Completion
from hudi_core.timeline.actions.clean import CleanPlan, encode_clean_metadata
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.pending_plans import read_clean_plan
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim import Claim
from hudi_core.transaction.commit import check_inflight
from hudi_core.transaction.reconcile import list_partitions

log = logging.getLogger(__name__)


class UnscheduledClean(CleanJob):
    """See the module; in its result, the state is REMOVED where the clean left the timeline."""

    def plan(self, timeline: Timeline) -> CleanPlan:
        """Those of the planned files that are gone. Raises TimelineError where a run would finish the clean, and
        UnsupportedError where the metadata table cannot record deletes.
        """
        check_recordable(self.context)
        return gone_files(self.context, timeline, self.instant)

    def begin(self, plan: CleanPlan | None, held: Claim) -> None:
        """Nothing: the clean is inflight."""

    def execute(self, plan: CleanPlan | None, held: Claim) -> Completion[int] | None:
        """Looks again, behind the claim and under the lock: a run may have deleted more until then."""
        with self.context.lock(self.owner) as lock:
            timeline = self.active.load()
            check_inflight(timeline, self.instant, Action.CLEAN)
            gone = gone_files(self.context, timeline, self.instant)
            if not gone.files:
                held.check()
                lock.check()
                self._take_off()
                return None
        log.warning("clean %s is completed with the %d files that are gone", self.instant, gone.file_count)
        changes = FileChanges(deleted={partition: frozenset(names) for partition, names in gone.files.items()})
        content = encode_clean_metadata(
            self._metadata(gone, frozenset(), int((time.monotonic() - self._started) * 1000))
        )
        return Completion(content, 0, partial(self._publish, held.epoch, changes, frozenset()))


def gone_files(context: TableContext, timeline: Timeline, instant: str) -> CleanPlan:
    """The plan of the inflight clean at `instant` with those of its files that are not there, in the storage's own
    listings. Raises TimelineError where a run would finish it.
    """
    found = read_clean_plan(context.active, instant)
    if found is not None:
        plan, path = found
        try:
            check_abandoned(context, timeline, plan, path=path)
        except ConflictError as error:
            log.info("no run would finish clean %s: %s", instant, error)
            gone: dict[str, tuple[str, ...]] = {}
            for partition, files in list_partitions(context.storage, plan.files):
                there = {info.name for info in files}
                gone[partition] = tuple(name for name in plan.files[partition] if name not in there)
            return replace(plan, files={partition: names for partition, names in gone.items() if names})
    raise TimelineError(
        f"clean {instant} is inflight: files that it lists may be gone already",
        path=context.active.path(instant, Action.CLEAN, State.INFLIGHT),
        remedy=f"finish it: `hudictl run clean TABLE --instant {instant}`",
    )
