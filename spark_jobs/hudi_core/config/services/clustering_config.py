"""Options of planning clusterings, under Hudi's own names (HoodieClusteringConfig, HoodieLayoutConfig)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from typing import Final

from hudi_core.config.keys import (
    MAX_INT,
    ConfigKey,
    flag,
    keys_in,
    member_of,
    name_list,
    names,
    number,
    optional,
    read_fields,
    regular_expression,
)
from hudi_core.config.services.compaction_config import MAX_FILE_BYTES
from hudi_core.frozen import dataclass

_MAX: Final = 2**63 - 1
_PLANS: Final = "hoodie.clustering.plan.strategy."
_RUN: Final = "org.apache.hudi.client.clustering.run.strategy."
SORT_AND_SIZE: Final = f"{_RUN}SparkSortAndSizeExecutionStrategy"
STREAM_COPY: Final = f"{_RUN}SparkStreamCopyClusteringExecutionStrategy"


class FilterMode(Enum):
    """Which partitions a plan looks at (ClusteringPlanPartitionFilterMode)."""

    NONE = "NONE"
    RECENT_DAYS = "RECENT_DAYS"
    SELECTED_PARTITIONS = "SELECTED_PARTITIONS"
    DAY_ROLLING = "DAY_ROLLING"


class Strategy(Enum):
    """How file slices become groups; the values are Hudi's class names."""

    SIZE_BASED = "SparkSizeBasedClusteringPlanStrategy"
    SINGLE_FILE = "SparkSingleFileSortPlanStrategy"
    STREAM_COPY = "SparkStreamCopyClusteringPlanStrategy"


class SortBy(Enum):
    """Order of the slices that are packed into groups (ClusteringFileSliceSortByField)."""

    SIZE = "SIZE"
    INSTANT_TIME = "INSTANT_TIME"


class Layout(Enum):
    """How rows are ordered by the sort columns (LayoutOptimizationStrategy)."""

    LINEAR = "linear"
    Z_ORDER = "z-order"
    HILBERT = "hilbert"

    @property
    def is_linear(self) -> bool:
        return self is Layout.LINEAR


_CLASSES: Final = {
    **{strategy.value: (strategy, None) for strategy in Strategy},
    "SparkRecentDaysClusteringPlanStrategy": (Strategy.SIZE_BASED, FilterMode.RECENT_DAYS),
    "SparkSelectedPartitionsClusteringPlanStrategy": (Strategy.SIZE_BASED, FilterMode.SELECTED_PARTITIONS),
    "JavaSizeBasedClusteringPlanStrategy": (Strategy.SIZE_BASED, None),
    "JavaRecentDaysClusteringPlanStrategy": (Strategy.SIZE_BASED, FilterMode.RECENT_DAYS),
    "FlinkSizeBasedClusteringPlanStrategy": (Strategy.SIZE_BASED, None),
}
"""Strategies by class name. A deprecated name also stands for a filter (checkAndGetClusteringPlanStrategy)."""


def _strategy(value: str) -> tuple[Strategy, FilterMode | None]:
    name = value.rpartition(".")[2]
    if "Bucket" in name:
        raise ValueError(f"{name} resizes buckets, which is planned and run by Hudi's own writers only")
    if name not in _CLASSES:
        raise ValueError(f"{name} is not one of {', '.join(_CLASSES)}")
    return _CLASSES[name]


def _sort_by(value: str) -> tuple[SortBy, ...]:
    known = {field.value: field for field in SortBy}
    fields = [name.upper() for name in name_list(value)]
    if not fields or not known.keys() >= {*fields}:
        raise ValueError(f"not some of {', '.join(known)}")
    return tuple(known[name] for name in fields)


INLINE = flag("hoodie.clustering.inline")
INLINE_COMMITS = number("hoodie.clustering.inline.max.commits", 4, within=(0, MAX_INT))
ASYNC = flag("hoodie.clustering.async.enabled")
SCHEDULE_INLINE = flag("hoodie.clustering.schedule.inline")
ASYNC_COMMITS = number("hoodie.clustering.async.max.commits", 4, within=(0, MAX_INT))
PLAN_STRATEGY: ConfigKey[tuple[Strategy, FilterMode | None]] = ConfigKey(
    f"{_PLANS}class", (Strategy.SIZE_BASED, None), _strategy
)
EXECUTION_STRATEGY = ConfigKey("hoodie.clustering.execution.strategy.class", SORT_AND_SIZE, str)
FILTER_MODE: ConfigKey[FilterMode] = ConfigKey(
    "hoodie.clustering.plan.partition.filter.mode", FilterMode.NONE, member_of(FilterMode)
)
SELECTED = names(f"{_PLANS}partition.selected")
PARTITION_REGEX: ConfigKey[str | None] = ConfigKey(
    f"{_PLANS}partition.regex.pattern", None, lambda value: regular_expression(value) or None
)
BEGIN_PARTITION = optional(f"{_PLANS}cluster.begin.partition")
END_PARTITION = optional(f"{_PLANS}cluster.end.partition")
LOOKBACK = number(f"{_PLANS}daybased.lookback.partitions", 2, within=(0, MAX_INT))
SKIP_LATEST = number(f"{_PLANS}daybased.skipfromlatest.partitions", 0, within=(0, MAX_INT))
SMALL_FILE_LIMIT = number(f"{_PLANS}small.file.limit", 300 << 20, within=(0, _MAX))
TARGET_FILE_BYTES = number(f"{_PLANS}target.file.max.bytes", 1 << 30, within=(1, _MAX))
MAX_GROUP_BYTES = number(f"{_PLANS}max.bytes.per.group", 2 << 30, within=(1, _MAX))
MAX_GROUPS = number(f"{_PLANS}max.num.groups", 30)
SINGLE_GROUPS = flag(f"{_PLANS}single.group.clustering.enabled", default=True)
COPIES_OTHER_SCHEMAS = flag(f"{_PLANS}binary.copy.schema.evolution.enable")
SORT_SLICES_BY: ConfigKey[tuple[SortBy, ...]] = ConfigKey(f"{_PLANS}file.slices.sort.by", (SortBy.SIZE,), _sort_by)
SORT_COLUMNS = optional(f"{_PLANS}sort.columns")
LAYOUT: ConfigKey[Layout] = ConfigKey(
    "hoodie.layout.optimize.strategy", Layout.LINEAR, member_of(Layout, lambda name: name.lower().replace("-", ""))
)

CLUSTERING_KEYS = keys_in(globals(), but=(MAX_FILE_BYTES,))


@dataclass(frozen=True, slots=True)
class ClusteringConfig:
    strategy: Strategy = Strategy.SIZE_BASED
    filter_mode: FilterMode = FilterMode.NONE
    layout: Layout = Layout.LINEAR
    copies_other_schemas: bool = COPIES_OTHER_SCHEMAS.field()
    inline: bool = INLINE.field()
    inline_commits: int = INLINE_COMMITS.field()
    asynchronous: bool = ASYNC.field()
    schedule_inline: bool = SCHEDULE_INLINE.field()
    async_commits: int = ASYNC_COMMITS.field()
    execution_class: str = EXECUTION_STRATEGY.field()
    selected: tuple[str, ...] = SELECTED.field()
    partition_regex: str | None = PARTITION_REGEX.field()
    begin_partition: str | None = BEGIN_PARTITION.field()
    end_partition: str | None = END_PARTITION.field()
    lookback: int = LOOKBACK.field()
    skip_latest: int = SKIP_LATEST.field()
    small_file_limit: int = SMALL_FILE_LIMIT.field()
    target_file_bytes: int = TARGET_FILE_BYTES.field()
    max_group_bytes: int = MAX_GROUP_BYTES.field()
    max_groups: int = MAX_GROUPS.field()
    single_groups: bool = SINGLE_GROUPS.field()
    sort_slices_by: tuple[SortBy, ...] = SORT_SLICES_BY.field()
    sort_columns: str | None = SORT_COLUMNS.field()
    max_file_bytes: int = MAX_FILE_BYTES.field()

    @staticmethod
    def of(options: Mapping[str, str]) -> ClusteringConfig:
        strategy, mode = PLAN_STRATEGY.read(options)
        mode, layout = mode or FILTER_MODE.read(options), LAYOUT.read(options)
        config = read_fields(ClusteringConfig, options, strategy=strategy, filter_mode=mode, layout=layout)
        return replace(config, execution_class=STREAM_COPY) if strategy is Strategy.STREAM_COPY else config

    @property
    def takes_single_slices(self) -> bool:
        """Whether a plan takes a group of one slice (shouldClusteringSingleGroup)."""
        return self.single_groups or self.sort_columns is not None

    def strategy_params(self) -> dict[str, str]:
        """Returns the parameters that the plan gives to its execution. Hudi's own plans hold the sort columns alone."""
        params = {} if self.sort_columns is None else {SORT_COLUMNS.name: self.sort_columns}
        if self.sort_columns is not None and self.layout is not Layout.LINEAR:
            params[LAYOUT.name] = self.layout.value
        return {**params, TARGET_FILE_BYTES.name: str(self.target_file_bytes)}
