"""The partition type `secondary_index_*`: from a column's values to record keys (SecondaryIndexRecordGenerationUtils,
SecondaryIndexKeyUtils).

A record is a pair of value and record key. For a row that gets another value the new pair is added and the old one
removed, as in real Hudi by an entry of a DELETE block (HoodieMetadataPayload.getInsertValue).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import pyarrow as pa

from hudi_core.codec.columns import column_of, column_type, top_columns
from hudi_core.errors import CorruptFileError, ExecutionError, HudiError, UnsupportedError
from hudi_core.filegroup.read.slice_reader import SliceReader
from hudi_core.metadata_table.indexed_table import DEFAULT_PATH, IndexDefinition
from hudi_core.metadata_table.keys import secondary_hashed_part, secondary_keys, secondary_prefixes
from hudi_core.metadata_table.partition_type import SECONDARY_PREFIX
from hudi_core.metadata_table.partitions.row_level import (
    ChangeReader,
    Counts,
    RowLevelPartition,
    SliceChange,
    shard_rows,
)
from hudi_core.metadata_table.record import GONE, RecordEncoder, RecordType
from hudi_core.view.file_group import FileSlice

_PAIRS: Final = pa.schema([("key", pa.string()), ("hashed", pa.string())])


def value_texts(column: pa.Array, name: str) -> pa.Array:
    """A column's values as text, as every Hudi release prints them: text and whole numbers.

    Raises UnsupportedError for other types: Hudi 1.0 prints a date as 2026-01-02 and 1.2 as days, a timestamp in its
    engine's unit, and the digits of a floating-point number depend on the JVM (JDK-4511638).
    """
    if pa.types.is_string(column.type):
        return column
    if pa.types.is_integer(column.type):
        return column.cast(pa.string())
    raise UnsupportedError(
        f"a secondary index on the column {name!r} of type {column.type}",
        remedy="drop that index: those on text and whole numbers are kept",
    )


class SecondaryIndexPartition(RowLevelPartition):
    name = SECONDARY_PREFIX

    @classmethod
    def rows_class(cls) -> type[SecondaryIndexRows]:
        return SecondaryIndexRows

    def rows(self, counts: Counts, schema: str, zone: str) -> SecondaryIndexRows:
        definition = self.table.definitions.get(self.partition)
        if definition is None or len(definition.source_fields) != 1:
            raise CorruptFileError(
                f"the index {self.partition} has no definition that names its one column", path=DEFAULT_PATH
            )
        (column,) = definition.source_fields
        arrow_type = column_type(self.table.arrow_schema(), column)
        if arrow_type is None:
            raise UnsupportedError(
                f"the index {self.partition} is on {column!r}, which is no column that data files hold",
                path=DEFAULT_PATH,
            )
        value_texts(pa.nulls(0, arrow_type), column)
        return SecondaryIndexRows(self.partition, column, counts[None], schema, definition.version > 1)

    @classmethod
    def hashed_part(cls, definition: Callable[[], IndexDefinition | None]) -> Callable[[str], str]:
        """In version 2 the value alone (HoodieIndexVersion, SecondaryIndexKeyUtils)."""
        found = definition()
        return secondary_hashed_part if found is not None and found.version > 1 else str


@dataclass(frozen=True)
class SecondaryIndexRows:
    """Makes the exchange's rows of a secondary index. `by_value`: the file group is chosen by the value alone (index
    version 2), else by the whole key. Rows without a value are in it, as Hudi 1.1 and later have it in every table
    version; Hudi 1.0 omits them, and never looks them up.
    """

    partition: str
    column: str
    groups: int
    schema: str
    by_value: bool

    @property
    def shards(self) -> int:
        return self.groups

    def of_change(self, reader: ChangeReader, change: SliceChange) -> Iterator[pa.RecordBatch]:
        """Added and removed pairs. Memory: as ChangeReader.changed."""
        for is_added, pairs in reader.changed(change, lambda side, item: self._pairs(reader, side, item), _PAIRS):
            yield self.of_pairs(pairs, is_added=is_added)

    def of_pairs(self, pairs: pa.RecordBatch, *, is_added: bool) -> pa.RecordBatch:
        keys = pairs.column(0)
        hashed = pairs.column(1) if self.by_value else keys
        return shard_rows(keys, hashed, (0, self.groups), self._current if is_added else GONE)

    def pairs(self, column: pa.Array, record_keys: pa.Array) -> pa.RecordBatch:
        """The keys of pairs and their hashed parts, of a column's values and the record keys (string) beside them."""
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
