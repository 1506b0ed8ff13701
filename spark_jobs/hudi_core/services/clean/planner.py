"""Plans a clean: reads the timeline, then one partition after the other (CleanPlanActionExecutor).

Peak memory on the driver: the files of one partition with their slices, and the names of the files to delete, about 200
bytes each. docs/guarantees/memory.md has the measurements.

retention.py decides when a clean is due, up to which commit it may delete, which partitions it looks at and which
slices of a file group go. kept_files.py finds the files that savepoints and pending plans keep.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime, timezone

from hudi_core.config.concurrency_config import FAILED_WRITES_POLICY
from hudi_core.config.engine_config import EngineConfig, Extent
from hudi_core.config.services.retention_config import (
    CLEAN_PARTITIONS,
    KEEP_LATEST_BY_HOURS,
    KEEP_LATEST_COMMITS,
    CleanConfig,
)
from hudi_core.engine.protocol import Json
from hudi_core.errors import ConflictError, StorageNotFoundError
from hudi_core.frozen import dataclass
from hudi_core.model.partition import check_partition
from hudi_core.services.clean.job import SMALLEST_UNIT, CleanJob
from hudi_core.services.clean.kept_files import partition_states
from hudi_core.services.clean.retention import RetentionInputs, Scope, deletes, partitions_of, retention
from hudi_core.services.context import TableContext
from hudi_core.services.lifecycle import Run
from hudi_core.services.rollback.verb import clean_failed_writes
from hudi_core.services.service import Nothing, Scheduled, Service
from hudi_core.storage.registry import plan_address
from hudi_core.timeline.actions.clean import (
    SAVEPOINTED_KEY,
    CleanPlan,
    LastClean,
    RetainedInstant,
    decode_last_clean,
    encode_clean_plan,
)
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action
from hudi_core.timeline.pending_plans import PLANS_OF_FILE_GROUPS, without_rolled_back
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.owner import Owner
from hudi_core.transaction.writer_heartbeats import FailedWrites, failed_writes_policy

log = logging.getLogger(__name__)

_ATTEMPTS = 3
_BASIS = (Action.CLEAN, Action.ROLLBACK, Action.RESTORE, Action.SAVEPOINT)


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan and the bytes that it frees, by partition."""

    plan: CleanPlan
    sizes: Mapping[str, int]

    def to_json(self) -> Json:
        plan, earliest = self.plan, self.plan.earliest
        return {
            "policy": plan.policy,
            "earliest_commit_to_retain": None if earliest is None else earliest.timestamp,
            "last_completed_commit": plan.last_completed,
            "files": plan.file_count,
            "bytes": sum(self.sizes.values()),
            "partitions": {
                partition: {"files": list(names), "bytes": self.sizes.get(partition, 0)}
                for partition, names in plan.files.items()
            },
            "partitions_to_delete": list(plan.dropped_partitions),
            "savepoints": [time for time in plan.extra_metadata.get(SAVEPOINTED_KEY, "").split(",") if time],
        }


def make_plan(context: TableContext, timeline: Timeline, *, now: datetime | None = None) -> Planned | Nothing:
    """Returns the plan of a clean at `timeline`. `now` is aware; None is the system's clock. Commits that a pending
    rollback or restore rolls back count as gone. Raises ConfigError for options, FormatError naming what is not safe.
    """
    config = CleanConfig.of(context.options)
    timeline = without_rolled_back(context.active, timeline)
    inputs = RetentionInputs(
        timeline=timeline,
        now=now or datetime.now(timezone.utc),
        zone=context.zone,
        last_clean=last_clean(context.active, timeline),
        savepoints=timeline.savepoints(),
    )
    scope = retention(inputs, config)
    if isinstance(scope, Nothing):
        return scope
    before, retained = None, None
    if scope.earliest is not None:
        before = scope.earliest.requested_time
        retained = RetainedInstant(before, scope.earliest.action, scope.earliest.state.name)
    partitioned = bool(context.config.partition_fields)
    files: dict[str, tuple[str, ...]] = {}
    sizes: dict[str, int] = {}
    dropped: list[str] = []
    looked_at = 0
    for state in partition_states(context, timeline, _changed_partitions(context, scope)):
        if not config.takes(state.partition):
            continue
        looked_at += 1
        deleted = deletes(state, config, before)
        if deleted.files:
            files[deleted.partition] = tuple(file.name for file in deleted.files)
            sizes[deleted.partition] = sum(file.size for file in deleted.files)
        if deleted.drop and partitioned:
            dropped.append(deleted.partition)
    if not files:
        return Nothing(_nothing_to_delete(config, scope, looked_at))
    last = timeline.commits().last()
    saved = ",".join(sorted(inputs.savepoints)) if partitioned else ""
    plan = CleanPlan(
        policy=config.policy,
        files=files,
        last_completed="" if last is None else last.requested_time,
        earliest=retained,
        dropped_partitions=tuple(dropped),
        extra_metadata={SAVEPOINTED_KEY: saved} if saved else {},
    )
    return Planned(plan, sizes)


def _changed_partitions(context: TableContext, scope: Scope) -> set[str] | None:
    """Returns the partitions that the commits of `scope` changed; None: all partitions."""
    if scope.commits is None:
        return None
    return {
        check_partition(partition, source=context.active.path_of(instant))
        for instant in scope.commits
        for partition in partitions_of(context.active.read_commit(instant))
    }


def last_clean(active: ActiveTimeline, timeline: Timeline) -> LastClean | None:
    """Returns the last completed clean with content. Passes over empty files and a clean archived meanwhile."""
    for instant in reversed(timeline.completed().of_actions(Action.CLEAN).instants):
        try:
            data = active.read_details(instant)
        except StorageNotFoundError:
            continue
        if data:
            return decode_last_clean(data, instant.requested_time, path=active.path_of(instant))
    return None


def _nothing_to_delete(config: CleanConfig, scope: Scope, looked_at: int) -> str:
    where = f"{looked_at} partitions"
    if scope.commits is not None:
        where = f"the {where} that changed since the last clean"
    if config.has_partition_filter:
        where += f" that the filter lets through ({CLEAN_PARTITIONS.name})"
    kept = {KEEP_LATEST_COMMITS: "commits", KEEP_LATEST_BY_HOURS: "hours"}.get(
        config.policy, "versions of each file group"
    )
    return f"nothing to delete in {where}: {config.policy} keeps {config.retained} {kept} ({config.retention.name})"


def _rolls_back_first(context: TableContext) -> bool:
    options = context.options
    return FAILED_WRITES_POLICY.is_set(options) and failed_writes_policy(options) is FailedWrites.LAZY


class CleanService(Service):
    """Plans which old files go, and deletes them."""

    name = "clean"
    action = Action.CLEAN
    job = CleanJob

    def has_work_before(self, context: TableContext, owner: Owner) -> bool:
        return _rolls_back_first(context) and bool(clean_failed_writes(context, owner, dry_run=True))

    def extent(self, context: TableContext, instant: str, config: EngineConfig) -> Extent:
        """Returns the units of a clean, without bytes: a delete is a request, and no file is read."""
        plan = CleanJob(Run(context, instant, Owner.current())).plan(context.active.load())
        return Extent() if plan is None else Extent(max(1, -(-plan.file_count // SMALLEST_UNIT)))

    def schedule(self, context: TableContext, owner: Owner, *, dry_run: bool) -> Scheduled:
        """Plans a clean and requests it. Reads the table without the lock, and takes the lock for the request alone: a
        plan of old slices stays valid whatever completes meanwhile. Only another plan, savepoint, rollback, restore or
        clean makes it plan again. Raises ConflictError when that happens repeatedly, and as make_plan and
        check_recordable. With LAZY it first rolls back failed writes, which keep old files from being cleaned, as Hudi
        does (BaseHoodieTableServiceClient.clean).
        """
        if not dry_run and _rolls_back_first(context):
            clean_failed_writes(context, owner)
        for _ in range(_ATTEMPTS):
            timeline = context.active.load()
            made = make_plan(context, timeline)
            if isinstance(made, Nothing):
                return Scheduled(None, None, made.reason)
            context.check_recordable(deletes=True)
            if dry_run:
                return Scheduled(None, made.to_json())
            instant = self._request(context, owner, made, timeline)
            if instant is not None:
                log.info("clean %s requested: %d files", instant, made.plan.file_count)
                return Scheduled(instant, made.to_json())
        raise ConflictError(
            "the table's plans changed each time while a clean was planned",
            path=context.active.folder,
            remedy="run it again",
        )

    def _request(self, context: TableContext, owner: Owner, made: Planned, planned_on: Timeline) -> str | None:
        """Requests the plan and returns its instant; None when the plan no longer fits the table."""
        root = plan_address(context.storage, "").rstrip("/")
        content = encode_clean_plan(made.plan, lambda path: f"{root}/{path}")
        with context.lock(owner) as lock:
            timeline = context.active.load()
            if _basis(timeline) != _basis(planned_on):
                return None
            instant = context.new_instant(timeline)
            lock.check()
            context.active.create_requested(instant, Action.CLEAN, content)
            return instant


def _basis(timeline: Timeline) -> frozenset[tuple[str, str, bool]]:
    """Returns what a plan of old slices depends on: pending plans, and instants that remove, restore or keep files."""
    return frozenset(
        (instant.requested_time, instant.pending_action, instant.is_completed)
        for instant in timeline
        if instant.action in _BASIS or (not instant.is_completed and instant.pending_action in PLANS_OF_FILE_GROUPS)
    )
