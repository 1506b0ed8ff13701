"""Compares `record_index` with the record keys of all current rows, and `secondary_index_*` with their values.
docs/guarantees/metadata-table.md, "validate", says what is compared exactly and what loosely, and the memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Final, Generic, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hudi_core.codec.columns import octets, top_columns
from hudi_core.codec.hashing import file_group_index, group_indexes
from hudi_core.engine.exchange import SHARD_ROWS, RunBuffer, exchange_rows, fewer_runs, merged_rows
from hudi_core.expr.functions import evaluate
from hudi_core.expr.tree import Column
from hudi_core.filegroup.merge.record_keys import record_keys
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.keys import (
    parse_secondary_key,
    secondary_hashed_part,
    secondary_keys,
    secondary_prefix,
    secondary_prefixes,
)
from hudi_core.metadata_table.partition_type import RECORD_INDEX
from hudi_core.metadata_table.read.group_reader import GroupReader
from hudi_core.metadata_table.read.partition import MetadataPartition
from hudi_core.metadata_table.read.row_level import RecordLocation, SecondaryIndexRules
from hudi_core.model.names import FileGroupId
from hudi_core.view.file_group import FileSlice
from hudi_health.validate.check import Difference, PartitionCheck, PartitionFiles
from hudi_health.validate.subject import Subject

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class KeyDifference:
    """The positions of keys that differ: `missing` in the true keys, the other arrays in the stored keys. If a key is
    in several places, any of them is right.
    """

    missing: NDArray[np.int64]
    extra: NDArray[np.int64]
    elsewhere: NDArray[np.int64]
    first: NDArray[np.int64]
    """For each of `elsewhere`, the position where the key first occurs in the true keys."""


def compare_keys(
    true: pa.Array, true_places: NDArray[np.int32], stored: pa.Array, stored_places: NDArray[np.int32]
) -> KeyDifference:
    """Compares true and stored keys and places, by hashes. Memory: about 50 bytes a key, beside the arrays."""
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
        # The key may be in several places: any of them is right.
        repeated = np.flatnonzero(np.isin(found, suspects))
        right = repeated[true_places[repeated] == stored_places[found[repeated]]]
        suspects = suspects[~np.isin(suspects, found[right])]
    return KeyDifference(missing, extra, suspects, there[suspects])


def _index_in(keys: pa.Array, among: pa.Array) -> NDArray[np.int64]:
    """Returns the position of each key's first occurrence in `among`, or -1."""
    found: NDArray[np.int64] = (
        pc.index_in(keys, value_set=among).fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    )
    return found


BUDGET: Final = 128 << 20


class IndexKeys:
    """The keys of an index and their places, as rows of an exchange."""

    def __init__(self, groups: int, budget: int = BUDGET) -> None:
        self._groups = groups
        self._budget = budget
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._rows: RunBuffer | None = None

    def add(self, groups: NDArray[np.int32], keys: pa.Array, place: int) -> None:
        """Adds keys with positions of their file groups. Raises ExecutionError if temporary files cannot be written."""
        if self._folder is None or self._rows is None:
            self._folder = tempfile.TemporaryDirectory(prefix="hudi-keys-")
            self._rows = RunBuffer(Path(self._folder.name), "keys", self._budget)
        places = pa.repeat(pa.scalar(np.int32(place).tobytes()), len(keys))
        self._rows.add(exchange_rows(pa.array(groups, pa.int32()), keys.cast(pa.binary()), places))

    def by_group(self) -> Iterator[tuple[pa.Array, NDArray[np.int32]]]:
        """Yields the sorted keys and places of every file group, even an empty one. Then deletes temporary files."""
        with self._folder or nullcontext():
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
    """One file group of an index: its position, the keys that it should contain with their places, and its records."""

    position: int
    keys: pa.Array
    places: NDArray[np.int32]
    stored: Mapping[bytes, R]


def stored_groups(index_keys: IndexKeys, groups: Sequence[GroupReader[R]]) -> Iterator[StoredGroup[R]]:
    for position, (keys, places) in enumerate(index_keys.by_group()):
        yield StoredGroup(position, keys, places, groups[position].all())
        groups[position].release()


def text_at(keys: pa.Array, at: int) -> str:
    return str(keys[at].as_py(), "utf-8", "replace")


def why_extra(position: int, home: int) -> str:
    """Returns why no row explains a record in the file group at `position`. Lookups read the file group at `home`."""
    if home == position:
        return "no row has it"
    return f"in file group {position} of the index, where no lookup reads it (but in {home})"


class RecordIndexCheck(PartitionCheck):
    """The check of the record index. It compares after the last partition, or after each that has its own index."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(RECORD_INDEX, subject.findings)
        index = subject.metadata.record_index
        self._parts: Mapping[str | None, MetadataPartition[RecordLocation]] = index.parts
        self._is_partitioned = index.is_partitioned
        self._key_columns = subject.key_columns
        self._places: dict[FileGroupId, int] = {}
        self._index_keys = {name: IndexKeys(len(part.groups)) for name, part in self._parts.items()}
        """The keys of the parts that were not compared yet."""
        self._unindexed: dict[str, int] = {}

    def row_columns(self) -> frozenset[str]:
        return top_columns(self._key_columns)

    def add_rows(self, file_slice: FileSlice, batch: pa.RecordBatch) -> None:
        group = file_slice.file_group
        name = group.partition if self._is_partitioned else None
        if name not in self._parts:
            self._unindexed[group.partition] = self._unindexed.get(group.partition, 0) + batch.num_rows
            return
        keys = record_keys(batch, self._key_columns, path=group.file_id)
        place = self._places.setdefault(group, len(self._places))
        self._index_keys[name].add(group_indexes(keys, len(self._parts[name].groups)), keys, place)

    def close_partition(self, files: PartitionFiles) -> None:
        if files.partition in self._index_keys:
            self._compare(files.partition)

    def finish(self) -> None:
        for partition, rows in self._unindexed.items():
            what = f"the index has no file groups of the partition, which has {rows} rows"
            self.add_difference(what, partition=partition)
        for name in sorted(self._index_keys, key=lambda name: name or ""):
            self._compare(name)

    def _compare(self, name: str | None) -> None:
        names, groups = list(self._places), self._parts[name].groups
        for group in stored_groups(self._index_keys.pop(name), groups):
            self._compare_group(group, len(groups), names)

    def _compare_group(self, group: StoredGroup[RecordLocation], count: int, names: Sequence[FileGroupId]) -> None:
        # The group reader returns one Python object per key. Few of the locations are distinct.
        locations = list(group.stored.values())
        places = np.fromiter(
            (self._places.get(FileGroupId(item.partition, item.file_id), -1) for item in locations),
            np.int32,
            len(locations),
        )
        keys = pa.array(list(group.stored), pa.binary())
        found = compare_keys(group.keys, group.places, keys, places)

        def missing(at: int) -> Difference:
            right = names[int(group.places[at])]
            what = f"key {text_at(group.keys, at)!r} is not mapped, but the file group has a row of it"
            return Difference(RECORD_INDEX, right.partition, right.file_id, what)

        def wrong(at: int, why: str) -> Difference:
            what = f"key {text_at(keys, at)!r} is mapped to the file group, but {why}"
            return Difference(RECORD_INDEX, locations[at].partition, locations[at].file_id, what)

        def extra(at: int) -> Difference:
            return wrong(at, why_extra(group.position, file_group_index(text_at(keys, at), count)))

        def elsewhere(at: int, first: int) -> Difference:
            right = names[int(group.places[first])]
            return wrong(at, f"it is in file group {right.file_id} of partition {right.partition!r}")

        self.add_each(missing, found.missing)
        self.add_each(extra, found.extra)
        self.add_each(elsewhere, found.elsewhere, found.first)


class SecondaryIndexCheck(PartitionCheck):
    """The check of a secondary index. It compares after the last partition. `by_value` says that only the value chooses
    the file group (index version 2).
    """

    def __init__(self, name: str, column: Column, subject: Subject, *, by_value: bool) -> None:
        super().__init__(name, subject.findings)
        hashed = secondary_hashed_part if by_value else str
        self._partition = subject.snapshot.partition(name, SecondaryIndexRules(), hashed)
        self._column = column
        self._key_columns = subject.key_columns
        self._by_value = by_value
        self._is_whole = subject.metadata.covers_all_rows(name)
        if not self._is_whole:
            why = "pairs that it lacks: it was built while a commit was written, and readers do not ask it"
            self.findings.not_checked(name, why)
        self._index_keys = IndexKeys(len(self._partition.groups))
        self._places: list[FileSlice] = []

    def row_columns(self) -> frozenset[str]:
        return top_columns(self._key_columns) | {self._column.path[0]}

    def add_rows(self, file_slice: FileSlice, batch: pa.RecordBatch) -> None:
        if not self._places or self._places[-1] is not file_slice:
            self._places.append(file_slice)
        heads = secondary_prefixes(evaluate(self._column, batch, "UTC").cast(pa.string()))
        keys = record_keys(batch, self._key_columns, path=file_slice.file_group.file_id)
        pairs = secondary_keys(heads, keys)
        groups = group_indexes(heads if self._by_value else pairs, len(self._partition.groups))
        self._index_keys.add(groups, pairs, len(self._places) - 1)

    def finish(self) -> None:
        for group in stored_groups(self._index_keys, self._partition.groups):
            self._compare_group(group)

    def _compare_group(self, group: StoredGroup[bool]) -> None:
        stored = pa.array([key for key, current in group.stored.items() if current], pa.binary())
        nowhere = np.zeros(len(stored), dtype=np.int32)
        found = compare_keys(group.keys, np.zeros(len(group.keys), dtype=np.int32), stored, nowhere)

        def missing(at: int) -> Difference:
            right = self._places[int(group.places[at])].file_group
            what = f"{_pair(text_at(group.keys, at))} is not in the index, but the file group has it"
            return Difference(self.name, right.partition, right.file_id, what)

        def extra(at: int) -> Difference:
            text = text_at(stored, at)
            hashed = secondary_hashed_part(text) if self._by_value else text
            why = why_extra(group.position, file_group_index(hashed, len(self._partition.groups)))
            return Difference(self.name, None, None, f"{_pair(text)} is in the index, but {why}")

        if self._is_whole:
            self.add_each(missing, found.missing[self._has_meaning(group.keys.take(pa.array(found.missing)))])
        self.add_each(extra, found.extra[self._has_meaning(stored.take(pa.array(found.extra)))])

    def _has_meaning(self, pairs: pa.Array) -> NDArray[np.bool_]:
        """Returns which pairs count. In version 1, those without a value do not: Hudi 1.0 does not keep them."""
        if self._by_value:
            return np.ones(len(pairs), dtype=np.bool_)
        is_null = pc.starts_with(pairs, secondary_prefix(None).encode())
        return np.asarray(~is_null.to_numpy(zero_copy_only=False), dtype=np.bool_)


def can_print(value_type: pa.DataType) -> bool:
    """Returns whether a value of this type has the same text for every writer."""
    return bool(pa.types.is_string(value_type) or pa.types.is_integer(value_type))


def _pair(text: str) -> str:
    value, key = parse_secondary_key(text)
    return f"value {value!r} of key {key!r}"
