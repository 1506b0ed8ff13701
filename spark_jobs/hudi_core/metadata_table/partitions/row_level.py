"""Row-level indexes (`record_index`, `secondary_index_*`): the additions of their partition types to
protocol.PartitionType, and their file groups, among which codec.hashing chooses by the key (HoodieTableMetadataUtil).

The records come from rows: executors read record keys and pairs from data files, and an exchange brings them to the
index's file groups. A unit of the exchange is the change of one data file group. Millions of records cross it as bytes.
"""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.partitions.protocol import PartitionType, not_blank, numbered_file_ids, unknown_partition
from hudi_core.storage.base import Storage
from hudi_core.view.file_group import FileSlice

KeptRows = Callable[[pa.Array, pa.RecordBatch], tuple[pa.Array, pa.RecordBatch]]
"""Returns, of record keys (string) and their rows, the keys and rows that count."""
Counts = Mapping[str | None, int]
"""The numbers of file groups, by data partition; for a global index under None."""

PREFIX: Final = "record-index-"
_RECORD_BYTES: Final = 48
"""HoodieBackedTableMetadataWriter.RECORD_INDEX_AVERAGE_RECORD_SIZE."""
_ESCAPED: Final = re.compile(r"[\x00-\x1f\"#%'*/:=?\\\x7f{\[\]^_-]")
"""The characters that PartitionPathEncodeUtils.escapeFileName escapes; also `_` and `-`, between parts of a name."""


def global_group_count(settings: Mapping[str, str], records: int) -> int:
    """Returns a global record or secondary index's file group count. Raises ConfigError for no positive number."""
    return _estimate(settings, records, RECORD_INDEX_MINIMUM, RECORD_INDEX_MAXIMUM)


def partitioned_group_count(settings: Mapping[str, str], records: int) -> int:
    """Returns the number of file groups of one data partition in a partitioned record index. A data partition that
    comes later gets the number for 0 records. Raises ConfigError for a setting that is no positive number.
    """
    return _estimate(settings, records, PARTITIONED_RECORD_INDEX_MINIMUM, PARTITIONED_RECORD_INDEX_MAXIMUM)


def _estimate(settings: Mapping[str, str], records: int, minimum: ConfigKey[int], maximum: ConfigKey[int]) -> int:
    """Returns the number of file groups, as HoodieTableMetadataUtil.estimateFileGroupCount, which computes the growth
    in single precision.
    """
    given = not_blank(settings)
    least, most = minimum.read(given), maximum.read(given)
    if least == most:
        return least
    grown = math.ceil(float(np.float32(records) * np.float32(RECORD_INDEX_GROWTH.read(given))))
    estimate = grown // (RECORD_INDEX_GROUP_BYTES.read(given) // _RECORD_BYTES or 1)
    return most if estimate >= most else max(estimate, least)


@dataclass(frozen=True, slots=True)
class RecordGroups:
    """The file groups of a record index, with consecutive numbers: by data partition; for a global index under None."""

    counts: Mapping[str | None, int]

    def of(self, partition: str) -> tuple[int, int]:
        """Returns a data partition's first file group, and the number. Raises ConfigError for an unknown partition."""
        if None in self.counts:
            return 0, self.counts[None]
        if partition not in self.counts:
            message = f"the record index has no file groups for the data partition {partition!r}"
            remedy = "its file groups are created before its first records"
            raise ConfigError(message, path=".hoodie/metadata/record_index", remedy=remedy)
        first = sum(count for name, count in self.counts.items() if name is not None and name < partition)
        return first, self.counts[partition]

    def file_ids(self) -> list[str]:
        """Returns the file ids, by number. The ids of a data partition's file groups contain its name."""
        if None in self.counts:
            return numbered_file_ids(PREFIX, self.counts[None])
        names = sorted(name for name in self.counts if name is not None)
        return [
            file_id
            for name in names
            for file_id in numbered_file_ids(f"{PREFIX}{escape_file_name(name)}-", self.counts[name])
        ]


def escape_file_name(text: str) -> str:
    """Returns a partition path as a part of a file's name (PartitionPathEncodeUtils.escapeFileName)."""
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", text)


@dataclass(frozen=True, slots=True)
class SliceChange:
    """A file group's file slices around a commit at `instant`; None for an initialization: the base instant counts."""

    before: FileSlice | None
    after: FileSlice | None
    instant: str | None = None


class ChangeReader:
    """Reads the rows of a change: before it without the commit's log blocks, after it with these blocks."""

    def __init__(self, storage: Storage, spec: ReaderSpec, instant: str | None, going: KeptRows | None = None) -> None:
        """Takes the `spec` of a snapshot query now. `going` chooses the earlier rows that count (None: all)."""
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
        """Yields the record keys (string) of a file slice's rows, batch by batch, and these rows with `columns`."""
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
        """Yields the added (True) and removed (False) entries. `entries` reads a slice's entries as `schema`; the first
        column (string) tells them apart. Memory: a batch, or all entries where there are slices before and after.
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
    """Makes the rows of one row-level index: RecordIndexRows, SecondaryIndexRows."""

    @property
    def partition(self) -> str: ...

    def of_change(self, reader: ChangeReader, change: SliceChange) -> Iterator[pa.RecordBatch]: ...

    def conflict(self, key: bytes) -> HudiError: ...


class RowLevelPartition(PartitionType):
    """The partition type of a row-level index. A clean moves no row, so it changes no such index."""

    rows_class: ClassVar[type[IndexRows]]
    """The dataclass that `rows` returns, which crosses an engine (row_exchange)."""

    def check_commit(self) -> None:
        """Always raises UnsupportedError: no records follow from statistics of files (row_updates)."""
        raise unknown_partition(self.partition)

    @abstractmethod
    def rows(self, counts: Counts, schema: str, zone: str) -> IndexRows:
        """Returns the IndexRows of this index. `schema` is that of stored records (record.block_schema), `zone` that of
        instants. Raises UnsupportedError for a column that cannot be indexed, CorruptFileError without a definition.
        """

    def group_counts(self, records: Mapping[str, int]) -> dict[str | None, int]:
        """Returns a new index's file groups, by each data partition's rows. Raises the errors of global_group_count."""
        return {None: global_group_count(self.table.settings, sum(records.values()))}

    def row_file_ids(self, counts: Counts) -> list[str]:
        return self.file_ids(counts[None])


def shard_rows(keys: pa.Array, hashed: pa.Array, groups: tuple[int, int], value: bytes) -> pa.RecordBatch:
    """Returns rows of an exchange, all with `value`. `hashed` chooses among `groups` (the first, and their number).
    Raises UnsupportedError for a key that is too long for an HFile.
    """
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
