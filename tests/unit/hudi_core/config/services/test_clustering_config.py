"""Options of planning clusterings."""

from __future__ import annotations

import pytest

from hudi_core.config.services.clustering_config import (
    PLAN_STRATEGY,
    ClusteringConfig,
    FilterMode,
    Layout,
    SortBy,
    Strategy,
)
from hudi_core.errors import ConfigError

HUDI = "org.apache.hudi.client.clustering.plan.strategy"
PLAN = "hoodie.clustering.plan.strategy"
CLASS = f"{PLAN}.class"
TARGET = f"{PLAN}.target.file.max.bytes"


def test_defaults_are_those_of_hudi() -> None:
    config = ClusteringConfig.of({})
    assert (config.strategy, config.filter_mode, config.layout) == (
        Strategy.SIZE_BASED,
        FilterMode.NONE,
        Layout.LINEAR,
    )
    assert (config.small_file_limit, config.target_file_bytes, config.max_group_bytes) == (300 << 20, 1 << 30, 2 << 30)
    assert (config.max_groups, config.single_groups, config.sort_columns) == (30, True, None)
    assert config.execution_class.endswith(".run.strategy.SparkSortAndSizeExecutionStrategy")
    assert config.strategy_params() == {TARGET: str(1 << 30)}


@pytest.mark.parametrize(
    ("name", "strategy", "mode"),
    [
        ("SparkSizeBasedClusteringPlanStrategy", Strategy.SIZE_BASED, FilterMode.DAY_ROLLING),
        ("SparkSingleFileSortPlanStrategy", Strategy.SINGLE_FILE, FilterMode.DAY_ROLLING),
        ("SparkStreamCopyClusteringPlanStrategy", Strategy.STREAM_COPY, FilterMode.DAY_ROLLING),
        ("SparkRecentDaysClusteringPlanStrategy", Strategy.SIZE_BASED, FilterMode.RECENT_DAYS),
        ("JavaRecentDaysClusteringPlanStrategy", Strategy.SIZE_BASED, FilterMode.RECENT_DAYS),
        ("SparkSelectedPartitionsClusteringPlanStrategy", Strategy.SIZE_BASED, FilterMode.SELECTED_PARTITIONS),
    ],
)
def test_a_strategy_is_named_by_its_class_and_old_names_choose_the_filter(
    name: str, strategy: Strategy, mode: FilterMode
) -> None:
    for value in (name, f"{HUDI}.{name}"):
        config = ClusteringConfig.of({CLASS: value, "hoodie.clustering.plan.partition.filter.mode": "day_rolling"})
        assert (config.strategy, config.filter_mode) == (strategy, mode)
        assert ("StreamCopy" in config.execution_class) == (strategy is Strategy.STREAM_COPY)


@pytest.mark.parametrize("value", ["z-order", "ZORDER", "Z-Order"])
def test_a_layout_is_in_the_plan_where_rows_are_sorted(value: str) -> None:
    options = {"hoodie.layout.optimize.strategy": value, TARGET: "7"}
    assert ClusteringConfig.of(options).strategy_params() == {TARGET: "7"}
    config = ClusteringConfig.of({**options, f"{PLAN}.sort.columns": "a,b"})
    assert config.strategy_params() == {
        f"{PLAN}.sort.columns": "a,b",
        "hoodie.layout.optimize.strategy": "z-order",
        TARGET: "7",
    }


def test_a_single_slice_is_taken_where_rows_are_sorted() -> None:
    single = f"{PLAN}.single.group.clustering.enabled"
    assert ClusteringConfig.of({}).takes_single_slices
    assert not ClusteringConfig.of({single: "false"}).takes_single_slices
    assert ClusteringConfig.of({single: "false", f"{PLAN}.sort.columns": "a"}).takes_single_slices


def test_slices_are_ordered_by_several_fields() -> None:
    config = ClusteringConfig.of({f"{PLAN}.file.slices.sort.by": "instant_time, SIZE"})
    assert config.sort_slices_by == (SortBy.INSTANT_TIME, SortBy.SIZE)


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        (CLASS, "com.acme.Mine", "is not one of"),
        (CLASS, f"{HUDI}.SparkConsistentBucketClusteringPlanStrategy", "resizes buckets"),
        ("hoodie.clustering.plan.partition.filter.mode", "SOME", "not one of"),
        ("hoodie.layout.optimize.strategy", "random", "not one of linear, z-order, hilbert"),
        (f"{PLAN}.file.slices.sort.by", "NAME", "not some of"),
        (f"{PLAN}.partition.regex.pattern", "(", "regular expression"),
        (f"{PLAN}.max.num.groups", "0", "not between"),
    ],
)
def test_what_is_not_valid_names_the_option(key: str, value: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as refused:
        ClusteringConfig.of({key: value})
    assert key in str(refused.value)


@pytest.mark.parametrize(
    "name",
    [
        "CommitBasedClusteringPlanStrategy",
        "FlinkSizeBasedClusteringPlanStrategyRecently",
        "FlinkConsistentBucketClusteringPlanStrategy",
        "SparkConsistentBucketClusteringPlanStrategy",
    ],
)
def test_the_options_text_names_the_classes_of_hudi_that_are_refused(name: str) -> None:
    with pytest.raises(ConfigError):
        ClusteringConfig.of({CLASS: f"{HUDI}.{name}"})
    assert name in PLAN_STRATEGY.doc
