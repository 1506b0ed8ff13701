"""Groups of a plan, how slices are spread over files, and what the proof refuses."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from hudi_core.errors import ExecutionError
from hudi_core.metadata_table.records.file_statistics import DataFileRef, FileStatistics
from hudi_core.services.clustering.sorted_groups import Clustered, SliceCount
from hudi_core.services.clustering.units import Work, groups_of, prove
from hudi_core.services.rewriting.new_file_groups import NewFile
from hudi_core.timeline.actions.replacecommit import ClusteringGroup, ClusteringPlan, ClusteringSlice
from hudi_core.timeline.actions.write_stats import WriteStat

INSTANT = "20260101000000000"


def item(name: str, partition: str = "p") -> ClusteringSlice:
    return ClusteringSlice(partition, name, f"{name}_0-0-0_2025.parquet", ())


PLAN = ClusteringPlan((ClusteringGroup((item("a"), item("b")), 1), ClusteringGroup((item("c", "q"),), 1)))


def new_file(name: str, partition: str, rows: int) -> NewFile:
    path = f"{partition}/{name}_0-1-0_{INSTANT}.parquet"
    stat = WriteStat(name, path, partition, "null", rows, 0, 0, rows, 100, 100)
    file = DataFileRef(partition, path.rpartition("/")[2], 100, is_base=True)
    return NewFile(stat, FileStatistics(file, ()))


def results() -> list[Clustered]:
    return [
        Clustered((new_file("x-0", "p", 5),), (SliceCount("p", "a", 2), SliceCount("p", "b", 3))),
        Clustered((new_file("y-0", "q", 4),), (SliceCount("q", "c", 4),)),
    ]


def test_groups_are_of_one_partition() -> None:
    mixed = ClusteringPlan((ClusteringGroup((item("a"), item("b", "q"), item("c"), item("d")), 2),))
    assert groups_of(mixed, by_file=False) == [
        ClusteringGroup((item("a"), item("c"), item("d")), 2),
        ClusteringGroup((item("b", "q"),), 1),
    ]
    assert [group.slices for group in groups_of(mixed, by_file=True)] == [
        (item("a"),),
        (item("b", "q"),),
        (item("c"),),
        (item("d"),),
    ]
    none = ClusteringPlan((ClusteringGroup((item("a"),), 0),))
    assert [group.outputs for group in groups_of(none, by_file=False)] == [1]


@pytest.mark.parametrize(("is_remote", "units"), [(True, [2, 1, 1]), (False, [1, 1, 1, 1])])
def test_small_slices_share_a_task_where_it_costs_something(is_remote: bool, units: list[int]) -> None:
    sizes = dict(zip("abcd", [1 << 20, 40 << 20, 30 << 20, 0], strict=True))
    slices = tuple(item(name) for name in sizes)
    target: Any = None
    engine: Any = SimpleNamespace(is_remote=is_remote)
    work = Work(engine, 1, target, {("p", name): size for name, size in sizes.items()})
    found = work._packed(ClusteringGroup(slices, 1))
    assert [len(unit) for unit in found] == units
    assert [one for unit in found for one in unit] == list(slices)


def test_a_group_that_becomes_one_file_is_one_shard_of_the_exchange() -> None:
    """A shard more is for the counts."""
    exchanges: list[tuple[int, list[int]]] = []

    def exchange(_: object, units: Any, __: object, *, shards: int, **more: Any) -> list[Clustered]:
        exchanges.append((shards, [unit.first_shard for unit in units]))
        return []

    target: Any = None
    order: Any = SimpleNamespace(layout=SimpleNamespace(is_linear=True))
    engine: Any = SimpleNamespace(is_remote=False, exchange=exchange)
    sizes = {(one.partition, one.file_id): 1 for group in PLAN.groups for one in group.slices}
    Work(engine, 1, target, sizes).sort(PLAN.groups, order)
    assert exchanges == [(3, [0, 0, 1])]


@pytest.mark.parametrize(
    ("sizes", "outputs", "parts"),
    [
        ([5, 5, 5, 5], 2, [2, 2]),
        ([30, 1, 1, 1], 2, [1, 3]),
        ([1, 1, 1, 30], 2, [4]),
        ([1, 1], 5, [1, 1]),
        ([0, 0], 1, [2]),
    ],
)
def test_slices_are_spread_by_bytes(sizes: list[int], outputs: int, parts: list[int]) -> None:
    slices = tuple(item(f"s{number}") for number in range(len(sizes)))
    target: Any = None
    engine: Any = None
    work = Work(engine, 1, target, {("p", one.file_id): size for one, size in zip(slices, sizes, strict=True)})
    found = work._parts(ClusteringGroup(slices, outputs))
    assert [len(part) for part in found] == parts
    assert [one for part in found for one in part] == list(slices)


@pytest.mark.parametrize("outputs", [3, 1 << 20])
def test_a_number_of_files_is_no_size_of_memory(outputs: int) -> None:
    """A plan may claim any, up to 2^31."""
    target: Any = None
    engine: Any = None
    slices = (item("a"), item("b"), item("c"))
    work = Work(engine, 1, target, {("p", one.file_id): 1 for one in slices})
    (group,) = groups_of(ClusteringPlan((ClusteringGroup(slices, outputs),)), by_file=False)
    tracemalloc.start()
    assert work._parts(group) == [(one,) for one in slices]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20


def test_what_is_proved_is_returned() -> None:
    rewritten = prove(PLAN, results(), INSTANT, with_statistics=True)
    assert [stat.file_id for stat in rewritten.stats] == ["x-0", "y-0"]
    assert [item.file for item in rewritten.statistics] == list(rewritten.files)
    assert prove(PLAN, results(), INSTANT, with_statistics=False).statistics == []


def test_rows_that_were_all_deleted_make_no_file() -> None:
    counts = tuple(SliceCount(p, name, 0) for p, name in (("p", "a"), ("p", "b"), ("q", "c")))
    assert prove(PLAN, [Clustered((), counts)], INSTANT, with_statistics=True).stats == []


def stat_with(**changes: Any) -> Callable[[list[Clustered]], None]:
    def change(found: list[Clustered]) -> None:
        file = found[0].files[0]
        found[0] = replace(found[0], files=(replace(file, stat=replace(file.stat, **changes)),))

    return change


def count_with(counts: tuple[SliceCount, ...]) -> Callable[[list[Clustered]], None]:
    def change(found: list[Clustered]) -> None:
        found[0] = replace(found[0], counts=counts)

    return change


def without_statistics(found: list[Clustered]) -> None:
    found[0] = replace(found[0], files=(replace(found[0].files[0], statistics=None),))


WRONG: dict[str, Callable[[list[Clustered]], None]] = {
    "a row lost": stat_with(num_writes=4),
    "a row doubled": stat_with(num_writes=6),
    "a slice not read": count_with((SliceCount("p", "a", 5),)),
    "a slice read twice": count_with((SliceCount("p", "a", 2), SliceCount("p", "a", 0), SliceCount("p", "b", 3))),
    "less than no rows": count_with((SliceCount("p", "a", -1), SliceCount("p", "b", 6))),
    "a file of another instant": stat_with(path="p/x-0_0-1-0_20270101000000000.parquet"),
    "a file elsewhere": stat_with(path=f"../x-0_0-1-0_{INSTANT}.parquet"),
    "another partition": stat_with(partition_path="r", path=f"r/x-0_0-1-0_{INSTANT}.parquet"),
    "another file group": stat_with(file_id="z-0"),
    "a replaced file group": stat_with(file_id="a", path=f"p/a_0-1-0_{INSTANT}.parquet"),
    "no bytes": stat_with(file_size_in_bytes=0),
    "no base file": stat_with(path="p/x"),
    "no statistics": without_statistics,
}


@pytest.mark.parametrize("what", list(WRONG))
def test_nothing_is_published_that_is_not_proved(what: str) -> None:
    found = results()
    WRONG[what](found)
    with pytest.raises(ExecutionError) as error:
        prove(PLAN, found, INSTANT, with_statistics=True)
    assert "nothing was published" in str(error.value.remedy)
