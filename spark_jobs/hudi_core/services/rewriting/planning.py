"""Plans compactions and clusterings: without the lock, and again under it if the timeline changed. Applies budgets."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final, Generic, TypeVar

from hudi_core.config.concurrency_config import CONCURRENCY_MODE, FAILED_WRITES_POLICY
from hudi_core.config.engine_config import EngineConfig, Extent
from hudi_core.config.rows_config import PLAN_MAX_BYTES
from hudi_core.engine.protocol import Json
from hudi_core.errors import StorageNotFoundError
from hudi_core.frozen import dataclass
from hudi_core.model.names import FileGroupId
from hudi_core.services.context import TableContext, provenance
from hudi_core.services.rewriting.other_writers import failed_eager_write, live_writer
from hudi_core.services.rollback.failed_writes import pending_rollback_or_restore
from hudi_core.services.service import Nothing, Scheduled, Service
from hudi_core.storage.base import Storage
from hudi_core.storage.overlapped import each_ahead
from hudi_core.timeline.actions.compaction import MISSING_PARTITIONS, CompactionOperation
from hudi_core.timeline.actions.content import member
from hudi_core.timeline.actions.replacecommit import ClusteringSlice
from hudi_core.timeline.instant import Instant, State
from hudi_core.timeline.instant_time import new_instant
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.owner import Owner
from hudi_core.view.file_system_view import PendingWork

log = logging.getLogger(__name__)

P = TypeVar("P")
Item = TypeVar("Item")

CUT_KEY: Final = "airflow_hudi.plan.cut"
"""Extra metadata of a plan that left out something that was due (PLAN_MAX_BYTES)."""

PLANS_IN_TIME: Final = 4
"""How many plans fit into a run's time: it leaves completed instants, and at most one ends late."""
_ASSUMED_RATE: Final = 8 << 20
"""Bytes of a plan per second, before a run has measured its own rate. One core of a slow machine compacts 20 MiB of
base files per second (`--engine local`). A storage across a network may be slower than its disk.
"""
_MOST_BYTES: Final = 2**53
"""The largest value of PLAN_MAX_BYTES."""


@dataclass(frozen=True, slots=True)
class Planned(Generic[P]):
    """A plan, and its document as hudictl prints it. `left` is how many due file groups did not fit into the budget."""

    plan: P
    document: Json
    left: int = 0


def extent_of(
    storage: Storage, units: Sequence[Sequence[CompactionOperation | ClusteringSlice]], config: EngineConfig
) -> Extent:
    """Returns a plan's extent. Lists each of its partitions once, unless the number of units decides."""
    return Extent(len(units)) if len(units) > config.max_units else Extent.of(_sizes(storage, units), config)


def _sizes(storage: Storage, units: Sequence[Sequence[CompactionOperation | ClusteringSlice]]) -> Iterator[int]:
    """Yields the bytes of the files of each unit. A file that is gone has none."""
    listed: dict[str, dict[str, int]] = {}
    partitions = dict.fromkeys(item.partition for unit in units for item in unit)
    ahead = each_ahead(storage, partitions, storage.list_files)
    for unit in units:
        total = 0
        for item in unit:
            while item.partition not in listed:
                partition, files = next(ahead)
                listed[partition] = {info.name: info.size for info in files}
            names = (*item.log_files, *filter(None, (item.base_file,)))
            total += sum(listed[item.partition].get(name, 0) for name in names)
        yield total


def held_groups(pending: PendingWork) -> set[FileGroupId]:
    clustered = (plan.file_groups() for plan in pending.read_clusterings().values())
    return {*pending.compacting, *pending.log_compacting}.union(*clustered)


def within_budget(
    options: Mapping[str, str], items: Sequence[Item], size: Callable[[Item], int], gain: Callable[[Item], float]
) -> tuple[list[Item], list[Item]]:
    """Returns what PLAN_MAX_BYTES takes, by gain per byte, at least one item, and the rest; both in order."""
    room = PLAN_MAX_BYTES.read(options)
    if room is None or sum(map(size, items)) <= room:
        return list(items), []
    taken: set[int] = set()
    for at in sorted(range(len(items)), key=lambda at: (-gain(items[at]) / max(1, size(items[at])), at)):
        if not taken or size(items[at]) <= room:
            taken.add(at)
            room -= size(items[at])
    others = [item for at, item in enumerate(items) if at not in taken]
    return [items[at] for at in sorted(taken)], others


def cut_to(
    context: TableContext, seconds: float | None, rate: float | None = None, most: int | None = None
) -> TableContext:
    """Returns the table with PLAN_MAX_BYTES for a plan of `most` bytes that takes `seconds` at a `rate`; None is no
    limit. A smaller value in its options stays. Raises ConfigError for options that are not valid.
    """
    in_time = None if seconds is None else int(seconds * (rate or _ASSUMED_RATE))
    limits = [limit for limit in (in_time, most) if limit is not None]
    if not limits:
        return context
    set_bytes = PLAN_MAX_BYTES.read(context.options) or _MOST_BYTES
    budget = max(1, min(set_bytes, *limits))
    return replace(context, options={**context.options, PLAN_MAX_BYTES.name: str(budget)})


def was_cut(context: TableContext, planned: Instant | None) -> bool:
    """Whether a plan left out something that was due; False where the plan is gone. Raises FormatError."""
    extra = _member_of(context, planned, "extraMetadata", dict) or {}
    return bool(extra.get(CUT_KEY) == "true")


def left_partitions(context: TableContext, planned: Instant | None) -> bool:
    """Whether a plan, also one of Hudi, left out partitions, wholly or in part. Else like was_cut."""
    return bool(_member_of(context, planned, MISSING_PARTITIONS, list))


def _member_of(context: TableContext, planned: Instant | None, name: str, kind: type) -> Any:
    if planned is None:
        return None
    where = planned.requested_time, planned.pending_action, State.REQUESTED
    try:
        plan = context.active.read_any(*where)
    except StorageNotFoundError:
        return None
    path = context.active.path(*where)
    return member(member(plan, "clusteringPlan", dict, path=path) or plan, name, kind, path=path)


class RewriteService(Service, Generic[P]):
    """A service that rewrites file groups. Plans again where the timeline changed until the lock is held."""

    rewritten: ClassVar[str]
    """The word in messages for what is done to rows, such as `compacted`."""

    @abstractmethod
    def check(self, context: TableContext, timeline: Timeline) -> None:
        """Raises UnsupportedError for a table that this engine does not rewrite."""

    @abstractmethod
    def make(self, context: TableContext, timeline: Timeline, instant: str) -> Planned[P] | Nothing:
        """Returns the plan at `instant`, or why there is none. Writes nothing."""

    @abstractmethod
    def encode(self, context: TableContext, plan: P, extra_metadata: Mapping[str, str]) -> bytes:
        """Returns the content of the requested file."""

    def requested_as(self, context: TableContext) -> str:
        """Returns the action of the requested file."""
        return self.action

    def schedule(self, context: TableContext, owner: Owner, *, dry_run: bool) -> Scheduled:
        """Plans an instant and requests it. Reads the table without the lock, and again under it where its timeline has
        changed. What completes meanwhile is after the instant. Raises the UnsupportedError of `check`, ConfigError for
        options, FormatError for an unsafe pending plan.
        """
        timeline = context.active.load()
        self.check(context, timeline)
        times = (time for item in timeline for time in (item.requested_time, item.completed_at))
        made = self.plan(context, timeline, new_instant(times, context.zone))
        if isinstance(made, Nothing):
            return Scheduled(None, None, made.reason)
        if dry_run:
            return Scheduled(None, made.document)
        with context.lock(owner) as lock:
            instant = context.new_instant(context.active.load())
            context.active.look_again()  # what completed before the instant was drawn is in the plan
            latest = context.active.load()
            if latest != timeline:
                made = self.plan(context, latest, instant)
            if isinstance(made, Nothing):
                return Scheduled(None, None, made.reason)
            cut = {CUT_KEY: "true"} if made.left else {}
            content = self.encode(context, made.plan, {**provenance(owner), **cut})
            lock.check()
            context.active.create_requested(instant, self.requested_as(context), content)
        log.info("%s %s requested", self.name, instant)
        return Scheduled(instant, made.document)

    def plan(self, context: TableContext, timeline: Timeline, instant: str) -> Planned[P] | Nothing:
        """Returns what `schedule` requests at `instant`, or why it requests nothing."""
        first = pending_rollback_or_restore(context.active, timeline)
        if first is not None:
            pending, way_out = first
            return Nothing(
                f"{pending.action} {pending.requested_time} is pending, and may roll back what would be "
                f"{self.rewritten}: {way_out}"
            )
        writer = live_writer(context, timeline, self.action)
        if writer is not None:
            return Nothing(
                f"{writer.action} {writer.requested_time} is pending, and what it writes would be lost behind a plan: "
                f"wait for it, roll it back, or set {CONCURRENCY_MODE.name}=optimistic_concurrency_control where every "
                "writer has it"
            )
        failed = failed_eager_write(context, timeline, self.action)
        if failed is not None:
            return Nothing(
                f"{failed.action} {failed.requested_time} is pending, and an EAGER writer, which rolls it back, fails "
                f"behind a later commit: hudictl rollback TABLE, or set {FAILED_WRITES_POLICY.name}=LAZY where every "
                "writer has it"
            )
        return self.make(context, timeline, instant)
