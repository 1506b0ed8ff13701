"""`record_index` against the record keys of all rows as they are now.

Exact: every key of a row is mapped, to its partition and file group (a key that is in several, to one of them), and no
other key is. Loose: the instant of a location, as of several writes of a row Hudi keeps the one that brought it to its
file group.

Memory: the keys as index_keys has them, and one file group of the index: some 250 bytes for each of its keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from hudi_core.codec.column_paths import top_columns
from hudi_core.codec.hashing import file_group_index, group_indexes
from hudi_core.filegroup.merge.record_keys import record_keys
from hudi_core.metadata_table.partition_type import RECORD_INDEX
from hudi_core.metadata_table.read.partition import MetadataPartition
from hudi_core.metadata_table.read.row_level import RecordIndex, RecordLocation
from hudi_core.model.names import FileGroupId
from hudi_core.services.metadata.validate.check import Difference, Findings, PartitionCheck, PartitionFiles
from hudi_core.services.metadata.validate.index_keys import (
    IndexKeys,
    StoredGroup,
    compare_keys,
    stored_groups,
    text_at,
    why_extra,
)
from hudi_core.view.file_group import FileSlice


class RecordIndexCheck(PartitionCheck):
    """Compares after the last partition, or where the index is one per data partition, after each."""

    def __init__(self, index: RecordIndex, key_columns: Sequence[str], findings: Findings) -> None:
        super().__init__(RECORD_INDEX, findings)
        self._parts: Mapping[str | None, MetadataPartition[RecordLocation]] = index.parts
        self._is_partitioned = index.is_partitioned
        self._key_columns = key_columns
        self._places: dict[FileGroupId, int] = {}
        self._index_keys = self._new_keys(None)
        self._seen: set[str] = set()
        self._unindexed: dict[str, int] = {}

    def row_columns(self) -> frozenset[str]:
        return top_columns(self._key_columns)

    def open_partition(self, files: PartitionFiles) -> None:
        if self._is_partitioned:
            self._index_keys = self._new_keys(files.partition)

    def add_rows(self, file_slice: FileSlice, batch: pa.RecordBatch) -> None:
        group = file_slice.file_group
        part = self._parts.get(group.partition if self._is_partitioned else None)
        if part is None:
            self._unindexed[group.partition] = self._unindexed.get(group.partition, 0) + batch.num_rows
            return
        keys = record_keys(batch, self._key_columns, path=group.file_id)
        place = self._places.setdefault(group, len(self._places))
        self._index_keys.add(group_indexes(keys, len(part.groups)), keys, place)

    def close_partition(self, files: PartitionFiles) -> None:
        if self._is_partitioned:
            self._seen.add(files.partition)
            self._compare(files.partition)

    def finish(self) -> None:
        if not self._is_partitioned:
            self._compare(None)
        for partition, rows in self._unindexed.items():
            what = f"the index has no file groups of the partition, which has {rows} rows"
            self.add_difference(what, partition=partition)
        for partition in sorted({name for name in self._parts if name is not None} - self._seen):
            self._index_keys = self._new_keys(partition)
            self._compare(partition)

    def _new_keys(self, partition: str | None) -> IndexKeys:
        part = self._parts.get(partition)
        return IndexKeys(1 if part is None else len(part.groups))

    def _compare(self, partition: str | None) -> None:
        part = self._parts.get(partition)
        if part is not None:
            names = list(self._places)
            for group in stored_groups(self._index_keys, part.groups):
                self._compare_group(group, len(part.groups), names)

    def _compare_group(self, group: StoredGroup[RecordLocation], count: int, names: Sequence[FileGroupId]) -> None:
        # The group reader gives Python objects, one per key; few of the locations are distinct.
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
