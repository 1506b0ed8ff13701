"""A Parquet file of the archive of layout 2: its columns, read and written (HoodieLSMTimelineInstant)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO, Final

import pyarrow as pa

from hudi_core.codec.parquet.file import BATCH_ROWS, ParquetBaseFile
from hudi_core.codec.parquet.writer import BaseFileWriter, ParquetStyle
from hudi_core.errors import CorruptFileError, StorageNotFoundError
from hudi_core.storage.base import Storage

TIME: Final = "instantTime"
COMPLETION: Final = "completionTime"
ACTION: Final = "action"
METADATA: Final = "metadata"
PLAN: Final = "plan"
VERSION: Final = "version"

SCHEMA: Final = pa.schema(
    [
        pa.field(TIME, pa.string()),
        pa.field(COMPLETION, pa.string()),
        pa.field(ACTION, pa.string()),
        pa.field(METADATA, pa.binary()),
        pa.field(PLAN, pa.binary()),
        pa.field(VERSION, pa.int32(), nullable=False),
    ]
)
ROW_VERSION: Final = 1
"""LSM_TIMELINE_INSTANT_VERSION_1."""

_TEXT: Final = ["null", {"type": "string", "avro.java.string": "String"}]
_AVRO: Final = {
    "type": "record",
    "name": "HoodieLSMTimelineInstant",
    "namespace": "org.apache.hudi.avro.model",
    "fields": [
        *({"name": name, "type": _TEXT, "default": None} for name in (TIME, COMPLETION, ACTION)),
        *({"name": name, "type": ["null", "bytes"], "default": None} for name in (METADATA, PLAN)),
        {"name": VERSION, "type": "int", "default": ROW_VERSION},
    ],
}
_FOOTER: Final = {"parquet.avro.schema": json.dumps(_AVRO, separators=(",", ":")), "writer.model.name": "avro"}
"""What the Avro writer of Parquet's Java library writes there; the files have no bloom filter and no meta columns."""
_ROW_GROUP_BYTES: Final = 16 << 20


REMEDY: Final = "restore the file from a copy; the instants that it holds are nowhere else"
"""No commit can be rolled back for a damaged file, as it holds many."""


def read_batches(
    storage: Storage, path: str, columns: Sequence[str], rows: int = BATCH_ROWS
) -> Iterator[pa.RecordBatch]:
    """Columns of a file that a snapshot names. Raises CorruptFileError when it is missing or has other columns."""
    try:
        source = storage.open_input(path)
    except StorageNotFoundError as error:
        # Not StorageNotFoundError: a file that the snapshot names is never just absent.
        remedy = "if an archiver compacted the history meanwhile, run again; else restore the file"
        raise CorruptFileError(
            "the archive's manifest names this file, which is not there", path=path, remedy=remedy
        ) from error
    try:
        with source, ParquetBaseFile(source, path, storage.limits) as parquet:
            for name in columns:
                expected = SCHEMA.field(name).type
                if name not in parquet.schema.names or parquet.schema.field(name).type != expected:
                    message = f"the file has no {expected} column {name!r}, so it is no file of the archive"
                    raise CorruptFileError(message, path=path)
            yield from parquet.batches(columns, rows)
    except CorruptFileError as error:
        raise CorruptFileError(error.message, path=error.path, remedy=REMEDY) from error


def write_batches(file: BinaryIO, batches: Iterable[pa.RecordBatch], *, path: str) -> None:
    """Writes one file of `batches` in SCHEMA, sorted by requested time; GZIP as Hudi's. The caller closes `file`.
    Holds 16 MiB of them at most.
    """
    writer = BaseFileWriter(file, SCHEMA, path=path, style=ParquetStyle(row_group_bytes=_ROW_GROUP_BYTES))
    for rows in batches:
        writer.write(rows)
    writer.close(_FOOTER)
