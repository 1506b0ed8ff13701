"""Compaction: the log files of each file slice that the plan names are merged into a new base file."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.engine.protocol import UnitTask
from hudi_core.errors import ConfigError
from hudi_core.filegroup.merge.policy import MergePolicy
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.metadata_table.extract.data_file import StatisticsRequirements
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.model.names import FileGroupId
from hudi_core.services.compaction.checks import (
    check_files,
    check_logs,
    check_metadata,
    check_operations,
    check_schema_evolution,
    check_table,
)
from hudi_core.services.compaction.commit_metadata import carried_checkpoints, compaction_metadata, encode_metadata
from hudi_core.services.compaction.merge_slice import CompactedSlice, CompactionUnit, compact_operation
from hudi_core.services.compaction.units import base_file_ref, build_units, prove
from hudi_core.services.context import TableContext
from hudi_core.services.lifecycle import Run
from hudi_core.services.rewrite import RewriteJob, Rewritten, Stats
from hudi_core.services.service import InstantService
from hudi_core.timeline.actions.commit import CommitMetadata, Operation
from hudi_core.timeline.actions.compaction import CompactionPlan
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Work:
    """What the checks established: how rows merge, and a plan whose files are all there."""

    policy: MergePolicy
    plan: CompactionPlan


class CompactionJob(RewriteJob[Work, CompactionUnit, CompactedSlice]):
    """See Job. The plan is the writer's."""

    action = Action.COMPACTION
    operation = Operation.COMPACT

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._written: AvroSchema = {}
        """The schema that the units write by."""

    def check(self) -> None:
        """See checks.check_table."""
        check_table(self.context)

    def find(self, timeline: Timeline) -> Instant:
        """See Job."""
        found = timeline.find(self.instant, Action.COMPACTION)
        if (
            found is None
            or found.pending_action not in (Action.COMPACTION, Action.COMMIT)
            or self._is_plain_commit(found)
        ):
            raise ConfigError(
                f"the timeline holds no compaction at instant {self.instant}",
                path=self.active.folder,
                remedy="list the instants with `hudictl timeline`",
            )
        return found

    def _is_plain_commit(self, found: Instant) -> bool:
        """A write to a copy-on-write table has the class of a compaction; its pending files distinguish them, or else
        its metadata.
        """
        if found.pending_action == Action.COMPACTION:
            return False
        return not found.is_completed or not self.active.read_commit(found).compacted

    def plan(self, timeline: Timeline) -> Work:
        """The stored plan. Raises FormatError, StorageNotFoundError, CorruptFileError, UnsupportedError (checks)."""
        plan = self.active.read_plan(self.instant)
        check_operations(plan.operations, path=self.active.path(self.instant, Action.COMPACTION, State.REQUESTED))
        latest = timeline.commits().last()
        if latest is not None:
            check_schema_evolution(self.active.read_commit(latest), path=self.active.path_of(latest))
        self._schema(timeline)
        check_files(self.storage, plan.operations)
        check_logs(self.storage, plan.operations)
        if self.context.has_metadata_table:
            check_metadata(MetadataTable(self.storage, self.context.config, timeline), plan.operations)
        return Work(MergePolicy.for_table(self.context.config, self.context.options), plan)

    def partitions(self, plan: Work) -> frozenset[str]:
        """See RewriteJob."""
        return frozenset(operation.partition for operation in plan.plan.operations)

    def file_groups(self, plan: Work) -> frozenset[FileGroupId]:
        """See RewriteJob."""
        return frozenset(operation.file_group for operation in plan.plan.operations)

    @property
    def task(self) -> UnitTask[CompactionUnit, CompactedSlice]:
        """See RewriteJob."""
        return compact_operation

    def units(
        self, plan: Work, timeline: Timeline, requirements: StatisticsRequirements | None
    ) -> list[CompactionUnit]:
        """See RewriteJob. One for each operation of the plan."""
        self._written = self._schema(timeline)
        return build_units(self.context, self.instant, plan.plan, self._written, plan.policy, timeline, requirements)

    def prove(self, plan: Work, results: list[CompactedSlice], *, with_statistics: bool) -> Rewritten:
        """See RewriteJob."""
        proven = prove(plan.plan, results, self.instant, with_statistics=with_statistics)
        return Rewritten(list(map(base_file_ref, proven.stats)), proven.stats, proven.statistics)

    def metadata(self, plan: Work, stats: Stats, timeline: Timeline) -> CommitMetadata:
        """See RewriteJob."""
        carried = carried_checkpoints(timeline, self.instant, self.active)
        return compaction_metadata(stats, self._written, carried, self.owner)

    def encode(self, metadata: CommitMetadata) -> bytes:
        """See RewriteJob."""
        return encode_metadata(metadata, self.context.config.features)

    def _schema(self, timeline: Timeline) -> AvroSchema:
        return table_schema(self.context.storage, self.context.config, timeline)


class CompactionService(InstantService):
    """See service.InstantService. This release plans no compaction."""

    name = "compaction"
    action = Action.COMPACTION

    def pending(self, context: TableContext, timeline: Timeline) -> list[str]:
        """The compactions that are requested or inflight, oldest first."""
        return [instant.requested_time for instant in timeline.pending_compactions()]

    def job(self, run: Run) -> CompactionJob:
        """See InstantService."""
        return CompactionJob(run)
