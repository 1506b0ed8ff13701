"""Appends rows to the log files of a file group: updates as an Avro data block, deletes by key as a delete block
(HoodieAppendHandle). Readers and compactions merge them by the table's rules.

Rows that are marked as deleted stay rows, with their ordering values: a merge takes them for deletes. Memory: a data
block of log_file.BLOCK_BYTES, twice.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import pyarrow as pa

from hudi_core.codec.avro.schema import add_meta_fields
from hudi_core.codec.log.blocks import BlockType
from hudi_core.codec.log.delete_columns import encode_natural_deletes
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.filegroup.merge.record_keys import delete_flags
from hudi_core.filegroup.merge.table_policy import MergePolicy
from hudi_core.filegroup.write.log_file import NewLogFile
from hudi_core.filegroup.write.markers import log_marker
from hudi_core.model.names import FILE_NAME, LogFileName, WriteToken, parse_data_file
from hudi_core.model.partition import join
from hudi_core.services.rewriting.new_file_groups import NewFile, NewFiles, statistics_of
from hudi_core.storage.base import Storage
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.transaction.reconcile import OWN_ATTEMPTS
from hudi_core.view.file_group import FileSlice


class LogAppend(NewLogFile):
    """One new log file of the file slice `old`."""

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
        names_slice: bool = False,
    ) -> None:
        """In layout 1 the file is named after `base_instant`, the instant of the slice; `by_name`: after its own, and
        then the stat has the files of the slice only with `names_slice`: Hudi's change-data queries look for them.
        """
        self.updates = self.deletes = 0
        self._files, self._old, self._policy = files, old, policy
        self._base_instant, self._by_name, self._names_slice = base_instant, by_name, names_slice
        self._started = time.perf_counter()
        token = WriteToken(attempt.partition_id, attempt.stage_id, OWN_ATTEMPTS + attempt.attempt_id)
        self.name = self._next_name(storage, token)
        super().__init__(
            storage,
            files.instant,
            join(old.file_group.partition, str(self.name)),
            attempt,
            add_meta_fields(files.schema),
            block=BlockType.AVRO_DATA,
            marker=(str(self.name), log_marker(by_name=by_name)),
        )

    def _next_name(self, storage: Storage, token: WriteToken) -> LogFileName:
        file_id, partition = self._old.file_group.file_id, self._old.file_group.partition
        if self._by_name:
            return LogFileName(file_id, self._files.instant, 1, token)
        names = (parse_data_file(info.name) for info in storage.list_files(partition))
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
        self.append(pa.RecordBatch.from_arrays(columns, names=names))

    def delete(self, keys: Sequence[pa.Array]) -> None:
        """Appends a delete block, which deletes the rows of these keys whatever their ordering values are."""
        names = pa.chunked_array(keys, pa.string()).combine_chunks().cast(pa.binary())
        self.deletes += len(names)
        self.write_block(BlockType.DELETE, encode_natural_deletes(names, self._old.file_group.partition))

    def close(self) -> NewFile:
        """Completes the file."""
        if self._waiting:
            self.flush()
        stat = self._stat(self.end())
        return NewFile(stat, statistics_of(self._storage, stat, self._files.requirements, is_base=False))

    def _stat(self, size: int) -> WriteStat:
        old = self._old
        instant = old.base_instant if self._names_slice else self._files.instant
        is_of_slice = self._names_slice if self._by_name else self._base_instant == old.base_instant
        earlier = (*reversed(old.log_files), *reversed(old.cdc_files)) if is_of_slice else ()
        return WriteStat(
            file_id=old.file_group.file_id,
            path=self.path,
            partition_path=old.file_group.partition,
            prev_commit=instant if self._by_name else self._base_instant,
            num_writes=self.updates,
            num_deletes=self.deletes,
            num_update_writes=self.updates,
            num_inserts=0,
            file_size_in_bytes=size,
            total_write_bytes=size,
            total_upsert_time_ms=int((time.perf_counter() - self._started) * 1000),
            log_version=self.name.version,
            log_offset=0,
            base_file=old.base_file.name if is_of_slice and old.base_file is not None else "",
            log_files=(*(log.name for log in earlier), str(self.name)),
            extra={"numUpdates": 0, "totalLogReadTimeMs": 0} if self._files.as_hudi_1 else {},
        )
