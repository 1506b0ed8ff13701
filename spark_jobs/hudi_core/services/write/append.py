"""Appends rows to the log files of a file group, as data blocks, and deletes as a delete block behind them
(HoodieAppendHandle). Readers and compactions merge them by the table's rules.

Rows that are marked as deleted become delete entries. Where all records of a block have a position in the base file,
the block names the positions, and its records are in their order (HoodieLogBlock.addRecordPositionsIfRequired).

Memory: the rows of a data block of BLOCK_BYTES, and twice their records; the entries of a delete block with keys of as
many bytes, three times.
"""

from __future__ import annotations

import io
import time
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hudi_core.codec.avro.arrow import arrow_schema
from hudi_core.codec.avro.schema import add_meta_fields
from hudi_core.codec.log.blocks import BlockType, HeaderKey
from hudi_core.codec.log.positions import position_headers
from hudi_core.codec.parquet.statistics import SPARK_VERSION, proleptic_version
from hudi_core.codec.parquet.writer import BaseFileWriter
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.filegroup.merge.record_keys import delete_flags
from hudi_core.filegroup.merge.table_policy import MergePolicy
from hudi_core.filegroup.write.base_file_writer import parquet_style
from hudi_core.filegroup.write.delete_entries import DeleteEntries
from hudi_core.filegroup.write.log_file import BLOCK_BYTES, NewLogFile
from hudi_core.filegroup.write.markers import log_marker
from hudi_core.model.names import FILE_NAME, RECORD_KEY, LogFileName, WriteToken, parse_base_file, parse_data_file
from hudi_core.model.partition import join
from hudi_core.services.rewriting.new_file_groups import DEFAULT_CODEC, NewFile, NewFiles, statistics_of
from hudi_core.storage.base import Storage
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.transaction.reconcile import OWN_ATTEMPTS
from hudi_core.view.file_group import FileSlice

_NONE: Final = -1
"""Stands for the position of a row that has none."""

Positions = NDArray[np.int64]


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
            marker=(str(self.name), log_marker(by_name=by_name)),
        )
        self._waiting: list[pa.RecordBatch] = []
        self._positions: list[Positions] = []
        self._waiting_bytes = 0
        self._entries = DeleteEntries(policy, files.schema, old.file_group.partition, path=self.path)

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

    def write(self, rows: pa.RecordBatch, positions: pa.Array | None = None) -> None:
        """Appends rows with the meta columns but `_hoodie_file_name`: each once for each of its `positions`
        (places.POSITION), or once. Raises FormatError for a value that the table's schema does not hold.
        """
        rows, places = _at_positions(rows, positions)
        marked = np.flatnonzero(delete_flags(rows, self._policy))
        self.updates += rows.num_rows - len(marked)
        self.deletes += len(marked)
        if len(marked):
            added = self._entries.add_rows(rows.take(pa.array(marked)), places[marked])
            stays = np.ones(rows.num_rows, np.bool_)
            stays[marked[added]] = False
            rows, places = rows.filter(pa.array(stays)), places[stays]
        self._waiting.append(rows)
        self._positions.append(places)
        self._waiting_bytes += rows.nbytes
        if self._waiting_bytes >= BLOCK_BYTES:
            self._flush()
        self._flush_deletes(BLOCK_BYTES)

    def delete(self, keys: pa.Array, positions: pa.Array | None = None) -> None:
        """Deletes the rows of these keys whatever their ordering values are."""
        rows, places = _at_positions(pa.RecordBatch.from_arrays([keys], names=[RECORD_KEY]), positions)
        self._entries.add_keys(rows.column(0), places)
        self.deletes += rows.num_rows
        self._flush_deletes(BLOCK_BYTES)

    def _flush_deletes(self, full: int) -> None:
        """Writes a delete block where its entries have `full` bytes."""
        if self._entries.count and self._entries.nbytes >= full:
            order, headers = self._placed(self._entries.positions)
            self.write_block(BlockType.DELETE, self._entries.take(order), headers)

    def _flush(self) -> None:
        rows, positions = pa.Table.from_batches(self._waiting), np.concatenate(self._positions)
        self._waiting, self._positions, self._waiting_bytes = [], [], 0
        order, headers = self._placed(positions)
        if order is not None:
            rows = rows.take(pa.array(order))
        names = [field["name"] for field in self._schema["fields"]]
        name = self._old.file_group.file_id if self._files.has_meta else None
        file_id = pa.repeat(pa.scalar(name, pa.string()), rows.num_rows)
        rows = rows.add_column(names.index(FILE_NAME), FILE_NAME, file_id)
        if self._files.config.log_block_format == "PARQUET":
            self.write_block(BlockType.PARQUET_DATA, self._parquet(rows), headers)
            return
        self.write_records(BlockType.AVRO_DATA, rows.num_rows, map(self.encoded, rows.to_batches()), headers)

    def _parquet(self, rows: pa.Table) -> bytes:
        """Returns a Parquet file of the rows, as base files are written, but without record keys in its footer."""
        config, content = self._files.config, io.BytesIO()
        style = parquet_style(config, config.parquet_codec or DEFAULT_CODEC)
        writer = BaseFileWriter(content, arrow_schema(self._schema, path=self.path), path=self.path, style=style)
        writer.write(rows)
        version = proleptic_version([])
        calendar = {} if version is None else {SPARK_VERSION: version}
        writer.close({**calendar, "parquet.avro.schema": self._schema_text, "writer.model.name": "avro"})
        return content.getvalue()

    def _placed(self, positions: Positions) -> tuple[Positions | None, dict[HeaderKey, str]]:
        """Returns the order of records by their positions, and the headers that name these; none where a record has no
        position.
        """
        base = self._old.base_file
        if base is None or (positions == _NONE).any():
            return None, {}
        order = np.argsort(positions, kind="stable")
        return order, position_headers(positions[order], parse_base_file(base.name).instant)

    def close(self) -> NewFile:
        """Completes the file."""
        if any(batch.num_rows for batch in self._waiting):
            self._flush()
        self._flush_deletes(0)
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


def _at_positions(rows: pa.RecordBatch, positions: pa.Array | None) -> tuple[pa.RecordBatch, Positions]:
    """Returns the rows, each once for each of its positions, or once where it has none, with these positions."""
    if positions is None:
        return rows, np.full(rows.num_rows, _NONE)
    counts = pc.fill_null(pc.list_value_length(positions), 0).to_numpy()
    times = np.maximum(counts, 1)
    places = np.full(times.sum(), _NONE)
    places[np.repeat(counts > 0, times)] = positions.flatten().to_numpy()
    return rows if (times == 1).all() else rows.take(pa.array(np.repeat(np.arange(rows.num_rows), times))), places
