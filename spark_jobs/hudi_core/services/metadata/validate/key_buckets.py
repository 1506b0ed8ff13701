"""The keys that an index should hold, collected while a table is read and given back by file group of the index.

Memory: up to BUDGET bytes of keys; beyond that they lie in temporary files, one for each bucket of consecutive file
groups, and one bucket is in memory at a time: of n bytes of keys, n / min(file groups, MAX_BUCKETS).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


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
    """Hashes both sides: some 50 bytes for each key besides the arrays."""
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

    def add(self, groups: NDArray[np.int64], keys: pa.Array, place: int) -> None:
        """Keys (string, no nulls), each with its file group's position."""
        columns = [pa.array(groups.astype(np.int32)), keys, pa.repeat(pa.scalar(place, pa.int32()), len(keys))]
        batch = pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
        self._held.append(batch)
        self._bytes += batch.nbytes
        if self._bytes > self._budget:
            self._spill()

    def by_group(self) -> Iterator[tuple[int, pa.Table]]:
        """Every file group's position, ascending, with its keys (`key`, `place`); also those without any."""
        if self._written:
            self._spill()
        held = pa.Table.from_batches(self._held, SCHEMA)
        for bucket in range(self._count):
            table = self._load(bucket) if self._written else held
            of_group = table.column("group").to_numpy()
            order = np.argsort(of_group, kind="stable")
            numbers = (
                np.arange(self._first(bucket), self._first(bucket + 1)) if self._written else np.arange(self._groups)
            )
            ends = np.searchsorted(of_group[order], numbers, side="right")
            start = int(np.searchsorted(of_group[order], numbers[0])) if len(numbers) else 0
            for number, end in zip(numbers.tolist(), ends.tolist(), strict=True):
                yield number, table.select(["key", "place"]).take(pa.array(order[start:end]))
                start = end
            if not self._written:
                return

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
            rows = order[
                np.searchsorted(buckets[order], bucket) : np.searchsorted(buckets[order], bucket, side="right")
            ]
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
