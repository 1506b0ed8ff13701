"""Clustering: the rows of small or unordered file slices go into new file groups, which replace those of the plan."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from functools import partial

from hudi_core.errors import StorageNotFoundError
from hudi_core.filegroup.read.log_scan import CommittedInstants
from hudi_core.filegroup.read.planned_slices import PlannedSlice
from hudi_core.filegroup.read.schema_resolver import table_schema
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
from hudi_core.services.clustering.slice_rows import ClusteringTarget
from hudi_core.services.clustering.units import Sizes, Work, groups_of, prove
from hudi_core.services.context import provenance
from hudi_core.services.lifecycle import Completion, Run
from hudi_core.services.rewriting.checks import (
    check_no_plans_on,
    check_not_undone,
    check_planned,
    check_schema_of_latest,
    check_table,
)
from hudi_core.services.rewriting.job import Attempt, RewriteJob, commit_metadata
from hudi_core.services.rewriting.new_file_groups import NewFiles, moved_to
from hudi_core.services.rewriting.other_writers import check_plan_seen
from hudi_core.services.rewriting.proof import Rewritten
from hudi_core.timeline.actions.commit import Operation
from hudi_core.timeline.actions.replacecommit import ClusteringPlan, encode_inflight_clustering
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.pending_plans import is_clustering, read_clustering_plan
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim import Claim


class ClusteringJob(RewriteJob[ClusteringPlan]):
    """The plan is a writer's, or of planner.py."""

    operation = Operation.CLUSTER
    conflicts_as = Action.CLUSTERING

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.action = clustering_action(self.active.layout)
        self._sizes: Sizes = {}
        self._sources: Set[str] = frozenset()

    def check(self) -> None:
        check_table(self.context)

    def find(self, timeline: Timeline) -> Instant:
        instant = timeline.find(self.instant, self.action)
        if instant is None or not self._is_clustering(instant):
            raise self.absent("clustering")
        return instant

    def _is_clustering(self, instant: Instant) -> bool:
        """A clustering and an overwrite complete as one action; in layout 1 they are pending as one as well."""
        if instant.is_completed:
            return self.active.read_commit(instant).operation_type == Operation.CLUSTER
        return is_clustering(self.active, instant)

    def plan(self, timeline: Timeline) -> ClusteringPlan:
        """Raises FormatError, StorageNotFoundError, CorruptFileError, UnsupportedError (checks), ConfigError for sort
        columns, ConflictError for a commit to its file groups, and a pending compaction: its latest slice holds later
        rows alone.
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
        listed = check_planned(self.context, timeline, self.instant, planned_slices(plan), path=path)
        sizes = {(partition, info.name): info.size for partition, files in listed.items() for info in files}
        self._sizes = {
            (item.partition, item.file_id): sum(
                sizes[item.partition, name] for name in (item.base_file, *item.data_logs) if name is not None
            )
            for item in plan.slices
        }
        return plan

    def file_groups(self, plan: ClusteringPlan) -> frozenset[FileGroupId]:
        return frozenset(plan.file_groups())

    def inflight_content(self, plan: ClusteringPlan) -> bytes:
        return encode_inflight_clustering(plan, layout=self.active.layout)

    def execute(self, plan: ClusteringPlan, held: Claim) -> Completion[Rewritten]:
        context, timeline = self.context, self.active.load()
        attempt = Attempt(self, self.file_groups(plan), held, timeline)
        by_file = plan.strategy_class.rpartition(".")[2] == SINGLE_FILE
        groups = groups_of(plan, by_file=by_file)
        with attempt.writing():
            schema = table_schema(context.storage, context.config, timeline)
            files = NewFiles.of(
                context,
                self.instant,
                schema,
                1 << 62 if by_file else target_bytes(plan, context.options),
                attempt.requirements,
                stamps_rows=not plan.preserves_metadata,
            )
            committed, policy = CommittedInstants.of(timeline), merge_policy(context, plan)
            target = ClusteringTarget(context.uri, dict(context.storage_options), files, committed, policy)
            work = Work(self.run.engine, held.epoch, target, self._sizes, self.run.progress)
            order = order_of(plan.strategy_params, context.options, schema, context.config.dropped_columns)
            results = work.join(groups) if order is None else work.sort(groups, order)
        rewritten = prove(plan, results, self.instant, with_statistics=attempt.with_statistics)
        attempt.keep(rewritten)
        changed = frozenset() if plan.preserves_metadata else frozenset({COMMIT_TIME, COMMIT_SEQNO})
        attempt.check_rows(rewritten, planned_slices(plan), changed)
        replaced: dict[str, list[str]] = {}
        for item in plan.slices:
            replaced.setdefault(item.partition, []).append(item.file_id)
        replaced_ids = {partition: tuple(ids) for partition, ids in sorted(replaced.items())}
        return attempt.completion(
            rewritten,
            commit_metadata(self, rewritten.stats, schema, provenance(self.owner), replaced_file_ids=replaced_ids),
            moved=moved_to(rewritten.files, self.instant),
            # Whatever other writers were told to reject, no commit has changed the file groups meanwhile, and none was
            # rolled back whose rows are in them.
            preconditions=(
                partial(self._check_untouched, plan, timeline),
                partial(check_not_undone, context, instant=self.instant, known=self._sources),
            ),
            # Writers look into the inflight file under this lock, and behind it 1.x archives its content in place of
            # the plan, or 0.15 fails on what Hudi's downgrade to version 6 leaves: it is then empty, as Hudi's.
            then=partial(self.active.empty_inflight, self.instant, self.action),
        )

    def _check_untouched(self, plan: ClusteringPlan, known: Timeline, now: Timeline) -> None:
        check_untouched(self.context, now, self.instant, plan.file_groups(), known)

    def result(self, done: Rewritten | None, seconds: float) -> InstantResult:
        """In layout 1, too, it is called a clustering."""
        return replace(super().result(done, seconds), action=Action.CLUSTERING)


def planned_slices(plan: ClusteringPlan) -> list[PlannedSlice]:
    return [PlannedSlice(item.file_group, item.base_file, item.data_logs) for item in plan.slices]


def clustering_action(layout: int) -> str:
    """The pending action of clusterings on the timeline."""
    return Action.REPLACE_COMMIT if layout == 1 else Action.CLUSTERING
