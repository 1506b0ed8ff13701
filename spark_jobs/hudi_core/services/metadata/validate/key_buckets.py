"""The keys that an index should hold, collected while a table is read, by file group of the index.

Memory: up to BUDGET bytes of keys; beyond that they lie in temporary files, one for each bucket of consecutive file
groups, and one bucket is in memory at a time: of n bytes of keys, n / min(file groups, MAX_BUCKETS).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hudi_core.metadata_table.read.group_reader import GroupReader

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class KeyDifference:
    """Positions: `missing` among the true keys, each key once; `extra` and `elsewhere` among the stored ones, which are
    distinct.

    A key that is true in several places may be stored in any of them.
    """

    missing: NDArray[np.int64]
    extra: NDArray[np.int64]
    elsewhere: NDArray[np.int64]
    first: NDArray[np.int64]
    """For each of `elsewhere`, where among the true keys the key is first."""


def compare_keys(
    true: pa.Array, true_places: NDArray[np.int32], stored: pa.Array, stored_places: NDArray[np.int32]
) -> KeyDifference:
    """Hashes both sides, of which `stored` are binary: some 50 bytes for each key besides the arrays."""
    true = true.cast(pa.binary())
    found = _index_in(true, stored)
    missing = np.flatnonzero(found < 0)
    if len(missing) > 1:
        missing = missing[_firsts(true.take(pa.array(missing)))]
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
    """For each key the position of its first occurrence in `among`, -1 where it is not there."""
    found: NDArray[np.int64] = (
        pc.index_in(keys, value_set=among).fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    )
    return found


def _firsts(keys: pa.Array) -> NDArray[np.int64]:
    """The position of the first occurrence of each distinct key."""
    return np.unique(_index_in(keys, keys))


BUDGET: Final = 128 << 20
MAX_BUCKETS: Final = 256

SCHEMA: Final = pa.schema([("group", pa.int32()), ("key", pa.string()), ("place", pa.int32())])
"""`group` is the position of the index's file group; `place` a number that the caller gave."""


class KeyBuckets:
    """Collects keys for an index of `groups` file groups. A `with` block removes the temporary files."""

    def __init__(self, groups: int, budget: int = BUDGET) -> None:
        self._groups = groups
        self._count = min(groups, MAX_BUCKETS)
        self._budget = budget
        self._held: list[pa.RecordBatch] = []
        self._bytes = 0
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._written: set[int] = set()

    def __enter__(self) -> KeyBuckets:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def add(self, groups: NDArray[np.int32], keys: pa.Array, place: int) -> None:
        """Keys (string, no nulls), each with its file group's position."""
        columns = [
            pa.array(groups.astype(np.int32, copy=False)),
            keys,
            pa.repeat(pa.scalar(place, pa.int32()), len(keys)),
        ]
        batch = pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
        self._held.append(batch)
        self._bytes += batch.nbytes
        if self._bytes > self._budget:
            self._spill()

    def by_group(self) -> Iterator[tuple[int, pa.Table]]:
        """Every file group's position, ascending, with its keys (`key`, `place`); also those without any."""
        if self._written:
            self._spill()
            bounds = [self._first(bucket) for bucket in range(self._count + 1)]
            parts: Iterator[pa.Table] = map(self._load, range(self._count))
        else:
            bounds = [0, self._groups]
            parts = iter((pa.Table.from_batches(self._held, SCHEMA),))
        for start, end, table in zip(bounds, bounds[1:], parts, strict=False):
            groups = table.column("group").to_numpy()
            order = np.argsort(groups, kind="stable")
            ends = np.searchsorted(groups[order], np.arange(start, end + 1)).tolist()
            for group, first, last in zip(range(start, end), ends, ends[1:], strict=False):
                yield group, table.select(["key", "place"]).take(pa.array(order[first:last]))

    def _first(self, bucket: int) -> int:
        """The first file group of a bucket."""
        return -(-bucket * self._groups // self._count)

    def _spill(self) -> None:
        """Appends what is held to the buckets' files. Each call adds one Arrow stream to each file that it has keys
        for.
        """
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="hudi-keys-")
        table = pa.Table.from_batches(self._held, SCHEMA)
        buckets = table.column("group").to_numpy().astype(np.int64) * self._count // self._groups
        order = np.argsort(buckets, kind="stable")
        for bucket in np.unique(buckets).tolist():
            rows = order[slice(*np.searchsorted(buckets[order], [bucket, bucket + 1]))]
            with open(self._path(bucket), "ab") as file, pa.ipc.new_stream(file, SCHEMA) as writer:
                writer.write_table(table.take(pa.array(rows)))
            self._written.add(bucket)
        self._held, self._bytes = [], 0

    def _load(self, bucket: int) -> pa.Table:
        tables = []
        if bucket in self._written:
            with open(self._path(bucket), "rb") as file:
                size = os.fstat(file.fileno()).st_size
                while file.tell() < size:
                    tables.append(pa.ipc.open_stream(file).read_all())
        return pa.concat_tables([SCHEMA.empty_table(), *tables])

    def _path(self, bucket: int) -> str:
        folder = self._folder
        if folder is None:
            raise ValueError("no key was spilled")
        return os.path.join(folder.name, str(bucket))


@dataclass(frozen=True, slots=True)
class StoredGroup(Generic[R]):
    """One file group of an index: its position, the keys that it should hold with their places, and its records."""

    position: int
    keys: pa.Array
    places: NDArray[np.int32]
    stored: Mapping[bytes, R]


def stored_groups(buckets: KeyBuckets, groups: Sequence[GroupReader[R]]) -> Iterator[StoredGroup[R]]:
    """The file groups of an index one after another; each is released, and at the end the temporary files are."""
    with buckets:
        for position, true in buckets.by_group():
            keys, places = true.column("key").combine_chunks(), true.column("place").to_numpy()
            yield StoredGroup(position, keys, places, groups[position].all())
            groups[position].release()


def why_extra(position: int, home: int) -> str:
    """Why a record is wrong that no row explains in the file group at `position`; lookups read the one at `home`."""
    if home == position:
        return "no row has it"
    return f"in file group {position} of the index, where no lookup reads it (but in {home})"
