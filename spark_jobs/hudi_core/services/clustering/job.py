"""Clustering: the rows of small or unordered file slices go into new file groups, which replace those of the plan."""

from __future__ import annotations

import json
from collections.abc import Sequence, Set
from dataclasses import replace
from functools import partial

from hudi_core.codec.avro.schema import without_fields
from hudi_core.config.write_config import WriteConfig
from hudi_core.errors import ConfigError, StorageNotFoundError
from hudi_core.filegroup.merge.merge_mode import reads_as_hudi_1
from hudi_core.filegroup.read.log_scan import CommittedInstants
from hudi_core.filegroup.read.planned_slices import PlannedSlice
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.metadata_table.extract.data_file import StatisticsRequirements
from hudi_core.metadata_table.partitions.row_level import SliceChange
from hudi_core.metadata_table.records.file_statistics import DataFileRef
from hudi_core.model.names import COMMIT_SEQNO, COMMIT_TIME, FileGroupId
from hudi_core.request.results import InstantResult
from hudi_core.services.clustering.checks import (
    SINGLE_FILE,
    check_parameters,
    check_plan,
    check_untouched,
    merge_policy,
    order_of,
    source_commits,
    target_bytes,
)
from hudi_core.services.clustering.copied_groups import Clustered
from hudi_core.services.clustering.units import Group, Sizes, Work, groups_of, prove
from hudi_core.services.context import provenance
from hudi_core.services.lifecycle import Run
from hudi_core.services.rewriting.checks import (
    check_no_plans_on,
    check_not_undone,
    check_planned,
    check_schema_of_latest,
    check_table,
)
from hudi_core.services.rewriting.job import RewriteJob, Rewritten, Stats
from hudi_core.services.rewriting.new_file_groups import NewFiles, by_partition, moved_to
from hudi_core.services.rewriting.other_writers import check_plan_seen
from hudi_core.services.rewriting.slice_rows import ClusteringTarget
from hudi_core.timeline.actions.commit import SCHEMA_KEY, CommitMetadata, Operation
from hudi_core.timeline.actions.replacecommit import ClusteringPlan, encode_inflight_clustering
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.pending_plans import is_clustering, read_clustering_plan
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim import Claim
from hudi_core.transaction.commit import CheckOwner, Precondition, Publish


class ClusteringJob(RewriteJob[ClusteringPlan, Clustered]):
    """See Job. The plan is a writer's, or of planner.py."""

    operation = Operation.CLUSTER
    conflicts_as = Action.CLUSTERING

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.action = clustering_action(self.active.layout)
        self._schema_text = ""
        self._groups: list[Group] = []
        self._sizes: Sizes = {}
        self._sources: Set[str] = frozenset()

    def check(self) -> None:
        """See compaction.checks.check_table."""
        check_table(self.context)

    def find(self, timeline: Timeline) -> Instant:
        """See Job."""
        found = timeline.find(self.instant, self.action)
        if found is None or not self._is_clustering(found):
            raise ConfigError(
                f"the timeline holds no clustering at instant {self.instant}",
                path=self.active.folder,
                remedy="list the instants with `hudictl timeline`",
            )
        return found

    def _is_clustering(self, found: Instant) -> bool:
        """A clustering and an overwrite complete as one action; in layout 1 they are pending as one as well."""
        if found.is_completed:
            return self.active.read_commit(found).operation_type == Operation.CLUSTER
        return is_clustering(self.active, found)

    def plan(self, timeline: Timeline) -> ClusteringPlan:
        """The stored plan. Raises FormatError, StorageNotFoundError, CorruptFileError, UnsupportedError (checks),
        ConfigError for its sort columns, ConflictError where a commit has changed its file groups since, and where a
        compaction or log compaction is pending on one: its latest slice holds what was written since alone, and the
        rows below that would be replaced with it.
        """
        path = self.active.path(self.instant, self.action, State.REQUESTED)
        plan = read_clustering_plan(self.active, self.find(timeline))
        if plan is None:
            raise StorageNotFoundError("the clustering has no plan any more", path=path)
        check_plan(self.context, plan, path=path)
        merge_policy(self.context, plan)
        check_schema_of_latest(self.context, timeline)
        schema = table_schema(self.storage, self.context.config, timeline)
        dropped = self.context.config.dropped_columns
        check_parameters(plan, self.context.options, schema, dropped, path=path, instant=self.instant)
        check_plan_seen(self.context, timeline, self.instant, self.action)
        groups = self.file_groups(plan)
        check_untouched(self.context, timeline, self.instant, groups, None)
        check_no_plans_on(self.context, timeline, groups.__contains__, (Action.COMPACTION, Action.LOG_COMPACTION))
        self._sources = source_commits(self.context, timeline, plan)
        listed = check_planned(self.context, timeline, self.instant, self.planned(plan), path=path)
        sizes = {(partition, info.name): info.size for partition, files in listed.items() for info in files}
        self._sizes = {
            (item.partition, item.file_id): sum(
                sizes[item.partition, name] for name in (item.base_file, *item.data_logs) if name is not None
            )
            for item in plan.slices
        }
        return plan

    def planned(self, plan: ClusteringPlan) -> list[PlannedSlice]:
        """See RewriteJob."""
        return [PlannedSlice(item.file_group, item.base_file, item.data_logs) for item in plan.slices]

    def changed_columns(self, plan: ClusteringPlan) -> frozenset[str]:
        """See RewriteJob."""
        return frozenset() if plan.preserves_metadata else frozenset({COMMIT_TIME, COMMIT_SEQNO})

    def file_groups(self, plan: ClusteringPlan) -> frozenset[FileGroupId]:
        """See RewriteJob: those that are replaced."""
        return frozenset(plan.file_groups())

    def inflight_content(self, plan: ClusteringPlan) -> bytes:
        """See RewriteJob: the file groups that are replaced."""
        return encode_inflight_clustering(plan, layout=self.active.layout)

    def rewrite(
        self, plan: ClusteringPlan, timeline: Timeline, requirements: StatisticsRequirements | None, held: Claim
    ) -> list[Clustered]:
        """See RewriteJob."""
        context = self.context
        schema = table_schema(context.storage, context.config, timeline)
        self._schema_text = json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
        by_file = plan.strategy_class.rpartition(".")[2] == SINGLE_FILE
        files = NewFiles(
            self.instant,
            without_fields(schema, context.config.dropped_columns),
            WriteConfig.of(context.options),
            1 << 62 if by_file else target_bytes(plan, context.options),
            as_hudi_1=reads_as_hudi_1(context.config),
            stamps_rows=context.config.populate_meta_fields and not plan.preserves_metadata,
            requirements=requirements,
            has_meta=context.config.populate_meta_fields,
        )
        target = ClusteringTarget(
            context.uri,
            dict(context.storage_options),
            files,
            CommittedInstants.of(timeline),
            merge_policy(context, plan),
        )
        self._groups = groups_of(plan, by_file=by_file)
        work = Work(self.run.engine, held.epoch, target, self._sizes, self.run.progress)
        order = order_of(plan.strategy_params, context.options, schema, context.config.dropped_columns)
        return work.join(self._groups) if order is None else work.sort(self._groups, order)

    def corrupt_blocks(self, results: list[Clustered]) -> int:
        """See RewriteJob."""
        return sum(count.corrupt for result in results for count in result.counts)

    def prove(self, plan: ClusteringPlan, results: list[Clustered], *, with_statistics: bool) -> Rewritten:
        """See RewriteJob."""
        return prove(plan, self._groups, results, self.instant, with_statistics=with_statistics)

    def moved_rows(self, files: Sequence[DataFileRef]) -> list[SliceChange]:
        """See RewriteJob: the rows of every new file."""
        return moved_to(files, self.instant)

    def preconditions(self, plan: ClusteringPlan, timeline: Timeline) -> tuple[Precondition, ...]:
        """See RewriteJob: no commit has changed the file groups meanwhile, whatever its writer was told to reject, and
        none was rolled back whose rows are in them.
        """
        groups = plan.file_groups()
        return (
            lambda now: check_untouched(self.context, now, self.instant, groups, timeline),
            partial(check_not_undone, self.context, instant=self.instant, known=self._sources),
        )

    def metadata(self, plan: ClusteringPlan, stats: Stats, timeline: Timeline) -> CommitMetadata:
        """See RewriteJob."""
        replaced: dict[str, list[str]] = {}
        for item in plan.slices:
            replaced.setdefault(item.partition, []).append(item.file_id)
        return CommitMetadata(
            by_partition(stats),
            operation_type=Operation.CLUSTER,
            extra_metadata={SCHEMA_KEY: self._schema_text, **provenance(self.owner)},
            replaced_file_ids={partition: tuple(ids) for partition, ids in sorted(replaced.items())},
        )

    def _publish(self, publish: Publish | None, check: CheckOwner) -> None:
        """See RewriteJob. The inflight file is then empty, as Hudi's: writers look into it under this lock, and behind
        it 1.x archives its content in place of the plan, or 0.15 fails on what Hudi's downgrade to version 6 leaves.
        """
        super()._publish(publish, check)
        self.active.empty_inflight(self.instant, self.action)

    def result(self, done: Stats | None, seconds: float) -> InstantResult:
        """See RewriteJob; in layout 1, too, it is called a clustering."""
        return replace(super().result(done, seconds), action=Action.CLUSTERING)


def clustering_action(layout: int) -> str:
    """The pending action of clusterings on the timeline."""
    return Action.REPLACE_COMMIT if layout == 1 else Action.CLUSTERING
