"""Which partitions and slices a plan takes, and in which groups: values in, values out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from hudi_core.config.services.clustering_config import ClusteringConfig
from hudi_core.filegroup.read.base_file import BOOTSTRAP_INSTANT
from hudi_core.model.names import FileGroupId
from hudi_core.services.clustering.strategies import (
    RULES,
    Group,
    GroupsToPlan,
    candidates_of,
    chosen_partitions,
    groups_of,
    outputs_of,
)
from hudi_core.storage.base import FileInfo
from hudi_core.timeline.naming import timeline_of
from hudi_core.view.file_group import DataFile, FileSlice
from hudi_core.view.latest_slices import latest_slices
from hudi_core.view.slice_columns import LatestSlices
from hudi_core.view.slicing import Slicing
from tests.support.listed_names import base, log

PLAN = "hoodie.clustering.plan.strategy"
MODE = "hoodie.clustering.plan.partition.filter.mode"
SINGLE = f"{PLAN}.single.group.clustering.enabled"
DAYS = ["2026/01/01", "2026/01/03", "2026/01/02", "2025/12/31"]
RELEASES = tuple(RULES)


def config(**options: str) -> ClusteringConfig:
    full = {
        "begin": f"{PLAN}.cluster.begin.partition",
        "end": f"{PLAN}.cluster.end.partition",
        "group": f"{PLAN}.max.bytes.per.group",
        "target": f"{PLAN}.target.file.max.bytes",
        "small": f"{PLAN}.small.file.limit",
        "lookback": f"{PLAN}.daybased.lookback.partitions",
        "skip": f"{PLAN}.daybased.skipfromlatest.partitions",
        "regex": f"{PLAN}.partition.regex.pattern",
        "selected": f"{PLAN}.partition.selected",
        "by": f"{PLAN}.file.slices.sort.by",
        "sort": f"{PLAN}.sort.columns",
        "single": SINGLE,
        "strategy": f"{PLAN}.class",
        "mode": MODE,
        "empty": "hoodie.parquet.max.file.size",
    }
    return ClusteringConfig.of({full[name]: value for name, value in options.items()})


def file_slice(name: str, size: int | None, instant: str = "1") -> FileSlice:
    base = None if size is None else DataFile("p", name, size)
    return FileSlice(FileGroupId("p", name), instant, base)


def ids(groups: Sequence[Group]) -> list[str]:
    return ["".join(item.file_group.file_id for item in group) for group in groups]


def grouped(slices: Sequence[FileSlice], release: str = "1.2", **options: str) -> list[str]:
    return ids(groups_of(config(**options), slices, RULES[release], lambda item: item.file_group.file_id < "c"))


def chosen(release: str, hour: int = 0, **options: str) -> list[str]:
    return chosen_partitions(config(**options), DAYS, RULES[release], hour=hour)


def test_without_a_filter_all_partitions_are_taken() -> None:
    assert chosen("0.15") == chosen("1.0") == DAYS
    assert chosen("1.2") == sorted(DAYS)


@pytest.mark.parametrize("release", RELEASES)
def test_recent_days_are_the_last_paths(release: str) -> None:
    latest = ["2026/01/03", "2026/01/02"]
    assert chosen(release, mode="RECENT_DAYS") == (sorted(latest) if release == "1.2" else latest)
    assert set(chosen(release, mode="RECENT_DAYS", lookback="0")) == {*DAYS}
    assert chosen(release, mode="RECENT_DAYS", lookback="1", skip="2") == ["2026/01/01"]
    assert chosen(release, mode="RECENT_DAYS", skip="9") == []


@pytest.mark.parametrize("release", RELEASES)
def test_selected_partitions_are_between_two_inclusive(release: str) -> None:
    assert sorted(chosen(release, mode="SELECTED_PARTITIONS", begin="2026/01/01", end="2026/01/02")) == [
        "2026/01/01",
        "2026/01/02",
    ]
    assert len(chosen(release, mode="SELECTED_PARTITIONS", begin="2026/01/02")) == 2
    assert len(chosen(release, mode="SELECTED_PARTITIONS", end="2025/12/31")) == 1
    assert len(chosen(release, mode="SELECTED_PARTITIONS")) == len(DAYS)


@pytest.mark.parametrize("release", RELEASES)
def test_day_rolling_takes_every_24th_in_order(release: str) -> None:
    assert chosen(release, hour=2, mode="DAY_ROLLING") == ["2026/01/02"]
    assert chosen(release, hour=5, mode="DAY_ROLLING") == []
    many = [f"{number:02d}" for number in range(50)]
    options = config(mode="DAY_ROLLING")
    assert chosen_partitions(options, many[::-1], RULES[release], hour=1) == ["01", "25", "49"]


@pytest.mark.parametrize("release", RELEASES)
def test_an_expression_matches_whole_paths_and_names_come_first(release: str) -> None:
    assert chosen(release, regex="2025.*") == ["2025/12/31"]
    assert chosen(release, regex="2025") == []
    assert chosen(release, regex="2025.*", selected="2026/01/03, nowhere") == ["2026/01/03"]
    assert chosen(release, selected="2026/01/03", mode="SELECTED_PARTITIONS", end="2026/01/02") == []


def columns(sizes: Mapping[str, int]) -> LatestSlices:
    """The slices of files in the partitions p and q."""
    infos = [FileInfo(f"p/{name}", size, 0.0) for name, size in sorted(sizes.items())]
    slicing = Slicing(timeline_of(["1.deltacommit", "2.deltacommit", f"{BOOTSTRAP_INSTANT}.commit"]))
    return latest_slices([("p", infos), ("q", infos)], slicing, {}, {})


def test_only_base_files_below_the_limit_are_small() -> None:
    found = columns({base("1", file_id="a"): 9, base("1", file_id="b"): 10, log("1", file_id="c"): 99})
    plannable = GroupsToPlan()
    assert candidates_of(found, {}, set(), config(small="10"), plannable).tolist() == [True, False, True] * 2
    assert (sum(plannable.passed.values()), plannable.missing) == (2, set())
    assert not candidates_of(found, {}, set(), config(small="0"), plannable).any()


def test_slices_that_are_held_late_or_of_a_bootstrap_are_counted_by_their_first_cause() -> None:
    names = [base("2", file_id="a"), base("1", file_id="b"), log("1", file_id="b"), base("1", file_id="c")]
    found = columns(dict.fromkeys([*names, base(BOOTSTRAP_INSTANT, file_id="d")], 1))
    plannable = GroupsToPlan()
    held = {"q": ["a", "c", "gone"]}
    assert candidates_of(found, held, {"2"}, config(), plannable).tolist() == [
        *(False, True, True, False),
        *(False, True, False, False),
    ]
    assert sorted(plannable.passed.values()) == [0, 1, 2, 2]
    assert plannable.missing == {"p", "q"}
    late_log = columns({base("1", file_id="a"): 1, log("1", file_id="a"): 1, base("1", file_id="b"): 1})
    assert not candidates_of(late_log, {}, {"1"}, config(), GroupsToPlan()).any()


def test_a_partition_of_buckets_is_left_out() -> None:
    buckets = [base("1", file_id=f"0000000{number}-0") for number in (1, 2)]
    infos = [[FileInfo(f"p/{name}", 1, 0.0) for name in (*buckets, *more)] for more in ((), (base("1", file_id="x"),))]
    found = latest_slices([("p", infos[0]), ("q", infos[1])], Slicing(timeline_of(["1.commit"])), {}, {})
    assert candidates_of(found, {}, set(), config(), GroupsToPlan()).tolist() == [False, False, True, True, True]


@pytest.mark.parametrize("release", RELEASES)
def test_the_largest_come_first_and_a_group_ends_before_it_is_too_large(release: str) -> None:
    slices = [file_slice("a", 3), file_slice("b", 5), file_slice("c", None), file_slice("d", 9), file_slice("e", 3)]
    assert grouped(slices, release, group="10", empty="4") == ["d", "bc", "ae"]
    assert grouped(slices, release, group="9", empty="4") == ["d", "bc", "ae"]
    assert grouped(slices, release, group="2", empty="4") == ["d", "b", "c", "a", "e"], "each fills one"
    assert grouped(slices, release) == ["cdbae"], "without a base file it counts as a full one"


def test_by_instant_the_oldest_come_first() -> None:
    slices = [file_slice("a", 3, "9"), file_slice("b", 5, "9"), file_slice("c", None, "7"), file_slice("d", 1, "2")]
    assert grouped(slices, by="INSTANT_TIME") == ["cdab"]
    assert grouped(slices, by="INSTANT_TIME,SIZE") == ["cdba"]


def test_outputs_are_as_many_as_the_target_gives() -> None:
    group = [file_slice("a", 7), file_slice("b", None)]
    assert [outputs_of(group, config(target=target, empty="3")) for target in ("9", "10", "1", "11")] == [2, 1, 10, 1]


def test_a_group_of_one_is_left_out_as_each_release_does() -> None:
    slices = [file_slice("a", 9), file_slice("b", 8), file_slice("c", 1)]
    assert grouped(slices, group="10", single="true") == ["a", "bc"]
    assert grouped(slices, "0.15", group="10", single="false") == ["a", "bc"], "only the last may go"
    assert grouped(slices, "0.15", group="8", single="false") == ["a", "b"]
    assert grouped(slices, "1.0", group="8", single="false") == ["a", "b"]
    assert grouped(slices, "1.2", group="10", single="false") == ["bc"]
    assert grouped(slices, "1.2", group="8", single="false") == []
    assert grouped(slices, "1.2", group="8", single="false", target="8") == ["a"], "it is divided"
    assert grouped(slices, "1.2", group="8", single="false", sort="x") == ["a", "b", "c"], "it is sorted"
    assert grouped([], single="false") == []


def test_single_files_are_groups_of_their_own() -> None:
    slices = [file_slice("a", 1), file_slice("b", 2)]
    assert grouped(slices, strategy="SparkSingleFileSortPlanStrategy", single="false") == ["a", "b"]


def test_files_of_other_columns_are_not_copied_into_one() -> None:
    slices = [file_slice(name, 9 - place) for place, name in enumerate("abcda")]
    copied = {"strategy": "SparkStreamCopyClusteringPlanStrategy"}
    assert grouped(slices, **copied) == ["ab", "cd", "a"]
    assert grouped(slices, **copied, single="false") == ["ab", "cd"]
    other = f"{PLAN}.binary.copy.schema.evolution.enable"
    together = ClusteringConfig.of({f"{PLAN}.class": copied["strategy"], other: "true"})
    assert ids(groups_of(together, slices, RULES["1.2"], lambda item: item.file_group.file_id)) == ["abcda"]
