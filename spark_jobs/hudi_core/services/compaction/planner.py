"""Plans a compaction: decides which file slices are merged next (BaseHoodieCompactionPlanGenerator).

strategies.py decides when a compaction is due, and which file groups it takes. view/slicing.py decides which log files
a slice has; log files of rolled-back writes are among them. candidates.py says what the driver's memory holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime

from hudi_core.config.engine_config import EngineConfig, Extent
from hudi_core.config.services.compaction_config import CompactionConfig
from hudi_core.engine.protocol import Json
from hudi_core.filegroup.read.base_file import BOOTSTRAP_INSTANT
from hudi_core.services.compaction.candidates import Candidates, candidates
from hudi_core.services.compaction.job import CompactionJob
from hudi_core.services.compaction.strategies import Strategies, last_request, why_not_due
from hudi_core.services.context import TableContext
from hudi_core.services.rewriting.checks import check_merged_table, check_operations, check_schema_of_latest
from hudi_core.services.rewriting.planning import (
    Planned,
    RewriteService,
    extent_of,
    was_cut,
    within_budget,
)
from hudi_core.services.service import FREED_BY, NO_OPTION, Nothing, Scheduled
from hudi_core.timeline.actions.compaction import (
    CompactionPlan,
    encode_compaction_plan,
)
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.instant_time import zone_of
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.owner import Owner
from hudi_core.view.slice_columns import Numbers


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
    found = candidates(context, view, chosen, instant, config, lambda item: item.base_instants != BOOTSTRAP_INSTANT)
    if not len(found):
        return Nothing(_no_candidates(len(everywhere), len(chosen), found, strategies.options))
    rows = strategies.rows(found)
    if not len(rows):
        names = ",".join(strategy.value for strategy in config.strategies)
        return Nothing(f"{names} takes none of {len(found)} file groups with log files ({strategies.options})")
    taken, left = affordable(context, found, rows)
    missing = (set(everywhere) - set(chosen)) | found.partitions_beside(taken) | found.skipped
    plan = CompactionPlan(tuple(found.operations(taken)), missing_partitions=tuple(sorted(missing)))
    return planned(plan, found.data_bytes[taken].tolist(), left)


def planned(plan: CompactionPlan, sizes: Sequence[int], left: int) -> Planned[CompactionPlan]:
    """`sizes` are the bytes that each operation reads."""
    operations = [
        {
            "partition": item.partition,
            "file_id": item.file_id,
            "base_file": item.base_file,
            "log_files": list(item.log_files),
            "bytes": size,
        }
        for item, size in zip(plan.operations, sizes, strict=True)
    ]
    document: Json = {
        "file_groups": len(operations),
        "log_files": sum(len(item.log_files) for item in plan.operations),
        "bytes": sum(sizes),
        "left_by_budget": left,
        "operations": operations,
        "partitions_left_out": list(plan.missing_partitions or ()),
    }
    return Planned(plan, document, left)


def affordable(context: TableContext, found: Candidates, rows: Numbers) -> tuple[Numbers, int]:
    """Returns the `rows` that fit into the budget, and how many do not. Most log bytes per byte read come first."""
    sizes, logs = found.data_bytes[rows].tolist(), found.log_bytes[rows].tolist()
    taken, beyond = within_budget(context.options, range(len(rows)), size=sizes.__getitem__, gain=logs.__getitem__)
    return rows[taken], len(beyond)


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
