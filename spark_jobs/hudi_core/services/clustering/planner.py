"""Plans a clustering: which file slices are rewritten together next (ClusteringPlanActionExecutor,
PartitionAwareClusteringPlanStrategy).

strategies.py chooses partitions and makes groups, and finds those that a rewrite would leave as they are.

Peak memory on the driver: the file groups of one partition, and the slices of the plan, some 500 bytes each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.config.engine_config import EngineConfig
from hudi_core.config.services.clustering_config import (
    ASYNC_COMMITS,
    FILTER_MODE,
    INLINE_COMMITS,
    LAYOUT,
    SELECTED,
    SINGLE_GROUPS,
    SMALL_FILE_LIMIT,
    SORT_COLUMNS,
    TARGET_FILE_BYTES,
    ClusteringConfig,
    Strategy,
)
from hudi_core.engine.protocol import Json
from hudi_core.filegroup.read.base_file import BOOTSTRAP_INSTANT
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.filegroup.write.buckets import are_buckets
from hudi_core.model.names import FileGroupId, parse_log_file
from hudi_core.services.clustering.checks import merge_policy, order_of
from hudi_core.services.clustering.job import ClusteringJob, clustering_action
from hudi_core.services.clustering.strategies import (
    RULES,
    ClusteredAlike,
    Group,
    PlanRules,
    chosen_partitions,
    groups_of,
    is_small,
    outputs_of,
)
from hudi_core.services.context import TableContext
from hudi_core.services.engine_choice import Extent
from hudi_core.services.lifecycle import Run
from hudi_core.services.rewriting.checks import check_buckets, check_schema_of_latest, check_table
from hudi_core.services.rewriting.planning import (
    Planned,
    RewriteService,
    extent_of,
    held_groups,
    was_cut,
    within_budget,
)
from hudi_core.services.service import FREED_BY, NO_OPTION, Nothing
from hudi_core.storage.registry import plan_address, status_address
from hudi_core.timeline.actions.compaction import metrics_of
from hudi_core.timeline.actions.replacecommit import (
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
    encode_clustering_plan,
)
from hudi_core.timeline.instant import REPLACING_ACTIONS, Action
from hudi_core.timeline.instant_time import zone_of
from hudi_core.timeline.pending_plans import is_clustering, read_clustering_plan
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import FileSlice
from hudi_core.view.file_system_view import FileSystemView

_HELD: Final = f"that pending plans hold ({FREED_BY})"
_LATE: Final = "that are being written"
_UNFIT: Final = "that are buckets or of a bootstrap"
_LARGE: Final = f"that are large enough ({SMALL_FILE_LIMIT.name} is {{limit}})"
_ALIKE: Final = (
    f"that an earlier clustering left as this one would ({SORT_COLUMNS.name}, {LAYOUT.name}, {TARGET_FILE_BYTES.name})"
)
_SINGLE: Final = f"that would be rewritten alone ({SINGLE_GROUPS.name})"


@dataclass(slots=True)
class _Found:
    """Groups to plan, and how many file groups are not, by the cause; `missing` partitions the next plan looks at."""

    groups: list[Group] = field(default_factory=list)
    missing: set[str] = field(default_factory=set)
    passed: Counter[str] = field(default_factory=Counter)

    def reason(self, config: ClusteringConfig, partitions: int, chosen: int) -> str:
        """Why there is no group, and which options would change that."""
        where = f"{partitions} partitions"
        if chosen < partitions:
            where = f"the {chosen} of {where} that the options take ({FILTER_MODE.name}, {SELECTED.name}…)"
        causes = [cause for cause in (_HELD, _LATE, _UNFIT, _LARGE, _ALIKE, _SINGLE) if self.passed[cause]]
        beside = ", ".join(f"{self.passed[cause]} {cause}" for cause in causes).format(limit=config.small_file_limit)
        why = f"no file group is to be clustered in {where}" + (f", beside {beside}" if beside else "")
        has_option = chosen < partitions or not {_LARGE, _ALIKE, _SINGLE}.isdisjoint(causes)
        return why if has_option else why + NO_OPTION


def make_plan(
    context: TableContext, timeline: Timeline, instant: str, *, now: datetime
) -> Planned[ClusteringPlan] | Nothing:
    """The plan at `instant`, which is drawn before `timeline` is loaded; nothing is written. `now` is in the table's
    zone. Raises ConfigError for options and sort columns, UnsupportedError as order_of and merge_policy, FormatError
    for a pending plan that is not safe.
    """
    config = ClusteringConfig.of(context.options)
    rules = RULES[context.config.features.conflict_release]
    reason = _why_not_due(context, timeline, config, rules)
    if reason is not None:
        return Nothing(reason)
    view = context.view(timeline)
    everywhere = view.partitions()
    chosen = chosen_partitions(config, everywhere, rules, hour=now.hour)
    candidates = _find_groups(context, view, chosen, instant, config)
    if not candidates.groups:
        return Nothing(candidates.reason(config, len(everywhere), len(chosen)))
    # The schema is asked for last: a table whose first write failed has none, and nothing to cluster.
    schema = table_schema(context.storage, context.config, timeline)
    order_of(config.strategy_params(), context.options, schema, context.config.dropped_columns)
    due = [(group, _group(group, config)) for group in candidates.groups]
    sizes = [sum(item.size for item in group) for group, _ in due]
    gains = [float(sum(len(item.files) for item in group) - planned.outputs) for group, planned in due]
    taken = within_budget(context.options, sizes, gains)
    passed = [group for at, group in enumerate(candidates.groups) if at not in {*taken}]
    missing = (set(everywhere) - set(chosen)) | candidates.missing | {group[0].file_group.partition for group in passed}
    plan = ClusteringPlan(
        tuple(due[at][1] for at in taken),
        config.execution_class,
        config.strategy_params(),
        missing_partitions=tuple(sorted(missing)),
    )
    merge_policy(context, plan)
    return _planned(plan, [sizes[at] for at in taken], sum(map(len, passed)))


def _planned(plan: ClusteringPlan, sizes: Sequence[int], left: int) -> Planned[ClusteringPlan]:
    """A plan with the bytes that its groups read."""
    groups = [
        {
            "partition": group.slices[0].partition,
            "file_groups": [item.file_id for item in group.slices],
            "log_files": sum(len(item.log_files) for item in group.slices),
            "files_to_write": group.outputs,
            "bytes": size,
        }
        for group, size in zip(plan.groups, sizes, strict=True)
    ]
    document: Json = {
        "groups": groups,
        "file_groups": len(plan.slices),
        "bytes": sum(sizes),
        "left_by_budget": left,
        "strategy": plan.strategy_class,
        "strategy_params": dict(plan.strategy_params),
        "partitions_left_out": list(plan.missing_partitions or ()),
    }
    return Planned(plan, document, left)


def _why_not_due(context: TableContext, timeline: Timeline, config: ClusteringConfig, rules: PlanRules) -> str | None:
    """Too few commits completed since the last one was requested, in any state (ClusteringPlanActionExecutor)."""
    in_background = config.asynchronous or (config.schedule_inline and rules.counts_schedule_inline)
    counted = [
        *([(INLINE_COMMITS.name, config.inline_commits)] if config.inline else []),
        *([(ASYNC_COMMITS.name, config.async_commits)] if in_background else []),
    ]
    if not counted:
        return None
    earlier = reversed(timeline.of_actions(*REPLACING_ACTIONS).instants)
    last = next((item for item in earlier if is_clustering(context.active, item)), None)
    if was_cut(context, last):
        return None
    commits = timeline.commits()
    since = commits if last is None else commits.after(last.requested_time)
    after = "" if last is None else f" since the last clustering ({last.requested_time})"
    lacks = [f"{name} is {number}" for name, number in counted if number > len(since)]
    return f"{len(since)} commits{after}, but {' and '.join(lacks)}" if lacks else None


def _find_groups(
    context: TableContext, view: FileSystemView, partitions: Sequence[str], instant: str, config: ClusteringConfig
) -> _Found:
    """Groups of the latest slices that no pending plan holds, up to the number that a plan may have."""
    held = held_groups(view.pending)
    rules = RULES[context.config.features.conflict_release]
    late = _late_instants(context, view.timeline, instant)
    earlier = ClusteredAlike(context, view.timeline, config)
    found = _Found()
    for partition in partitions:
        if len(found.groups) >= config.max_groups:
            # What is behind the limit is not listed: the next plan looks at it.
            found.missing.add(partition)
            continue
        candidates = _candidates(view.latest_slices(partition), held, late, config, found)
        groups = groups_of(config, candidates, rules, lambda item: _schema_of(context, item))
        found.passed[_SINGLE] += len(candidates) - sum(map(len, groups))
        due = [group for group in groups if not earlier.holds(group)]
        found.passed[_ALIKE] += sum(map(len, groups)) - sum(map(len, due))
        room = config.max_groups - len(found.groups)
        if len(due) > room:
            found.missing.add(partition)
        found.groups += due[:room]
    return found


def _candidates(
    slices: Sequence[FileSlice], held: set[FileGroupId], late: frozenset[str], config: ClusteringConfig, found: _Found
) -> list[FileSlice]:
    """The slices of a partition that may be clustered; the others are counted in `found`."""
    taken = []
    in_buckets = are_buckets([item.file_group.file_id for item in slices])
    for item in slices:
        cause = None
        if item.file_group in held:
            cause = _HELD
        elif late and not late.isdisjoint(_instants_of(item)):
            cause = _LATE
        elif in_buckets or item.base_instant == BOOTSTRAP_INSTANT:
            cause = _UNFIT
        elif not is_small(item, config):
            cause = _LARGE
        elif item.files:
            taken.append(item)
        if cause is not None:
            found.passed[cause] += 1
        if cause in (_HELD, _LATE):
            found.missing.add(item.file_group.partition)
    return taken


def _late_instants(context: TableContext, timeline: Timeline, instant: str) -> frozenset[str]:
    """Writes that completed at or after `instant`, in layout 2: later ones for those that check conflicts."""
    if not context.config.features.completion_time_in_name:
        return frozenset()
    return frozenset(item.requested_time for item in timeline.commits() if item.completed_at >= instant)


def _instants_of(item: FileSlice) -> Iterator[str]:
    yield item.base_instant
    yield from (parse_log_file(file.name).instant for file in (*item.log_files, *item.cdc_files))


def _schema_of(context: TableContext, item: FileSlice) -> Hashable:
    """The columns of a base file as Parquet has them; files that differ are not copied into one."""
    if item.base_file is None:
        return None
    path = item.base_file.path
    with context.storage.open_input(path) as file:
        return str(ParquetBaseFile(file, path).schema)


def _group(group: Group, config: ClusteringConfig) -> ClusteringGroup:
    sizes = (
        (
            None if item.base_file is None else item.base_file.size,
            [file.size for file in (*item.log_files, *item.cdc_files)],
        )
        for item in group
    )
    return ClusteringGroup(
        tuple(_slice(item) for item in group),
        1 if config.strategy is Strategy.SINGLE_FILE else outputs_of(group, config),
        metrics_of(sizes, no_base_bytes=config.max_file_bytes),
    )


def _slice(item: FileSlice) -> ClusteringSlice:
    """Log files in the order of FileSlice.getLogFiles, the last of the scan first."""
    logs = sorted((*item.log_files, *item.cdc_files), key=lambda file: parse_log_file(file.name).scan_order)
    return ClusteringSlice(
        item.file_group.partition,
        item.file_group.file_id,
        None if item.base_file is None else item.base_file.name,
        tuple(file.name for file in reversed(logs)),
    )


class ClusteringService(RewriteService[ClusteringPlan]):
    """In layout 1 its instants are replacecommits whose plan is a clustering."""

    name = "clustering"
    action = Action.CLUSTERING
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

    def job(self, run: Run) -> ClusteringJob:
        return ClusteringJob(run)

    def check(self, context: TableContext, timeline: Timeline) -> None:
        check_table(context)
        check_buckets(context)
        check_schema_of_latest(context, timeline)

    def make(self, context: TableContext, timeline: Timeline, instant: str) -> Planned[ClusteringPlan] | Nothing:
        return make_plan(context, timeline, instant, now=datetime.now(zone_of(context.zone)))

    def encode(self, context: TableContext, plan: ClusteringPlan, extra_metadata: Mapping[str, str]) -> bytes:
        """The addresses are those of Hudi's listings, by the metadata table or of the storage."""
        of = plan_address if context.has_metadata_table else status_address
        return encode_clustering_plan(
            replace(plan, extra_metadata=extra_metadata), lambda path: of(context.storage, path)
        )

    def requested_as(self, context: TableContext) -> str:
        return clustering_action(context.active.layout)
