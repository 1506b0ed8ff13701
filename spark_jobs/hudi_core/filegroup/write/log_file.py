"""Writes a log file: marker, blocks, removal where that fails."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Final, TypeVar

import pyarrow as pa

from hudi_core.codec.avro.encode import encode_records
from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.codec.log.blocks import BlockType, HeaderKey, encode_block
from hudi_core.codec.log.content import avro_block
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.filegroup.write.markers import MarkerType, check_attempt, create_marker
from hudi_core.storage.base import Storage

BLOCK_BYTES: Final = 64 << 20
"""A block is written when its rows, or the entries of its deletes, have this many bytes. Hudi cuts at 256 MiB."""
Opened = TypeVar("Opened", bound="LogFile")


class LogFile:
    """A log file that is written. An error inside a `with` block removes it."""

    def __init__(self, storage: Storage, path: str) -> None:
        self.path = path
        self._storage = storage
        self._file = storage.open_output(path)

    def end(self) -> int:
        """Completes the file. Returns its bytes."""
        size = self._file.tell()
        self._file.close()
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


class NewLogFile(LogFile):
    """A log file of one schema, with its marker. Raises as check_attempt where the attempt is over."""

    def __init__(
        self,
        storage: Storage,
        instant: str,
        path: str,
        attempt: TaskAttempt,
        schema: AvroSchema,
        *,
        marker: tuple[str, MarkerType],
    ) -> None:
        """`marker` is the file name that it has, and its type."""
        self._instant, self._epoch, self._schema = instant, attempt.stage_id, schema
        self._schema_text = json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
        self._marker = create_marker(storage, instant, path.rpartition("/")[0], *marker)
        check_attempt(storage, instant, self._epoch, self._marker, closed=False)
        super().__init__(storage, path)

    def encoded(self, rows: pa.RecordBatch) -> bytes:
        """Returns rows with the columns of the schema as records of a data block. Raises as encode_records."""
        return encode_records(rows, self._schema, path=self.path)

    def write_records(
        self, kind: BlockType, count: int, encoded: Iterable[bytes], more: Mapping[HeaderKey, str] | None = None
    ) -> None:
        """Writes a block of `count` records in Avro, which may be none."""
        self.write_block(kind, avro_block(count, encoded), more)

    def write_block(self, kind: BlockType, content: bytes, more: Mapping[HeaderKey, str] | None = None) -> None:
        """Writes a block with `more` headers of Hudi 1.x."""
        headers = {HeaderKey.INSTANT_TIME: self._instant, HeaderKey.SCHEMA: self._schema_text, **(more or {})}
        self._file.write(encode_block(kind, headers, content, hudi_1_headers=bool(more)))

    def end(self) -> int:
        """Completes the file. Returns its bytes."""
        size = super().end()
        check_attempt(self._storage, self._instant, self._epoch, self._marker, closed=True)
        return size
