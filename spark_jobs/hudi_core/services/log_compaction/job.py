"""Log compaction: the log files of each file slice that the plan names are merged into one more log file of it."""

from __future__ import annotations

from functools import partial

from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.errors import TimelineError, UnsupportedError
from hudi_core.filegroup.merge.merge_mode import Fill
from hudi_core.filegroup.merge.table_policy import MergePolicy, Rules
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.model.names import FileGroupId
from hudi_core.services.compaction.job import build_units, compaction_metadata, planned_slices
from hudi_core.services.context import TableContext
from hudi_core.services.lifecycle import Completion
from hudi_core.services.log_compaction.block_order import BlockOrder, check_no_writer_beside
from hudi_core.services.log_compaction.merge_logs import LogCompactionUnit, MergedLogs, merge_operation
from hudi_core.services.rewriting.checks import check_operations, check_planned, check_schema_of_latest, check_table
from hudi_core.services.rewriting.job import Attempt, RewriteJob
from hudi_core.services.rewriting.proof import Rewritten, prove_operations, unproved
from hudi_core.timeline.actions.commit import Operation
from hudi_core.timeline.actions.compaction import CompactionOperation, CompactionPlan
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim import Claim
from hudi_core.transaction.reconcile import log_files_of


class LogCompactionJob(RewriteJob[CompactionPlan]):
    """The plan is a writer's, or of planner.py."""

    action = Action.LOG_COMPACTION
    operation = Operation.LOG_COMPACT
    conflicts_as = Action.LOG_COMPACTION
    find_files = staticmethod(log_files_of)

    def check(self) -> None:
        check_log_compaction(self.context)

    def find(self, timeline: Timeline) -> Instant:
        """A completed log compaction has the action of a write; its metadata names the operation."""
        instant = timeline.find(self.instant, self.action)
        if instant is None or not (
            instant.pending_action == self.action
            or (instant.is_completed and self.active.read_commit(instant).operation_type == self.operation)
        ):
            raise self.absent("log compaction")
        return instant

    def plan(self, timeline: Timeline) -> CompactionPlan:
        """Errors as CompactionJob.plan, and TimelineError (check_not_overtaken)."""
        plan = self.active.read_plan(self.instant, self.action)
        path = self.active.path(self.instant, self.action, State.REQUESTED)
        check_operations(plan.operations, path=path)
        check_schema_of_latest(self.context, timeline)
        self._schema(timeline)
        check_not_overtaken(timeline, self.instant, path=path)
        check_planned(self.context, timeline, self.instant, planned_slices(plan), path=path, before=self.instant)
        return plan

    def file_groups(self, plan: CompactionPlan) -> frozenset[FileGroupId]:
        return frozenset(operation.file_group for operation in plan.operations)

    def execute(self, plan: CompactionPlan, held: Claim) -> Completion[Rewritten]:
        """One unit for each operation of the plan."""
        context, run, timeline = self.context, self.run, self.active.load()
        attempt = Attempt(self, self.file_groups(plan), held, timeline)
        with attempt.writing():
            schema = self._schema(timeline)
            order = BlockOrder.of(context, timeline, self.instant)
            make = partial(LogCompactionUnit, order=order)
            units = build_units(make, context, self.instant, plan, schema, timeline, attempt.requirements)
            results = run.engine.run(merge_operation, units, run_epoch=held.epoch, progress=run.progress)
        attempt.passed_over(sum(result.corrupt for result in results))
        rewritten = prove_operations(
            plan.operations, results, self.instant, check_counts, is_base=False, with_statistics=attempt.with_statistics
        )
        attempt.keep(rewritten)
        path = self.active.path(self.instant, self.action, State.REQUESTED)
        return attempt.completion(
            rewritten,
            compaction_metadata(self, rewritten.stats, schema, timeline),
            # No compaction was planned meanwhile, and no writer is at work whose blocks would come between.
            preconditions=(
                partial(check_not_overtaken, instant=self.instant, path=path),
                partial(check_no_writer_beside, context, self.instant),
            ),
        )

    def _schema(self, timeline: Timeline) -> AvroSchema:
        return table_schema(self.storage, self.context.config, timeline)


def check_log_compaction(context: TableContext) -> None:
    """As check_table, and UnsupportedError where a merge makes a row of two: some readers would merge them again."""
    check_table(context)
    policy = MergePolicy.for_table(context.config, context.options)
    if policy.fill is not Fill.NOTHING or policy.rules is Rules.FUNCTION:
        raise UnsupportedError(
            "rows of this table are merged field by field: log compaction copies whole rows only",
            path=context.config.path,
            remedy="compact it instead",
        )


def check_not_overtaken(timeline: Timeline, instant: str, *, path: str) -> None:
    """Raises TimelineError for a compaction, in any state, that was requested after the log compaction: merged rows
    would come on top of the base files in which newer ones are (BaseHoodieTableServiceClient.logCompact).
    """
    for item in timeline.of_actions(Action.COMPACTION, Action.COMMIT):
        if item.requested_time > instant:
            raise TimelineError(
                f"{item.pending_action} {item.requested_time} was requested after log compaction {instant}",
                path=path,
                remedy=f"drop the plan: hudictl unschedule TABLE {instant}",
            )


def check_counts(operation: CompactionOperation, result: MergedLogs, source: str) -> None:
    """Raises ExecutionError, naming `source`, unless the new file holds each key of the logs once."""
    if result.stat is None:
        return
    records, deletes, keys = result.records, result.deletes, result.keys
    if min(records, deletes, keys) < 0 or records + deletes != keys or records != result.stat.num_writes:
        raise unproved(f"{keys} keys, {records} records and {deletes} deletes do not agree", source)
