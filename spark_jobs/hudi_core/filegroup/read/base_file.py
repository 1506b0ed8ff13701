"""Base files: checked, and read as batches of the table's schema."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_core.codec.avro.arrow import decode_records
from hudi_core.codec.avro.arrow_conform import conform_batch
from hudi_core.codec.avro.schema import parse_schema
from hudi_core.codec.avro.time_labels import as_meant
from hudi_core.codec.hfile.reader import HFileReader
from hudi_core.codec.log.content import encode_avro_records
from hudi_core.codec.orc import OrcBaseFile
from hudi_core.codec.parquet.file import MOST_BYTES, ParquetBaseFile
from hudi_core.errors import CorruptFileError, UnsupportedError
from hudi_core.filegroup.read.evolution import apply_sources, rename_fields, stored_names
from hudi_core.model.names import OPERATION, parse_base_file
from hudi_core.storage.base import ByteRange, Storage
from hudi_core.timeline.schemas import ColumnSource, sources_at
from hudi_core.view.file_group import DataFile

RowGroups = Callable[[pq.FileMetaData], "Sequence[int] | None"]
"""Which row groups of a Parquet file to read; None is all."""
BOOTSTRAP_INSTANT = "00000000000001"
"""The instant of files that a metadata-only bootstrap writes (HoodieTimeline.METADATA_BOOTSTRAP_INSTANT_TS)."""
History = Sequence[Sequence[Any]]
"""The schemas that a table had, as timeline.schemas.SchemaHistory.to_json gives them."""


def refuse_skeleton(path: str) -> None:
    """Raises UnsupportedError for a base file of a metadata-only bootstrap (HoodieBootstrapHandle): a column that it
    lacks is in another table's file, not null. A bootstrap by full records writes whole files, by another instant.
    """
    if parse_base_file(path.rpartition("/")[2]).instant == BOOTSTRAP_INSTANT:
        raise UnsupportedError(
            "the file holds the _hoodie_ columns alone, of rows that a bootstrap left in another table's files",
            path=path,
            remedy="rewrite the table with Hudi's clustering, or use Hudi for this",
        )


@contextmanager
def open_base_file(storage: Storage, path: str) -> Iterator[ParquetBaseFile]:
    """The Parquet base file at `path`, closed at the end of the block.

    Raises StorageNotFoundError when it is missing, CorruptFileError when it is no whole Parquet file, UnsupportedError
    for ORC and HFile.
    """
    extension = parse_base_file(path.rsplit("/", 1)[-1]).extension
    if extension != "parquet":
        raise UnsupportedError(f"base files of format {extension} are read, but no service writes them", path=path)
    with storage.open_input(path) as file:
        yield ParquetBaseFile(file, path, storage.limits)


@contextmanager
def open_replaced_file(storage: Storage, path: str) -> Iterator[ParquetBaseFile]:
    """The Parquet base file at `path`, whose rows go into a new one.

    Raises as open_base_file, and UnsupportedError for change operations, which the new file would lose, and for a
    bootstrap's file, which does not hold the rows.
    """
    refuse_skeleton(path)
    with open_base_file(storage, path) as base:
        if OPERATION in base.schema.names:
            raise UnsupportedError(
                f"rows with the column {OPERATION}",
                path=path,
                remedy="compact and cluster tables of change operations with Hudi",
            )
        yield base


def read_base_file(
    storage: Storage,
    file: DataFile,
    schema: pa.Schema,
    *,
    batch_rows: int,
    batch_bytes: int = MOST_BYTES,
    row_groups: RowGroups | None = None,
    history: History | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of a base file of any format with the columns and types of `schema`, in the file's order.

    Columns that the file lacks are null, narrower types are widened; with a schema `history`, columns are found by
    their ids. `batch_bytes` (ParquetBaseFile.batches) and `row_groups` are used for Parquet files only. An ORC file
    is read a stripe at a time, of 64 MiB unless its writer was configured otherwise. Raises StorageNotFoundError when
    the file is missing, CorruptFileError when it is not whole, UnsupportedError for a format that is not read and for a
    bootstrap's file.
    """
    name = parse_base_file(file.name)
    refuse_skeleton(file.path)
    sources = () if history is None else sources_at(history, name.instant)
    if name.extension == "parquet":
        with open_base_file(storage, file.path) as parquet:
            chosen = None if row_groups is None else row_groups(parquet.metadata)
            yield from base_batches(
                parquet, schema, batch_rows=batch_rows, batch_bytes=batch_bytes, row_groups=chosen, sources=sources
            )
    elif name.extension == "orc":
        with storage.open_input(file.path) as stream:
            orc = OrcBaseFile(stream, file.path, storage.limits)
            for batch in orc.batches(stored_names(schema.names, sources, orc.schema.names, path=file.path)):
                yield conform_batch(apply_sources(batch, sources), schema, path=file.path)
    else:
        yield from _hfile_batches(storage, file, schema, batch_rows, sources)


def base_batches(
    file: ParquetBaseFile,
    schema: pa.Schema,
    *,
    batch_rows: int,
    batch_bytes: int = MOST_BYTES,
    row_groups: Sequence[int] | None = None,
    sources: Sequence[ColumnSource] = (),
) -> Iterator[pa.RecordBatch]:
    """The rows of a Parquet base file with the columns and types of `schema`.

    Columns that the file lacks are null, narrower types are widened. `sources` are the file's names of columns that
    were renamed since (filegroup.read.evolution).
    """
    # At least one column is read, since a batch without columns has no rows.
    names = stored_names(schema.names, sources, file.schema.names, path=file.path) or file.schema.names[:1]
    for batch in file.batches(names, batch_rows, row_groups, batch_bytes=batch_bytes):
        yield conform_batch(as_meant(apply_sources(batch, sources), schema), schema, path=file.path)


def _hfile_batches(
    storage: Storage, file: DataFile, schema: pa.Schema, batch_rows: int, sources: Sequence[ColumnSource]
) -> Iterator[pa.RecordBatch]:
    """Rows of an HFile: each value is an Avro datum by the schema in the file info (HoodieAvroHFileReaderImplBase)."""
    reader = HFileReader(
        lambda offset, length: storage.read_range(file.path, ByteRange(offset, length)),
        file.size,
        file.path,
        storage.limits,
    )
    text = reader.schema()
    if text is None:
        raise CorruptFileError("the HFile does not hold the Avro schema of its rows", path=file.path)
    writer = rename_fields(parse_schema(text, path=file.path), sources)
    items = reader.items()
    while values := [value for _, value in islice(items, batch_rows)]:
        table = decode_records(encode_avro_records(values), len(values), writer, schema, path=file.path)
        yield from table.combine_chunks().to_batches()
