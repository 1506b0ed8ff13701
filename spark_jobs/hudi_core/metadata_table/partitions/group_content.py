"""The content of a file group of a row-level index: cells of a base file, or blocks of a log file."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.codec.hfile.bulk import add_cells
from hudi_core.codec.hfile.writer import HFileWriter
from hudi_core.codec.log.blocks import BlockType, HeaderKey
from hudi_core.codec.log.delete_columns import encode_natural_deletes
from hudi_core.codec.log.frames import encode_block
from hudi_core.errors import ExecutionError, HudiError
from hudi_core.metadata_table.partitions.distinct_rows import distinct_rows, is_gone
from hudi_core.metadata_table.partitions.row_level import IndexRows

LOG_BYTES = 32 << 20
"""Bytes of compressed records and deleted keys after which the next log file starts. A copy holds one file in memory.
"""

Conflict = Callable[[bytes], HudiError]


@dataclass(frozen=True, slots=True)
class LogContent:
    """A log file's bytes, and how many records and deletions it holds."""

    data: bytes
    records: int
    deletions: int


def base_cells(rows: IndexRows, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The cells (key, value) of a shard's base file, sorted, each key once.

    Raises the index's error for a key with two values, and ExecutionError for a deletion: an initialization has none.
    """
    for batch in distinct_rows(batches, conflict=rows.conflict):
        if is_gone(batch).true_count:
            raise ExecutionError(f"the index {rows.partition} was to begin with a deletion")
        yield batch


def log_contents(
    partition: str,
    batches: Iterator[pa.RecordBatch],
    instant: str,
    schema: str,
    *,
    conflict: Conflict,
    hudi_1_headers: bool,
    limit: int = LOG_BYTES,
) -> Iterator[LogContent]:
    """A shard's log files under `instant`: each an HFile block of records and a DELETE block of deleted keys
    (HoodieDeleteBlock), each if not empty.

    None without records. `schema` is that of the values; `hudi_1_headers` as encode_block; `conflict` as distinct_rows.
    Memory: some three times `limit`, and a batch.
    """
    headers = {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: schema}
    filling = _Filling(partition, headers, hudi_1_headers)
    for batch in distinct_rows(batches, conflict=conflict):
        filling.add(batch)
        if filling.size >= limit:
            yield filling.close()
            filling = _Filling(partition, headers, hudi_1_headers)
    if filling.size:
        yield filling.close()


class _Filling:
    """The log file that is being filled."""

    def __init__(self, partition: str, headers: Mapping[HeaderKey, str], hudi_1_headers: bool) -> None:
        self._partition = partition
        self._headers = headers
        self._hudi_1 = hudi_1_headers
        self._block = io.BytesIO()
        self._writer = HFileWriter(self._block)
        self._deleted: list[pa.Array] = []
        self._deleted_bytes = 0

    @property
    def size(self) -> int:
        """More than 0 as soon as it holds something."""
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
            data = encode_block(
                BlockType.HFILE_DATA, self._headers, self._block.getvalue(), hudi_1_headers=self._hudi_1
            )
        if self._deleted:
            content = encode_natural_deletes(pa.concat_arrays(self._deleted), self._partition)
            data += encode_block(BlockType.DELETE, self._headers, content, hudi_1_headers=self._hudi_1)
        return LogContent(data, count, sum(map(len, self._deleted)))
