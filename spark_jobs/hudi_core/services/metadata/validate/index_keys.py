"""The keys that an index should hold, collected while a table is read, by file group of the index.

Memory: up to BUDGET bytes of keys, and twice as much while these are sorted and written to a temporary file; then the
keys of one file group at a time.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hudi_core.codec.columns import octets
from hudi_core.engine.exchange import SHARD_ROWS, RunBuffer, exchange_rows, fewer_runs, merged_rows
from hudi_core.metadata_table.read.group_reader import GroupReader

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class KeyDifference:
    """Positions, `missing` among the true keys, the others among the stored ones. One of several places will do."""

    missing: NDArray[np.int64]
    extra: NDArray[np.int64]
    elsewhere: NDArray[np.int64]
    first: NDArray[np.int64]
    """For each of `elsewhere`, where among the true keys the key is first."""


def compare_keys(
    true: pa.Array, true_places: NDArray[np.int32], stored: pa.Array, stored_places: NDArray[np.int32]
) -> KeyDifference:
    """Hashes both sides: some 50 bytes for each key besides the arrays."""
    found = _index_in(true, stored)
    missing = np.flatnonzero(found < 0)
    if len(missing) > 1:
        lacking = true.take(pa.array(missing))
        missing = missing[np.unique(_index_in(lacking, lacking))]
    there = _index_in(stored, true)
    extra = np.flatnonzero(there < 0)
    known = np.flatnonzero(there >= 0)
    suspects = known[true_places[there[known]] != stored_places[known]]
    if len(suspects):
        # The key may be in several places: any of them will do.
        repeated = np.flatnonzero(np.isin(found, suspects))
        right = repeated[true_places[repeated] == stored_places[found[repeated]]]
        suspects = suspects[~np.isin(suspects, found[right])]
    return KeyDifference(missing, extra, suspects, there[suspects])


def _index_in(keys: pa.Array, among: pa.Array) -> NDArray[np.int64]:
    """The position of each key's first occurrence in `among`, -1 where it is not there."""
    found: NDArray[np.int64] = (
        pc.index_in(keys, value_set=among).fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    )
    return found


BUDGET: Final = 128 << 20


class IndexKeys:
    """Keys of an index and their places, as rows of an exchange. A `with` block removes the temporary files."""

    def __init__(self, groups: int, budget: int = BUDGET) -> None:
        self._groups = groups
        self._budget = budget
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._rows: RunBuffer | None = None

    def __enter__(self) -> IndexKeys:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def add(self, groups: NDArray[np.int32], keys: pa.Array, place: int) -> None:
        """Keys with their file groups' positions. ExecutionError when temporary files cannot be written."""
        if self._folder is None or self._rows is None:
            self._folder = tempfile.TemporaryDirectory(prefix="hudi-keys-")
            self._rows = RunBuffer(Path(self._folder.name), "keys", self._budget)
        places = pa.repeat(pa.scalar(np.int32(place).tobytes()), len(keys))
        self._rows.add(exchange_rows(pa.array(groups, pa.int32()), keys.cast(pa.binary()), places))

    def by_group(self) -> Iterator[tuple[pa.Array, NDArray[np.int32]]]:
        """The keys of every file group, sorted, with their places; also of those without any."""
        runs = []
        if self._folder is not None and self._rows is not None:
            runs = fewer_runs(Path(self._folder.name), self._rows.finish())
        for group in range(self._groups):
            table = pa.Table.from_batches(merged_rows(runs, group), SHARD_ROWS)
            keys = pa.concat_arrays([pa.array([], pa.binary()), *table.column("key").chunks])
            places = pa.concat_arrays([pa.array([], pa.binary()), *table.column("value").chunks])
            yield keys, octets(places)[1].view(np.int32)


@dataclass(frozen=True, slots=True)
class StoredGroup(Generic[R]):
    """One file group of an index: its position, the keys that it should hold with their places, and its records."""

    position: int
    keys: pa.Array
    places: NDArray[np.int32]
    stored: Mapping[bytes, R]


def stored_groups(index_keys: IndexKeys, groups: Sequence[GroupReader[R]]) -> Iterator[StoredGroup[R]]:
    with index_keys:
        for position, (keys, places) in enumerate(index_keys.by_group()):
            yield StoredGroup(position, keys, places, groups[position].all())
            groups[position].release()


def text_at(keys: pa.Array, at: int) -> str:
    return str(keys[at].as_py(), "utf-8", "replace")


def why_extra(position: int, home: int) -> str:
    """Why no row explains a record in the file group at `position`; lookups read the one at `home`."""
    if home == position:
        return "no row has it"
    return f"in file group {position} of the index, where no lookup reads it (but in {home})"
