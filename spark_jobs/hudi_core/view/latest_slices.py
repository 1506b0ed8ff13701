"""Finds the newest file slices of many file groups at once, by the rules of slicing.py: Arrow parses the names, and
slicing.py is asked once about an instant. FileSystemView.latest_slices returns the same slices as objects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.frozen import dataclass
from hudi_core.model.names import BASE_NAME, LOG_NAME, FileGroupId, refuse_external
from hudi_core.storage.base import FileInfo
from hudi_core.view.slice_columns import NO_FILE, NO_ROW, LatestSlices, Mask, Numbers, Texts, rows_of
from hudi_core.view.slicing import Slicing

_NO_SLICE: Final = -1
_FORMS: Final = tuple(name.pattern.replace(r"\Z", r"\z") for name in (BASE_NAME, LOG_NAME))
"""The patterns of base and log files as Arrow's RE2 writes them."""


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
        for partition, found in rows_of(ids, partitions, partition_of, file_ids).items()
        for row, (_, instant) in zip(found.tolist(), compactions[partition], strict=True)
        if row != NO_ROW
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
    return every.where((newest.starts != _NO_SLICE) & ~every.among(replaced))


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
    """The rule of slicing.py for the newest slice of each file group. `texts` are the instants in order. By their place
    in it, `instants` has the instants of the files, `starts` the base instants of the newest slices, or _NO_SLICE.
    `belongs` says which files are of the newest slice. `pending` are rows and instants of pending compactions.
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
        self.starts = np.full(rows.max(initial=-1) + 1, _NO_SLICE)
        np.maximum.at(self.starts, rows[starting], self.instants[starting])
        for row, instant in pending:
            self.starts[row] = max(self.starts[row], place[instant])
        if not slicing.is_by_name:
            # Without a base file the first log starts the slice, and all others belong to it.
            first = np.full(len(self.starts), len(texts))
            np.minimum.at(first, rows[logs], self.instants[logs])
            alone = (self.starts == _NO_SLICE) & (first < len(texts))
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
