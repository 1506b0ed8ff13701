"""What one file group of an index of rows gets: cells of a base file, or the blocks of a log file."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.codec.hfile.bulk import add_cells
from hudi_core.codec.hfile.writer import HFileWriter
from hudi_core.codec.log.blocks import BlockType, HeaderKey
from hudi_core.codec.log.delete_encode import encode_natural_deletes
from hudi_core.codec.log.encode import encode_block
from hudi_core.errors import ExecutionError
from hudi_core.metadata_table.kinds.distinct_rows import distinct_rows, is_gone
from hudi_core.metadata_table.kinds.row_units import IndexRows

BLOCK_BYTES = 64 << 20
"""Compressed bytes after which a log file's next HFile block begins. Java holds a block in one array."""


@dataclass(frozen=True, slots=True)
class LogContent:
    """A log file's bytes, and how many records and deletions it holds."""

    data: bytes
    records: int
    deletions: int


def base_cells(rows: IndexRows, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The cells (key, value) of a shard's base file, sorted, each key once.

    Raises what the index makes of a key with two values, and ExecutionError for a deletion: an index begins with what is there.
    """
    for batch in distinct_rows(batches, conflict=rows.conflict):
        if is_gone(batch).true_count:
            raise ExecutionError(f"the index {rows.partition} was to begin with a deletion")
        yield batch


def log_content(rows: IndexRows, batches: Iterator[pa.RecordBatch], instant: str, schema: str, *, hudi_1_headers: bool) -> LogContent:
    """A shard's log file under `instant`: HFile blocks of the records, then a DELETE block of the keys that are deleted (facts 8.4).

    Empty bytes where there is nothing to say. `schema` is that of the values; `hudi_1_headers` as encode_block. Memory: the content, one
    block, and the keys that are deleted.
    """
    headers = {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: schema}
    out = io.BytesIO()
    deleted: list[pa.Array] = []
    records = 0

    def close(block: io.BytesIO, writer: HFileWriter) -> None:
        writer.finish(schema, {}, {})
        out.write(encode_block(BlockType.HFILE_DATA, headers, block.getvalue(), hudi_1_headers=hudi_1_headers))

    block = io.BytesIO()
    writer = HFileWriter(block)
    for batch in distinct_rows(batches, conflict=rows.conflict):
        gone = is_gone(batch)
        if gone.true_count:
            deleted.append(batch.column(0).filter(gone))
            batch = batch.filter(pc.invert(gone))
        add_cells(writer, batch.column(0), batch.column(1))
        if writer.size >= BLOCK_BYTES:
            records += writer.count
            close(block, writer)
            block = io.BytesIO()
            writer = HFileWriter(block)
    records += writer.count
    if writer.count:
        close(block, writer)
    if deleted:
        content = encode_natural_deletes(pa.concat_arrays(deleted), rows.partition)
        out.write(encode_block(BlockType.DELETE, headers, content, hudi_1_headers=hudi_1_headers))
    return LogContent(out.getvalue(), records, sum(map(len, deleted)))
