"""Plans a clustering: decides when it is due, and which file slices are rewritten together
(ClusteringPlanActionExecutor, PartitionAwareClusteringPlanStrategy).

strategies.py chooses partitions and makes groups. It also finds the groups that a rewrite would leave as they are.

Peak memory on the driver: some 500 bytes a file of one partition or of 65,536 files, and a slice of the plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from hudi_core.config.engine_config import EngineConfig, Extent
from hudi_core.config.services.clustering_config import ASYNC_COMMITS, INLINE_COMMITS, ClusteringConfig, Strategy
from hudi_core.engine.protocol import Json
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.frozen import dataclass
from hudi_core.model.names import parse_log_file
from hudi_core.services.clustering.job import ClusteringJob, clustering_action, merge_policy, order_of
from hudi_core.services.clustering.strategies import RULES, Group, PlanRules, chosen_partitions, find_groups, outputs_of
from hudi_core.services.context import TableContext
from hudi_core.services.rewriting.checks import check_buckets, check_schema_of_latest, check_table
from hudi_core.services.rewriting.planning import Planned, RewriteService, extent_of, was_cut, within_budget
from hudi_core.services.service import Nothing
from hudi_core.storage.registry import plan_address, status_address
from hudi_core.timeline.actions.compaction import metrics_of
from hudi_core.timeline.actions.replacecommit import (
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
    encode_clustering_plan,
)
from hudi_core.timeline.instant import REPLACING_ACTIONS, Action, Instant
from hudi_core.timeline.instant_time import zone_of
from hudi_core.timeline.pending_plans import is_clustering, read_clustering_plan
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import FileSlice


def make_plan(
    context: TableContext, timeline: Timeline, instant: str, *, now: datetime
) -> Planned[ClusteringPlan] | Nothing:
    """Returns the plan of a clustering at `instant`; nothing is written. The caller draws `instant` before it loads
    `timeline`. `now` is in the table's zone. Raises ConfigError for options and sort columns, UnsupportedError as
    order_of and merge_policy, FormatError for a pending plan that is not safe.
    """
    config = ClusteringConfig.of(context.options)
    rules = RULES[context.config.features.conflict_release]
    reason = _why_not_due(context, timeline, config, rules)
    if reason is not None:
        return Nothing(reason)
    view = context.view(timeline)
    everywhere = view.partitions()
    chosen = chosen_partitions(config, everywhere, rules, hour=now.hour)
    candidates = find_groups(context, view, chosen, instant, config)
    if not candidates.groups:
        return Nothing(candidates.reason(config, len(everywhere), len(chosen)))
    # The schema is read last: a table whose first write failed has no schema, and nothing to cluster.
    schema = table_schema(context.storage, context.config, timeline)
    order_of(config.strategy_params(), context.options, schema, context.config.dropped_columns)
    due = [_group(group, config) for group in candidates.groups]
    taken, beyond = within_budget(context.options, due, size=lambda group: group.size, gain=lambda group: group.gain)
    missing = (set(everywhere) - set(chosen)) | candidates.missing | {group.partition for group in beyond}
    plan = ClusteringPlan(
        tuple(group.planned for group in taken),
        config.execution_class,
        config.strategy_params(),
        missing_partitions=tuple(sorted(missing)),
    )
    merge_policy(context, plan)
    left = sum(len(group.planned.slices) for group in beyond)
    document: Json = {
        "groups": [
            {
                "partition": group.partition,
                "file_groups": [item.file_id for item in group.planned.slices],
                "log_files": sum(len(item.log_files) for item in group.planned.slices),
                "files_to_write": group.planned.outputs,
                "bytes": group.size,
            }
            for group in taken
        ],
        "file_groups": len(plan.slices),
        "bytes": sum(group.size for group in taken),
        "left_by_budget": left,
        "strategy": plan.strategy_class,
        "strategy_params": dict(plan.strategy_params),
        "partitions_left_out": sorted(missing),
    }
    return Planned(plan, document, left)


def last_clustering(context: TableContext, timeline: Timeline) -> Instant | None:
    """Returns the last clustering, in any state."""
    earlier = reversed(timeline.of_actions(*REPLACING_ACTIONS).instants)
    return next((item for item in earlier if is_clustering(context.active, item)), None)


def _why_not_due(context: TableContext, timeline: Timeline, config: ClusteringConfig, rules: PlanRules) -> str | None:
    """Returns why none is due: too few commits since the last was requested (ClusteringPlanActionExecutor)."""
    in_background = config.asynchronous or (config.schedule_inline and rules.counts_schedule_inline)
    counted = [
        *([(INLINE_COMMITS.name, config.inline_commits)] if config.inline else []),
        *([(ASYNC_COMMITS.name, config.async_commits)] if in_background else []),
    ]
    if not counted:
        return None
    last = last_clustering(context, timeline)
    if was_cut(context, last):
        return None
    commits = timeline.commits()
    since = commits if last is None else commits.after(last.requested_time)
    after = "" if last is None else f" since the last clustering ({last.requested_time})"
    lacks = [f"{name} is {number}" for name, number in counted if number > len(since)]
    return f"{len(since)} commits{after}, but {' and '.join(lacks)}" if lacks else None


@dataclass(frozen=True, slots=True)
class _Due:
    """A group with the bytes that its rewrite reads, and with its `gain`: by how many files the table gets fewer."""

    planned: ClusteringGroup
    size: int
    gain: float

    @property
    def partition(self) -> str:
        return self.planned.slices[0].partition


def _group(group: Group, config: ClusteringConfig) -> _Due:
    sizes = (
        (
            None if item.base_file is None else item.base_file.size,
            [file.size for file in (*item.log_files, *item.cdc_files)],
        )
        for item in group
    )
    planned = ClusteringGroup(
        tuple(_slice(item) for item in group),
        1 if config.strategy is Strategy.SINGLE_FILE else outputs_of(group, config),
        metrics_of(sizes, no_base_bytes=config.max_file_bytes),
    )
    files = sum(len(item.files) for item in group)
    return _Due(planned, sum(item.size for item in group), float(files - planned.outputs))


def _slice(item: FileSlice) -> ClusteringSlice:
    """Returns a slice as the plan names it. Its log files are as in FileSlice.getLogFiles, last of the scan first."""
    logs = sorted((*item.log_files, *item.cdc_files), key=lambda file: parse_log_file(file.name).scan_order)
    return ClusteringSlice(
        item.file_group.partition,
        item.file_group.file_id,
        None if item.base_file is None else item.base_file.name,
        tuple(file.name for file in reversed(logs)),
    )


class ClusteringService(RewriteService[ClusteringPlan]):
    """Plans and runs clusterings. In layout 1 their instants are replacecommits whose plan is a clustering."""

    name = "clustering"
    action = Action.CLUSTERING
    job = ClusteringJob
    rewritten = "clustered"

    def pending(self, context: TableContext, timeline: Timeline) -> list[str]:
        """The clusterings that are requested or inflight, oldest first. Raises FormatError for a damaged plan."""
        replacing = timeline.pending().of_actions(*REPLACING_ACTIONS)
        return [item.requested_time for item in replacing if is_clustering(context.active, item)]

    def extent(self, context: TableContext, instant: str, config: EngineConfig) -> Extent:
        pending = context.active.load().find(instant, Action.CLUSTERING)
        plan = None if pending is None else read_clustering_plan(context.active, pending)
        if plan is None:
            return Extent()
        return extent_of(context.storage, [group.slices for group in plan.groups], config)

    def check(self, context: TableContext, timeline: Timeline) -> None:
        check_table(context)
        check_buckets(context)
        check_schema_of_latest(context, timeline)

    def make(self, context: TableContext, timeline: Timeline, instant: str) -> Planned[ClusteringPlan] | Nothing:
        return make_plan(context, timeline, instant, now=datetime.now(zone_of(context.zone)))

    def encode(self, context: TableContext, plan: ClusteringPlan, extra_metadata: Mapping[str, str]) -> bytes:
        """Encodes a plan. Its addresses are those of Hudi's listings: by the metadata table, or of the storage."""
        of = plan_address if context.has_metadata_table else status_address
        root = of(context.storage, "").rstrip("/")
        return encode_clustering_plan(replace(plan, extra_metadata=extra_metadata), lambda path: f"{root}/{path}")

    def requested_as(self, context: TableContext) -> str:
        return clustering_action(context.active.layout)
