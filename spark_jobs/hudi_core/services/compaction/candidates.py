"""The file slices that the plan of a compaction or log compaction may take, as columns. strategies.py chooses among
these, and only the chosen ones become operations.

Peak memory on the driver: some 200 bytes a file of a slice with log files, and two kilobytes an operation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import accumulate

import numpy as np

from hudi_core.config.services.compaction_config import CompactionConfig
from hudi_core.frozen import dataclass
from hudi_core.history.archived import CompletionTimes
from hudi_core.services.context import TableContext
from hudi_core.services.rewriting.planning import held_groups
from hudi_core.timeline.actions.compaction import MIB, CompactionOperation, metrics_of
from hudi_core.view.file_group import FileSlice
from hudi_core.view.file_system_view import FileSystemView
from hudi_core.view.slice_columns import LatestSlices, Mask, Numbers, ids_by_partition


@dataclass(frozen=True)
class Candidates:
    """Whole slices of `partitions`, one row each in this order, in parts. `no_base_bytes` is the size of a base file
    that does not exist yet. `held` counts file groups that another plan holds, `passed` slices with log files that the
    plan does not take. `skipped` are such slices' partitions.
    """

    partitions: Sequence[str]
    parts: Sequence[LatestSlices]
    no_base_bytes: int
    held: int = 0
    passed: int = 0
    skipped: frozenset[str] = frozenset()

    def __len__(self) -> int:
        return len(self.log_bytes)

    @cached_property
    def partition_of(self) -> Numbers:
        """Positions in `partitions`."""
        first = accumulate((len(part.partitions) for part in self.parts), initial=0)
        return _joined([part.partition_of + start for part, start in zip(self.parts, first, strict=False)])

    @cached_property
    def log_counts(self) -> Numbers:
        """The number of log files, change-data logs included, as in the plan's deltaFilePaths."""
        return _joined([part.log_counts for part in self.parts])

    @cached_property
    def log_bytes(self) -> Numbers:
        """LOG_BYTES of the metrics."""
        return _joined([part.log_bytes for part in self.parts])

    @cached_property
    def io_mb(self) -> Numbers:
        """IO_MB of the metrics (metrics_of)."""
        stored = _joined([part.base_bytes for part in self.parts])
        written = np.where(stored == 0, self.no_base_bytes, stored)
        io_mb: Numbers = (stored + self.log_bytes) // MIB + written // MIB
        return io_mb

    @cached_property
    def data_bytes(self) -> Numbers:
        """The bytes that a compaction of the slice reads."""
        return _joined([part.data_bytes for part in self.parts])

    def operations(self, rows: Numbers) -> list[CompactionOperation]:
        """Returns the operations of `rows`, in their order."""
        made: dict[int, CompactionOperation] = {}
        first = 0
        for part in self.parts:
            of_part = rows[(rows >= first) & (rows < first + len(part))]
            slices = part.slices(of_part - first)
            made.update(zip(of_part.tolist(), (_operation(item, self.no_base_bytes) for item in slices), strict=True))
            first += len(part)
        return [made[row] for row in rows.tolist()]

    def partitions_beside(self, rows: Numbers) -> set[str]:
        """Returns the partitions of the other rows."""
        is_other = np.ones(len(self), np.bool_)
        is_other[rows] = False
        return {self.partitions[at] for at in np.unique(self.partition_of[is_other]).tolist()}


def _joined(columns: Sequence[Numbers]) -> Numbers:
    return np.concatenate([np.zeros(0, np.int64), *columns])


def candidates(
    context: TableContext,
    view: FileSystemView,
    partitions: Sequence[str],
    instant: str,
    config: CompactionConfig,
    takes: Callable[[LatestSlices], Mask],
) -> Candidates:
    """Returns the latest slices with log files that a plan `takes`, of file groups that no pending plan holds. A log
    compaction holds its file groups as well, unlike in Hudi: its log file would come on top.
    """
    by_plans = ids_by_partition(held_groups(view.pending))
    completions = CompletionTimes(view.timeline, context.history)

    def is_planned(writer: str) -> bool:
        """Whether a write did not complete after `instant` (isCompletedBefore)."""
        completion = completions.of(writer)
        return completion is None or completion < instant

    parts, held, passed = [], 0, 0
    skipped: set[str] = set()
    for latest in view.latest_slice_columns(partitions):
        if context.config.features.log_name_has_delta_commit:
            latest = latest.with_logs(is_planned)
        has_logs, is_held = latest.log_counts > 0, latest.among(by_plans)
        free = latest.where(has_logs & ~is_held)
        taken = takes(free)
        held += int(is_held.sum())
        passed += int((~taken).sum())
        left = np.concatenate([latest.partition_of[has_logs & is_held], free.partition_of[~taken]])
        skipped.update(latest.partitions[at] for at in np.unique(left).tolist())
        parts.append(free.where(taken))
    return Candidates(partitions, parts, config.max_file_bytes, held, passed, frozenset(skipped))


def _operation(item: FileSlice, no_base_bytes: int) -> CompactionOperation:
    logs = (*item.log_files, *item.cdc_files)
    base_bytes = None if item.base_file is None else item.base_file.size
    return CompactionOperation(
        item.file_group.partition,
        item.file_group.file_id,
        item.base_instant,
        None if item.base_file is None else item.base_file.name,
        tuple(file.name for file in item.log_files),
        metrics_of([(base_bytes, (file.size for file in logs))], no_base_bytes=no_base_bytes),
        tuple(file.name for file in item.cdc_files),
    )
