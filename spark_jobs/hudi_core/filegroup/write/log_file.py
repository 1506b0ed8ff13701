"""Writes a new log file: marker, blocks of rows, removal where that fails. Memory: a block of BLOCK_BYTES, twice."""

from __future__ import annotations

import json
import struct
from types import TracebackType
from typing import Final, TypeVar

import pyarrow as pa

from hudi_core.codec.avro.encode import encode_records
from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.codec.log.blocks import BlockType, HeaderKey, encode_block
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.filegroup.write.markers import MarkerType, check_attempt, create_marker
from hudi_core.storage.base import Storage

BLOCK_BYTES: Final = 64 << 20
"""A data block is written when its records have this many bytes. Hudi cuts its own at 256 MiB."""
_HEAD: Final = struct.Struct(">ii")
_VERSION: Final = 3
Opened = TypeVar("Opened", bound="NewLogFile")


class NewLogFile:
    """A new log file with blocks of records, which are all of one type. An error inside a `with` block removes it."""

    def __init__(
        self,
        storage: Storage,
        instant: str,
        path: str,
        attempt: TaskAttempt,
        schema: AvroSchema,
        *,
        block: BlockType,
        marker: tuple[str, MarkerType],
    ) -> None:
        """`marker` is the file name that it has, and its type."""
        self.path = path
        self._storage, self._instant, self._epoch, self._kind = storage, instant, attempt.stage_id, block
        self._schema = schema
        self._schema_text = json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
        self._marker = create_marker(storage, instant, path.rpartition("/")[0], *marker)
        check_attempt(storage, instant, self._epoch, self._marker, closed=False)
        self._file = storage.open_output(path)
        self._waiting: list[bytes] = []
        self._waiting_rows = self._waiting_bytes = 0

    def append(self, rows: pa.RecordBatch) -> None:
        """Appends rows with the columns of the schema. Raises as encode_records."""
        data = encode_records(rows, self._schema, path=self.path)
        self._waiting.append(data)
        self._waiting_rows += rows.num_rows
        self._waiting_bytes += len(data)
        if self._waiting_bytes >= BLOCK_BYTES:
            self.flush()

    def flush(self) -> None:
        """Writes the rows that wait as a block, which may have none."""
        self.write_block(self._kind, b"".join((_HEAD.pack(_VERSION, self._waiting_rows), *self._waiting)))
        self._waiting, self._waiting_rows, self._waiting_bytes = [], 0, 0

    def write_block(self, kind: BlockType, content: bytes) -> None:
        headers = {HeaderKey.INSTANT_TIME: self._instant, HeaderKey.SCHEMA: self._schema_text}
        self._file.write(encode_block(kind, headers, content))

    def end(self) -> int:
        """Completes the file. Returns its bytes."""
        size = self._file.tell()
        self._file.close()
        check_attempt(self._storage, self._instant, self._epoch, self._marker, closed=True)
        return size

    def __enter__(self: Opened) -> Opened:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # The stream's own exit keeps a half-written object from being published, where the storage can.
        self._file.__exit__(kind, error, trace)
        if isinstance(error, Exception):
            self._storage.delete(self.path)
