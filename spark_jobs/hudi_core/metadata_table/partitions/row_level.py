"""Row-level indexes (`record_index`, `secondary_index_*`): what their partition types add to protocol.PartitionType,
and their file groups, among which codec.hashing chooses by the key (HoodieTableMetadataUtil).

Their records come from rows: record keys and pairs are read from data files on executors and brought to the index's
file groups by an exchange, whose unit is the change of one data file group. Keys come by the million, so these records
cross the exchange as bytes.
"""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.codec.columns import top_columns
from hudi_core.codec.hashing import group_indexes
from hudi_core.codec.hfile.block import MAX_ROW
from hudi_core.config.keys import ConfigKey
from hudi_core.config.metadata_config import (
    PARTITIONED_RECORD_INDEX_MAXIMUM,
    PARTITIONED_RECORD_INDEX_MINIMUM,
    RECORD_INDEX_GROUP_BYTES,
    RECORD_INDEX_GROWTH,
    RECORD_INDEX_MAXIMUM,
    RECORD_INDEX_MINIMUM,
)
from hudi_core.engine.exchange import exchange_rows
from hudi_core.errors import ConfigError, HudiError, UnsupportedError
from hudi_core.filegroup.merge.record_keys import record_keys
from hudi_core.filegroup.merge.table_policy import key_fields
from hudi_core.filegroup.read.log_scan import CommittedInstants
from hudi_core.filegroup.read.read_spec import ReaderSpec
from hudi_core.filegroup.read.slice_reader import SliceReader
from hudi_core.metadata_table.partitions.protocol import PartitionType, not_blank, numbered_file_ids, unknown_partition
from hudi_core.storage.base import Storage
from hudi_core.view.file_group import FileSlice

KeptRows = Callable[[pa.Array, pa.RecordBatch], tuple[pa.Array, pa.RecordBatch]]
"""Of record keys (string) and the rows beside them those that count."""
Counts = Mapping[str | None, int]
"""File groups: all of them under None, or those of each data partition."""

PREFIX: Final = "record-index-"
_RECORD_BYTES: Final = 48
"""HoodieBackedTableMetadataWriter.RECORD_INDEX_AVERAGE_RECORD_SIZE."""
_ESCAPED: Final = re.compile(r"[\x00-\x1f\"#%'*/:=?\\\x7f{\[\]^_-]")
"""What PartitionPathEncodeUtils.escapeFileName escapes: `_` and `-`, too, which part the pieces of a file's name."""


def global_group_count(settings: Mapping[str, str], records: int) -> int:
    """Of a global record index, or of a secondary index. ConfigError for a setting that is no positive number."""
    return _estimate(settings, records, RECORD_INDEX_MINIMUM, RECORD_INDEX_MAXIMUM)


def partitioned_group_count(settings: Mapping[str, str], records: int) -> int:
    """Of one data partition in a partitioned record index; one that comes later gets that for no records."""
    return _estimate(settings, records, PARTITIONED_RECORD_INDEX_MINIMUM, PARTITIONED_RECORD_INDEX_MAXIMUM)


def _estimate(settings: Mapping[str, str], records: int, minimum: ConfigKey[int], maximum: ConfigKey[int]) -> int:
    """HoodieTableMetadataUtil.estimateFileGroupCount, whose count grows in single precision."""
    given = not_blank(settings)
    least, most = minimum.read(given), maximum.read(given)
    if least == most:
        return least
    grown = math.ceil(float(np.float32(records) * np.float32(RECORD_INDEX_GROWTH.read(given))))
    estimate = grown // (RECORD_INDEX_GROUP_BYTES.read(given) // _RECORD_BYTES or 1)
    return most if estimate >= most else max(estimate, least)


@dataclass(frozen=True, slots=True)
class RecordGroups:
    """The file groups of a record index, numbered through: of each data partition; of a global index under None."""

    counts: Mapping[str | None, int]

    def of(self, partition: str) -> tuple[int, int]:
        """The first file group of a data partition's keys, and how many. ConfigError for an unknown partition."""
        if None in self.counts:
            return 0, self.counts[None]
        if partition not in self.counts:
            message = f"the record index has no file groups for the data partition {partition!r}"
            remedy = "its file groups are created before its first records"
            raise ConfigError(message, path=".hoodie/metadata/record_index", remedy=remedy)
        first = sum(count for name, count in self.counts.items() if name is not None and name < partition)
        return first, self.counts[partition]

    def file_ids(self) -> list[str]:
        """By number. A data partition's name is in the ids of its file groups."""
        if None in self.counts:
            return numbered_file_ids(PREFIX, self.counts[None])
        names = sorted(name for name in self.counts if name is not None)
        return [
            file_id
            for name in names
            for file_id in numbered_file_ids(f"{PREFIX}{escape_file_name(name)}-", self.counts[name])
        ]


def escape_file_name(text: str) -> str:
    """A partition path as a part of a file's name (PartitionPathEncodeUtils.escapeFileName)."""
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", text)


@dataclass(frozen=True, slots=True)
class SliceChange:
    """A group's slices; `instant` is the commit's, None when an index is initialized: the base instant, as in Hudi."""

    before: FileSlice | None
    after: FileSlice | None
    instant: str | None = None


class ChangeReader:
    """Reads a change's rows: those before it without the commit's log blocks, those after it with them."""

    def __init__(self, storage: Storage, spec: ReaderSpec, instant: str | None, going: KeptRows | None = None) -> None:
        """`spec` is that of a snapshot query over the current timeline; `going` says which rows before it count."""
        self._config = spec.config
        self._going = going
        if instant is None:
            self.before = self.after = SliceReader(storage, spec)
            return
        known = spec.committed
        around = spec.up_to(max(spec.latest_instant or instant, instant))
        without = CommittedInstants(known.completed - {instant}, known.inflight | {instant}, known.start)
        within = CommittedInstants(known.completed | {instant}, known.inflight - {instant}, known.start)
        self.before = SliceReader(storage, around, committed=without)
        self.after = SliceReader(storage, around, committed=within)

    def rows(
        self, reader: SliceReader, item: FileSlice, columns: Sequence[str] = ()
    ) -> Iterator[tuple[pa.Array, pa.RecordBatch]]:
        """The record keys (string) of a slice's rows, batch by batch, with the named columns beside them."""
        fields = key_fields(self._config)
        path = item.files[0].path if item.files else item.file_group.file_id
        for batch in reader.read(item, list(dict.fromkeys([*sorted(top_columns(fields)), *columns]))):
            keys = record_keys(batch, fields, path=path)
            yield (keys, batch) if self._going is None or reader is not self.before else self._going(keys, batch)

    def changed(
        self,
        change: SliceChange,
        entries: Callable[[SliceReader, FileSlice], Iterable[pa.RecordBatch]],
        schema: pa.Schema,
    ) -> Iterator[tuple[bool, pa.RecordBatch]]:
        """The entries that a change added (True) and removed (False). `entries` reads those of a slice, of `schema`,
        whose first column (string) distinguishes them. Memory: a batch; of a file group with slices before and after,
        the entries of both.
        """
        before, after = change.before, change.after
        if before is None or after is None:
            if after is not None:
                yield from ((True, batch) for batch in entries(self.after, after))
            if before is not None:
                yield from ((False, batch) for batch in entries(self.before, before))
            return
        old = pa.Table.from_batches(entries(self.before, before), schema)
        new = pa.Table.from_batches(entries(self.after, after), schema)
        for left, right, is_added in ((new, old, True), (old, new, False)):
            found = left.filter(pc.invert(pc.is_in(left.column(0), value_set=right.column(0).combine_chunks())))
            yield from ((is_added, batch) for batch in found.to_batches())


class IndexRows(Protocol):
    """What makes the rows of one such index: RecordIndexRows, SecondaryIndexRows."""

    @property
    def partition(self) -> str: ...

    def of_change(self, reader: ChangeReader, change: SliceChange) -> Iterator[pa.RecordBatch]: ...

    def conflict(self, key: bytes) -> HudiError: ...


class RowLevelPartition(PartitionType):
    """A clean moves no row, so it changes none."""

    rows_class: ClassVar[type[IndexRows]]
    """The dataclass of `rows`, which crosses an engine (row_exchange)."""

    def check_commit(self) -> None:
        """Always refuses: no records follow from statistics of files (row_updates)."""
        raise unknown_partition(self.partition)

    @abstractmethod
    def rows(self, counts: Counts, schema: str, zone: str) -> IndexRows:
        """`schema` is that of the stored records (record.block_schema), `zone` that of instants. Raises
        UnsupportedError for a column that cannot be indexed here, CorruptFileError for an index without a definition.
        """

    def group_counts(self, records: Mapping[str, int]) -> dict[str | None, int]:
        """Of a new index, for the number of rows in each data partition; errors as global_group_count."""
        return {None: global_group_count(self.table.settings, sum(records.values()))}

    def row_file_ids(self, counts: Counts) -> list[str]:
        return self.file_ids(counts[None])


def shard_rows(keys: pa.Array, hashed: pa.Array, groups: tuple[int, int], value: bytes) -> pa.RecordBatch:
    """`hashed` choose among `groups` (the first, how many). UnsupportedError for a key that no HFile holds."""
    longest = pc.max(pc.binary_length(keys)).as_py() or 0
    if longest > MAX_ROW:
        raise UnsupportedError(
            f"a key of {longest} bytes does not fit the metadata table, whose keys have at most {MAX_ROW}",
            remedy="leave the record index or secondary index of such keys out: `hudictl metadata drop TABLE "
            "--partition …` where the table lists it, and no `metadata create` of it",
        )
    first, count = groups
    shards = pa.array(group_indexes(hashed, count) + np.int32(first), pa.int32())
    return exchange_rows(shards, keys.cast(pa.binary()), pa.repeat(pa.scalar(value, pa.binary()), len(keys)))
