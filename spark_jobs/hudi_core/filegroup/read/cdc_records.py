"""The contents of a change-data log: what a commit did to each row of a file group (HoodieCDCLogRecordIterator)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hudi_core.codec.avro.arrow import arrow_schema, spark_schema
from hudi_core.codec.avro.schema import parse_schema
from hudi_core.codec.log.blocks import BlockType, CorruptBlock
from hudi_core.errors import CorruptFileError, UnsupportedError
from hudi_core.filegroup.read.log_records import block_batches
from hudi_core.filegroup.read.log_scan import log_blocks

if TYPE_CHECKING:
    import pyarrow as pa

    from hudi_core.storage.base import Storage
    from hudi_core.view.file_group import DataFile


def cdc_batches(storage: Storage, file: DataFile) -> Iterator[pa.RecordBatch]:
    """The entries of one change-data log in order, with the columns of its supplemental mode, in Spark's types.

    `op` is `i`, `u` or `d`. OP_KEY_ONLY: op, record_key; DATA_BEFORE: op, record_key, before; DATA_BEFORE_AFTER: op,
    ts_ms, before, after, where `before` and `after` are structs of the table's columns and `ts_ms` is the instant as
    text. Nothing is filtered: the file counts because a commit names it. Raises CorruptFileError for a broken block,
    which would hide changes, and UnsupportedError for a block of another type.
    """
    for block in log_blocks(storage, [file]):
        if isinstance(block, CorruptBlock):
            raise CorruptFileError(
                f"corrupt block of {block.length} bytes at byte {block.offset}: {block.reason}", path=file.path
            )
        if block.type is not BlockType.CDC_DATA:
            raise UnsupportedError(
                f"log block of type {block.type.name} at byte {block.offset} of a change-data log", path=file.path
            )
        writer = parse_schema(block.schema or "", path=file.path)
        yield from block_batches(storage, block, spark_schema(arrow_schema(writer, path=file.path)))
