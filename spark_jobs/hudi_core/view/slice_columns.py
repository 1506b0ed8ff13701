"""The newest file slices of many file groups as columns (Arrow, NumPy). A planner chooses by them among millions of
slices, and makes objects of the chosen ones alone. latest_slices.py makes the columns.

Memory: some 200 bytes a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.frozen import dataclass
from hudi_core.model.names import FileGroupId, parse_log_file
from hudi_core.view.file_group import DataFile, FileSlice

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Texts = npt.NDArray[np.object_]

NO_FILE: Final = -1
NO_ROW: Final = -1


@dataclass(frozen=True)
class LatestSlices:
    """One row a slice, by partition in the given order, then by file id: the position of its partition in `partitions`,
    its file id and base instant, and its base file or NO_FILE. The columns `log_…` have one entry a log file, in the
    order of rows: the file, its row, the instant in its name, whether it is a change-data log. A file is a position in
    `names` and `sizes`.
    """

    partitions: Sequence[str]
    partition_of: Numbers
    file_ids: pa.Array
    base_instants: Texts
    base_files: Numbers
    log_files: Numbers
    log_rows: Numbers
    log_instants: Texts
    log_is_cdc: Mask
    names: pa.Array
    sizes: Numbers

    def __len__(self) -> int:
        return len(self.base_files)

    @cached_property
    def base_bytes(self) -> Numbers:
        """The bytes of the base file, 0 without one."""
        sizes = np.zeros(len(self), np.int64)
        has_base = self.base_files != NO_FILE
        sizes[has_base] = self.sizes[self.base_files[has_base]]
        return sizes

    @cached_property
    def log_counts(self) -> Numbers:
        """The number of log files, change-data logs included."""
        return np.bincount(self.log_rows, minlength=len(self)).astype(np.int64)

    @cached_property
    def log_bytes(self) -> Numbers:
        """The bytes of the log files, change-data logs included."""
        return self._log_bytes(np.ones(len(self.log_rows), np.bool_))

    @cached_property
    def data_bytes(self) -> Numbers:
        """The bytes of the files that hold rows, as FileSlice.size."""
        return self.base_bytes + self._log_bytes(~self.log_is_cdc)

    def _log_bytes(self, counted: Mask) -> Numbers:
        sums = np.zeros(len(self), np.int64)
        np.add.at(sums, self.log_rows[counted], self.sizes[self.log_files[counted]])
        return sums

    def rows_of_partition(self, position: int) -> Numbers:
        return np.arange(*np.searchsorted(self.partition_of, (position, position + 1)))

    def among(self, groups: Mapping[str, Sequence[str]]) -> Mask:
        """Returns whether the file group of each row is among `groups`: file ids by partition."""
        found = np.zeros(len(self), np.bool_)
        rows = rows_of(groups, self.partitions, self.partition_of, self.file_ids)
        for some in rows.values():
            found[some[some != NO_ROW]] = True
        return found

    def where(self, kept: Mask) -> LatestSlices:
        """Returns the rows of a mask, with the names of their files alone."""
        of_kept = kept[self.log_rows]
        base_files, log_files = self.base_files[kept], self.log_files[of_kept]
        is_used = np.zeros(len(self.names) + 1, np.bool_)
        is_used[base_files] = is_used[log_files] = True
        is_used[NO_FILE] = False
        place = np.cumsum(is_used) - 1
        place[NO_FILE] = NO_FILE
        return LatestSlices(
            self.partitions,
            self.partition_of[kept],
            self.file_ids.filter(pa.array(kept)),
            self.base_instants[kept],
            place[base_files],
            place[log_files],
            (np.cumsum(kept) - 1)[self.log_rows[of_kept]],
            self.log_instants[of_kept],
            self.log_is_cdc[of_kept],
            self.names.filter(pa.array(is_used[:NO_FILE])),
            self.sizes[is_used[:NO_FILE]],
        )

    def with_logs(self, takes: Callable[[str], bool]) -> LatestSlices:
        """Returns the slices with only the log files whose instant `takes`. Asks once about an instant."""
        answers = {instant: takes(instant) for instant in dict.fromkeys(self.log_instants)}
        if all(answers.values()):
            return self
        kept = np.fromiter(map(answers.__getitem__, self.log_instants), np.bool_, len(self.log_instants))
        return replace(
            self,
            log_files=self.log_files[kept],
            log_rows=self.log_rows[kept],
            log_instants=self.log_instants[kept],
            log_is_cdc=self.log_is_cdc[kept],
        )

    def slices(self, rows: Numbers) -> list[FileSlice]:
        """Returns the slices of `rows` as objects, with log files in scan order."""
        first, last = (np.searchsorted(self.log_rows, rows, side) for side in ("left", "right"))
        counts = last - first
        entries = np.repeat(last - np.cumsum(counts), counts) + np.arange(counts.sum())
        logs = zip(self.log_is_cdc[entries].tolist(), *self._named(self.log_files[entries]), strict=True)
        base_files = self.base_files[rows]
        has_base = base_files != NO_FILE
        bases = zip(*self._named(base_files[has_base]), strict=True)
        columns: tuple[list[Any], ...] = (
            [self.partitions[at] for at in self.partition_of[rows].tolist()],
            self.file_ids.take(pa.array(rows)).to_pylist(),
            self.base_instants[rows].tolist(),
            has_base.tolist(),
            counts.tolist(),
        )
        found = []
        for partition, file_id, instant, is_based, count in zip(*columns, strict=True):
            own = [(is_cdc, DataFile(partition, name, size)) for is_cdc, name, size in islice(logs, count)]
            if count > 1:
                own.sort(key=lambda log: parse_log_file(log[1].name).scan_order)
            found.append(
                FileSlice(
                    FileGroupId(partition, file_id),
                    instant,
                    DataFile(partition, *next(bases)) if is_based else None,
                    tuple([file for is_cdc, file in own if not is_cdc]),
                    tuple([file for is_cdc, file in own if is_cdc]),
                )
            )
        return found

    def _named(self, files: Numbers) -> tuple[list[str], list[int]]:
        return self.names.take(pa.array(files)).to_pylist(), self.sizes[files].tolist()


def ids_by_partition(groups: Iterable[FileGroupId]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for group in groups:
        found.setdefault(group.partition, []).append(group.file_id)
    return found


def rows_of(
    groups: Mapping[str, Sequence[str]], partitions: Sequence[str], partition_of: Numbers, file_ids: pa.Array
) -> dict[str, Numbers]:
    """Returns the row of each of `groups`, or NO_ROW, by partition: file ids by partition, of `partitions` alone."""
    found = {}
    for position, partition in enumerate(partitions):
        if partition in groups:
            first, last = np.searchsorted(partition_of, (position, position + 1)).tolist()
            ids = pa.array(groups[partition], file_ids.type)
            at = pc.index_in(ids, file_ids.slice(first, last - first))
            found[partition] = pc.add(at, first).fill_null(NO_ROW).to_numpy()
    return found
