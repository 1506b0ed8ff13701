"""The keys of an overwrite whose row a global record index has in a partition that stays as it is.

Such an index holds one place for a key, whatever partitions have a row of it. Real Hudi deletes the place of every key
that goes and moves every key that comes (HoodieBackedTableMetadataWriter.getRecordIndexAdditionalUpserts): readers then
miss the row in the other partition. Here that place is kept, and a key that comes is refused (docs/decisions/0026).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.codec.hashing import group_indexes
from hudi_core.errors import UnsupportedError
from hudi_core.metadata_table.partition_type import RECORD_INDEX
from hudi_core.metadata_table.partitions.row_level import GONE
from hudi_core.metadata_table.read.file_group import MergedSlice
from hudi_core.metadata_table.read.group_reader import GroupReader, of_keys
from hudi_core.metadata_table.read.log_blocks import BlockFilter
from hudi_core.metadata_table.read.row_level import RecordIndexRules, RecordLocation
from hudi_core.storage.base import Storage


@dataclass(frozen=True, slots=True)
class OtherPartitions:
    """A global record index before an overwrite, and the data partitions that this replaces.

    `slices` are the index's file groups in order, `blocks` the log blocks that count, `zone` that of instants.
    `refuses`: the overwrite is not committed, so that a key which comes can be refused.
    """

    replaced: tuple[str, ...]
    slices: tuple[MergedSlice, ...]
    blocks: BlockFilter
    zone: str
    refuses: bool

    def open(self, storage: Storage) -> PlacesElsewhere:
        """For lookups in one task."""
        return PlacesElsewhere(storage, self)


class PlacesElsewhere:
    """Lookups of the places that are outside of the replaced partitions. `spared` counts the deletions left out."""

    def __init__(self, storage: Storage, others: OtherPartitions) -> None:
        rules = RecordIndexRules(others.zone)
        self._groups = [GroupReader(storage, item, others.blocks, rules) for item in others.slices]
        self._replaced = frozenset(others.replaced)
        self._refuses = others.refuses
        self.spared = 0

    def filtered(self, group: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of a shard (exchange.SHARD_ROWS), the keys of the index's file group at position `group`, without
        deletions of keys that are elsewhere.

        Raises UnsupportedError for a key that comes and is elsewhere. Memory: a batch, and what a lookup of its keys
        takes.
        """
        for batch in batches:
            found = self._found(group, batch.column(0))
            if found:
                is_found = pc.is_in(batch.column(0), value_set=pa.array(found, pa.binary()))
                is_gone = pc.equal(batch.column(1), pa.scalar(GONE, pa.binary()))
                coming = pc.and_not(is_found, is_gone)
                if self._refuses and coming.true_count:
                    key = batch.column(0)[pc.index(coming, True).as_py()].as_py()
                    raise _refused(key, found[key])
                gone = pc.and_(is_found, is_gone)
                self.spared += gone.true_count
                batch = batch.filter(pc.invert(gone))
            yield batch

    def without(self, keys: pa.Array, batch: pa.RecordBatch) -> tuple[pa.Array, pa.RecordBatch]:
        """Record keys (string) and the rows beside them, without those whose key is elsewhere. Memory: as filtered, for
        all file groups of the index one after the other.
        """
        groups, cells = group_indexes(keys, len(self._groups)), keys.cast(pa.binary())
        kept = np.ones(len(keys), dtype=np.bool_)
        for group in np.unique(groups).tolist():
            at = np.flatnonzero(groups == group)
            found = self._found(group, cells.take(pa.array(at)))
            self._groups[group].release()
            if found:
                kept &= ~pc.is_in(cells, value_set=pa.array(found, pa.binary())).to_numpy(zero_copy_only=False)
        mask = pa.array(kept)
        return keys.filter(mask), batch.filter(mask)

    def _found(self, group: int, keys: pa.Array) -> dict[bytes, RecordLocation]:
        places = self._groups[group].records(of_keys(sorted(set(keys.to_pylist()))))
        return {key: place for key, place in places.items() if place.partition not in self._replaced}


def _refused(key: bytes, place: RecordLocation) -> UnsupportedError:
    return UnsupportedError(
        f"a row with the record key {key.decode('utf-8', 'replace')!r} comes to a partition that is overwritten, but "
        f"the row of this key is in partition {place.partition!r}, which stays, and a record index holds one place for "
        "a key",
        path=f".hoodie/metadata/{RECORD_INDEX}",
        remedy="leave the row out, overwrite that partition as well, or drop the record index",
    )
