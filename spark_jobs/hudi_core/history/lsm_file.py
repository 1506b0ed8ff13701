"""A Parquet file of the archive of layout 2: its columns, and how it is written (HoodieLSMTimelineInstant)."""

from __future__ import annotations

import json
from typing import BinaryIO, Final

import pyarrow as pa

from hudi_core.codec.parquet.file import BaseFileWriter

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


class HistoryFileWriter:
    """Writes one file, GZIP as Hudi's. The caller closes `file` after `close()`. Holds 16 MiB of rows at most."""

    def __init__(self, file: BinaryIO, *, path: str) -> None:
        self._writer = BaseFileWriter(file, SCHEMA, path=path, codec="GZIP", row_group_bytes=_ROW_GROUP_BYTES)

    def write(self, rows: pa.RecordBatch) -> None:
        """Appends rows in SCHEMA, which go by requested time."""
        self._writer.write(rows)

    def close(self) -> None:
        """Writes what is left and the footer."""
        self._writer.close(_FOOTER)
