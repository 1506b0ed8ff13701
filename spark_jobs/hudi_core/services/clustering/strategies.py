"""Chooses the partitions and file slices of a clustering plan, and its groups (ClusteringPlanPartitionFilter,
PartitionAwareClusteringPlanStrategy and the classes below it). Finds the groups that a plan leaves as they are.

Each group is of one partition. The rules are those of the release that wrote the table's version
(TableVersion.conflict_release): 0.15.0 for version 6, 1.0.2 for version 8, 1.2.0 for version 9.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence, Set
from dataclasses import field
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa

from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.config.services.clustering_config import (
    FILTER_MODE,
    LAYOUT,
    SELECTED,
    SINGLE_GROUPS,
    SMALL_FILE_LIMIT,
    SORT_COLUMNS,
    TARGET_FILE_BYTES,
    ClusteringConfig,
    FilterMode,
    SortBy,
    Strategy,
)
from hudi_core.errors import StorageNotFoundError
from hudi_core.filegroup.read.base_file import BOOTSTRAP_INSTANT
from hudi_core.filegroup.write.buckets import are_buckets
from hudi_core.frozen import dataclass
from hudi_core.history.archived import ArchivedTimeline
from hudi_core.services.context import TableContext
from hudi_core.services.rewriting.planning import held_groups
from hudi_core.services.service import FREED_BY, NO_OPTION
from hudi_core.timeline.actions.replacecommit import ClusteringPlan, clustering_plan_of
from hudi_core.timeline.instant import Action, Instant
from hudi_core.timeline.pending_plans import read_clustering_plan
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import FileSlice
from hudi_core.view.file_system_view import FileSystemView
from hudi_core.view.slice_columns import NO_FILE, LatestSlices, Mask, ids_by_partition

Group = Sequence[FileSlice]
SchemaOf = Callable[[FileSlice], Hashable]

_HOURS: Final = 24
_HELD: Final = f"that pending plans hold ({FREED_BY})"
_LATE: Final = "that are being written"
_UNFIT: Final = "that are buckets or of a bootstrap"
_LARGE: Final = f"that are large enough ({SMALL_FILE_LIMIT.name} is {{limit}})"
_ALIKE: Final = (
    f"that an earlier clustering left as this one would ({SORT_COLUMNS.name}, {LAYOUT.name}, {TARGET_FILE_BYTES.name})"
)
_SINGLE: Final = f"that would be rewritten alone ({SINGLE_GROUPS.name})"


@dataclass(frozen=True, slots=True)
class PlanRules:
    """The rules in which the releases differ."""

    counts_schedule_inline: bool
    """Whether `hoodie.clustering.schedule.inline` counts like `hoodie.clustering.async.enabled`."""
    sorts_partitions: bool
    """Whether partitions are in the order of their paths, also with RECENT_DAYS. Otherwise the latest come first there.
    """
    leaves_any_single: bool
    """Whether the option that leaves single slices out applies to every group of one slice into one file. Otherwise it
    applies only to the last group of a partition.
    """


RULES: Final[Mapping[str, PlanRules]] = {
    "0.15": PlanRules(False, False, False),
    "1.0": PlanRules(True, False, False),
    "1.2": PlanRules(True, True, True),
}
"""The rules by TableVersion.conflict_release."""


def chosen_partitions(config: ClusteringConfig, paths: Sequence[str], rules: PlanRules, *, hour: int) -> list[str]:
    """Returns the partitions of `paths` that a plan looks at, in its order. `hour` of the day is for DAY_ROLLING."""
    chosen = list(paths)
    if config.selected:
        there = frozenset(paths)
        chosen = [path for path in dict.fromkeys(config.selected) if path in there]
    elif config.partition_regex is not None:
        chosen = list(filter(re.compile(config.partition_regex).fullmatch, paths))
    match config.filter_mode:
        case FilterMode.RECENT_DAYS:
            chosen = sorted(chosen, reverse=True)[config.skip_latest :][: config.lookback or None]
        case FilterMode.SELECTED_PARTITIONS:
            first, last = config.begin_partition, config.end_partition
            chosen = [path for path in chosen if (first is None or path >= first) and (last is None or path <= last)]
        case FilterMode.DAY_ROLLING:
            chosen = [path for place, path in enumerate(sorted(chosen)) if place % _HOURS == hour]
    return sorted(chosen) if rules.sorts_partitions else chosen


def size_of(item: FileSlice, config: ClusteringConfig) -> int:
    """Returns the bytes that a slice counts in its group: those of its base file, or of a full one without it."""
    return config.max_file_bytes if item.base_file is None else item.base_file.size


def outputs_of(group: Group, config: ClusteringConfig) -> int:
    return -(-sum(size_of(item, config) for item in group) // config.target_file_bytes)


def groups_of(
    config: ClusteringConfig, slices: Sequence[FileSlice], rules: PlanRules, schema_of: SchemaOf
) -> list[Group]:
    """Returns the groups of a partition's slices. Slices with different `schema_of` are not copied into one file."""
    if config.strategy is Strategy.SINGLE_FILE:
        return [(item,) for item in slices]

    def place(item: FileSlice) -> tuple[int | str, ...]:
        keys: Mapping[SortBy, int | str] = {
            SortBy.SIZE: -size_of(item, config),
            SortBy.INSTANT_TIME: "" if item.base_file is None else item.base_instant,
        }
        return tuple(keys[field] for field in config.sort_slices_by)

    in_order = sorted(slices, key=place)
    by_schema = config.strategy is Strategy.STREAM_COPY and not config.copies_other_schemas
    groups = [*_packed(config, in_order, schema_of if by_schema else lambda _: None)]
    if config.takes_single_slices:
        return groups
    if rules.leaves_any_single and not by_schema:
        return [group for group in groups if len(group) > 1 or outputs_of(group, config) > 1]
    return groups[:-1] if groups and len(groups[-1]) == 1 else groups


def _packed(config: ClusteringConfig, slices: Sequence[FileSlice], schema_of: SchemaOf) -> Iterator[Group]:
    """Yields groups in order. A group ends before a slice that would make it too large, or that has another schema."""
    group: list[FileSlice] = []
    total, schema = 0, None
    for item in slices:
        size, other = size_of(item, config), schema_of(item)
        if group and (total + size > config.max_group_bytes or other != schema):
            yield tuple(group)
            group, total = [], 0
        if not group:
            schema = other
        group.append(item)
        total += size
    if group:
        yield tuple(group)


class ClusteredAlike:
    """Recognizes groups that completed clusterings left as the next one would leave them. A rewrite of such a group
    gains nothing, but Hudi plans it again and again (hudi#13475, hudi#14086). Each plan is read once.

    A group was clustered alike where no log file came since, and completed clusterings with the same sort columns and
    layout wrote all of its files. With the same target size too, one of them must have written the whole group, or the
    group must have fewer than twice as many files as would come out. With another target size, as many files must come
    out again. So planning comes to an end: n files become o parts, each with at most one file below the target size, so
    that fewer than 2 * o <= n come out.
    """

    def __init__(self, context: TableContext, timeline: Timeline, config: ClusteringConfig) -> None:
        self._context = context
        self._timeline = timeline
        self._config = config
        self._commits = timeline.commits().requested_times
        self._plans: dict[str, ClusteringPlan | None] = {}

    def holds(self, group: Group) -> bool:
        """Whether the group was clustered alike. Raises FormatError naming a plan that is not safe."""
        if any(item.log_files or item.base_file is None for item in group):
            return False
        targets, outputs = set[str | None](), outputs_of(group, self._config)
        # The newest first: a write on the timeline needs no read of the archive.
        instants = sorted({item.base_instant for item in group}, reverse=True)
        for instant in instants:
            if instant not in self._plans:
                self._plans[instant] = self._plan(instant)
            plan = self._plans[instant]
            if plan is None or not self._orders_as_now(plan):
                return False
            targets.add(plan.strategy_params.get(TARGET_FILE_BYTES.name))
        if targets != {str(self._config.target_file_bytes)}:
            return len(group) == outputs
        return len(instants) == 1 or len(group) < 2 * outputs

    def _orders_as_now(self, plan: ClusteringPlan) -> bool:
        then, config = plan.strategy_params, self._config
        columns = then.get(SORT_COLUMNS.name) or None
        return columns == config.sort_columns and (columns is None or LAYOUT.read(then) is config.layout)

    def _plan(self, instant: str) -> ClusteringPlan | None:
        replacing = self._timeline.find(instant, Action.REPLACE_COMMIT)
        if replacing is not None:
            try:
                return read_clustering_plan(self._context.active, replacing) if replacing.is_completed else None
            except StorageNotFoundError:
                return None
        archived = None if instant in self._commits else self._archived.get(instant)
        if archived is None:
            return None
        path = f"{self._context.config.history_folder}: {instant}"
        return clustering_plan_of(self._history.plan(archived), path=path)

    @cached_property
    def _history(self) -> ArchivedTimeline:
        return self._context.history()

    @cached_property
    def _archived(self) -> dict[str, Instant]:
        return {item.requested_time: item for item in self._history.instants() if item.action == Action.REPLACE_COMMIT}


@dataclass(slots=True)
class GroupsToPlan:
    """The groups to plan, and numbers of other file groups by cause. The next plan looks at partitions `missing`."""

    groups: list[Group] = field(default_factory=list)
    missing: set[str] = field(default_factory=set)
    passed: Counter[str] = field(default_factory=Counter)

    def reason(self, config: ClusteringConfig, partitions: int, chosen: int) -> str:
        where = f"{partitions} partitions"
        if chosen < partitions:
            where = f"the {chosen} of {where} that the options take ({FILTER_MODE.name}, {SELECTED.name}…)"
        causes = [cause for cause in (_HELD, _LATE, _UNFIT, _LARGE, _ALIKE, _SINGLE) if self.passed[cause]]
        beside = ", ".join(f"{self.passed[cause]} {cause}" for cause in causes).format(limit=config.small_file_limit)
        why = f"no file group is to be clustered in {where}" + (f", beside {beside}" if beside else "")
        has_option = chosen < partitions or not {_LARGE, _ALIKE, _SINGLE}.isdisjoint(causes)
        return why if has_option else why + NO_OPTION


def find_groups(
    context: TableContext, view: FileSystemView, partitions: Sequence[str], instant: str, config: ClusteringConfig
) -> GroupsToPlan:
    """Returns groups of the latest slices that no pending plan holds, up to the number that a plan may have."""
    held = ids_by_partition(held_groups(view.pending))
    rules = RULES[context.config.features.conflict_release]
    late: frozenset[str] = frozenset()
    if context.config.features.completion_time_in_name:
        # Writers that check conflicts take these for later than the clustering: it must not have their files.
        late = frozenset(item.requested_time for item in view.timeline.commits() if item.completed_at >= instant)
    earlier = ClusteredAlike(context, view.timeline, config)
    plannable = GroupsToPlan()
    looked_at = 0
    for latest in view.latest_slice_columns(partitions):
        candidates = latest.where(candidates_of(latest, held, late, config, plannable))
        for position, partition in enumerate(latest.partitions):
            room = config.max_groups - len(plannable.groups)
            if not room:
                break
            looked_at += 1
            slices = candidates.slices(candidates.rows_of_partition(position))
            groups = groups_of(config, slices, rules, lambda item: _schema_of(context, item))
            plannable.passed[_SINGLE] += len(slices) - sum(map(len, groups))
            due = [group for group in groups if not earlier.holds(group)]
            plannable.passed[_ALIKE] += sum(map(len, groups)) - sum(map(len, due))
            if len(due) > room:
                plannable.missing.add(partition)
            plannable.groups += due[:room]
        if len(plannable.groups) >= config.max_groups:
            break
    # The next plan looks at the partitions after the limit.
    plannable.missing.update(partitions[looked_at:])
    return plannable


def candidates_of(
    latest: LatestSlices,
    held: Mapping[str, Sequence[str]],
    late: Set[str],
    config: ClusteringConfig,
    plannable: GroupsToPlan,
) -> Mask:
    """Returns which slices may be clustered. The others are counted in `plannable` by their first cause."""
    is_late = np.array([instant in late for instant in latest.base_instants], np.bool_)
    is_late[[row for row, instant in zip(latest.log_rows, latest.log_instants, strict=True) if instant in late]] = True
    is_unfit = latest.base_instants == BOOTSTRAP_INSTANT
    for position in range(len(latest.partitions)):
        rows = latest.rows_of_partition(position)
        if are_buckets(latest.file_ids.take(pa.array(rows)).to_pylist()):
            is_unfit[rows] = True
    # A slice of log files alone has no base file, and is small.
    causes = {
        _HELD: latest.among(held),
        _LATE: is_late,
        _UNFIT: is_unfit,
        _LARGE: latest.base_bytes >= config.small_file_limit,
    }
    taken: Mask = np.ones(len(latest), np.bool_)
    for cause, applies in causes.items():
        passed = taken & applies
        plannable.passed[cause] += int(passed.sum())
        if cause in (_HELD, _LATE):
            plannable.missing.update(latest.partitions[at] for at in np.unique(latest.partition_of[passed]).tolist())
        taken &= ~applies
    taken &= (latest.base_files != NO_FILE) | (latest.log_counts > 0)
    return taken


def _schema_of(context: TableContext, item: FileSlice) -> Hashable:
    """Returns the Parquet columns of a base file. Files with different columns are not copied into one."""
    if item.base_file is None:
        return None
    path = item.base_file.path
    with context.storage.open_input(path) as file:
        return str(ParquetBaseFile(file, path).schema)
