"""Appends rows to the log files of a file group: updates as an Avro data block, deletes by key as a delete block
(HoodieAppendHandle). Readers and compactions merge them by the table's rules.

Rows that are marked as deleted stay rows, with their ordering values: a merge takes them for deletes. Memory: a data
block of BLOCK_BYTES, twice, and a delete block with keys of as many bytes, three times.
"""

from __future__ import annotations

import json
import struct
import time
from types import TracebackType
from typing import Final

import pyarrow as pa

from hudi_core.codec.avro.encode import encode_records
from hudi_core.codec.avro.schema import AvroSchema, add_meta_fields
from hudi_core.codec.log.blocks import BlockType, HeaderKey, encode_block
from hudi_core.codec.log.delete_columns import encode_natural_deletes
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.filegroup.merge.record_keys import delete_flags
from hudi_core.filegroup.merge.table_policy import MergePolicy
from hudi_core.filegroup.write.markers import MarkerType, check_attempt, create_marker
from hudi_core.model.names import FILE_NAME, LogFileName, WriteToken, parse_data_file
from hudi_core.model.partition import join
from hudi_core.services.rewriting.new_file_groups import NewFile, NewFiles, statistics_of
from hudi_core.storage.base import Storage
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.transaction.reconcile import OWN_ATTEMPTS
from hudi_core.view.file_group import FileSlice

BLOCK_BYTES: Final = 64 << 20
"""A block is written when its records, or the keys of its deletes, have this many bytes. Hudi cuts at 256 MiB."""
_HEAD: Final = struct.Struct(">ii")
_VERSION: Final = 3


class LogAppend:
    """One new log file of the file slice `old`. An error inside a `with` block removes it."""

    def __init__(
        self,
        storage: Storage,
        files: NewFiles,
        old: FileSlice,
        base_instant: str,
        attempt: TaskAttempt,
        policy: MergePolicy,
        *,
        by_name: bool,
    ) -> None:
        """In layout 1 the file is named after `base_instant`, the instant of the slice; `by_name`: after its own."""
        self.updates = self.deletes = 0
        self._storage, self._files, self._old, self._policy = storage, files, old, policy
        self._base_instant, self._by_name, self._epoch = base_instant, by_name, attempt.stage_id
        self._schema: AvroSchema = add_meta_fields(files.schema)
        self._schema_text = json.dumps(self._schema, separators=(",", ":"), ensure_ascii=False)
        self._started = time.perf_counter()
        partition = old.file_group.partition
        token = WriteToken(attempt.partition_id, attempt.stage_id, OWN_ATTEMPTS + attempt.attempt_id)
        self.name = self._next_name(token)
        self.path = join(partition, str(self.name))
        # Hudi 1.2 fails to roll back a log file of one writer alone, unless its marker says so.
        kind = MarkerType.CREATE if by_name else MarkerType.APPEND
        self._marker = create_marker(storage, files.instant, partition, str(self.name), kind)
        check_attempt(storage, files.instant, self._epoch, self._marker, closed=False)
        self._file = storage.open_output(self.path)
        self._waiting: list[bytes] = []
        self._waiting_rows = self._waiting_bytes = 0
        self._deleted: list[pa.Array] = []
        self._deleted_bytes = 0

    def _next_name(self, token: WriteToken) -> LogFileName:
        file_id, partition = self._old.file_group.file_id, self._old.file_group.partition
        if self._by_name:
            return LogFileName(file_id, self._files.instant, 1, token)
        names = (parse_data_file(info.name) for info in self._storage.list_files(partition))
        versions = [
            name.version
            for name in names
            if isinstance(name, LogFileName) and (name.file_id, name.instant) == (file_id, self._base_instant)
        ]
        return LogFileName(file_id, self._base_instant, max(versions, default=0) + 1, token)

    def write(self, rows: pa.RecordBatch) -> None:
        """Appends rows with the meta columns but `_hoodie_file_name`. Raises FormatError for a value that the table's
        schema does not hold.
        """
        flagged = int(delete_flags(rows, self._policy).sum())
        self.updates += rows.num_rows - flagged
        self.deletes += flagged
        columns = list(rows.columns)
        names = [field["name"] for field in self._schema["fields"]]
        file_id = pa.repeat(pa.scalar(self._old.file_group.file_id), rows.num_rows)
        columns.insert(names.index(FILE_NAME), file_id)
        data = encode_records(pa.RecordBatch.from_arrays(columns, names=names), self._schema, path=self.path)
        self._waiting.append(data)
        self._waiting_rows += rows.num_rows
        self._waiting_bytes += len(data)
        if self._waiting_bytes >= BLOCK_BYTES:
            self._flush()

    def delete(self, keys: pa.Array) -> None:
        """Appends deletes of the rows of these keys, whatever their ordering values are."""
        self.deletes += len(keys)
        self._deleted.append(pa.concat_arrays([keys, keys.slice(0, 0)]))  # a copy: `keys` holds whole rows in memory
        self._deleted_bytes += keys.nbytes
        if self._deleted_bytes >= BLOCK_BYTES:
            self._flush_deletes()

    def _flush_deletes(self) -> None:
        if self._deleted:
            keys = pa.concat_arrays(self._deleted).cast(pa.binary())
            self._write(BlockType.DELETE, encode_natural_deletes(keys, self._old.file_group.partition))
        self._deleted, self._deleted_bytes = [], 0

    def _flush(self) -> None:
        if self._waiting:
            self._write(BlockType.AVRO_DATA, b"".join((_HEAD.pack(_VERSION, self._waiting_rows), *self._waiting)))
        self._waiting, self._waiting_rows, self._waiting_bytes = [], 0, 0

    def _write(self, kind: BlockType, content: bytes) -> None:
        headers = {HeaderKey.INSTANT_TIME: self._files.instant, HeaderKey.SCHEMA: self._schema_text}
        self._file.write(encode_block(kind, headers, content))

    def close(self) -> NewFile:
        """Completes the file."""
        self._flush()
        self._flush_deletes()
        size = self._file.tell()
        self._file.close()
        check_attempt(self._storage, self._files.instant, self._epoch, self._marker, closed=True)
        stat = self._stat(size)
        return NewFile(stat, statistics_of(self._storage, stat, self._files.requirements, is_base=False))

    def __enter__(self) -> LogAppend:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # The stream's own exit keeps a half-written object from being published, where the storage can.
        self._file.__exit__(kind, error, trace)
        if isinstance(error, Exception):
            self._storage.delete(self.path)

    def _stat(self, size: int) -> WriteStat:
        old, base = self._old, self._old.base_file
        earlier = () if self._by_name else tuple(log.name for log in reversed(old.log_files))
        is_first = not self._by_name and self._base_instant == old.base_instant
        return WriteStat(
            file_id=old.file_group.file_id,
            path=self.path,
            partition_path=old.file_group.partition,
            prev_commit=self._files.instant if self._by_name else self._base_instant,
            num_writes=self.updates,
            num_deletes=self.deletes,
            num_update_writes=self.updates,
            num_inserts=0,
            file_size_in_bytes=size,
            total_write_bytes=size,
            total_upsert_time_ms=int((time.perf_counter() - self._started) * 1000),
            log_version=self.name.version,
            log_offset=0,
            base_file=base.name if is_first and base is not None else "",
            log_files=(*(earlier if is_first else ()), str(self.name)),
            extra={"numUpdates": 0, "totalLogReadTimeMs": 0} if self._files.as_hudi_1 else {},
        )
