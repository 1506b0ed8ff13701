"""The row-level partition types and the rows of their exchanges.

`record_index` has an entry per record key with its row's file group (createRecordIndexUpdate). The records of one file
group and instant differ only in the key, so their value is encoded once.

`secondary_index_*` leads from a column's values to record keys (SecondaryIndexRecordGenerationUtils,
SecondaryIndexKeyUtils). A record is a pair of value and record key. When a row gets another value, the new pair is
added and the old pair removed, as in Hudi by an entry of a DELETE block (HoodieMetadataPayload.getInsertValue).
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final

import pyarrow as pa

from hudi_core.codec.columns import column_of, column_type, top_columns
from hudi_core.config.versions import TableVersion
from hudi_core.errors import CorruptFileError, ExecutionError, HudiError, UnsupportedError
from hudi_core.filegroup.read.slice_reader import SliceReader
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.indexed_table import IndexDefinition
from hudi_core.metadata_table.keys import secondary_hashed_part, secondary_keys, secondary_prefixes
from hudi_core.metadata_table.partition_type import DEFINITIONS_PATH, RECORD_INDEX, SECONDARY_PREFIX
from hudi_core.metadata_table.partitions.row_level import (
    ChangeReader,
    Counts,
    RecordGroups,
    RowLevelPartition,
    SliceChange,
    partitioned_group_count,
    shard_rows,
)
from hudi_core.metadata_table.record import GONE, RecordEncoder, RecordType
from hudi_core.timeline.instant_time import parse_instant
from hudi_core.view.file_group import FileSlice

_UUID, _RAW = 0, 1
_NO_INDEX = -1
_UUID_LENGTH = 36
_MAX_INDEX = (1 << 31) - 1
_KEYS = pa.schema([("key", pa.string())])


def location_datum(partition: str, file_id: str, instant: str, zone: str) -> dict[str, Any]:
    """Returns the datum of a row's place: its file group, and the instant that brought the row there, in milliseconds
    by the table's zone of instants. A file id is stored as a UUID and a number where these give exactly the same text,
    else as text. Raises TimelineError for an instant that is no date.
    """
    moment = parse_instant(instant, zone)
    # Seconds and milliseconds are computed as integers: a float of a timestamp in the far future is not exact.
    millis = int(moment.replace(microsecond=0).timestamp()) * 1000 + moment.microsecond // 1000
    body = {"partitionName": partition, **_encoded(file_id), "instantTime": millis, "position": None}
    return {"type": int(RecordType.RECORD_INDEX), "recordIndexMetadata": body}


def _encoded(file_id: str) -> dict[str, Any]:
    text, end = file_id[:_UUID_LENGTH], file_id[_UUID_LENGTH:]
    try:
        bits = uuid.UUID(text).bytes
        index = int(end[1:]) if end else _NO_INDEX
    except ValueError:
        bits, index = b"", _NO_INDEX
    is_uuid = bits and str(uuid.UUID(bytes=bits)) == text and end == ("" if index == _NO_INDEX else f"-{index}")
    if not is_uuid or not _NO_INDEX <= index <= _MAX_INDEX:
        return {"fileIdHighBits": -1, "fileIdLowBits": -1, "fileIndex": -1, "fileId": file_id, "fileIdEncoding": _RAW}
    high, low = struct.unpack(">qq", bits)
    return {"fileIdHighBits": high, "fileIdLowBits": low, "fileIndex": index, "fileId": "", "fileIdEncoding": _UUID}


@dataclass(frozen=True)
class RecordIndexRows:
    """Makes the exchange's rows of a record index. `schema` is that of the values, `zone` the time zone of instants."""

    groups: RecordGroups
    schema: str
    zone: str

    partition = RECORD_INDEX

    def of_change(self, reader: ChangeReader, change: SliceChange) -> Iterator[pa.RecordBatch]:
        """Yields the rows of added and removed record keys. A key in both file slices keeps its place: no row."""
        item = change.after or change.before
        if item is None:
            return
        place, instant = item.file_group, change.instant or item.base_instant
        changed = reader.changed(
            change,
            lambda side, item: (pa.record_batch([keys], schema=_KEYS) for keys, _ in reader.rows(side, item)),
            _KEYS,
        )
        for is_added, batch in changed:
            keys = batch.column(0)
            yield (
                self.came(place.partition, place.file_id, instant, keys)
                if is_added
                else self.went(place.partition, keys)
            )

    def came(self, partition: str, file_id: str, instant: str, keys: pa.Array) -> pa.RecordBatch:
        """Returns the rows of record keys (string) that came to a file group at `instant`: inserted there, or moved."""
        place = (partition, file_id, instant)
        if place not in self._values:
            self._values[place] = self._encoder.value(location_datum(*place, self.zone))
        return shard_rows(keys, keys, self.groups.of(partition), self._values[place])

    def went(self, partition: str, keys: pa.Array) -> pa.RecordBatch:
        """Returns the rows of record keys (string) that a data partition no longer has."""
        return shard_rows(keys, keys, self.groups.of(partition), GONE)

    def conflict(self, key: bytes) -> HudiError:
        return UnsupportedError(
            f"the record key {key.decode('utf-8', 'replace')!r} is in two file groups, and a record index holds one "
            "place for a key",
            path=f".hoodie/metadata/{RECORD_INDEX}",
            remedy="remove the duplicates from the table, or drop its record index",
        )

    @cached_property
    def _values(self) -> dict[tuple[str, str, str], bytes]:
        return {}

    @cached_property
    def _encoder(self) -> RecordEncoder:
        return RecordEncoder(self.schema)


class RecordIndexPartition(RowLevelPartition):
    """The partition type of a record index: global, or from version 9 on partitioned where its definition says so."""

    name = RECORD_INDEX
    rows_class = RecordIndexRows

    def rows(self, counts: Counts, schema: str, zone: str) -> RecordIndexRows:
        return RecordIndexRows(RecordGroups(counts), schema, zone)

    def definition(self) -> IndexDefinition | None:
        return record_index_definition(self.table.config.features, partitioned=self.is_partitioned)

    @property
    def is_partitioned(self) -> bool:
        definition = self.table.definitions.get(self.partition)
        return definition is not None and definition.is_partitioned

    def group_counts(self, records: Mapping[str, int]) -> dict[str | None, int]:
        if not self.is_partitioned:
            return super().group_counts(records)
        return {name: partitioned_group_count(self.table.settings, count) for name, count in records.items()}

    def row_file_ids(self, counts: Counts) -> list[str]:
        return RecordGroups(counts).file_ids()


def record_index_definition(features: TableVersion, *, partitioned: bool = False) -> IndexDefinition | None:
    """Returns the record index's own definition, where Hudi of the table's version writes one."""
    if not features.defines_record_index:
        return None
    return IndexDefinition(RECORD_INDEX, RECORD_INDEX, "", (), {"isPartitioned": str(partitioned).lower()}, 1)


_PAIRS: Final = pa.schema([("key", pa.string()), ("hashed", pa.string())])


def value_texts(column: pa.Array, name: str) -> pa.Array:
    """Returns the values of a column of text or whole numbers as text; every Hudi release prints these in the same way.
    Raises UnsupportedError for other types: Hudi 1.0 prints a date as 2026-01-02 and 1.2 as days, a timestamp is
    printed in its engine's unit, and the digits of a floating-point number depend on the JVM (JDK-4511638).
    """
    if pa.types.is_string(column.type):
        return column
    if pa.types.is_integer(column.type):
        return column.cast(pa.string())
    message = f"a secondary index on the column {name!r} of type {column.type}"
    remedy = "drop that index: those on text and whole numbers are kept"
    raise UnsupportedError(message, remedy=remedy)


@dataclass(frozen=True)
class SecondaryIndexRows:
    """Makes the exchange's rows of a secondary index. With `by_value` the value alone chooses the file group (index
    version 2), else the whole key. Rows without a value are in the index, as in Hudi 1.1 and later in every table
    version; Hudi 1.0 omits these rows, and never looks them up.
    """

    partition: str
    column: str
    groups: int
    schema: str
    by_value: bool

    def of_change(self, reader: ChangeReader, change: SliceChange) -> Iterator[pa.RecordBatch]:
        """Yields the rows of added and removed pairs. Memory: ChangeReader.changed's."""
        for is_added, pairs in reader.changed(change, lambda side, item: self._pairs(reader, side, item), _PAIRS):
            yield self.of_pairs(pairs, is_added=is_added)

    def of_pairs(self, pairs: pa.RecordBatch, *, is_added: bool) -> pa.RecordBatch:
        keys = pairs.column(0)
        hashed = pairs.column(1) if self.by_value else keys
        return shard_rows(keys, hashed, (0, self.groups), self._current if is_added else GONE)

    def pairs(self, column: pa.Array, record_keys: pa.Array) -> pa.RecordBatch:
        """Returns the keys of pairs and their hashed parts, from a column's values and the same rows' record keys."""
        starts = secondary_prefixes(value_texts(column, self.column))
        return pa.record_batch([secondary_keys(starts, record_keys), starts], schema=_PAIRS)

    def conflict(self, key: bytes) -> HudiError:
        return ExecutionError(
            f"the pair {key.decode('utf-8', 'replace')!r} of the index {self.partition} came with two records"
        )

    def _pairs(self, reader: ChangeReader, side: SliceReader, item: FileSlice) -> Iterator[pa.RecordBatch]:
        for record_keys, batch in reader.rows(side, item, sorted(top_columns([self.column]))):
            column = column_of(batch, self.column)
            if column is not None:
                yield self.pairs(column, record_keys)

    @cached_property
    def _current(self) -> bytes:
        return RecordEncoder(self.schema).value(
            {"type": int(RecordType.SECONDARY_INDEX), "SecondaryIndexMetadata": {"isDeleted": False}}
        )


class SecondaryIndexPartition(RowLevelPartition):
    name = SECONDARY_PREFIX
    rows_class = SecondaryIndexRows

    def rows(self, counts: Counts, schema: str, zone: str) -> SecondaryIndexRows:
        definition = self.table.definitions.get(self.partition)
        if definition is None or len(definition.source_fields) != 1:
            raise CorruptFileError(
                f"the index {self.partition} has no definition that names its one column", path=DEFINITIONS_PATH
            )
        (column,) = definition.source_fields
        arrow_type = column_type(self.table.arrow_schema(), column)
        if arrow_type is None:
            message = f"the index {self.partition} is on {column!r}, which is no column that data files hold"
            raise UnsupportedError(message, path=DEFINITIONS_PATH)
        value_texts(pa.nulls(0, arrow_type), column)
        return SecondaryIndexRows(self.partition, column, counts[None], schema, definition.version > 1)

    @classmethod
    def hashed_part(cls, definition: Callable[[], IndexDefinition | None]) -> Callable[[str], str]:
        """Cuts the hashed part from keys: in version 2 the value, else the whole key (HoodieIndexVersion)."""
        found = definition()
        return secondary_hashed_part if found is not None and found.version > 1 else str
