"""Compaction: the log files of each file slice that the plan names are merged into a new base file."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from hudi_core.codec.avro.schema import AvroSchema, without_fields
from hudi_core.config.write_config import WriteConfig
from hudi_core.errors import ConfigError, FormatError
from hudi_core.filegroup.merge.merge_mode import reads_as_hudi_1
from hudi_core.filegroup.merge.table_policy import MergePolicy
from hudi_core.filegroup.read.base_file import refuse_skeleton
from hudi_core.filegroup.read.log_scan import CommittedInstants
from hudi_core.filegroup.read.planned_slices import PlannedSlice
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.filegroup.write.buckets import BUCKET_ID
from hudi_core.metadata_table.extract.data_file import StatisticsRequirements
from hudi_core.metadata_table.records.file_statistics import FileStatistics
from hudi_core.model.names import FileGroupId, parse_base_file
from hudi_core.model.partition import join
from hudi_core.services.compaction.merge_slice import CompactedSlice, CompactionUnit, compact_operation
from hudi_core.services.context import TableContext, provenance
from hudi_core.services.lifecycle import Run
from hudi_core.services.rewriting.checks import (
    check_merged_table,
    check_operations,
    check_planned,
    check_schema_of_latest,
)
from hudi_core.services.rewriting.job import RewriteJob, Rewritten, Stats
from hudi_core.services.rewriting.new_file_groups import base_file_of, by_partition
from hudi_core.services.rewriting.other_writers import check_plan_seen
from hudi_core.services.rewriting.proof import unproved
from hudi_core.storage.base import FileInfo
from hudi_core.timeline.actions.commit import SCHEMA_KEY, CommitMetadata, Operation
from hudi_core.timeline.actions.compaction import CompactionOperation, CompactionPlan
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim import Claim
from hudi_core.transaction.owner import Owner

_CHECKPOINTS = ("deltastreamer.checkpoint.", "streamer.checkpoint.")
"""Extra metadata in which Hudi's streamers keep how far they have read; they look for it on the latest commit first."""
_CHANGE_LOGS = "hoodie.table.cdc.enabled"

log = logging.getLogger(__name__)


class CompactionJob(RewriteJob[CompactionPlan, CompactedSlice]):
    """See Job. The plan is a writer's, or of planner.py."""

    action = Action.COMPACTION
    operation = Operation.COMPACT
    conflicts_as = Action.COMPACTION

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._written: AvroSchema = {}
        """The table's schema, by which the units write."""

    def check(self) -> None:
        """See checks.check_merged_table."""
        check_merged_table(self.context)

    def find(self, timeline: Timeline) -> Instant:
        """See Job."""
        found = timeline.find(self.instant, Action.COMPACTION)
        if found is None or not self._is_compaction(found):
            raise ConfigError(
                f"the timeline holds no compaction at instant {self.instant}",
                path=self.active.folder,
                remedy="list the instants with `hudictl timeline`",
            )
        return found

    def _is_compaction(self, found: Instant) -> bool:
        """A completed compaction and a write to a copy-on-write table have one action; the pending files differ."""
        if found.pending_action == Action.COMMIT and found.is_completed:
            return self.active.read_commit(found).compacted
        return found.pending_action == Action.COMPACTION

    def plan(self, timeline: Timeline) -> CompactionPlan:
        """The stored plan. Raises FormatError, StorageNotFoundError, CorruptFileError, UnsupportedError (checks),
        ConflictError (writers).
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
        self._listed = check_planned(self.context, timeline, self.instant, self.planned(plan), path=path)
        return plan

    def planned(self, plan: CompactionPlan) -> list[PlannedSlice]:
        """See RewriteJob."""
        return [PlannedSlice(item.file_group, item.base_file, item.log_files) for item in plan.operations]

    def file_groups(self, plan: CompactionPlan) -> frozenset[FileGroupId]:
        """See RewriteJob."""
        return frozenset(operation.file_group for operation in plan.operations)

    def rewrite(
        self, plan: CompactionPlan, timeline: Timeline, requirements: StatisticsRequirements | None, held: Claim
    ) -> list[CompactedSlice]:
        """See RewriteJob. One unit for each operation of the plan."""
        if self.context.config.raw.get(_CHANGE_LOGS, "").lower() == "true" and any(map(_is_logged, plan.operations)):
            log.warning(
                "the table has change logs (%s), and compaction %s writes none: Flink's readers that take changes from "
                "those of compactions (read.cdc.from.changelog) stop at it; let Hudi compact the table where they are "
                "used",
                _CHANGE_LOGS,
                self.instant,
            )
        self._written = self._schema(timeline)
        stored = without_fields(self._written, self.context.config.dropped_columns)
        units = build_units(self.context, self.instant, plan, stored, timeline, requirements, self._listed)
        return self.run.engine.run(compact_operation, units, run_epoch=held.epoch, progress=self.run.progress)

    def corrupt_blocks(self, results: list[CompactedSlice]) -> int:
        """See RewriteJob."""
        return sum(result.corrupt for result in results)

    def prove(self, plan: CompactionPlan, results: list[CompactedSlice], *, with_statistics: bool) -> Rewritten:
        """See RewriteJob."""
        return prove(plan, results, self.instant, with_statistics=with_statistics)

    def metadata(self, plan: CompactionPlan, stats: Stats, timeline: Timeline) -> CommitMetadata:
        """See RewriteJob."""
        carried = carried_checkpoints(timeline, self.instant, self.active)
        return compaction_metadata(stats, self._written, carried, self.owner, self.operation)

    def _schema(self, timeline: Timeline) -> AvroSchema:
        return table_schema(self.context.storage, self.context.config, timeline)


def _is_logged(item: CompactionOperation) -> bool:
    """Whether Hudi 1.2.0 writes a change log where it compacts such a slice of a table of version 9 that has them."""
    return item.base_file is None or BUCKET_ID.match(item.file_id) is not None


def compaction_metadata(
    stats: Sequence[WriteStat],
    schema: Mapping[str, Any],
    carried: Mapping[str, str],
    owner: Owner,
    operation: str = Operation.COMPACT,
) -> CommitMetadata:
    """The metadata of the commit of a compaction or log compaction (`operation`): `schema` is the table's Avro schema
    without meta fields, `carried` the streamers' checkpoints.
    """
    text = json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
    return CommitMetadata(
        partition_to_write_stats=by_partition(stats),
        compacted=True,
        operation_type=operation,
        extra_metadata={SCHEMA_KEY: text, **carried, **provenance(owner)},
    )


def carried_checkpoints(timeline: Timeline, instant: str, active: ActiveTimeline) -> dict[str, str]:
    """The streamers' checkpoints of the last commit before `instant`; in layout 2 none.

    Not of a later one: if that is rolled back, the copied checkpoint would make the streamer skip its input. Streamers
    of layout 2 look back past commits without one.
    """
    last = timeline.commits().before(instant).last() if active.layout == 1 else None
    if last is None:
        return {}
    extra = active.read_commit(last).extra_metadata
    return {key: value for key, value in extra.items() if value is not None and key.startswith(_CHECKPOINTS)}


def build_units(
    context: TableContext,
    instant: str,
    plan: CompactionPlan,
    schema: AvroSchema,
    timeline: Timeline,
    requirements: StatisticsRequirements | None,
    listed: Mapping[str, Sequence[FileInfo]],
) -> list[CompactionUnit]:
    """One unit per operation, in the plan's order. `timeline` decides which log blocks count; `schema` is the table's,
    without meta fields. `requirements`: see CompactionUnit. `listed` are the files of the plan's partitions.
    """
    committed = CommittedInstants.of(timeline)
    config, as_hudi_1 = WriteConfig.of(context.options), reads_as_hudi_1(context.config)
    policy = MergePolicy.for_table(context.config, context.options)
    # In layout 1 a writer may append to a log file until its write completes: there its task asks for the size.
    grow = not context.config.features.completion_time_in_name
    sizes = {info.path: info.size for files in listed.values() for info in files}
    return [
        CompactionUnit(
            operation,
            uri=context.uri,
            storage_options=context.storage_options,
            instant=instant,
            committed=committed,
            schema=schema,
            policy=policy,
            config=config,
            as_hudi_1=as_hudi_1,
            requirements=requirements,
            sizes=() if grow else tuple(sizes[join(operation.partition, name)] for name in operation.log_files),
        )
        for operation in plan.operations
    ]


def prove(plan: CompactionPlan, results: Sequence[CompactedSlice], instant: str, *, with_statistics: bool) -> Rewritten:
    """The new files of the results, once they are shown to cover the plan's operations exactly and to lose or double no
    row.

    Raises ExecutionError otherwise. An operation whose log blocks were all rolled back and that has no base file has no
    result file.
    """
    if len(results) != len(plan.operations):
        what = f"the plan has {len(plan.operations)} operations, the engine returned {len(results)} results"
        raise unproved(what)
    stats: list[WriteStat] = []
    statistics: list[FileStatistics] = []
    for operation, result in zip(plan.operations, results, strict=True):
        stat = _prove_one(operation, result, instant)
        if stat is not None:
            stats.append(stat)
            if with_statistics:
                statistics.append(_statistics_of(stat, result))
    return Rewritten(list(map(base_file_of, stats)), stats, statistics)


def _statistics_of(stat: WriteStat, result: CompactedSlice) -> FileStatistics:
    source = f"result of {join(stat.partition_path, stat.file_id)}"
    statistics = result.statistics
    if statistics is None:
        raise unproved("the result has no statistics of the file for the metadata table", source)
    expected = base_file_of(stat)
    if statistics.file != expected:
        raise unproved(f"the engine wrote {expected}, and read {statistics.file}", source)
    return statistics


def _prove_one(operation: CompactionOperation, result: CompactedSlice, instant: str) -> WriteStat | None:
    source = f"result of {join(operation.partition, operation.file_id)}"
    stat = result.stat
    if stat is None:
        if operation.base_file is not None:
            raise unproved("the operation has a base file, but the engine wrote none", source)
        return None
    _check_identity(operation, stat, instant, source)
    _check_counts(operation, stat, result, source)
    return stat


def _check_identity(operation: CompactionOperation, stat: WriteStat, instant: str, source: str) -> None:
    partition, _, name = stat.path.rpartition("/")
    try:
        parsed = parse_base_file(name)
    except FormatError as error:
        raise unproved(f"the engine returned {stat.path!r}: {error.message}", source) from error
    expected = (operation.partition, operation.partition, operation.file_id, operation.file_id, instant)
    if (
        partition,
        stat.partition_path,
        parsed.file_id,
        stat.file_id,
        parsed.instant,
    ) != expected or stat.file_size_in_bytes <= 0:
        raise unproved(f"the engine returned {stat.path!r} of {stat.file_size_in_bytes} bytes", source)


def _check_counts(operation: CompactionOperation, stat: WriteStat, result: CompactedSlice, source: str) -> None:
    counts = result.records
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
