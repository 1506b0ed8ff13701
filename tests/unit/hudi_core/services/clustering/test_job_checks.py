"""What a clustering refuses before it writes anything, and what stops it before it completes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hudi_core.config.services.clustering_config import Layout
from hudi_core.errors import ConfigError, ConflictError, FormatError, HudiError, UnsupportedError
from hudi_core.filegroup.write.buckets import BUCKETS_FOLDER
from hudi_core.model.names import FileGroupId
from hudi_core.services.clustering.job import (
    check_parameters,
    check_plan,
    check_untouched,
    order_of,
    source_commits,
    target_bytes,
)
from hudi_core.services.concurrent_changes import check_none_rolled_back
from hudi_core.services.rewriting.sort_order import SortOrder
from hudi_core.timeline.actions.replacecommit import ClusteringGroup, ClusteringPlan, ClusteringSlice
from hudi_core.view.file_group import FileSlice
from tests.support.changed_tables import open_context
from tests.support.golden_clusterings import LAYOUT, SORT_COLUMNS
from tests.support.golden_data import GoldenCase
from tests.support.pending_operations import Operations

Golden = Callable[[str, str], GoldenCase]
SCHEMA = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "string"}]}
TARGET = "hoodie.clustering.plan.strategy.target.file.max.bytes"
SLICE = ClusteringSlice("p", "a1b2c3d4-0", "a1b2c3d4-0_0-0-0_20250101000000000.parquet", ())
PLAN = ClusteringPlan((ClusteringGroup((SLICE,), 1),))


def with_slice(**changes: Any) -> ClusteringPlan:
    return ClusteringPlan((ClusteringGroup((replace(SLICE, **changes),), 1),))


REFUSED: dict[str, tuple[ClusteringPlan, type[HudiError], str]] = {
    "nothing": (ClusteringPlan(()), FormatError, "names no file slice"),
    "no file": (with_slice(base_file=None), FormatError, "names no file of"),
    "change-data logs alone": (
        with_slice(base_file=None, log_files=(".a1b2c3d4-0_20250101000000000.log.1_0-0-0.cdc",)),
        FormatError,
        "names no file of",
    ),
    "a bucket": (with_slice(file_id="00000012-aaaa-0"), UnsupportedError, "are buckets"),
    "a bootstrap": (with_slice(base_file="a1b2c3d4-0_0-0-0_00000000000001.parquet"), UnsupportedError, "bootstrap"),
    "buckets to resize": (
        replace(PLAN, strategy_class="org.apache.hudi.SparkConsistentBucketClusteringExecutionStrategy"),
        UnsupportedError,
        "SparkConsistentBucketClusteringExecutionStrategy, which is not run here",
    ),
    "a strategy of the user": (replace(PLAN, strategy_class="com.example.Mine"), UnsupportedError, "Mine"),
}


@pytest.mark.parametrize("what", list(REFUSED))
def test_plans_that_are_not_run_here(golden: Golden, what: str) -> None:
    plan, error, text = REFUSED[what]
    context = open_context(golden("9", "cow_basic").table)
    with pytest.raises(error, match=text) as caught:
        check_plan(context, plan, path="plan")
    assert caught.value.path == "plan"
    assert "unschedule" in str(caught.value.remedy)
    check_plan(context, PLAN, path="plan")


def test_one_file_group_that_begins_like_a_bucket_is_run(golden: Golden) -> None:
    """Of 100,000 random ids one may; in a table with buckets all do."""
    like = replace(SLICE, file_id="00005777-d2b2-4d6d-9929-aecaa25399eb-0")
    check_plan(
        open_context(golden("9", "cow_basic").table), ClusteringPlan((ClusteringGroup((like, SLICE), 1),)), path="plan"
    )


def test_a_plan_of_one_file_group_that_begins_like_a_bucket_is_run(golden: Golden) -> None:
    """Where others of its partition do not begin so."""
    context = open_context(golden("9", "cow_basic").table)
    partition = context.view(context.active.load()).partitions()[0]
    like = replace(SLICE, partition=partition, file_id="00005777-d2b2-4d6d-9929-aecaa25399eb-0")
    check_plan(context, ClusteringPlan((ClusteringGroup((like,), 1),)), path="plan")


def test_a_table_with_consistent_buckets_is_refused(golden: Golden) -> None:
    with pytest.raises(UnsupportedError, match="consistent hashing"):
        check_plan(open_context(golden("9", "bucket_index_consistent_mor").table), PLAN, path="plan")


def test_a_table_with_buckets_by_partition_is_refused_by_its_own_name(golden: Golden) -> None:
    context = open_context(golden("9", "bucket_index_cow").table)
    folder = f"{BUCKETS_FOLDER}/partition_bucket_index_meta"
    context.storage.write(f"{folder}/configs/00000000000000.hashing_config", b"{}")
    with pytest.raises(UnsupportedError, match=r"for each partition \(hoodie.bucket.index.partition.exp") as caught:
        check_plan(context, PLAN, path="plan")
    assert caught.value.path == folder
    context.storage.write(f"{BUCKETS_FOLDER}/consistent_hashing_metadata/p/00000000000000.hashing_meta", b"{}")
    with pytest.raises(UnsupportedError, match="consistent hashing"):
        check_plan(context, PLAN, path="plan")


def test_an_order_is_that_of_the_plan_or_the_run() -> None:
    def order(params: dict[str, str], options: dict[str, str] | None = None) -> SortOrder | None:
        return order_of(params, options or {}, SCHEMA)

    assert order({}) is None
    assert order({SORT_COLUMNS: " , "}, {LAYOUT: "hilbert"}) is None
    assert order({SORT_COLUMNS: "a, b,a"}) == SortOrder(("a", "b"))
    assert order({SORT_COLUMNS: "a", LAYOUT: "z-order"}) == SortOrder(("a",), Layout.Z_ORDER)
    assert order({SORT_COLUMNS: "a", LAYOUT: "z-order"}, {LAYOUT: "HILBERT"}) == SortOrder(("a",), Layout.HILBERT)
    assert order({SORT_COLUMNS: "B, A"}) == SortOrder(("b", "a")), "as Spark finds columns"
    with pytest.raises(ConfigError, match=r"layout\.optimize"):
        order({SORT_COLUMNS: "a", LAYOUT: "circle"})
    with pytest.raises(ConfigError, match="names c"):
        order({SORT_COLUMNS: "a,c"})


def test_columns_that_files_lack_are_left_out_of_an_order() -> None:
    """They have one value in a partition."""
    assert order_of({SORT_COLUMNS: "P,b"}, {}, SCHEMA, ("p",)) == SortOrder(("b",))
    assert order_of({SORT_COLUMNS: "b,a"}, {}, SCHEMA, ("a",)) == SortOrder(("b",)), "that the schema names, too"
    assert order_of({SORT_COLUMNS: "p"}, {}, SCHEMA, ("p",)) is None


def test_the_size_of_a_file_is_that_of_the_run_or_the_plan() -> None:
    plan = replace(PLAN, strategy_params={TARGET: "1000"})
    assert target_bytes(plan, {}) == 1000
    assert target_bytes(plan, {TARGET: "2000"}) == 2000
    assert target_bytes(PLAN, {}) == 1 << 30
    with pytest.raises(ConfigError, match=r"target\.file"):
        target_bytes(replace(PLAN, strategy_params={TARGET: "-1"}), {})


@pytest.mark.parametrize("params", [{SORT_COLUMNS: "gone"}, {TARGET: "0"}, {SORT_COLUMNS: "a", LAYOUT: "circle"}])
def test_a_bad_parameter_names_the_plan_and_the_way_out(params: dict[str, str]) -> None:
    plan = replace(PLAN, strategy_params=params)
    with pytest.raises(ConfigError) as caught:
        check_parameters(plan, {}, SCHEMA, path="the plan", instant="20250101000000000")
    assert caught.value.path == "the plan"
    assert "hudictl unschedule TABLE 20250101000000000" in str(caught.value.remedy)
    with pytest.raises(ConfigError) as caught:
        check_parameters(PLAN, {TARGET: "0"}, SCHEMA, path="the plan", instant="20250101000000000")
    assert caught.value.path != "the plan", "it is the option of the run"


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_commit_on_the_file_groups_since_is_a_conflict(golden: Golden, version: str) -> None:
    table: Path = golden(version, "clustered_cow").table
    context = open_context(table)
    timeline = context.active.load()
    commits = timeline.commits().instants
    last = context.active.read_commit(commits[-1])
    groups = [FileGroupId(stat.partition_path, stat.file_id) for stat in last.write_stats()]
    before = commits[-2].requested_time + "0"
    with pytest.raises(ConflictError, match="has changed file group") as caught:
        check_untouched(context, timeline, before, groups, None)
    assert "unschedule" in str(caught.value.remedy)
    after = commits[-1].completed_at + "0"
    check_untouched(context, timeline, after, groups, None)
    check_untouched(context, timeline, after, groups, timeline)
    without_last = timeline.filter(lambda item: item.requested_time != commits[-1].requested_time)
    with pytest.raises(ConflictError, match="has changed file group"):
        check_untouched(context, timeline, after, groups, without_last)
    check_untouched(context, timeline, before, [FileGroupId("nowhere", "x")], without_last)


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_file_group_that_was_replaced_before_is_a_conflict(golden: Golden, version: str) -> None:
    """Its files are there until a clean: a second plan over them would double their rows."""
    context = open_context(golden(version, "clustered_cow").table)
    timeline = context.active.load()
    replacing = next(item for item in timeline.commits() if item.action == "replacecommit")
    groups = list(context.active.read_commit(replacing).replaced_file_groups())
    with pytest.raises(ConflictError, match="replacecommit"):
        check_untouched(context, timeline, "9" * 17, groups, None)


def plan_of(*slices: FileSlice) -> ClusteringPlan:
    named = (
        ClusteringSlice(
            item.file_group.partition,
            item.file_group.file_id,
            None if item.base_file is None else item.base_file.name,
            tuple(file.name for file in item.log_files),
        )
        for item in slices
    )
    return ClusteringPlan((ClusteringGroup(tuple(named), 1),))


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_the_commits_that_rows_are_of(golden: Golden, version: str) -> None:
    context = open_context(golden(version, "mor_basic").table)
    timeline = context.active.load()
    view = context.view(timeline)
    slices = [item for partition in view.partitions() for item in view.latest_slices(partition)]
    merged = next(item for item in slices if item.base_file is not None and item.log_files)
    plain = replace(merged, log_files=())
    assert source_commits(context, timeline, plan_of(plain)) == {merged.base_instant}
    written = {
        item.requested_time
        for item in timeline.commits()
        for stat in context.active.read_commit(item).write_stats()
        if (stat.partition_path, stat.file_id) == (merged.file_group.partition, merged.file_group.file_id)
    }
    found = source_commits(context, timeline, plan_of(merged))
    assert found >= written
    assert found == (timeline.commits().requested_times if version == "6" else written)
    assert source_commits(context, timeline.after(merged.base_instant), plan_of(plain)) == set(), "archived"


@pytest.mark.parametrize("version", ["6", "9"])
def test_commits_that_are_rolled_back_are_a_conflict(golden: Golden, version: str) -> None:
    context = open_context(golden(version, "archived_timeline_mor").table)
    timeline = context.active.load()
    last = timeline.commits().last()
    assert last is not None
    archived = next(
        item.requested_time for item in context.history().instants() if context.history().commit(item.requested_time)
    )
    known = {archived, last.requested_time}
    check_none_rolled_back(context, timeline, "T", known)
    with pytest.raises(ConflictError, match="commit 20200101000000000 was rolled back since T began"):
        check_none_rolled_back(context, timeline, "T", known | {"20200101000000000"})
    inflight = timeline.filter(lambda item: item != last)
    with pytest.raises(ConflictError, match=f"commit {last.requested_time} was rolled back since T began"):
        check_none_rolled_back(context, inflight, "T", known)
    Operations(context.active).roll_back(context.new_instant(timeline), last.requested_time)
    with pytest.raises(ConflictError, match=f"commit {last.requested_time} was rolled back since T began"):
        check_none_rolled_back(context, context.active.load(), "T", known)
    check_none_rolled_back(context, context.active.load(), "T", {archived})
