"""`record_index` against the record keys of all rows as they are now.

Exact: every key of a row is mapped, to its partition and file group (a key that is in several, to one of them), and no
other key is. Loose: the instant of a location, as of several writes of a row Hudi keeps the one that brought it to its
file group.

Memory: the keys as key_buckets has them, and one file group of the index: some 250 bytes for each of its keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import pyarrow as pa

from hudi_core.codec.hashing import file_group_index, file_group_indexes
from hudi_core.metadata_table.partition_type import RECORD_INDEX
from hudi_core.metadata_table.read.partition import MetadataPartition
from hudi_core.metadata_table.read.row_level import RecordIndex, RecordLocation
from hudi_core.model.names import FileGroupId
from hudi_core.services.metadata.record_keys import KeysOfRows
from hudi_core.services.metadata.validate.check import PartitionCheck, PartitionFiles
from hudi_core.services.metadata.validate.difference import Difference, Findings
from hudi_core.services.metadata.validate.key_buckets import KeyBuckets, compare_keys
from hudi_core.services.metadata.validate.true_ranges import one_array
from hudi_core.view.file_group import FileSlice

_GLOBAL: Final = None


class RecordIndexCheck(PartitionCheck):
    """Compares after the last partition, or where the index is one per data partition, after each."""

    def __init__(self, index: RecordIndex, keys: KeysOfRows, findings: Findings) -> None:
        self._parts: Mapping[str | None, MetadataPartition[RecordLocation]] = index.parts
        self._is_partitioned = index.is_partitioned
        self._keys = keys
        self._findings = findings
        self._places: dict[FileGroupId, int] = {}
        self._buckets = self._new_buckets(_GLOBAL)
        self._seen: set[str] = set()
        self._unindexed: dict[str, int] = {}

    def row_columns(self) -> frozenset[str]:
        """Those that make the record key."""
        return frozenset(self._keys.fields)

    def open_partition(self, files: PartitionFiles) -> None:
        """Of an index per partition: a new collection."""
        if self._is_partitioned:
            self._buckets = self._new_buckets(files.partition)

    def add_rows(self, file_slice: FileSlice, batch: pa.RecordBatch) -> None:
        """Collects the rows' keys."""
        group = file_slice.file_group
        part = self._part(group.partition)
        if part is None:
            self._unindexed[group.partition] = self._unindexed.get(group.partition, 0) + batch.num_rows
            return
        keys = self._keys(batch, path=group.file_id)
        place = self._places.setdefault(group, len(self._places))
        self._buckets.add(file_group_indexes(keys.to_pylist(), len(part.groups)), keys, place)

    def close_partition(self, files: PartitionFiles) -> None:
        """Of an index per partition: compares."""
        if self._is_partitioned:
            self._seen.add(files.partition)
            self._compare(files.partition)

    def finish(self) -> None:
        """Compares what is left."""
        if not self._is_partitioned:
            self._compare(_GLOBAL)
        for partition, rows in self._unindexed.items():
            self._findings.add(
                RECORD_INDEX,
                f"the index has no file groups of the partition, which has {rows} rows",
                partition=partition,
            )
        for partition in sorted({name for name in self._parts if name is not None} - self._seen):
            self._buckets = self._new_buckets(partition)
            self._compare(partition)

    def _part(self, partition: str) -> MetadataPartition[RecordLocation] | None:
        return self._parts.get(partition if self._is_partitioned else _GLOBAL)

    def _new_buckets(self, partition: str | None) -> KeyBuckets:
        part = self._parts.get(partition)
        return KeyBuckets(1 if part is None else len(part.groups))

    def _compare(self, partition: str | None) -> None:
        part = self._parts.get(partition)
        if part is None:
            return
        names = list(self._places)
        with self._buckets as buckets:
            for position, true in buckets.by_group():
                stored = part.groups[position].all()
                self._compare_group(position, len(part.groups), true, stored, names)
                part.groups[position].release()

    def _compare_group(
        self,
        position: int,
        count: int,
        true: pa.Table,
        stored: Mapping[bytes, RecordLocation],
        names: list[FileGroupId],
    ) -> None:
        # The group reader gives Python objects, one per key; few of the locations are distinct.
        locations = list(stored.values())
        places = np.fromiter(
            (self._places.get(FileGroupId(item.partition, item.file_id), -1) for item in locations),
            np.int32,
            len(locations),
        )
        keys = pa.array(list(stored), pa.binary())
        requirements, expected_places = one_array(true.column("key")), true.column("place").to_numpy()
        found = compare_keys(requirements.cast(pa.binary()), expected_places, keys, places)

        def text(at: int) -> str:
            return str(keys[at].as_py(), "utf-8", "replace")

        def missing() -> Iterator[Difference]:
            for at in found.missing.tolist():
                group = names[int(expected_places[at])]
                what = f"key {requirements[at].as_py()!r} is not mapped, but the file group has a row of it"
                yield Difference(RECORD_INDEX, group.partition, group.file_id, what)

        def extra() -> Iterator[Difference]:
            for at in found.extra.tolist():
                place, home = locations[at], file_group_index(text(at), count)
                why = (
                    "no row has it"
                    if home == position
                    else f"in file group {position} of the index, where nobody looks for it (but in {home})"
                )
                yield Difference(
                    RECORD_INDEX,
                    place.partition,
                    place.file_id,
                    f"key {text(at)!r} is mapped to the file group, but {why}",
                )

        def elsewhere() -> Iterator[Difference]:
            for at, first in zip(found.elsewhere.tolist(), found.first.tolist(), strict=True):
                place, right = locations[at], names[int(expected_places[first])]
                where = f"file group {right.file_id} of partition {right.partition!r}"
                yield Difference(
                    RECORD_INDEX,
                    place.partition,
                    place.file_id,
                    f"key {text(at)!r} is mapped to the file group, but it is in {where}",
                )

        self._findings.add_all(RECORD_INDEX, len(found.missing), missing())
        self._findings.add_all(RECORD_INDEX, len(found.extra), extra())
        self._findings.add_all(RECORD_INDEX, len(found.elsewhere), elsewhere())
