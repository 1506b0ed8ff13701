"""Which partitions and file slices a clustering plan takes, in which groups (ClusteringPlanPartitionFilter,
PartitionAwareClusteringPlanStrategy and the classes below it), and which groups it leaves as they are.

Groups are of one partition each. The rules are those of the release that wrote the table's version
(TableVersion.conflict_release): 0.15.0 for version 6, 1.0.2 for version 8, 1.2.0 for version 9.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from hudi_core.config.services.clustering_config import (
    LAYOUT,
    SORT_COLUMNS,
    TARGET_FILE_BYTES,
    ClusteringConfig,
    FilterMode,
    SortBy,
    Strategy,
)
from hudi_core.errors import StorageNotFoundError
from hudi_core.history.archived import ArchivedTimeline
from hudi_core.services.context import TableContext
from hudi_core.timeline.actions.replacecommit import ClusteringPlan, clustering_plan_of
from hudi_core.timeline.instant import Action, Instant
from hudi_core.timeline.pending_plans import read_clustering_plan
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import FileSlice

Group = Sequence[FileSlice]
SchemaOf = Callable[[FileSlice], Hashable]

_HOURS: Final = 24


@dataclass(frozen=True, slots=True)
class PlanRules:
    """What the releases differ in."""

    counts_schedule_inline: bool
    """`hoodie.clustering.schedule.inline` counts as `hoodie.clustering.async.enabled` does."""
    sorts_partitions: bool
    """Partitions are in the order of their paths, also those of RECENT_DAYS; else the latest come first there."""
    leaves_any_single: bool
    """Any group of one slice into one file is left out where single ones are; else only the last of a partition."""


RULES: Final[Mapping[str, PlanRules]] = {
    "0.15": PlanRules(False, False, False),
    "1.0": PlanRules(True, False, False),
    "1.2": PlanRules(True, True, True),
}
"""By TableVersion.conflict_release."""


def chosen_partitions(config: ClusteringConfig, paths: Sequence[str], rules: PlanRules, *, hour: int) -> list[str]:
    """The partitions among `paths` that a plan looks at, in its order. `hour` is that of the day, for DAY_ROLLING."""
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


def is_small(item: FileSlice, config: ClusteringConfig) -> bool:
    """Whether the base file is smaller than the limit; a slice of log files alone has none."""
    return (0 if item.base_file is None else item.base_file.size) < config.small_file_limit


def size_of(item: FileSlice, config: ClusteringConfig) -> int:
    """The bytes that a slice counts in its group: those of its base file, or of a full one where it has none."""
    return config.max_file_bytes if item.base_file is None else item.base_file.size


def outputs_of(group: Group, config: ClusteringConfig) -> int:
    """About how many files the group becomes."""
    return -(-sum(size_of(item, config) for item in group) // config.target_file_bytes)


def groups_of(
    config: ClusteringConfig, slices: Sequence[FileSlice], rules: PlanRules, schema_of: SchemaOf
) -> list[Group]:
    """All groups of a partition's slices. `schema_of` tells slices apart that are not copied into one file."""
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
    """A group ends before the slice that would make it too large, or that has another schema."""
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
    """Groups that completed clusterings of a table left as the next one would: to rewrite them again gains nothing
    (hudi#13475, hudi#14086). Each plan is read once, and the archive on first use.

    Hudi plans such groups every time: a partition with one small file is rewritten for ever. A group was clustered
    alike where no log file came since, and completed clusterings wrote all of its files, with the same sort columns and
    layout. Where they had the same target size, one of them wrote the whole group, or the group has fewer than twice as
    many files as would come out; else as many files would come out again.

    So planning comes to an end on a table that nothing else changes. Each rewrite takes files that no clustering left
    in this order and for this size, or it lowers the number of files: n files become o parts, each of which ends in at
    most one file below the target size, so that fewer than 2 * o <= n files come out.
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
        # The newest first: of a write that is on the timeline the archive need not be read.
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
        """The archived replacecommits by requested time."""
        return {item.requested_time: item for item in self._history.instants() if item.action == Action.REPLACE_COMMIT}
