"""Plans a compaction: decides which file slices are merged next (BaseHoodieCompactionPlanGenerator).

strategies.py decides when a compaction is due, and which file groups it takes. view/slicing.py decides which log files
a slice has; log files of rolled-back writes are among them.

Peak memory on the driver: the file groups of one partition, and the operations, some 500 bytes each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime

from hudi_core.config.engine_config import EngineConfig, Extent
from hudi_core.config.services.compaction_config import CompactionConfig
from hudi_core.engine.protocol import Json
from hudi_core.filegroup.read.base_file import BOOTSTRAP_INSTANT
from hudi_core.history.archived import CompletionTimes
from hudi_core.model.names import FileGroupId, parse_log_file
from hudi_core.services.compaction.job import CompactionJob
from hudi_core.services.compaction.strategies import Strategies, last_request, why_not_due
from hudi_core.services.context import TableContext
from hudi_core.services.rewriting.checks import check_merged_table, check_operations, check_schema_of_latest
from hudi_core.services.rewriting.planning import (
    Planned,
    RewriteService,
    extent_of,
    held_groups,
    was_cut,
    within_budget,
)
from hudi_core.services.service import FREED_BY, NO_OPTION, Nothing, Scheduled
from hudi_core.timeline.actions.compaction import (
    LOG_BYTES,
    CompactionOperation,
    CompactionPlan,
    encode_compaction_plan,
    metrics_of,
)
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.instant_time import zone_of
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.owner import Owner
from hudi_core.view.file_group import FileSlice
from hudi_core.view.file_system_view import FileSystemView


@dataclass(slots=True)
class Candidates:
    """Operations over whole slices, with the bytes that each reads. `held` counts file groups that another plan holds,
    `passed` slices with log files that the plan does not take. `skipped` are such slices' partitions.
    """

    operations: list[CompactionOperation] = field(default_factory=list)
    sizes: dict[FileGroupId, int] = field(default_factory=dict)
    skipped: set[str] = field(default_factory=set)
    held: int = 0
    passed: int = 0


def make_plan(
    context: TableContext, timeline: Timeline, instant: str, *, today: date
) -> Planned[CompactionPlan] | Nothing:
    """Returns the plan of a compaction at `instant`; nothing is written. The caller draws `instant` before it loads
    `timeline`. `today` is the day in the zone of the table, for the strategies by day. Raises ConfigError for options
    that are not valid, FormatError for a pending plan that is not safe.
    """
    config = CompactionConfig.of(context.options)
    features = context.config.features
    reason = why_not_due(timeline, instant, config, by_completion=features.completion_time_in_name, zone=context.zone)
    if reason is not None and not was_cut(context, last_request(timeline)):
        return Nothing(reason)
    view = context.view(timeline)
    strategies = Strategies(config, today, bounds_days=features.completion_time_in_name)
    everywhere = view.partitions()
    chosen = strategies.partitions(everywhere)
    # Slices are left out whose base files lack the table's columns (refuse_skeleton).
    found = candidates(context, view, chosen, instant, config, lambda item: item.base_instant != BOOTSTRAP_INSTANT)
    if not found.operations:
        return Nothing(_no_candidates(len(everywhere), len(chosen), found, strategies.options))
    taken = strategies.operations(found.operations)
    if not taken:
        names = ",".join(strategy.value for strategy in config.strategies)
        return Nothing(
            f"{names} takes none of {len(found.operations)} file groups with log files ({strategies.options})"
        )
    taken, beyond = affordable(context, taken, found.sizes)
    groups = {item.file_group for item in taken}
    left = {item.partition for item in found.operations if item.file_group not in groups}
    missing = (set(everywhere) - set(chosen)) | left | found.skipped
    plan = CompactionPlan(tuple(taken), missing_partitions=tuple(sorted(missing)))
    return planned(plan, found.sizes, len(beyond))


def planned(plan: CompactionPlan, sizes: Mapping[FileGroupId, int], left: int) -> Planned[CompactionPlan]:
    operations = [
        {
            "partition": item.partition,
            "file_id": item.file_id,
            "base_file": item.base_file,
            "log_files": list(item.log_files),
            "bytes": sizes[item.file_group],
        }
        for item in plan.operations
    ]
    document: Json = {
        "file_groups": len(operations),
        "log_files": sum(len(item.log_files) for item in plan.operations),
        "bytes": sum(sizes[item.file_group] for item in plan.operations),
        "left_by_budget": left,
        "operations": operations,
        "partitions_left_out": list(plan.missing_partitions or ()),
    }
    return Planned(plan, document, left)


def affordable(
    context: TableContext, operations: Sequence[CompactionOperation], sizes: Mapping[FileGroupId, int]
) -> tuple[list[CompactionOperation], list[CompactionOperation]]:
    """Returns the operations that fit into the budget, and the others. Most log bytes per byte read come first."""
    return within_budget(
        context.options,
        operations,
        size=lambda item: sizes[item.file_group],
        gain=lambda item: (item.metrics or {}).get(LOG_BYTES, 0.0),
    )


def candidates(
    context: TableContext,
    view: FileSystemView,
    partitions: Sequence[str],
    instant: str,
    config: CompactionConfig,
    takes: Callable[[FileSlice], bool],
) -> Candidates:
    """Returns the latest slices with log files that a plan `takes`, of file groups that no pending plan holds. A log
    compaction holds its file groups as well, unlike in Hudi: its log file would come on top.
    """
    held = held_groups(view.pending)
    completions = CompletionTimes(view.timeline, context.history)
    found = Candidates()
    for partition in partitions:
        for item in view.latest_slices(partition):
            if context.config.features.log_name_has_delta_commit:
                item = _completed_before(item, instant, completions)
            has_logs = bool(item.log_files or item.cdc_files)
            if item.file_group in held:
                found.held += 1
                if has_logs:
                    found.skipped.add(partition)
                continue
            if not has_logs:
                continue
            if not takes(item):
                found.passed += 1
                found.skipped.add(partition)
                continue
            found.operations.append(_operation(item, config))
            found.sizes[item.file_group] = item.size
    return found


def _completed_before(item: FileSlice, instant: str, completions: CompletionTimes) -> FileSlice:
    """Returns the slice without logs of writes that completed after `instant` (isCompletedBefore)."""

    def is_planned(name: str) -> bool:
        completion = completions.of(parse_log_file(name).instant)
        return completion is None or completion < instant

    return replace(
        item,
        log_files=tuple(file for file in item.log_files if is_planned(file.name)),
        cdc_files=tuple(file for file in item.cdc_files if is_planned(file.name)),
    )


def _operation(item: FileSlice, config: CompactionConfig) -> CompactionOperation:
    logs = (*item.log_files, *item.cdc_files)
    base_bytes = None if item.base_file is None else item.base_file.size
    metrics = metrics_of([(base_bytes, (file.size for file in logs))], no_base_bytes=config.max_file_bytes)
    return CompactionOperation(
        item.file_group.partition,
        item.file_group.file_id,
        item.base_instant,
        None if item.base_file is None else item.base_file.name,
        tuple(file.name for file in item.log_files),
        metrics,
        tuple(file.name for file in item.cdc_files),
    )


def _no_candidates(partitions: int, chosen: int, found: Candidates, options: str) -> str:
    where = f"{partitions} partitions"
    if chosen < partitions:
        where = f"the {chosen} of {where} that the strategy takes ({options})"
    causes = {
        f"{found.held} that pending plans hold ({FREED_BY})": found.held,
        f"{found.passed} whose base file is a bootstrap's, without columns of the table (let Hudi compact them)": (
            found.passed
        ),
    }
    beside = "".join(f", beside {cause}" for cause, count in causes.items() if count)
    why = f"no file group has log files in {where}{beside}"
    return why if chosen < partitions else why + NO_OPTION


class CompactionService(RewriteService[CompactionPlan]):
    name = "compaction"
    action = Action.COMPACTION
    job = CompactionJob
    rewritten = "compacted"

    def extent(self, context: TableContext, instant: str, config: EngineConfig) -> Extent:
        operations = context.active.read_plan(instant, self.action).operations
        check_operations(operations, path=context.active.path(instant, self.action, State.REQUESTED))
        return extent_of(context.storage, [[operation] for operation in operations], config)

    def schedule(self, context: TableContext, owner: Owner, *, dry_run: bool) -> Scheduled:
        if not context.config.is_merge_on_read:
            return Scheduled(None, None, f"the table is copy-on-write: it has no log files to compact{NO_OPTION}")
        return super().schedule(context, owner, dry_run=dry_run)

    def check(self, context: TableContext, timeline: Timeline) -> None:
        check_merged_table(context)
        check_schema_of_latest(context, timeline)

    def make(self, context: TableContext, timeline: Timeline, instant: str) -> Planned[CompactionPlan] | Nothing:
        return make_plan(context, timeline, instant, today=datetime.now(zone_of(context.zone)).date())

    def encode(self, context: TableContext, plan: CompactionPlan, extra_metadata: Mapping[str, str]) -> bytes:
        return encode_compaction_plan(replace(plan, extra_metadata=extra_metadata))
