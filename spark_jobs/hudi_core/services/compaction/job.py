"""Compaction: the log files of each file slice that the plan names are merged into a new base file."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from hudi_core.codec.avro.schema import AvroSchema, without_fields
from hudi_core.errors import ConfigError
from hudi_core.filegroup.read.base_file import refuse_skeleton
from hudi_core.filegroup.read.planned_slices import PlannedSlice
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.filegroup.write.buckets import BUCKET_ID
from hudi_core.metadata_table.extract.data_file import StatisticsRequirements
from hudi_core.model.names import FileGroupId
from hudi_core.model.partition import join
from hudi_core.services.compaction.checks import (
    check_merged_table,
    check_operations,
    check_planned,
    check_schema_of_latest,
)
from hudi_core.services.compaction.merge_slice import CompactedSlice, compact_operation
from hudi_core.services.compaction.units import build_units, prove
from hudi_core.services.context import provenance
from hudi_core.services.lifecycle import Run
from hudi_core.services.new_file_groups import by_partition
from hudi_core.services.rewrite import RewriteJob, Rewritten, Stats
from hudi_core.services.unaware_writers import check_plan_seen
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
