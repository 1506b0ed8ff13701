"""The exchange of a row-level index: units make rows from changes of data file groups, shards the index's content.

A row that moves is deleted in one file group and inserted in another, so its key arrives twice: the new location is
kept (HoodieTableMetadataUtil.reduceByKeys).
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hudi_core.codec.hfile.writer import HFileWriter, add_cells
from hudi_core.codec.log.blocks import BlockType, HeaderKey, encode_block
from hudi_core.codec.log.delete_columns import encode_natural_deletes
from hudi_core.engine.exchange import SHARD_ROWS
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.engine.serializer import from_text, to_text
from hudi_core.errors import ExecutionError, HudiError
from hudi_core.filegroup.merge.payload_store import combine
from hudi_core.filegroup.read.read_spec import ReaderSpec
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.partitions.registry import row_level_class
from hudi_core.metadata_table.partitions.row_level import ChangeReader, IndexRows, SliceChange
from hudi_core.metadata_table.read.row_level import OtherPartitions
from hudi_core.metadata_table.record import GONE
from hudi_core.storage.arrow_store import open_data_storage
from hudi_core.view.file_group import check_slice

LOG_BYTES = 32 << 20
"""The bytes of compressed records and deleted keys in a log file; to copy it holds one file in memory."""
_GONE: Final = pa.scalar(GONE, pa.binary())
Conflict = Callable[[bytes], HudiError]


@dataclass(frozen=True, slots=True)
class RowsOfIndex:
    """An index's row_level.IndexRows as text, for a unit. The registry knows the class by the partition."""

    partition: str
    text: str

    @staticmethod
    def of(rows: IndexRows) -> RowsOfIndex:
        """Returns `rows` as text. Raises TypeError for a class that has no form as text."""
        return RowsOfIndex(rows.partition, to_text(rows))

    @property
    def rows(self) -> IndexRows:
        """The IndexRows. Raises UnsupportedError for a partition that is no row-level index."""
        return _rows(self.partition, self.text)


@lru_cache(maxsize=8)
def _rows(partition: str, text: str) -> IndexRows:
    return from_text(row_level_class(partition).rows_class, text)


@dataclass(frozen=True, slots=True)
class IndexUnit:
    """The change of one data file group. With `others`, replaced rows do not count if another partition has the key."""

    uri: str
    storage_options: Mapping[str, str]
    reader: str
    index: RowsOfIndex
    change: SliceChange
    others: OtherPartitions | None = None


def produce_index_rows(unit: IndexUnit, attempt: TaskAttempt) -> Iterator[pa.RecordBatch]:
    """Yields a unit's rows (engine.protocol.Produce). Raises FormatError for foreign names, and errors of reading."""
    storage, spec, change = open_data_storage(unit.uri, unit.storage_options), _spec(unit.reader), unit.change
    for item in (change.before, change.after):
        if item is not None:
            check_slice(item)
    going = None if unit.others is None else unit.others.open(storage).without
    yield from unit.index.rows.of_change(ChangeReader(storage, spec, change.instant, going), change)


@lru_cache(maxsize=8)
def _spec(text: str) -> ReaderSpec:
    return from_text(ReaderSpec, text)


def distinct_rows(batches: Iterator[pa.RecordBatch], *, conflict: Conflict | None) -> Iterator[pa.RecordBatch]:
    """Yields a shard's rows by key, each key once: of several rows the one that is no deletion. Two different records
    raise the error of `conflict`; with None the first counts. Memory: a batch, and one key's rows.
    """
    held: pa.RecordBatch | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        rows = batch if held is None else combine([held, batch], SHARD_ROWS)
        keys = rows.column(0)
        differs = pc.not_equal(keys.slice(1), keys.slice(0, rows.num_rows - 1)).to_numpy(zero_copy_only=False)
        starts = np.flatnonzero(np.r_[True, differs])
        # The next batch may have more rows of the last key.
        held = rows.slice(int(starts[-1]))
        if len(starts) > 1:
            yield _one_each(rows.slice(0, int(starts[-1])), starts[:-1], conflict)
    if held is not None:
        yield _one_each(held, np.zeros(1, dtype=np.int64), conflict)


def is_gone(batch: pa.RecordBatch) -> pa.Array:
    return pc.equal(batch.column(1), _GONE)


def _one_each(rows: pa.RecordBatch, starts: NDArray[np.int64], conflict: Conflict | None) -> pa.RecordBatch:
    if len(starts) == rows.num_rows:
        return rows
    values, count = rows.column(1), rows.num_rows
    current = pc.not_equal(values, _GONE).to_numpy(zero_copy_only=False)
    first = np.minimum.reduceat(np.where(current, np.arange(count), count), starts)
    chosen = np.where(first < count, first, starts)
    owner = np.repeat(chosen, np.diff(np.r_[starts, count]))
    others = np.flatnonzero(current & (np.arange(count) != owner))
    if len(others) and conflict is not None:
        differs = pc.not_equal(values.take(pa.array(others)), values.take(pa.array(owner[others])))
        differs = differs.to_numpy(zero_copy_only=False)
        if differs.any():
            raise conflict(rows.column(0)[int(others[int(np.argmax(differs))])].as_py())
    return rows.take(pa.array(chosen))


@dataclass(frozen=True, slots=True)
class LogContent:
    data: bytes
    records: int
    deletions: int


def base_cells(rows: IndexRows, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yields a shard's cells, each key once. Raises the index's error for two values, ExecutionError for a deletion."""
    for batch in distinct_rows(batches, conflict=rows.conflict):
        if is_gone(batch).true_count:
            raise ExecutionError(f"the index {rows.partition} was to be initialized with a deletion")
        yield batch


def log_contents(
    partition: str,
    batches: Iterator[pa.RecordBatch],
    instant: str,
    schema: str,
    *,
    conflict: Conflict | None,
    limit: int = LOG_BYTES,
) -> Iterator[LogContent]:
    """Yields the log files of a shard. Each has an HFile block of records and a DELETE block (HoodieDeleteBlock), where
    not empty. `schema` is the values'; `conflict` as in distinct_rows. Memory: three times `limit`, and a batch.
    """
    headers = {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: schema}
    filling = _Filling(partition, headers)
    for batch in distinct_rows(batches, conflict=conflict):
        filling.add(batch)
        if filling.size >= limit:
            yield filling.close()
            filling = _Filling(partition, headers)
    if filling.size:
        yield filling.close()


class _Filling:
    def __init__(self, partition: str, headers: Mapping[HeaderKey, str]) -> None:
        self._partition = partition
        self._headers = headers
        self._block = io.BytesIO()
        self._writer = HFileWriter(self._block)
        self._deleted: list[pa.Array] = []
        self._deleted_bytes = 0

    @property
    def size(self) -> int:
        return self._writer.size + self._writer.count + self._deleted_bytes

    def add(self, batch: pa.RecordBatch) -> None:
        gone = is_gone(batch)
        if gone.true_count:
            self._deleted.append(batch.column(0).filter(gone))
            self._deleted_bytes += self._deleted[-1].nbytes
            batch = batch.filter(pc.invert(gone))
        add_cells(self._writer, batch.column(0), batch.column(1))

    def close(self) -> LogContent:
        data, count = b"", self._writer.count
        if count:
            self._writer.finish(self._headers[HeaderKey.SCHEMA], {}, {})
            data = encode_block(BlockType.HFILE_DATA, self._headers, self._block.getvalue())
        if self._deleted:
            content = encode_natural_deletes(pa.concat_arrays(self._deleted), self._partition)
            data += encode_block(BlockType.DELETE, self._headers, content)
        return LogContent(data, count, sum(map(len, self._deleted)))
