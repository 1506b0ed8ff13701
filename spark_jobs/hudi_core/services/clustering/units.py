"""A stored plan as work for an engine, and the proof that what came of it is what the plan asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, groupby
from typing import Final
from uuid import uuid4

from hudi_core.engine.protocol import Engine
from hudi_core.services.clustering.copied_groups import Clustered, JoinUnit, join_slices
from hudi_core.services.clustering.sorted_groups import (
    MOST_BYTES,
    GroupUnit,
    SampleUnit,
    SortedOutput,
    SortedOutputs,
    SortUnit,
    order_and_cuts,
    produce_sorted,
    sample_slices,
    sort_group,
    write_sorted,
)
from hudi_core.services.lifecycle import UnitProgress
from hudi_core.services.rewriting.job import Rewritten
from hudi_core.services.rewriting.new_file_groups import prove_files
from hudi_core.services.rewriting.proof import unproved
from hudi_core.services.rewriting.slice_rows import ClusteringTarget, SliceCount
from hudi_core.services.rewriting.sort_order import SortOrder
from hudi_core.timeline.actions.replacecommit import ClusteringPlan, ClusteringSlice

_SAMPLED_ROWS: Final = 100_000
"""Of a group, in all its slices."""
_SAMPLED_AT_LEAST: Final = 64
"""Of each slice."""
_SAMPLED_BYTES: Final = 16 << 20
"""Of a group: fewer rows are sampled where their columns are long."""
_UNIT_BYTES: Final = 32 << 20
"""Of files whose rows one task samples or exchanges, but for a larger slice, which is not divided."""

Sizes = Mapping[tuple[str, str], int]
"""Bytes of the files of a slice, by partition and file id."""


@dataclass(frozen=True, slots=True)
class Group:
    """Slices of one partition whose rows go into about `outputs` new files."""

    partition: str
    slices: tuple[ClusteringSlice, ...]
    outputs: int


def groups_of(plan: ClusteringPlan, *, by_file: bool) -> list[Group]:
    """The plan's groups, each for one partition; `by_file`: each slice by itself. A group that its planner gave slices
    of several partitions is divided, its outputs by the number of slices.
    """
    found = []
    for group in plan.groups:
        if by_file:
            found += [Group(item.partition, (item,), 1) for item in group.slices]
            continue
        by_partition: dict[str, list[ClusteringSlice]] = {}
        for item in group.slices:
            by_partition.setdefault(item.partition, []).append(item)
        for partition, slices in by_partition.items():
            outputs = -(-max(1, group.outputs) * len(slices) // len(group.slices))
            found.append(Group(partition, tuple(slices), outputs))
    return found


@dataclass(frozen=True, slots=True)
class Work:
    """Runs the groups of a plan. `sizes` are those of the slices."""

    engine: Engine
    epoch: int
    target: ClusteringTarget
    sizes: Sizes
    progress: UnitProgress | None = None

    def join(self, groups: Sequence[Group]) -> list[Clustered]:
        """Without order."""
        units = [
            JoinUnit(self.target, group.partition, slices, str(uuid4()))
            for group in groups
            for slices in self._parts(group)
        ]
        return self.engine.run(join_slices, units, run_epoch=self.epoch, progress=self.progress)

    def sort(self, groups: Sequence[Group], order: SortOrder) -> list[Clustered]:
        """In `order` within each group: by one task each, or where its rows are many, or next to the executors, by an
        exchange of all of these groups.
        """
        small = [group for group in groups if self._is_for_one_task(group)]
        large = [group for group in groups if not self._is_for_one_task(group)]
        units = [
            GroupUnit(
                self.target,
                group.partition,
                group.slices,
                order,
                self._sample(group, order, group.slices),
                group.outputs,
                str(uuid4()),
            )
            for group in small
        ]
        done = self.engine.run(sort_group, units, run_epoch=self.epoch, progress=self.progress) if units else []
        return done + (self._exchange(large, order) if large else [])

    def _is_for_one_task(self, group: Group) -> bool:
        size = sum(self.sizes[item.partition, item.file_id] for item in group.slices)
        return self.engine.is_remote and size <= MOST_BYTES

    def _exchange(self, groups: Sequence[Group], order: SortOrder) -> list[Clustered]:
        placed = self._orders_and_cuts(groups, order)
        counts = [len(cuts) + 1 for _, cuts in placed]
        starts = list(accumulate(counts, initial=0))
        outputs = [
            SortedOutput(group.partition, str(uuid4()), group.slices)
            for group, count in zip(groups, counts, strict=True)
            for _ in range(count)
        ]
        units = [
            SortUnit(self.target, slices, placed_order, cuts, start, len(outputs))
            for group, (placed_order, cuts), start in zip(groups, placed, starts, strict=False)
            for slices in self._packed(group)
        ]
        return self.engine.exchange(
            produce_sorted,
            units,
            partial(write_sorted, SortedOutputs(self.target, tuple(outputs))),
            shards=len(outputs) + 1,
            run_epoch=self.epoch,
            progress=self.progress,
        )

    def _orders_and_cuts(self, groups: Sequence[Group], order: SortOrder) -> list[tuple[SortOrder, tuple[bytes, ...]]]:
        sampled = [[self._sample(group, order, slices) for slices in self._packed(group)] for group in groups]
        units = [unit for found in sampled for unit in found if unit is not None]
        done = iter(self.engine.run(sample_slices, units, run_epoch=self.epoch) if units else ())
        return [
            order_and_cuts([one for _ in found for one in next(done).samples], order, group.outputs)
            if found[0] is not None
            else (order, ())
            for group, found in zip(groups, sampled, strict=True)
        ]

    def _sample(self, group: Group, order: SortOrder, slices: tuple[ClusteringSlice, ...]) -> SampleUnit | None:
        """What is sampled of some slices of a group: nothing where it becomes one file, whose order needs no bounds."""
        if group.outputs <= 1 and order.layout.is_linear:
            return None
        rows = max(_SAMPLED_AT_LEAST, _SAMPLED_ROWS // len(group.slices))
        return SampleUnit(self.target, slices, order, rows, _SAMPLED_BYTES // len(group.slices))

    def _packed(self, group: Group) -> list[tuple[ClusteringSlice, ...]]:
        """The slices of each unit of a group. Where a task costs as much as some MiB small slices share it; elsewhere
        each has its own, so that they are read side by side.
        """
        if not self.engine.is_remote:
            return [(item,) for item in group.slices]
        return self._cut(group, lambda before, _: before // _UNIT_BYTES)

    def _parts(self, group: Group) -> list[tuple[ClusteringSlice, ...]]:
        """The slices of each new file: in their order, some equal parts of the bytes."""
        return self._cut(group, lambda before, total: before * group.outputs // total)

    def _cut(self, group: Group, part_of: Callable[[int, int], int]) -> list[tuple[ClusteringSlice, ...]]:
        """The slices in their order, cut where another part begins: that of a slice follows from the bytes before it
        and from all bytes.
        """
        sizes = [max(1, self.sizes[item.partition, item.file_id]) for item in group.slices]
        total = sum(sizes)
        starts = zip(group.slices, accumulate(sizes, initial=0), strict=False)
        parts = groupby(starts, key=lambda start: part_of(start[1], total))
        return [tuple(item for item, _ in part) for _, part in parts]


def prove(
    plan: ClusteringPlan, groups: Sequence[Group], results: Sequence[Clustered], instant: str, *, with_statistics: bool
) -> Rewritten:
    """The new files of the results, once they are shown to hold as many rows as the slices of each partition.

    Raises ExecutionError otherwise: a slice that was not read, or twice; another number of rows; a file that is not a
    new one of the plan's partitions.
    """
    counts = [count for result in results for count in result.counts]
    read = [(count.partition, count.file_id) for count in counts]
    planned = sorted((item.partition, item.file_id) for item in plan.slices)
    if sorted(read) != planned:
        raise unproved(f"the plan has {len(planned)} slices, {len(read)} were read")
    files = [file for result in results for file in result.files]
    rows = {**{group.partition: 0 for group in groups}, **_sums(counts)}
    return prove_files(files, rows, instant, plan.file_groups(), with_statistics=with_statistics)


def _sums(counts: Iterable[SliceCount]) -> dict[str, int]:
    """The rows of each partition that has any."""
    found: dict[str, int] = {}
    for count in counts:
        if count.rows < 0:
            raise unproved(f"{count.rows} rows are no number of rows")
        if count.rows:
            found[count.partition] = found.get(count.partition, 0) + count.rows
    return found
