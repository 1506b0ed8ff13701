"""Compaction and log compaction merge the log files of planned slices into new base files, or one log file each."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from hudi_core.codec.avro.schema import AvroSchema, without_meta_fields
from hudi_core.config.table_config import CHANGE_LOGS
from hudi_core.errors import ConflictError, TimelineError, UnsupportedError
from hudi_core.filegroup.merge.table_policy import Fill, MergePolicy, Rules
from hudi_core.filegroup.read.base_file import refuse_skeleton
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.filegroup.write.buckets import BUCKET_ID
from hudi_core.metadata_table.extract.data_file import StatisticsRequirements
from hudi_core.model.names import FileGroupId
from hudi_core.model.partition import join
from hudi_core.services.compaction.block_order import BlockOrder, check_no_writer_beside
from hudi_core.services.compaction.merge_logs import LogCompactionUnit, MergedLogs, merge_operation
from hudi_core.services.compaction.merge_slice import CompactedSlice, CompactionUnit, compact_operation
from hudi_core.services.context import TableContext, provenance
from hudi_core.services.lifecycle import Completion, Run
from hudi_core.services.rewriting.checks import (
    check_merged_table,
    check_operations,
    check_planned,
    check_schema_of_latest,
    check_table,
)
from hudi_core.services.rewriting.job import Attempt, RewriteJob, commit_metadata
from hudi_core.services.rewriting.other_writers import check_plan_seen
from hudi_core.services.rewriting.proof import Rewritten, prove_operations, unproved
from hudi_core.services.rewriting.slice_rows import SliceTarget
from hudi_core.timeline.actions.commit import CommitMetadata, Operation
from hudi_core.timeline.actions.compaction import CompactionOperation, CompactionPlan
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim import Claim
from hudi_core.transaction.reconcile import log_files_of

_CHECKPOINTS = ("deltastreamer.checkpoint.", "streamer.checkpoint.")
"""Prefixes of the extra metadata in which Hudi's streamers keep how far they have read. They read the latest first."""

log = logging.getLogger(__name__)


class CompactionJob(RewriteJob[CompactionPlan]):
    """Runs a compaction that a writer or planner.py has planned."""

    action = Action.COMPACTION
    operation = Operation.COMPACT
    leaves_partitions = False
    conflicts_as = Action.COMPACTION

    def check(self) -> None:
        self.required = check_merged_table(self.context)

    def find(self, timeline: Timeline) -> Instant:
        instant = timeline.find(self.instant, Action.COMPACTION)
        if instant is None or not self._is_compaction(instant):
            raise self.absent("compaction")
        return instant

    def _is_compaction(self, instant: Instant) -> bool:
        """Whether an instant is a compaction. A completed one has the action of a write; pending files differ."""
        if instant.pending_action == Action.COMMIT and instant.is_completed:
            return self.active.read_commit(instant).compacted
        return instant.pending_action == Action.COMPACTION

    def plan(self, timeline: Timeline) -> CompactionPlan:
        """Reads and checks the plan. Raises FormatError, StorageNotFoundError, CorruptFileError, UnsupportedError;
        ConflictError for a pending write that began before the plan.
        """
        plan = self.active.read_plan(self.instant)
        path = self.active.path(self.instant, Action.COMPACTION, State.REQUESTED)
        check_operations(plan.operations, path=path)
        for item in plan.operations:
            if item.base_file is not None:
                refuse_skeleton(join(item.partition, item.base_file))
        check_schema_of_latest(self.context, timeline)
        self._schema(timeline)
        check_plan_seen(self.context, timeline, self.instant)
        self._sizes = check_planned(self.context, timeline, self.instant, plan.operations, path=path)
        self._known = timeline.commits().requested_times
        return plan

    def file_groups(self, plan: CompactionPlan) -> frozenset[FileGroupId]:
        return frozenset(operation.file_group for operation in plan.operations)

    def execute(self, plan: CompactionPlan, held: Claim) -> Completion[Rewritten]:
        context, run, timeline = self.context, self.run, self.active.load()
        attempt = Attempt(self, self.file_groups(plan), held, timeline)
        with attempt.writing():
            self._warn_of_change_logs(plan)
            schema = self._schema(timeline)
            policy = MergePolicy.for_table(context.config, context.options)
            # No later compaction would take a base file with `_hoodie_operation`.
            stored = without_meta_fields(schema)
            target = SliceTarget.of(self, stored, timeline, attempt.requirements, policy)
            # In layout 1 a writer may append to a log file until its write completes.
            sizes = self._sizes if context.config.features.completion_time_in_name else {}
            units = build_units(target, plan.operations, sizes)
            results = run.engine.run(compact_operation, units, run_epoch=held.epoch, progress=run.progress)
        rewritten = prove_operations(
            plan.operations, results, self.instant, check_counts, is_base=True, with_statistics=attempt.with_statistics
        )
        attempt.keep(rewritten)
        attempt.check_rows(rewritten, plan.operations)
        metadata = compaction_metadata(self, rewritten.stats, schema, timeline)
        return attempt.completion(rewritten, metadata, preconditions=(self._check_none_late,))

    def _check_none_late(self, timeline: Timeline) -> None:
        """Raises ConflictError for a commit with a completion time before the instant that was not there when the plan
        was checked: its writer takes no lock. Its log files belong to the slices before the new base files.
        """
        for commit in timeline.commits() if self.active.layout > 1 else ():
            if commit.completed_at < self.instant and commit.requested_time not in self._known:
                raise ConflictError(
                    f"{commit.action} {commit.requested_time} appeared after the plan of {self.action} {self.instant} "
                    "was checked, but completed before: the plan may lack its rows",
                    path=self.active.path_of(commit),
                    remedy="run it again: that checks the plan again",
                )

    def _warn_of_change_logs(self, plan: CompactionPlan) -> None:
        if self.context.config.change_logs is not None and any(map(_is_logged, plan.operations)):
            log.warning(
                "the table has change logs (%s), and compaction %s writes none: Flink's readers that take changes from "
                "those of compactions (read.cdc.from.changelog) stop at it; let Hudi compact the table where they are "
                "used",
                CHANGE_LOGS.name,
                self.instant,
            )

    def _schema(self, timeline: Timeline) -> AvroSchema:
        return table_schema(self.context.storage, self.context.config, timeline)


def _is_logged(item: CompactionOperation) -> bool:
    """Whether no write has a change log of such a slice's new rows (HoodieMergeHandleFactory). Hudi 1.2.0 writes one
    whenever it compacts a slice of a table with change logs.
    """
    return item.base_file is None or BUCKET_ID.match(item.file_id) is not None


def compaction_metadata(
    job: RewriteJob[CompactionPlan], stats: Sequence[WriteStat], schema: AvroSchema, timeline: Timeline
) -> CommitMetadata:
    """Returns the commit of a compaction or log compaction. `schema` is the table's, without meta fields; `timeline` is
    that of the start. In layout 1 the commit has the streamers' checkpoints of the last commit before the instant.
    Those of a later commit would make the streamer skip its input if that commit is rolled back. In layout 2 streamers
    look back past commits without checkpoints.
    """
    last = timeline.commits().before(job.instant).last() if job.active.layout == 1 else None
    extra = {} if last is None else job.active.read_commit(last).extra_metadata
    carried = {key: value for key, value in extra.items() if value is not None and key.startswith(_CHECKPOINTS)}
    return commit_metadata(job, stats, schema, {**carried, **provenance(job.owner)}, compacted=True)


def build_units(
    target: SliceTarget, operations: Sequence[CompactionOperation], sizes: Mapping[str, int]
) -> list[CompactionUnit]:
    """Returns one unit per operation. `sizes` are the bytes of log files by path; if empty, tasks ask for them."""
    units = []
    for item in operations:
        of_logs = tuple(sizes[join(item.partition, name)] for name in item.log_files) if sizes else ()
        units.append(CompactionUnit(target, item, of_logs))
    return units


def check_counts(operation: CompactionOperation, result: CompactedSlice, source: str) -> None:
    """Raises ExecutionError, naming `source`, where the rows of a result do not add up."""
    counts, stat = result.records, result.stat
    if stat is None:
        if operation.base_file is not None:
            raise unproved("the operation has a base file, but the engine wrote none", source)
        return
    base, deleted, inserted, written = counts.base, counts.deleted, counts.inserted, result.written
    merged = counts.updated + counts.kept + deleted + inserted + counts.missed_deletes
    if min(base, counts.updated, counts.kept, deleted, inserted, counts.missed_deletes, written) < 0:
        raise unproved(f"the result's row counts are not counts: {counts}", source)
    if not written == base + inserted - deleted == stat.num_writes or (operation.base_file is None and base):
        what = f"{base} base rows, {inserted} inserted and {deleted} deleted do not make the {stat.num_writes} rows "
        raise unproved(f"{what}written", source)
    # A key that the base holds twice is met twice, hence no equality.
    if merged < stat.total_updated_records_compacted:
        what = f"the logs hold {stat.total_updated_records_compacted} keys, of which {merged} were merged"
        raise unproved(what, source)


class LogCompactionJob(CompactionJob):
    """Runs a log compaction that a writer or log_planner.py has planned."""

    action = Action.LOG_COMPACTION
    operation = Operation.LOG_COMPACT
    conflicts_as = Action.LOG_COMPACTION

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.find_files = partial(log_files_of, by_name=run.context.config.features.log_name_has_delta_commit)

    def check(self) -> None:
        self.required = check_log_compaction(self.context)

    def find(self, timeline: Timeline) -> Instant:
        """Returns the log compaction in any state. A completed one has a write's action; its metadata tells."""
        instant = timeline.find(self.instant, self.action)
        if instant is None or not (
            instant.pending_action == self.action
            or (instant.is_completed and self.active.read_commit(instant).operation_type == self.operation)
        ):
            raise self.absent("log compaction")
        return instant

    def plan(self, timeline: Timeline) -> CompactionPlan:
        """Reads and checks the plan. Raises as CompactionJob.plan, and TimelineError (check_not_overtaken)."""
        plan = self.active.read_plan(self.instant, self.action)
        path = self.active.path(self.instant, self.action, State.REQUESTED)
        check_operations(plan.operations, path=path)
        check_schema_of_latest(self.context, timeline)
        self._schema(timeline)
        check_not_overtaken(timeline, self.instant, path=path)
        check_planned(self.context, timeline, self.instant, plan.operations, path=path, before=self.instant)
        return plan

    def execute(self, plan: CompactionPlan, held: Claim) -> Completion[Rewritten]:
        context, run, timeline = self.context, self.run, self.active.load()
        attempt = Attempt(self, self.file_groups(plan), held, timeline)
        with attempt.writing():
            schema = self._schema(timeline)
            order = BlockOrder.of(context, timeline, self.instant)
            policy = MergePolicy.for_table(context.config, context.options)
            target = SliceTarget.of(self, schema, timeline, attempt.requirements, policy)
            # Rows of log blocks may be ordered by a column that base files lack.
            target = replace(target, files=replace(target.files, schema=schema))
            units = [LogCompactionUnit(target, item, order) for item in plan.operations]
            results = run.engine.run(merge_operation, units, run_epoch=held.epoch, progress=run.progress)
        rewritten = prove_operations(
            plan.operations,
            results,
            self.instant,
            check_copied_counts,
            is_base=False,
            with_statistics=attempt.with_statistics,
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


def check_log_compaction(context: TableContext) -> StatisticsRequirements | None:
    """Checks the table as check_table does, and returns what it returns. Also raises UnsupportedError where a merge
    makes one row of two: some readers would merge them again.
    """
    required = check_table(context)
    policy = MergePolicy.for_table(context.config, context.options)
    if policy.fill is not Fill.NOTHING or policy.rules is Rules.FUNCTION:
        raise UnsupportedError(
            "rows of this table are merged field by field: log compaction copies whole rows only",
            path=context.config.path,
            remedy="compact it instead",
        )
    return required


def check_not_overtaken(timeline: Timeline, instant: str, *, path: str) -> None:
    """Raises TimelineError for a compaction, in any state, that was requested after the log compaction. The merged rows
    would come on top of its base files, which hold newer rows (BaseHoodieTableServiceClient.logCompact).
    """
    for item in timeline.of_actions(Action.COMPACTION, Action.COMMIT):
        if item.requested_time > instant:
            raise TimelineError(
                f"{item.pending_action} {item.requested_time} was requested after log compaction {instant}",
                path=path,
                remedy=f"drop the plan: hudictl unschedule TABLE {instant}",
            )


def check_copied_counts(operation: CompactionOperation, result: MergedLogs, source: str) -> None:
    """Raises ExecutionError, naming `source`, unless the new file holds each key of the logs once."""
    if result.stat is None:
        return
    records, deletes, keys = result.records, result.deletes, result.keys
    if min(records, deletes, keys) < 0 or records + deletes != keys or records != result.stat.num_writes:
        raise unproved(f"{keys} keys, {records} records and {deletes} deletes do not agree", source)
