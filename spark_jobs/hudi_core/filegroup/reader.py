"""A file slice as rows: base file alone, or base file merged with its log files (HoodieMergeOnReadSnapshotRelation; facts 5, 6.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from hudi_core.codec.avro.arrow import arrow_schema, spark_schema
from hudi_core.codec.avro.arrow_conform import conform_batch
from hudi_core.codec.avro.schema import AvroSchema, add_meta_fields, without_meta_fields
from hudi_core.errors import ConfigError
from hudi_core.filegroup.base_file import base_batches, grouped, open_base_file
from hudi_core.filegroup.base_merge import BaseMerger
from hudi_core.filegroup.log_records import merge_logs
from hudi_core.filegroup.log_scan import ScanResult, scan_log_files
from hudi_core.filegroup.merge import merge_columns
from hudi_core.filegroup.ordering import Ordering
from hudi_core.filegroup.partition_values import path_columns, path_values, with_values
from hudi_core.filegroup.policy import MergePolicy
from hudi_core.filegroup.validity import CommittedInstants, latest_read_instant
from hudi_core.view.file_group import FileSlice

if TYPE_CHECKING:
    from hudi_core.config.table_config import TableConfig
    from hudi_core.storage.base import Storage
    from hudi_core.timeline.query import Timeline

READ_BUDGET = 256 << 20
READ_ROWS = 64 << 10
GROUP_SHARE = 8
"""A group of base batches whose keys are looked up at once takes up at most this part of the memory budget."""


@dataclass(frozen=True)
class SliceReader:
    """Reads the slices of one table as of one loaded timeline.

    `schema` is the table's Avro schema without meta fields. `snapshot` merges log files; without it only base files are read, as a
    read-optimized query and a query of a copy-on-write table do. `memory_budget` bounds the rows of log records in memory, in bytes.
    """

    storage: Storage
    config: TableConfig
    schema: AvroSchema
    committed: CommittedInstants
    latest_instant: str | None
    snapshot: bool
    options: Mapping[str, str]
    memory_budget: int = READ_BUDGET
    allow_corrupt_log_blocks: bool = True
    spill_folder: str | None = None

    @staticmethod
    def for_query(
        storage: Storage, config: TableConfig, schema: AvroSchema, timeline: Timeline, *, snapshot: bool, options: Mapping[str, str] | None = None
    ) -> SliceReader:
        """The reader of a snapshot or read-optimized query over a loaded timeline."""
        return SliceReader(
            storage,
            config,
            schema,
            CommittedInstants.of(timeline),
            latest_read_instant(timeline),
            snapshot and config.is_merge_on_read,
            options or {},
        )

    def output_schema(self, columns: Sequence[str] | None = None) -> pa.Schema:
        """The columns a query returns, in its types: `_hoodie_*` first (unless the table has none), then the table's, or just `columns`.

        Partition columns stand last where they are read from the path, as in Spark. Raises ConfigError for a column the table lacks.
        """
        fields = {field.name: field for field in self._stored}
        for field in self._path_columns:
            fields.pop(field.name, None)
            fields[field.name] = field
        missing = [name for name in columns or () if name not in fields]
        if missing:
            raise ConfigError(f"no column {', '.join(map(repr, missing))}", remedy=f"the columns are {', '.join(fields)}")
        return pa.schema([fields[name] for name in (fields if columns is None else columns)])

    def read(self, file_slice: FileSlice, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The slice's rows in output_schema(columns): base rows in the file's order, then rows that only logs have.

        Corrupt log blocks are left out, as Hudi does, unless `allow_corrupt_log_blocks` is off. Raises StorageNotFoundError for a missing
        file, FormatError for one that is broken or not supported, UnsupportedError for a payload class with log files.
        """
        output = self.output_schema(columns)
        if self.snapshot and file_slice.log_files:
            return self._merged(file_slice, output)
        return self._base_only(file_slice, output)

    @cached_property
    def _stored(self) -> pa.Schema:
        avro = add_meta_fields(self.schema) if self.config.populate_meta_fields else without_meta_fields(self.schema)
        return spark_schema(arrow_schema(avro, path=self.config.path))

    @cached_property
    def _path_columns(self) -> list[pa.Field]:
        """Columns whose values come from the partition path: rows of base files alone, and rows of tables that do not store them."""
        return path_columns(self.config, self._stored) if not self.snapshot or self.config.drop_partition_columns else []

    def _base_only(self, file_slice: FileSlice, output: pa.Schema) -> Iterator[pa.RecordBatch]:
        if file_slice.base_file is None:
            return
        stored = self._stored_of(output.names)
        with open_base_file(self.storage, file_slice.base_file.path) as file:
            for batch in base_batches(file, stored, batch_rows=READ_ROWS):
                yield self._finish(batch, file_slice, output)

    def _merged(self, file_slice: FileSlice, output: pa.Schema) -> Iterator[pa.RecordBatch]:
        policy = MergePolicy.for_table(self.config, self.options)
        ordering = Ordering.of(policy.ordering_field, self.schema, path=self.config.path)
        scan = self.scan(file_slice)
        stored = self._stored_of({*output.names, *merge_columns(policy, ordering)})
        records = merge_logs(self.storage, scan, stored, policy, ordering, budget=self.memory_budget, spill_folder=self.spill_folder)
        with records.store:
            base = file_slice.base_file
            merger = BaseMerger(records, policy, ordering, path=base.path if base else file_slice.log_files[0].path)
            if base is not None:
                with open_base_file(self.storage, base.path) as file:
                    batches = base_batches(file, stored, batch_rows=READ_ROWS)
                    for group in grouped(batches, rows=len(records), max_bytes=self.memory_budget // GROUP_SHARE):
                        for batch in merger.apply(group):
                            yield self._finish(batch, file_slice, output)
            for batch in merger.inserts(READ_ROWS):
                yield self._finish(batch, file_slice, output)

    def scan(self, file_slice: FileSlice) -> ScanResult:
        """The log blocks that count for this reader."""
        scan = scan_log_files(self.storage, file_slice.log_files, self.committed, latest_instant=self.latest_instant)
        if not self.allow_corrupt_log_blocks:
            scan.refuse_corrupt()
        return scan

    def _stored_of(self, names: Sequence[str] | set[str]) -> pa.Schema:
        wanted = set(names)
        return pa.schema([field for field in self._stored if field.name in wanted])

    def _finish(self, batch: pa.RecordBatch, file_slice: FileSlice, output: pa.Schema) -> pa.RecordBatch:
        values = path_values(file_slice.file_group.partition, self._path_columns)
        return with_values(batch, values, output) if values else conform_batch(batch, output, path=file_slice.file_group.file_id)
