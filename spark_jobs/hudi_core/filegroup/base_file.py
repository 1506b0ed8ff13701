"""Base files: opened, checked, and read as batches of the table's schema."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from hudi_core.codec.avro.arrow_conform import conform_batch
from hudi_core.codec.parquet import ParquetBaseFile
from hudi_core.errors import UnsupportedError
from hudi_core.model.names import parse_base_file

if TYPE_CHECKING:
    from hudi_core.storage.base import Storage


@contextmanager
def open_base_file(storage: Storage, path: str) -> Iterator[ParquetBaseFile]:
    """The base file at `path`, closed at the end of the block.

    Raises StorageNotFoundError when it is gone, CorruptFileError when it is no whole Parquet file, UnsupportedError for ORC and HFile.
    """
    extension = parse_base_file(path.rsplit("/", 1)[-1]).extension
    if extension != "parquet":
        raise UnsupportedError(f"base files of format {extension} are not supported", path=path)
    with storage.open_input(path) as file:
        yield ParquetBaseFile(file, path)


def base_batches(file: ParquetBaseFile, schema: pa.Schema, *, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """The rows of a base file with the columns and types of `schema`: columns the file lacks are null, narrower types are widened."""
    # At least one column is read, since a batch without columns has no rows.
    names = [name for name in schema.names if name in file.schema.names] or file.schema.names[:1]
    for batch in file.batches(columns=names, batch_rows=batch_rows):
        yield conform_batch(batch, schema, path=file.path)


def grouped(batches: Iterator[pa.RecordBatch], *, rows: int, max_bytes: int) -> Iterator[list[pa.RecordBatch]]:
    """Batches in groups of about `rows` rows, but of no more than `max_bytes` and one batch."""
    group: list[pa.RecordBatch] = []
    held_rows = held_bytes = 0
    for batch in batches:
        group.append(batch)
        held_rows += batch.num_rows
        held_bytes += batch.nbytes
        if held_rows >= rows or held_bytes >= max_bytes:
            yield group
            group, held_rows, held_bytes = [], 0, 0
    if group:
        yield group
