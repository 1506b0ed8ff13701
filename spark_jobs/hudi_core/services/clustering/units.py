"""Runs a stored plan on an engine, and proves that the result is what the plan asks for.

One task or an exchange sorts a group. Without sort columns slices are joined, and large row groups are copied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, groupby
from typing import Final
from uuid import uuid4

import pyarrow as pa

from hudi_core.engine.protocol import Engine, TaskAttempt
from hudi_core.errors import ExecutionError
from hudi_core.frozen import dataclass
from hudi_core.services.clustering.sorted_groups import (
    MOST_BYTES,
    Clustered,
    GroupUnit,
    SampleUnit,
    SliceCount,
    SortedOutput,
    SortUnit,
    order_and_cuts,
    produce_sorted,
    sample_slices,
    sort_group,
    write_sorted,
    writer_for,
)
from hudi_core.services.lifecycle import UnitProgress
from hudi_core.services.rewriting.new_file_groups import prove_files
from hudi_core.services.rewriting.proof import Rewritten, unproved
from hudi_core.services.rewriting.slice_rows import SliceTarget, open_slice
from hudi_core.services.rewriting.sort_order import SortOrder
from hudi_core.storage.arrow_store import open_data_storage
from hudi_core.timeline.actions.replacecommit import ClusteringGroup, ClusteringPlan, ClusteringSlice

_SAMPLED_ROWS: Final = 100_000
"""Rows that are sampled of a group, in all its slices."""
_SAMPLED_AT_LEAST: Final = 64
"""Rows that are sampled of each slice at least."""
_SAMPLED_BYTES: Final = 16 << 20
"""The most bytes that are sampled of a group: fewer rows are sampled where their columns are long."""
_UNIT_BYTES: Final = 32 << 20
"""Bytes of files whose rows one task samples or exchanges. A larger slice is not divided."""


def groups_of(plan: ClusteringPlan, *, by_file: bool) -> list[ClusteringGroup]:
    """Returns the groups of a plan, each of one partition: a group of several is divided, with its outputs by the
    number of slices. With `by_file` each slice is a group.
    """
    if by_file:
        return [ClusteringGroup((item,), 1) for item in plan.slices]
    divided = []
    for group in plan.groups:
        by_partition: dict[str, list[ClusteringSlice]] = {}
        for item in group.slices:
            by_partition.setdefault(item.partition, []).append(item)
        for slices in by_partition.values():
            outputs = -(-max(1, group.outputs) * len(slices) // len(group.slices))
            divided.append(ClusteringGroup(tuple(slices), outputs))
    return divided


@dataclass(frozen=True, slots=True)
class Work:
    """Runs the groups of a plan. `sizes` are the bytes of the files of a slice, by partition and file id."""

    engine: Engine
    epoch: int
    target: SliceTarget
    sizes: Mapping[tuple[str, str], int]
    progress: UnitProgress | None = None

    def join(self, groups: Sequence[ClusteringGroup]) -> list[Clustered]:
        units = [JoinUnit(self.target, slices, str(uuid4())) for group in groups for slices in self._parts(group)]
        return self.engine.run(join_slices, units, run_epoch=self.epoch, progress=self.progress)

    def sort(self, groups: Sequence[ClusteringGroup], order: SortOrder) -> list[Clustered]:
        """Sorts each group: in one task, or by an exchange where rows are many or the engine is not remote."""
        small = [group for group in groups if self._is_for_one_task(group)]
        large = [group for group in groups if not self._is_for_one_task(group)]
        units = [
            GroupUnit(
                self.target, group.slices, order, self._sample(group, order, group.slices), group.outputs, str(uuid4())
            )
            for group in small
        ]
        done = self.engine.run(sort_group, units, run_epoch=self.epoch, progress=self.progress) if units else []
        return done + (self._exchange(large, order) if large else [])

    def _is_for_one_task(self, group: ClusteringGroup) -> bool:
        size = sum(self.sizes[item.partition, item.file_id] for item in group.slices)
        return self.engine.is_remote and size <= MOST_BYTES

    def _exchange(self, groups: Sequence[ClusteringGroup], order: SortOrder) -> list[Clustered]:
        placed = self._orders_and_cuts(groups, order)
        outputs: list[SortedOutput] = []
        starts = []
        for group, (_, cuts) in zip(groups, placed, strict=True):
            starts.append(len(outputs))
            outputs += [SortedOutput(str(uuid4()), group.slices) for _ in range(len(cuts) + 1)]
        units = [
            SortUnit(self.target, slices, placed_order, cuts, start, len(outputs))
            for group, (placed_order, cuts), start in zip(groups, placed, starts, strict=True)
            for slices in self._packed(group)
        ]
        return self.engine.exchange(
            produce_sorted,
            units,
            partial(write_sorted, self.target, outputs),
            shards=len(outputs) + 1,
            run_epoch=self.epoch,
            progress=self.progress,
        )

    def _orders_and_cuts(
        self, groups: Sequence[ClusteringGroup], order: SortOrder
    ) -> list[tuple[SortOrder, tuple[bytes, ...]]]:
        sampled = [[self._sample(group, order, slices) for slices in self._packed(group)] for group in groups]
        units = [unit for units_of_group in sampled for unit in units_of_group if unit is not None]
        done = iter(self.engine.run(sample_slices, units, run_epoch=self.epoch) if units else ())
        return [
            order_and_cuts([next(done) for _ in units_of_group], order, group.outputs)
            if units_of_group[0] is not None
            else (order, ())
            for group, units_of_group in zip(groups, sampled, strict=True)
        ]

    def _sample(
        self, group: ClusteringGroup, order: SortOrder, slices: tuple[ClusteringSlice, ...]
    ) -> SampleUnit | None:
        """Returns what is sampled of slices of a group; None where it becomes one file that needs no bounds."""
        if group.outputs <= 1 and order.layout.is_linear:
            return None
        rows = max(_SAMPLED_AT_LEAST, _SAMPLED_ROWS // len(group.slices))
        return SampleUnit(self.target, slices, order, rows, _SAMPLED_BYTES // len(group.slices))

    def _packed(self, group: ClusteringGroup) -> list[tuple[ClusteringSlice, ...]]:
        """Returns the slices of each unit. On a remote engine a task costs as much as some MiB, so that small slices
        share a unit; otherwise slices are read side by side.
        """
        if not self.engine.is_remote:
            return [(item,) for item in group.slices]
        return self._cut(group, lambda before, _: before // _UNIT_BYTES)

    def _parts(self, group: ClusteringGroup) -> list[tuple[ClusteringSlice, ...]]:
        """Returns the slices of each new file: in their order, some equal parts of the bytes."""
        return self._cut(group, lambda before, total: before * group.outputs // total)

    def _cut(self, group: ClusteringGroup, part_of: Callable[[int, int], int]) -> list[tuple[ClusteringSlice, ...]]:
        """Cuts the slices where the value of `part_of` changes. It gets the bytes before a slice, and all bytes."""
        sizes = [max(1, self.sizes[item.partition, item.file_id]) for item in group.slices]
        total = sum(sizes)
        starts = zip(group.slices, accumulate(sizes, initial=0), strict=False)
        parts = groupby(starts, key=lambda start: part_of(start[1], total))
        return [tuple(item for item, _ in part) for _, part in parts]


def prove(plan: ClusteringPlan, results: Sequence[Clustered], instant: str, *, with_statistics: bool) -> Rewritten:
    """Returns the new files, with as many rows as the slices of each partition. Raises ExecutionError otherwise."""
    counts = [count for result in results for count in result.counts]
    planned = sorted((item.partition, item.file_id) for item in plan.slices)
    if sorted((count.partition, count.file_id) for count in counts) != planned:
        raise unproved(f"the plan has {len(planned)} slices, {len(counts)} were read")
    rows = dict.fromkeys((item.partition for item in plan.slices), 0)
    for count in counts:
        if count.rows < 0:
            raise unproved(f"{count.rows} rows are no number of rows")
        rows[count.partition] += count.rows
    files = [file for result in results for file in result.files]
    rewritten = prove_files(files, rows, instant, plan.file_groups(), with_statistics=with_statistics)
    return replace(rewritten, corrupt_blocks=sum(count.corrupt for count in counts))


@dataclass(frozen=True, slots=True)
class JoinUnit:
    """Slices of a partition for the file group `<prefix>-0`, and for `<prefix>-1`… where one gets too large."""

    target: SliceTarget
    slices: tuple[ClusteringSlice, ...]
    prefix: str


def join_slices(unit: JoinUnit, attempt: TaskAttempt) -> Clustered:
    """Joins the slices of a unit (UnitTask, without sort columns). Memory: that of one slice (open_slice), and a row
    group of output or a copied column chunk. Raises HudiError only: as open_slice, and ExecutionError.
    """
    storage = open_data_storage(unit.target.uri, unit.target.storage_options)
    counts = []
    try:
        with writer_for(storage, unit.target, unit.slices, unit.prefix, attempt) as writer:
            for item in unit.slices:
                with open_slice(storage, unit.target, item) as rows:
                    rows.append_to(writer)
                    rows.check()
                    counts.append(SliceCount.of(rows))
            return Clustered(writer.close(), tuple(counts))
    except (pa.ArrowException, MemoryError) as error:
        raise ExecutionError(f"joining file slices failed: {error!r}", path=unit.slices[0].partition) from error
