"""Log compaction: the log files of each file slice that the plan names are merged into one more log file of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.config.write_config import WriteConfig
from hudi_core.errors import ConfigError, FormatError, TimelineError, UnsupportedError
from hudi_core.filegroup.merge.merge_mode import Fill, reads_as_hudi_1
from hudi_core.filegroup.merge.table_policy import MergePolicy, Rules
from hudi_core.filegroup.read.log_scan import CommittedInstants
from hudi_core.filegroup.read.planned_slices import PlannedSlice
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.metadata_table.extract.data_file import StatisticsRequirements
from hudi_core.metadata_table.records.file_statistics import DataFileRef, FileStatistics
from hudi_core.model.names import FileGroupId, parse_log_file
from hudi_core.model.partition import join
from hudi_core.services.compaction.job import carried_checkpoints, compaction_metadata
from hudi_core.services.context import TableContext
from hudi_core.services.lifecycle import Run
from hudi_core.services.log_compaction.block_order import BlockOrder, check_no_writer_beside
from hudi_core.services.log_compaction.merge_logs import LogCompactionUnit, MergedLogs, merge_operation
from hudi_core.services.rewriting.checks import (
    check_operations,
    check_planned,
    check_schema_of_latest,
    check_table,
)
from hudi_core.services.rewriting.job import RewriteJob, Rewritten, Stats
from hudi_core.services.rewriting.proof import unproved
from hudi_core.timeline.actions.commit import CommitMetadata, Operation
from hudi_core.timeline.actions.compaction import CompactionOperation, CompactionPlan
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim import Claim
from hudi_core.transaction.commit import Precondition
from hudi_core.transaction.reconcile import log_files_of


class LogCompactionJob(RewriteJob[CompactionPlan, MergedLogs]):
    """See Job. The plan is a writer's, or of planner.py."""

    action = Action.LOG_COMPACTION
    operation = Operation.LOG_COMPACT
    conflicts_as = Action.LOG_COMPACTION
    find_files = staticmethod(log_files_of)

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._written: AvroSchema = {}
        """The table's schema as the units read by it."""

    def check(self) -> None:
        """See check_log_compaction."""
        check_log_compaction(self.context)

    def find(self, timeline: Timeline) -> Instant:
        """See Job. A completed log compaction has the action of a write; its metadata names the operation."""
        found = timeline.find(self.instant, self.action)
        if found is None or not (
            found.pending_action == self.action
            or (found.is_completed and self.active.read_commit(found).operation_type == self.operation)
        ):
            raise ConfigError(
                f"the timeline holds no log compaction at instant {self.instant}",
                path=self.active.folder,
                remedy="list the instants with `hudictl timeline`",
            )
        return found

    def plan(self, timeline: Timeline) -> CompactionPlan:
        """The stored plan. Raises FormatError, StorageNotFoundError, CorruptFileError, UnsupportedError
        (compaction.checks), TimelineError (check_not_overtaken).
        """
        plan = self.active.read_plan(self.instant, self.action)
        path = self.active.path(self.instant, self.action, State.REQUESTED)
        check_operations(plan.operations, path=path)
        check_schema_of_latest(self.context, timeline)
        self._schema(timeline)
        check_not_overtaken(timeline, self.instant, path=path)
        planned = [PlannedSlice(item.file_group, item.base_file, item.log_files) for item in plan.operations]
        check_planned(self.context, timeline, self.instant, planned, path=path, before=self.instant)
        return plan

    def file_groups(self, plan: CompactionPlan) -> frozenset[FileGroupId]:
        """See RewriteJob."""
        return frozenset(operation.file_group for operation in plan.operations)

    def rewrite(
        self, plan: CompactionPlan, timeline: Timeline, requirements: StatisticsRequirements | None, held: Claim
    ) -> list[MergedLogs]:
        """See RewriteJob. One unit for each operation of the plan."""
        self._written = self._schema(timeline)
        committed, order = CommittedInstants.of(timeline), BlockOrder.of(self.context, timeline, self.instant)
        policy = MergePolicy.for_table(self.context.config, self.context.options)
        config, as_hudi_1 = WriteConfig.of(self.context.options), reads_as_hudi_1(self.context.config)
        units = [
            LogCompactionUnit(
                operation,
                uri=self.context.uri,
                storage_options=self.context.storage_options,
                instant=self.instant,
                committed=committed,
                schema=self._written,
                policy=policy,
                config=config,
                as_hudi_1=as_hudi_1,
                order=order,
                requirements=requirements,
            )
            for operation in plan.operations
        ]
        return self.run.engine.run(merge_operation, units, run_epoch=held.epoch, progress=self.run.progress)

    def corrupt_blocks(self, results: list[MergedLogs]) -> int:
        """See RewriteJob."""
        return sum(result.corrupt for result in results)

    def prove(self, plan: CompactionPlan, results: list[MergedLogs], *, with_statistics: bool) -> Rewritten:
        """See prove_merged."""
        return prove_merged(plan, results, self.instant, with_statistics=with_statistics)

    def preconditions(self, plan: CompactionPlan, timeline: Timeline) -> tuple[Precondition, ...]:
        """No compaction was planned meanwhile, and no writer is at work whose blocks would come between."""
        path = self.active.path(self.instant, self.action, State.REQUESTED)
        return (
            partial(check_not_overtaken, instant=self.instant, path=path),
            partial(check_no_writer_beside, self.context, self.instant),
        )

    def metadata(self, plan: CompactionPlan, stats: Stats, timeline: Timeline) -> CommitMetadata:
        """See RewriteJob."""
        carried = carried_checkpoints(timeline, self.instant, self.active)
        return compaction_metadata(stats, self._written, carried, self.owner, self.operation)

    def _schema(self, timeline: Timeline) -> AvroSchema:
        return table_schema(self.storage, self.context.config, timeline)


def check_log_compaction(context: TableContext) -> None:
    """As checks.check_table. Also raises UnsupportedError for a table whose merge makes a row of two: readers that do
    not know log compactions would merge them again.
    """
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


def prove_merged(
    plan: CompactionPlan, results: Sequence[MergedLogs], instant: str, *, with_statistics: bool
) -> Rewritten:
    """The new files of the results, once they are shown to cover the plan's operations exactly and to hold each key of
    the logs once.

    Raises ExecutionError otherwise. An operation whose log blocks were all rolled back has no result file.
    """
    if len(results) != len(plan.operations):
        raise unproved(f"the plan has {len(plan.operations)} operations, the engine returned {len(results)} results")
    stats: list[WriteStat] = []
    statistics: list[FileStatistics] = []
    for operation, result in zip(plan.operations, results, strict=True):
        stat = result.stat
        if stat is None:
            continue
        _check(operation, stat, result, instant)
        stats.append(stat)
        if with_statistics:
            if result.statistics is None or result.statistics.file != _file(stat):
                raise unproved("the result has no statistics of the file for the metadata table", stat.path)
            statistics.append(result.statistics)
    return Rewritten(list(map(_file, stats)), stats, statistics)


def _file(stat: WriteStat) -> DataFileRef:
    return DataFileRef(stat.partition_path, stat.name, stat.file_size_in_bytes, is_base=False)


def _check(operation: CompactionOperation, stat: WriteStat, result: MergedLogs, instant: str) -> None:
    source = f"result of {join(operation.partition, operation.file_id)}"
    partition, _, name = stat.path.rpartition("/")
    try:
        parsed = parse_log_file(name)
    except FormatError as error:
        raise unproved(f"the engine returned {stat.path!r}: {error.message}", source) from error
    here = (partition, stat.partition_path, parsed.file_id, stat.file_id)
    expected = (operation.partition, operation.partition, operation.file_id, operation.file_id)
    named = parsed.instant in (instant, operation.base_instant)
    if here != expected or not named or name in operation.log_files or stat.file_size_in_bytes <= 0:
        raise unproved(f"the engine returned {stat.path!r} of {stat.file_size_in_bytes} bytes", source)
    counts = (result.records, result.deletes, result.keys)
    if min(counts) < 0 or result.records + result.deletes != result.keys or result.records != stat.num_writes:
        raise unproved(f"{counts[2]} keys, {counts[0]} records and {counts[1]} deletes do not agree", source)
