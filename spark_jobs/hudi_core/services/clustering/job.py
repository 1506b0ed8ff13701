"""Clustering: the rows of small or unordered file slices go into new file groups, which replace those of the plan. This
module checks what must hold before the first byte is written, and what must still hold at the completion.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Set
from dataclasses import replace
from functools import partial
from typing import Final

from hudi_core.codec.avro.schema import AvroSchema, without_fields
from hudi_core.codec.columns import column_named
from hudi_core.config.keys import name_list
from hudi_core.config.services.clustering_config import LAYOUT, SORT_COLUMNS, TARGET_FILE_BYTES
from hudi_core.errors import ConfigError, ConflictError, FormatError, StorageNotFoundError, UnsupportedError
from hudi_core.filegroup.merge.table_policy import MergePolicy
from hudi_core.filegroup.read.base_file import BOOTSTRAP_INSTANT
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.filegroup.write.base_file_writer import rows_schema
from hudi_core.filegroup.write.buckets import are_buckets
from hudi_core.model.names import COMMIT_SEQNO, COMMIT_TIME, FileGroupId, parse_base_file, parse_log_file
from hudi_core.model.partition import join
from hudi_core.request.results import InstantResult
from hudi_core.services.clustering.units import Work, groups_of, prove
from hudi_core.services.concurrent_changes import check_no_plans_on, check_none_rolled_back
from hudi_core.services.context import TableContext, provenance
from hudi_core.services.lifecycle import Completion, Run
from hudi_core.services.rewriting.checks import (
    check_buckets,
    check_planned,
    check_schema_of_latest,
    check_table,
)
from hudi_core.services.rewriting.job import Attempt, RewriteJob, commit_metadata, moved_to
from hudi_core.services.rewriting.other_writers import check_plan_seen
from hudi_core.services.rewriting.proof import Rewritten
from hudi_core.services.rewriting.slice_rows import SliceTarget
from hudi_core.services.rewriting.sort_order import SortOrder
from hudi_core.timeline.actions.commit import Operation
from hudi_core.timeline.actions.replacecommit import ClusteringPlan, encode_inflight_clustering
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.pending_plans import is_clustering, read_clustering_plan
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim import Claim


class ClusteringJob(RewriteJob[ClusteringPlan]):
    """Runs a clustering that a writer or planner.py has planned."""

    operation = Operation.CLUSTER
    conflicts_as = Action.CLUSTERING

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.action = clustering_action(self.active.layout)
        self._sizes: dict[tuple[str, str], int] = {}
        self._sources: Set[str] = frozenset()
        self._known: Timeline | None = None

    def check(self) -> None:
        self.required = check_table(self.context)

    def find(self, timeline: Timeline) -> Instant:
        instant = timeline.find(self.instant, self.action)
        if instant is None or not self._is_clustering(instant):
            raise self.absent("clustering")
        return instant

    def _is_clustering(self, instant: Instant) -> bool:
        """Whether an instant is a clustering. Overwrites have its action when completed, in layout 1 also pending."""
        if instant.is_completed:
            return self.active.read_commit(instant).operation_type == Operation.CLUSTER
        return is_clustering(self.active, instant)

    def plan(self, timeline: Timeline) -> ClusteringPlan:
        """Reads and checks the plan. Raises FormatError, StorageNotFoundError, CorruptFileError, UnsupportedError
        (checks); ConfigError for sort columns; ConflictError for a commit to the plan's file groups, and for a pending
        compaction of one: its latest slice holds later rows alone.
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
        self._sources, self._known = source_commits(self.context, timeline, plan), timeline
        sizes = check_planned(self.context, timeline, self.instant, plan.slices, path=path)
        for item in plan.slices:
            names = filter(None, (item.base_file, *item.data_logs))
            self._sizes[item.partition, item.file_id] = sum(sizes[join(item.partition, name)] for name in names)
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
            target = SliceTarget.of(
                self,
                schema,
                timeline,
                attempt.requirements,
                merge_policy(context, plan),
                target_bytes=sys.maxsize if by_file else target_bytes(plan, context.options),
                stamps_rows=not plan.preserves_metadata,
            )
            work = Work(self.run.engine, held.epoch, target, self._sizes, self.run.progress)
            order = order_of(plan.strategy_params, context.options, schema, context.config.dropped_columns)
            results = work.join(groups) if order is None else work.sort(groups, order)
        rewritten = prove(plan, results, self.instant, with_statistics=attempt.with_statistics)
        attempt.keep(rewritten)
        changed = frozenset() if plan.preserves_metadata else frozenset({COMMIT_TIME, COMMIT_SEQNO})
        attempt.check_rows(rewritten, plan.slices, changed)
        replaced: dict[str, list[str]] = {}
        for item in plan.slices:
            replaced.setdefault(item.partition, []).append(item.file_id)
        replaced_ids = {partition: tuple(ids) for partition, ids in sorted(replaced.items())}
        return attempt.completion(
            rewritten,
            commit_metadata(self, rewritten.stats, schema, provenance(self.owner), replaced_file_ids=replaced_ids),
            moved=moved_to(rewritten.files, self.instant),
            # Whatever conflicts other writers were told to reject: no commit has changed the file groups meanwhile, and
            # no commit whose rows are in them was rolled back.
            preconditions=(
                partial(
                    check_untouched, context, instant=self.instant, groups=self.file_groups(plan), known=self._known
                ),
                partial(check_none_rolled_back, context, instant=self.instant, known=self._sources),
            ),
            # Writers read the inflight file under this lock. After it the file is emptied, as Hudi's: 1.x would archive
            # its content in place of the plan, and 0.15 would fail on what Hudi's downgrade to version 6 leaves.
            then=partial(self.active.empty_inflight, self.instant, self.action),
        )

    def result(self, done: Rewritten | None, seconds: float) -> InstantResult:
        """Returns the result, which calls the action a clustering in layout 1, too."""
        return replace(super().result(done, seconds), action=Action.CLUSTERING)


def clustering_action(layout: int) -> str:
    return Action.REPLACE_COMMIT if layout == 1 else Action.CLUSTERING


SINGLE_FILE: Final = "SparkSingleFileSortExecutionStrategy"
STRATEGIES: Final = frozenset(
    {
        "",
        SINGLE_FILE,
        "SparkSortAndSizeExecutionStrategy",
        "SingleSparkJobExecutionStrategy",
        "SparkBinaryCopyClusteringExecutionStrategy",
        "SparkStreamCopyClusteringExecutionStrategy",
        "JavaSortAndSizeExecutionStrategy",
    }
)
"""The execution strategies whose plans are run here, by the last part of their class names."""
_REMEDY: Final = "drop the plan with `hudictl unschedule`, or let Hudi run it"


def merge_policy(context: TableContext, plan: ClusteringPlan) -> MergePolicy | None:
    """Returns how the slices of a plan are merged; None where none has log files. Raises as MergePolicy.for_table."""
    merges = any(item.data_logs for item in plan.slices)
    return MergePolicy.for_table(context.config, context.options) if merges else None


def check_plan(context: TableContext, plan: ClusteringPlan, *, path: str) -> None:
    """Raises FormatError for a plan without slices, UnsupportedError for one that only Hudi can run."""
    check_buckets(context, _REMEDY)
    if not plan.slices:
        raise FormatError("the clustering plan names no file slice", path=path, remedy=_REMEDY)
    strategy = plan.strategy_class.rpartition(".")[2]
    if strategy not in STRATEGIES:
        what = f"the clustering plan is for {strategy}, which is not run here"
        raise UnsupportedError(what, path=path, remedy=_REMEDY)
    if _are_in_buckets(context, plan):
        raise UnsupportedError(
            "the plan's file groups are buckets, whose rows stay together by the hash of their keys",
            path=path,
            remedy=f"leave buckets to compaction; {_REMEDY}",
        )
    for item in plan.slices:
        if item.base_file is None and not item.data_logs:
            raise FormatError(f"the clustering plan names no file of {item.file_id}", path=path, remedy=_REMEDY)
        if item.base_file is not None and parse_base_file(item.base_file).instant == BOOTSTRAP_INSTANT:
            raise UnsupportedError("the clustering plan names a file of a bootstrap", path=path, remedy=_REMEDY)


def _are_in_buckets(context: TableContext, plan: ClusteringPlan) -> bool:
    """Whether all file groups of the plan and, as in planning, all others of their partitions are buckets."""
    planned = [item.file_id for item in plan.slices]
    if not are_buckets(planned):
        return False
    view = context.view(context.active.load())
    beside = (view.latest_slices(partition) for partition in {item.partition for item in plan.slices})
    return are_buckets([*planned, *(item.file_group.file_id for slices in beside for item in slices)])


def order_of(
    params: Mapping[str, str], options: Mapping[str, str], schema: AvroSchema, dropped: Collection[str] = ()
) -> SortOrder | None:
    """Returns the order of a plan's parameters, if any. A layout in `options` comes first, as in Hudi. `schema` is the
    table's, without meta fields; names may be in another case. The columns `dropped` are left out, since each has one
    value in a partition. Raises ConfigError for an unknown layout or column, UnsupportedError for a type without order.
    """
    stored = rows_schema(without_fields(schema, dropped), path=SORT_COLUMNS.name)
    constant = {name.lower() for name in dropped}
    names = (column_named(name, stored) for name in name_list(SORT_COLUMNS.read(params) or ""))
    columns = tuple(dict.fromkeys(name for name in names if name.lower() not in constant))
    layout = LAYOUT.read(options if LAYOUT.is_set(options) else params)
    if not columns:
        return None
    order = SortOrder(columns, layout)
    order.check(stored)
    return order


def check_parameters(
    plan: ClusteringPlan,
    options: Mapping[str, str],
    schema: AvroSchema,
    dropped: Collection[str] = (),
    *,
    path: str,
    instant: str,
) -> None:
    """Raises as target_bytes and order_of. The error names the plan in `path`, unless options came before it."""
    try:
        target_bytes(plan, options)
        order_of(plan.strategy_params, options, schema, dropped)
    except (ConfigError, UnsupportedError) as error:
        if TARGET_FILE_BYTES.is_set(options) or LAYOUT.is_set(options):
            raise
        remedy = f"drop the plan, and correct what planned it: hudictl unschedule TABLE {instant}"
        raise type(error)(error.message, path=path, remedy=remedy) from error


def target_bytes(plan: ClusteringPlan, options: Mapping[str, str]) -> int:
    """Returns the bytes at which a new file ends. Raises ConfigError where the value is no positive number."""
    return TARGET_FILE_BYTES.read(options if TARGET_FILE_BYTES.is_set(options) else plan.strategy_params)


def check_untouched(
    context: TableContext, timeline: Timeline, instant: str, groups: Collection[FileGroupId], known: Timeline | None
) -> None:
    """Raises ConflictError where a commit has changed or replaced one of the plan's file groups since the plan. The new
    files would lack the rows of that commit. The plan was compared with the slices in `known`; None: it will be.
    """
    seen = frozenset() if known is None else known.completed().requested_times
    planned = frozenset(groups)
    for item in timeline.commits():
        is_new = item.completed_at > instant or (known is not None and item.requested_time not in seen)
        if not is_new and item.action != Action.REPLACE_COMMIT:
            continue
        metadata = context.active.read_commit(item)
        touched = set(metadata.replaced_file_groups())
        if is_new:
            touched.update(FileGroupId(stat.partition_path, stat.file_id) for stat in metadata.write_stats())
        shared = planned & touched
        if shared:
            group = min(shared)
            raise ConflictError(
                f"{item.action} {item.requested_time} has changed file group {group.file_id} in {group.partition!r}, "
                f"which clustering {instant} was planned to replace",
                path=context.active.path_of(item),
                remedy=f"drop the plan, so that it is planned again: hudictl unschedule TABLE {instant}",
            )


def source_commits(context: TableContext, timeline: Timeline, plan: ClusteringPlan) -> Set[str]:
    """Returns the commits on the timeline that may have written rows of the plan: those that its file names say. In
    layout 1 the names of log files do not say their writers, so that every deltacommit may have.
    """
    commits, logs = timeline.commits(), [name for item in plan.slices for name in item.data_logs]
    named = {parse_base_file(item.base_file).instant for item in plan.slices if item.base_file is not None}
    named |= {parse_log_file(name).instant for name in logs}
    if logs and context.active.layout == 1:
        named |= commits.of_actions(Action.DELTA_COMMIT).requested_times
    return named & commits.requested_times
