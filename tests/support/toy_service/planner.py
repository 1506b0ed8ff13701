"""A toy service: base files are copied into new slices of their file groups. See docs/decisions/0012."""

from __future__ import annotations

from hudi_core.model.names import parse_base_file
from hudi_core.services.context import TableContext
from hudi_core.services.lifecycle import Run
from hudi_core.services.service import Scheduled, Service
from hudi_core.timeline.actions.compaction import CompactionOperation, CompactionPlan, encode_compaction_plan
from hudi_core.timeline.instant import Action
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.owner import Owner
from tests.support.toy_service.job import CopyJob


class CopyService(Service):
    """Its plans are compactions without log files, so that every reader knows the action."""

    name = "copy"
    action = Action.COMPACTION

    def schedule(self, context: TableContext, owner: Owner, *, dry_run: bool) -> Scheduled:
        with context.lock(owner) as lock:
            timeline = context.active.load()
            plan = plan_copy(context, timeline)
            if not plan.operations:
                return Scheduled(None, None, "every base file is a copy")
            instant = None
            if not dry_run:
                instant = context.new_instant(timeline)
                lock.check()
                context.active.create_requested(instant, self.action, encode_compaction_plan(plan))
        return Scheduled(instant, {"files": len(plan.operations)})

    def job(self, run: Run) -> CopyJob:
        return CopyJob(run)


def plan_copy(context: TableContext, timeline: Timeline) -> CompactionPlan:
    """The base files without log files on them that no compaction wrote."""
    copies = {item.requested_time for item in timeline.commits() if context.active.read_commit(item).compacted}
    view = context.view(timeline)
    return CompactionPlan(
        tuple(
            CompactionOperation(partition, item.file_group.file_id, item.base_instant, item.base_file.name, ())
            for partition in view.partitions()
            for item in view.latest_slices(partition)
            if item.base_file is not None
            and not item.log_files
            and parse_base_file(item.base_file.name).instant not in copies
        )
    )
