"""Clustering by sort columns of a group that one task sorts: nothing of it goes through the engine's exchange.

An engine whose executors are processes elsewhere moves each row of an exchange twice, to them and from them. That costs
more than the sort of a group which one task reads and writes in some seconds.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import UUID, uuid5

from hudi_core.engine.exchange import RunBuffer, fewer_runs, merged_rows
from hudi_core.errors import ExecutionError
from hudi_core.services.clustering.copied_groups import Clustered
from hudi_core.services.clustering.slice_rows import ClusteringTarget
from hudi_core.services.clustering.sort_order import SortOrder
from hudi_core.services.clustering.sorted_groups import (
    SampleUnit,
    SortedOutput,
    SortedOutputs,
    SortUnit,
    order_and_cuts,
    produce_sorted,
    sample_slices,
    write_sorted,
)
from hudi_core.services.new_file_groups import NewFile
from hudi_core.timeline.actions.replacecommit import ClusteringSlice

if TYPE_CHECKING:
    from hudi_core.engine.protocol import TaskAttempt

MOST_BYTES: Final = 128 << 20
"""Bytes of the files of a group that one task sorts: more are worth an exchange, which spreads them over executors."""


@dataclass(frozen=True, slots=True)
class GroupUnit:
    """Slices of one partition that become about `outputs` new files. `sample` is what is sampled first, None where
    neither cuts nor bounds are needed. `name` is a UUID, from which those of the new file groups are made.
    """

    target: ClusteringTarget
    partition: str
    slices: tuple[ClusteringSlice, ...]
    order: SortOrder
    sample: SampleUnit | None
    outputs: int
    name: str


def sort_group(unit: GroupUnit, attempt: TaskAttempt) -> Clustered:
    """The UnitTask: the new files of a group, and the number of rows of each slice. Errors as sample_slices,
    produce_sorted and write_sorted, and ExecutionError where the folder of temporary files is full.

    Memory: that of produce_sorted and a fifth of the memory budget, then that of write_sorted. The sorted parts are in
    a temporary folder (TMPDIR), which needs room for the rows of the group.
    """
    order, cuts = unit.order, tuple[bytes, ...]()
    if unit.sample is not None:
        order, cuts = order_and_cuts(sample_slices(unit.sample, attempt).samples, order, unit.outputs)
    # The same in every attempt, so that the files of all are of the same file groups.
    prefixes = [str(uuid5(UUID(unit.name), str(number))) for number in range(len(cuts) + 1)]
    outputs = tuple(SortedOutput(unit.partition, prefix, unit.slices) for prefix in prefixes)
    given = SortedOutputs(unit.target, outputs)
    sort = SortUnit(unit.target, unit.slices, order, cuts, 0, len(outputs))
    files: list[NewFile] = []
    with _temporary_folder() as folder:
        buffer = RunBuffer(folder, "part", unit.target.config.sorted_bytes // 4)
        for batch in produce_sorted(sort, attempt):
            buffer.add(batch)
        runs = fewer_runs(folder, buffer.finish())
        for shard in range(len(outputs)):
            written = sum(file.stat.num_writes for file in files)
            files += write_sorted(given, shard, merged_rows(runs, shard), attempt, written).files
        counts = write_sorted(given, len(outputs), merged_rows(runs, len(outputs)), attempt).counts
    return Clustered(tuple(files), counts)


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    try:
        made = tempfile.TemporaryDirectory(prefix="hudi-sort-", ignore_cleanup_errors=True)
    except OSError as error:
        raise ExecutionError(
            f"no folder of temporary files can be made: {error}", remedy="name another one in TMPDIR"
        ) from error
    with made as name:
        yield Path(name)
