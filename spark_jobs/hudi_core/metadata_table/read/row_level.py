"""Lookups in row-level indexes: where the row of a record key is (HoodieRecordIndexInfo,
HoodieTableMetadataUtil.getLocationFromRecordIndexInfo), and which record keys have a value in an indexed column
(HoodieSecondaryIndexInfo, SecondaryIndexKeyUtils).

A global record index has one place for a key, also where several partitions have a row of it. In an overwrite Hudi
deletes the place of every key that is replaced and moves the place of every new key
(HoodieBackedTableMetadataWriter.getRecordIndexAdditionalUpserts): readers then miss the row in a partition that stays.
This engine keeps the place of that row, and refuses a new row with its key (docs/decisions/0026).
"""

from __future__ import annotations

import re
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote_to_bytes

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.codec.hashing import group_indexes
from hudi_core.errors import ConfigError, CorruptFileError, TimelineError, UnsupportedError
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.keys import parse_secondary_key, secondary_prefix
from hudi_core.metadata_table.partition_type import RECORD_INDEX
from hudi_core.metadata_table.read.file_group import BlockFilter, MergedSlice
from hudi_core.metadata_table.read.group_reader import GroupReader, of_keys
from hudi_core.metadata_table.read.partition import MetadataPartition, check_numbers
from hudi_core.metadata_table.record import GONE, RecordRules, RecordType
from hudi_core.storage.base import Storage
from hudi_core.timeline.instant_time import of_epoch_millis

_UUID_ENCODING: Final = 0
_NO_FILE_INDEX: Final = -1
_MASK: Final = (1 << 64) - 1
_MAX_MILLIS: Final = 253402300799999
"""The last millisecond of the year 9999."""
_PARTITIONED = re.compile(r"record-index-(?P<partition>[^-]*)-\d{4,}-\d+\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class RecordLocation:
    """A row's place: partition path, file group, and the commit that first wrote it there (in the table's zone)."""

    partition: str
    file_id: str
    instant: str


class RecordIndexRules(RecordRules[RecordLocation]):
    """The rules of `record_index` records. `zone` is the table's zone of instants (TableConfig.timezone)."""

    keyless = True

    def __init__(self, zone: str) -> None:
        self._zone = zone
        self._instants: dict[int, str] = {}

    def decode(self, key: str, datum: dict[str, Any], *, path: str) -> RecordLocation:
        body = datum.get("recordIndexMetadata")
        if datum.get("type") != RecordType.RECORD_INDEX or not isinstance(body, dict):
            raise CorruptFileError(
                f"metadata record {key!r} is of type {datum.get('type')!r}, not a record's location", path=path
            )
        try:
            file_id = body["fileId"]
            if body["fileIdEncoding"] == _UUID_ENCODING:
                number = (body["fileIdHighBits"] & _MASK) << 64 | body["fileIdLowBits"] & _MASK
                file_id = str(uuid.UUID(int=number))
                if body["fileIndex"] != _NO_FILE_INDEX:
                    file_id += f"-{body['fileIndex']}"
            return RecordLocation(body["partitionName"], file_id, self._instant(body["instantTime"]))
        except (KeyError, TypeError, TimelineError) as error:
            raise CorruptFileError(f"metadata record {key!r} holds no whole location ({error})", path=path) from error

    def _instant(self, millis: int) -> str:
        found = self._instants.get(millis)
        if found is None:
            if not 0 <= millis <= _MAX_MILLIS:
                raise TimelineError(f"{millis} milliseconds are no instant")
            found = self._instants[millis] = of_epoch_millis(millis, self._zone)
        return found


class RecordIndex:
    """A record index: global, or (from version 9 on) partitioned, with the data partition's name in the file ids."""

    def __init__(self, folder: str, groups: Sequence[GroupReader[RecordLocation]], *, is_remote: bool = False) -> None:
        """Takes the file groups. Raises CorruptFileError for none, or where one of a global index is missing."""
        found: dict[str, list[GroupReader[RecordLocation]]] = defaultdict(list)
        for group in groups:
            match = _PARTITIONED.match(group.file_id)
            if match is not None:
                found[_unescaped(match["partition"])].append(group)
        if found and sum(map(len, found.values())) != len(groups):
            raise CorruptFileError(
                "the record index holds file groups of the global and of the partitioned form", path=folder
            )
        if not found:
            check_numbers(folder, groups)
        parts: Mapping[str | None, Sequence[GroupReader[RecordLocation]]] = dict(sorted(found.items())) or {
            None: groups
        }
        self.parts = {
            name: MetadataPartition(RECORD_INDEX, folder, part, is_remote=is_remote) for name, part in parts.items()
        }
        """The index's file groups by data partition; for a global index all of them under None."""

    @property
    def is_partitioned(self) -> bool:
        """Whether keys are unique per data partition only."""
        return None not in self.parts

    def locations(self, keys: Iterable[str]) -> dict[str, tuple[RecordLocation, ...]]:
        """Returns the places of existing `keys`: one each, or up to one per partition. Raises ConfigError for ""."""
        distinct = dict.fromkeys(keys)
        if "" in distinct:
            raise ConfigError(
                "the empty text is no record key", remedy="name keys as the table has them in _hoodie_record_key"
            )
        if not self.is_partitioned:
            return _one_each(self.parts[None].lookup(distinct))
        requested = sorted(distinct)
        found: dict[str, tuple[RecordLocation, ...]] = {}
        for part in self.parts.values():
            for key, location in part.lookup(requested).items():
                found[key] = (*found.get(key, ()), location)
        return found

    def all(self) -> Iterator[tuple[str, RecordLocation]]:
        for part in self.parts.values():
            yield from part.all()


def _unescaped(text: str) -> str:
    """Returns the unescaped text (PartitionPathEncodeUtils.unescapePathName). A broken escape stays as it is."""
    return unquote_to_bytes(text).decode("utf-8", "surrogateescape") if "%" in text else text


def _one_each(found: Mapping[str, RecordLocation]) -> dict[str, tuple[RecordLocation, ...]]:
    """Returns tuples of one location. Keys of a location share a tuple: the garbage collector visits every tuple."""
    made: dict[int, tuple[RecordLocation, ...]] = {}
    return {
        key: made.get(id(location)) or made.setdefault(id(location), (location,)) for key, location in found.items()
    }


class SecondaryIndexRules(RecordRules[bool]):
    """The rules of a secondary index's records: whether the pair in the key exists (False: it was deleted)."""

    keyless = True

    def decode(self, key: str, datum: dict[str, Any], *, path: str) -> bool:
        body = datum.get("SecondaryIndexMetadata")
        if (
            datum.get("type") != RecordType.SECONDARY_INDEX
            or not isinstance(body, dict)
            or not isinstance(body.get("isDeleted"), bool)
        ):
            raise CorruptFileError(
                f"metadata record {key!r} is of type {datum.get('type')!r}, not of a secondary index", path=path
            )
        return not body["isDeleted"]


def record_keys(
    partition: MetadataPartition[bool], values: Iterable[str | None], *, by_value: bool
) -> dict[str | None, list[str]]:
    """Returns the sorted record keys of each value's rows. `by_value` (version 2): a value's keys are in one group."""
    prefixes = sorted({secondary_prefix(value) for value in values})
    found: dict[str | None, list[str]] = defaultdict(list)
    for key, current in partition.with_prefixes(prefixes, prefixes if by_value else None):
        if current:
            value, record_key = parse_secondary_key(key)
            found[value].append(record_key)
    return {value: sorted(keys) for value, keys in found.items()}


@dataclass(frozen=True, slots=True)
class OtherPartitions:
    """A global record index before a commit, and the data partitions that an overwrite replaces, or a write of rows
    changes. `slices` are the index's file slices in order, `blocks` the log blocks that count, `zone` the time zone of
    instants. `refuses` is True while the commit is not complete: then a new key can be refused. A write of rows removes
    keys from the file groups `changed`; None in an overwrite, which removes all keys of its partitions.
    """

    replaced: tuple[str, ...]
    slices: tuple[MergedSlice, ...]
    blocks: BlockFilter
    zone: str
    refuses: bool
    changed: tuple[str, ...] | None = None

    def open(self, storage: Storage) -> PlacesElsewhere:
        return PlacesElsewhere(storage, self)


class PlacesElsewhere:
    """Looks up, in one task, places that a commit leaves. `spared` counts the omitted deletions."""

    def __init__(self, storage: Storage, others: OtherPartitions) -> None:
        rules = RecordIndexRules(others.zone)
        self._groups = [GroupReader(storage, item, others.blocks, rules) for item in others.slices]
        self._replaced = frozenset(others.replaced)
        self._changed = None if others.changed is None else frozenset(others.changed)
        self._refuses = others.refuses
        self.spared = 0

    def filtered(self, group: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yields a shard's rows, without the deletions of keys that have a place in another partition. Raises
        UnsupportedError for a new row with such a key.
        """
        for batch in batches:
            places = self._places(group, batch.column(0))
            if places:
                is_gone = pc.equal(batch.column(1), pa.scalar(GONE, pa.binary()))
                elsewhere = {key: place for key, place in places.items() if place.partition not in self._replaced}
                coming = pc.and_not(pc.is_in(batch.column(0), value_set=pa.array(elsewhere, pa.binary())), is_gone)
                if self._refuses and coming.true_count:
                    key = batch.column(0)[pc.index(coming, True).as_py()].as_py()
                    raise _refused(key, elsewhere[key])
                gone = pc.and_(pc.is_in(batch.column(0), value_set=self._staying(places)), is_gone)
                self.spared += gone.true_count
                batch = batch.filter(pc.invert(gone))
            yield batch

    def without(self, keys: pa.Array, batch: pa.RecordBatch) -> tuple[pa.Array, pa.RecordBatch]:
        """Returns record keys (string) and their rows, without the keys that have a place in another partition."""
        groups, cells = group_indexes(keys, len(self._groups)), keys.cast(pa.binary())
        kept = np.ones(len(keys), dtype=np.bool_)
        for group in np.unique(groups).tolist():
            at = np.flatnonzero(groups == group)
            staying = self._staying(self._places(group, cells.take(pa.array(at))))
            self._groups[group].release()
            if len(staying):
                kept &= ~pc.is_in(cells, value_set=staying).to_numpy(zero_copy_only=False)
        mask = pa.array(kept)
        return keys.filter(mask), batch.filter(mask)

    def _places(self, group: int, keys: pa.Array) -> dict[bytes, RecordLocation]:
        return self._groups[group].records(of_keys(sorted(set(keys.to_pylist()))))

    def _staying(self, places: Mapping[bytes, RecordLocation]) -> pa.Array:
        """Returns the keys whose row the commit does not remove, though another row of the key goes."""
        if self._changed is None:
            return pa.array(
                [key for key, place in places.items() if place.partition not in self._replaced], pa.binary()
            )
        return pa.array([key for key, place in places.items() if place.file_id not in self._changed], pa.binary())


def _refused(key: bytes, place: RecordLocation) -> UnsupportedError:
    return UnsupportedError(
        f"a row with the record key {key.decode('utf-8', 'replace')!r} comes to a partition that is written, but the "
        f"row of this key is in partition {place.partition!r}, which stays, and a record index holds one place for a "
        "key",
        path=f".hoodie/metadata/{RECORD_INDEX}",
        remedy="leave the row out, delete or overwrite the other row first, or drop the record index",
    )
