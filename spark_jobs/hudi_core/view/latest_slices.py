"""The newest file slices of many file groups as columns (Arrow, NumPy). A planner chooses by them among millions of
slices, and makes objects of the chosen ones alone. The rules are those of slicing.py; FileSystemView.latest_slices
returns the same slices as objects.

Memory: some 150 bytes a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.model.names import BASE_NAME, LOG_NAME, FileGroupId, parse_log_file, refuse_external
from hudi_core.storage.base import FileInfo
from hudi_core.view.file_group import DataFile, FileSlice
from hudi_core.view.slicing import Slicing

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Texts = npt.NDArray[np.object_]

NO_FILE: Final = -1
_NONE: Final = -1
_FORMS: Final = tuple(name.pattern.replace(r"\Z", r"\z") for name in (BASE_NAME, LOG_NAME))
"""The patterns of base and log files as Arrow's RE2 writes them."""


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
        rows = _rows_of(groups, self.partitions, self.partition_of, self.file_ids)
        for some in rows.values():
            found[some[some != _NONE]] = True
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


def latest_slices(
    listed: Sequence[tuple[str, Sequence[FileInfo]]],
    slicing: Slicing,
    compactions: Mapping[str, Sequence[tuple[FileGroupId, str]]],
    replaced: Mapping[str, Sequence[str]],
) -> LatestSlices:
    """Returns the newest visible slice of each file group, from what a listing shows of each partition. By partition:
    `compactions` are as in slicing.build_file_groups, `replaced` the file ids that are left out.
    """
    partitions = [partition for partition, _ in listed]
    counts = np.array([len(infos) for _, infos in listed], np.int64)
    names = pa.array([info.name for _, infos in listed for info in infos], pa.large_string())
    sizes = np.array([info.size for _, infos in listed for info in infos], np.int64)
    files = _Files.of(names)
    by_id = pc.sort_indices(files.file_ids.dictionary).to_numpy()
    position = np.repeat(np.arange(len(counts)), counts)[files.at]
    keys = position * len(by_id) + np.argsort(by_id)[files.file_ids.indices.to_numpy()]
    groups, rows = np.unique(keys, return_inverse=True)
    partition_of, places = np.divmod(groups, max(1, len(by_id)))
    file_ids = files.file_ids.dictionary.take(pa.array(by_id[places]))

    ids = {name: [group.file_id for group, _ in compactions[name]] for name in partitions if name in compactions}
    pending = [
        (row, instant)
        for partition, found in _rows_of(ids, partitions, partition_of, file_ids).items()
        for row, (_, instant) in zip(found.tolist(), compactions[partition], strict=True)
        if row != _NONE
    ]
    newest = _Newest(slicing, files, rows, pending)
    bases = np.flatnonzero(newest.belongs & ~files.is_log)
    # Of a retried task's base files the longest is whole (slicing.py): it is assigned last.
    bases = bases[np.lexsort((files.at[bases], sizes[files.at[bases]]))]
    base_files = np.full(len(groups), NO_FILE)
    base_files[rows[bases]] = files.at[bases]
    logs = np.flatnonzero(newest.belongs & files.is_log)
    logs = logs[np.argsort(rows[logs], kind="stable")]
    every = LatestSlices(
        partitions,
        partition_of,
        file_ids,
        newest.texts[newest.starts],
        base_files,
        files.at[logs],
        rows[logs],
        newest.texts[newest.instants[logs]],
        files.is_cdc[logs],
        names,
        sizes,
    )
    return every.where((newest.starts != _NONE) & ~every.among(replaced))


def _rows_of(
    groups: Mapping[str, Sequence[str]], partitions: Sequence[str], partition_of: Numbers, file_ids: pa.Array
) -> dict[str, Numbers]:
    """Returns the row of each of `groups`, or _NONE, by partition: file ids by partition, of `partitions` alone."""
    found = {}
    for position, partition in enumerate(partitions):
        if partition in groups:
            first, last = np.searchsorted(partition_of, (position, position + 1)).tolist()
            ids = pa.array(groups[partition], file_ids.type)
            at = pc.index_in(ids, file_ids.slice(first, last - first))
            found[partition] = pc.add(at, first).fill_null(_NONE).to_numpy()
    return found


@dataclass(frozen=True, slots=True)
class _Files:
    """The base and log files of a listing: positions in its names, file ids and instants (dictionaries), kinds."""

    at: Numbers
    file_ids: pa.DictionaryArray
    instants: pa.DictionaryArray
    is_log: Mask
    is_cdc: Mask

    @staticmethod
    def of(names: pa.Array) -> _Files:
        """Parses names as model.names.parse_data_file does."""
        is_log = _mask(pc.starts_with(names, "."))
        at = [np.flatnonzero(is_log == of_logs) for of_logs in (False, True)]
        parsed = [pc.extract_regex(names.take(pa.array(some)), form) for some, form in zip(at, _FORMS, strict=True)]
        fits = [_mask(found.is_valid()) for found in parsed]
        for other in at[0][~fits[0]].tolist():
            refuse_external(names[other].as_py())
        bases, logs = (found.filter(pa.array(fit)) for found, fit in zip(parsed, fits, strict=True))
        files = np.concatenate([some[fit] for some, fit in zip(at, fits, strict=True)])
        return _Files(
            files,
            pa.concat_arrays([bases.field("file_id"), logs.field("file_id")]).dictionary_encode(),
            pa.concat_arrays([bases.field("instant"), logs.field("instant")]).dictionary_encode(),
            is_log[files],
            np.concatenate([np.zeros(len(bases), np.bool_), _mask(pc.not_equal(logs.field("cdc"), ""))]),
        )


def _mask(values: pa.Array) -> Mask:
    found: Mask = values.to_numpy(zero_copy_only=False)
    return found


class _Newest:
    """The rule of slicing.py for the newest slice of each file group. `texts` are the instants in order; positions in
    these are `instants`, of the files, and `starts`, the base instants of the newest slices, or _NONE. `belongs` says
    which files are of the newest slice. `pending` are rows and instants of pending compactions.
    """

    def __init__(self, slicing: Slicing, files: _Files, rows: Numbers, pending: Sequence[tuple[int, str]]) -> None:
        named = files.instants.dictionary.to_pylist()
        texts = sorted({*named, *(instant for _, instant in pending)})
        place = {instant: number for number, instant in enumerate(texts)}
        self.texts: Texts = np.array([*texts, ""], np.object_)
        self.instants = np.array([place[instant] for instant in named], np.int64)[files.instants.indices.to_numpy()]
        of_base = np.array([slicing.file_visible(instant) for instant in texts], np.bool_)
        of_log = np.array([slicing.log_visible(instant) for instant in texts], np.bool_)
        shown = np.where(files.is_log, of_log[self.instants], of_base[self.instants])
        logs = np.flatnonzero(shown & files.is_log)
        starting = np.flatnonzero(shown if slicing.is_by_name else shown & ~files.is_log)
        self.starts = np.full(rows.max(initial=-1) + 1, _NONE)
        np.maximum.at(self.starts, rows[starting], self.instants[starting])
        for row, instant in pending:
            self.starts[row] = max(self.starts[row], place[instant])
        if not slicing.is_by_name:
            # Without a base file the first log starts the slice, and all others belong to it.
            first = np.full(len(self.starts), len(texts))
            np.minimum.at(first, rows[logs], self.instants[logs])
            alone = (self.starts == _NONE) & (first < len(texts))
            self.starts[alone] = first[alone]
        self.belongs = shown & (self.instants == self.starts[rows])
        if not slicing.is_by_name:
            self.belongs[logs] = self.instants[logs] >= self.starts[rows[logs]]
            older = logs[~self.belongs[logs]]
            self.belongs[older] = self._joined(slicing, older, rows, starting)

    def _joined(self, slicing: Slicing, logs: Numbers, rows: Numbers, starting: Numbers) -> Mask:
        """Returns which of the logs older than the newest slice of their file group belong to it."""
        count = len(self.texts)
        pairs, which = np.unique(self.instants[logs] * count + self.starts[rows[logs]], return_inverse=True)
        texts = ((self.texts[log], self.texts[start]) for log, start in zip(*np.divmod(pairs, count), strict=True))
        joined: Mask = np.array([slicing.joins(*pair) for pair in texts], np.bool_)[which]
        # A log of layout 1 names its slice, where there is one.
        is_legacy = np.array([text in slicing.legacy for text in self.texts], np.bool_)[self.instants[logs]]
        begun = rows[starting] * count + self.instants[starting]
        joined[is_legacy & np.isin(rows[logs] * count + self.instants[logs], begun)] = False
        return joined
