"""`record_index` on the write side: which file group holds the row of a record key
(HoodieMetadataPayload.createRecordIndexUpdate).

Keys come by the million, so these records cross an engine's exchange as bytes: only the key differs among the rows of
one file group and instant, and its value is encoded once.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.codec.hfile.keyvalue import MAX_ROW
from hudi_core.codec.key_hashes import group_indexes
from hudi_core.config.versions import TableVersion
from hudi_core.engine.exchange_rows import exchange_rows
from hudi_core.errors import HudiError, UnsupportedError
from hudi_core.metadata_table.extract.slice_change import ChangeReader, SliceChange, difference
from hudi_core.metadata_table.index_definitions import IndexDefinition
from hudi_core.metadata_table.partition_type import RECORD_INDEX
from hudi_core.metadata_table.partitions.distinct_rows import GONE
from hudi_core.metadata_table.partitions.record_groups import RecordGroups, partitioned_group_count
from hudi_core.metadata_table.partitions.row_level import Counts, RowLevelPartition
from hudi_core.metadata_table.record import RecordEncoder, RecordType
from hudi_core.timeline.instant_time import parse_instant

_UUID, _RAW = 0, 1
_NO_INDEX = -1
_UUID_LENGTH = 36
_SIGN = 1 << 63
_MAX_INDEX = (1 << 31) - 1


def location_datum(partition: str, file_id: str, instant: str, zone: str) -> dict[str, Any]:
    """The record of a row's place: file group, and the instant that brought it there, as milliseconds by the table's
    zone of instants.

    A file id is stored as a UUID and a number where that gives it back to the letter, else as it is. Raises
    TimelineError for an instant that is no date.
    """
    body = {"partitionName": partition, **_encoded(file_id), "instantTime": _millis(instant, zone), "position": None}
    return {"type": int(RecordType.RECORD_INDEX), "recordIndexMetadata": body}


def _millis(instant: str, zone: str) -> int:
    moment = parse_instant(instant, zone)
    # In whole seconds and milliseconds: a float of a timestamp in the far future is not exact.
    return int(moment.replace(microsecond=0).timestamp()) * 1000 + moment.microsecond // 1000


def _encoded(file_id: str) -> dict[str, Any]:
    text, index = file_id[:_UUID_LENGTH], _NO_INDEX
    try:
        number = uuid.UUID(text).int
        if len(file_id) > _UUID_LENGTH:
            index = int(file_id[_UUID_LENGTH + 1 :])
    except ValueError:
        return _as_it_is(file_id)
    again = text if index == _NO_INDEX else f"{text}-{index}"
    if str(uuid.UUID(int=number)) != text or again != file_id or not _NO_INDEX <= index <= _MAX_INDEX:
        return _as_it_is(file_id)
    high, low = divmod(number, 1 << 64)
    return {
        "fileIdHighBits": _signed(high),
        "fileIdLowBits": _signed(low),
        "fileIndex": index,
        "fileId": "",
        "fileIdEncoding": _UUID,
    }


def _as_it_is(file_id: str) -> dict[str, Any]:
    return {"fileIdHighBits": -1, "fileIdLowBits": -1, "fileIndex": -1, "fileId": file_id, "fileIdEncoding": _RAW}


def _signed(bits: int) -> int:
    return bits - 2 * _SIGN if bits & _SIGN else bits


class RecordIndexPartition(RowLevelPartition):
    """A global index, or from version 9 on one of each data partition where it is defined so."""

    name = RECORD_INDEX

    @classmethod
    def rows_class(cls) -> type[RecordIndexRows]:
        """See RecordIndexRows."""
        return RecordIndexRows

    def rows(self, counts: Counts, schema: str, zone: str) -> RecordIndexRows:
        """Makes record keys and their places."""
        return RecordIndexRows(RecordGroups(counts), schema, zone)

    def definition(self) -> IndexDefinition | None:
        """Whether it is one of each data partition; none in versions whose Hudi writes none."""
        return record_index_definition(self.table.config.features, partitioned=self.is_partitioned)

    @property
    def is_partitioned(self) -> bool:
        """Whether each data partition has separate file groups."""
        definition = self.table.definitions.get(self.partition)
        return definition is not None and definition.is_partitioned

    def group_counts(self, records: Mapping[str, int]) -> dict[str | None, int]:
        """As RowLevelPartition; of a partitioned index those of each data partition."""
        if not self.is_partitioned:
            return super().group_counts(records)
        return {name: partitioned_group_count(self.table.settings, count) for name, count in records.items()}

    def row_file_ids(self, counts: Counts) -> list[str]:
        """See RecordGroups."""
        return RecordGroups(counts).file_ids()


def record_index_definition(features: TableVersion, *, partitioned: bool = False) -> IndexDefinition | None:
    """The record index's own definition, where Hudi of the table's version writes one."""
    if not features.defines_record_index:
        return None
    return IndexDefinition(RECORD_INDEX, RECORD_INDEX, "", (), {"isPartitioned": str(partitioned).lower()}, 1)


@dataclass(frozen=True)
class RecordIndexRows:
    """Makes the exchange's rows of a record index. `schema` is that of the values (`_hoodie_*` columns first), `zone`
    that of instants.
    """

    groups: RecordGroups
    schema: str
    zone: str

    partition = RECORD_INDEX

    @property
    def shards(self) -> int:
        """The index's file groups."""
        return self.groups.total

    def of_change(self, reader: ChangeReader, change: SliceChange) -> Iterator[pa.RecordBatch]:
        """What a change of a file group says: keys that came, and keys that went; a key that stayed says nothing, as
        its place is the same.

        Memory: a batch of keys; of a file group with slices before and after, the keys of both.
        """
        before, after = change.before, change.after
        if before is None and after is not None:
            instant = change.instant or after.base_instant
            for keys, _ in reader.rows(reader.after, after):
                yield self.came(after.file_group.partition, after.file_group.file_id, instant, keys)
        elif before is not None and after is None:
            for keys, _ in reader.rows(reader.before, before):
                yield self.went(before.file_group.partition, keys)
        elif before is not None and after is not None:
            old = pa.chunked_array([keys for keys, _ in reader.rows(reader.before, before)], pa.string())
            new = pa.chunked_array([keys for keys, _ in reader.rows(reader.after, after)], pa.string())
            place, instant = after.file_group, change.instant or after.base_instant
            yield from (
                self.came(place.partition, place.file_id, instant, keys) for keys in difference(new, old).chunks
            )
            yield from (self.went(place.partition, keys) for keys in difference(old, new).chunks)

    def came(self, partition: str, file_id: str, instant: str, keys: pa.Array) -> pa.RecordBatch:
        """Rows of record keys (string) whose place is a file group since `instant`: inserted there, or moved."""
        return self._rows(partition, keys, self._value(partition, file_id, instant))

    def went(self, partition: str, keys: pa.Array) -> pa.RecordBatch:
        """Rows of record keys (string) that a data partition no longer has."""
        return self._rows(partition, keys, GONE)

    def conflict(self, key: bytes) -> HudiError:
        """What is wrong where a key comes with two places."""
        return UnsupportedError(
            f"the record key {key.decode('utf-8', 'replace')!r} is in two file groups, and a record index "
            "holds one "
            "place for a key",
            path=f".hoodie/metadata/{RECORD_INDEX}",
            remedy="remove the duplicates from the table, or drop its record index",
        )

    def _rows(self, partition: str, keys: pa.Array, value: bytes) -> pa.RecordBatch:
        start, count = self.groups.of(partition)
        check_key_lengths(keys)
        shards = pa.array(group_indexes(keys, count) + np.int32(start), pa.int32())
        return exchange_rows(shards, keys.cast(pa.binary()), pa.repeat(pa.scalar(value, pa.binary()), len(keys)))

    def _value(self, partition: str, file_id: str, instant: str) -> bytes:
        place = (partition, file_id, instant)
        if place not in self._values:
            self._values[place] = self._encoder.value(location_datum(partition, file_id, instant, self.zone))
        return self._values[place]

    @cached_property
    def _values(self) -> dict[tuple[str, str, str], bytes]:
        return {}

    @cached_property
    def _encoder(self) -> RecordEncoder:
        return RecordEncoder(self.schema)


def check_key_lengths(keys: pa.Array) -> None:
    """Raises UnsupportedError for a key that no HFile holds."""
    longest = pc.max(pc.binary_length(keys)).as_py() or 0
    if longest > MAX_ROW:
        raise UnsupportedError(
            f"a key of {longest} bytes does not fit the metadata table, whose keys have at most {MAX_ROW}"
        )
