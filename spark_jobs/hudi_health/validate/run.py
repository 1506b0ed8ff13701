"""`metadata validate`: compares the metadata table with the data files and rows, by partition type. Nothing is written.

The walk visits each partition once. It reads every listed base and log file that exists once as it is stored (only the
indexed columns), and then the merged rows of the latest slices.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import pyarrow as pa

from hudi_core.codec.log.blocks import BlockType, LogBlock
from hudi_core.errors import (
    ConflictError,
    CorruptFileError,
    FormatError,
    MetadataUnavailableError,
    StorageNotFoundError,
)
from hudi_core.filegroup.read.base_file import base_batches, open_base_file, read_base_file
from hudi_core.filegroup.read.log_records import block_batches, block_columns, has_operations
from hudi_core.filegroup.read.slice_reader import READ_ROWS
from hudi_core.metadata_table.partition_type import FILES_PARTITION
from hudi_core.model.names import OPERATION, spelled
from hudi_core.services.context import TableContext
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.timeline.schemas import ColumnSource, sources_at
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import DataFile, FileGroup, FileSlice
from hudi_core.view.listing import walk_partitions
from hudi_health.validate.check import FileHead, Findings, PartitionCheck, ValidationReport
from hudi_health.validate.registry import FilesCheck, deletions_at_work, partition_checks
from hudi_health.validate.subject import Subject

_PARQUET = "parquet"


class FileReader:
    """Passes every record of a data file to the checks. It reads each record once, with only the required columns."""

    def __init__(self, subject: Subject, checks: Sequence[PartitionCheck]) -> None:
        self._reader = subject.reader
        self._findings = subject.findings
        self._checks = checks
        requirements = frozenset[str]().union(*(check.file_columns() for check in checks))
        self._schema: pa.Schema = subject.reader.spec.output.stored_of(requirements)
        self._history = subject.reader.spec.history

    def read_group(self, group: FileGroup, names: Collection[str], latest: Collection[str]) -> int:
        """Reads the named files, and returns their number. A damaged file is a difference of `files`."""
        files = 0
        for item in group.slices:
            if item.base_file is not None and item.base_file.name in names:
                self._attempt(item.base_file, self._read_base, item.base_file, item.base_file.name in latest)
                files += 1
            logs = [log for log in item.log_files if log.name in names]
            if logs:
                self._attempt(logs[0], self._read_logs, item, logs)
                files += len(logs)
        return files

    def _attempt(self, file: DataFile, read: Callable[..., None], *arguments: object) -> None:
        try:
            read(*arguments)
        except _DamagedError as error:
            name = error.path.rpartition("/")[2] if error.path else file.name
            self._findings.add(FILES_PARTITION, f"cannot be read: {error.message}", partition=file.partition, file=name)

    def _read_base(self, file: DataFile, is_latest: bool) -> None:
        storage, schema, head = self._reader.storage, self._schema, FileHead(file, True, None, is_latest=is_latest)
        if file.name.rpartition(".")[2] != _PARQUET or self._history is not None:
            batches = read_base_file(storage, file, schema, batch_rows=READ_ROWS, history=self._history)
            self._pass(head, ((batch, None) for batch in batches))
            return
        with ExitStack() as stack:
            with _naming_damage():
                parquet = stack.enter_context(open_base_file(storage, file.path))
                footer = parquet.footer
            columns = frozenset(spelled(parquet.schema.names, schema.names))
            batches = base_batches(parquet, schema, batch_rows=READ_ROWS)
            self._pass(replace(head, columns=columns, footer=footer), ((batch, None) for batch in batches))

    def _read_logs(self, item: FileSlice, logs: Sequence[DataFile]) -> None:
        with _naming_damage():
            blocks = self._reader.scan(item).blocks
        for log in logs:
            self._read_log(
                log, [block for block in blocks if block.path == log.path and block.type is not BlockType.DELETE]
            )

    def _read_log(self, file: DataFile, blocks: Sequence[LogBlock]) -> None:
        storage, schema = self._reader.storage, self._schema
        with _naming_damage():
            # If columns were renamed, a block may have them under other names.
            carried = [None if self._history is not None else block_columns(block, self._schema) for block in blocks]
        known = None if None in carried else frozenset[str]().union(*(names for names in carried if names is not None))
        if has_operations(blocks) and OPERATION not in schema.names:
            schema = schema.append(pa.field(OPERATION, pa.string()))
        self._pass(
            FileHead(file, False, known),
            (
                (batch, names)
                for block, names in zip(blocks, carried, strict=True)
                for batch in block_batches(storage, block, schema, sources=self._sources(block))
            ),
        )

    def _sources(self, block: LogBlock) -> Sequence[ColumnSource]:
        return () if self._history is None else sources_at(self._history, block.instant_time or "")

    def _pass(self, head: FileHead, records: Iterator[tuple[pa.RecordBatch, frozenset[str] | None]]) -> None:
        """Passes batches to the checks, with the columns that each carries. Skips base files that no check needs."""
        file_checks = [of_file for check in self._checks if (of_file := check.open_file(head)) is not None]
        while file_checks or not head.is_base:
            with _naming_damage():
                carried = next(records, None)
            if carried is None:
                break
            for of_file in file_checks:
                of_file.add(*carried)
        for of_file in file_checks:
            of_file.close()


class _DamagedError(CorruptFileError):
    """A data file cannot be read. The class differs from the error of a damaged metadata table."""


@contextmanager
def _naming_damage() -> Iterator[None]:
    try:
        yield
    except CorruptFileError as error:
        raise _DamagedError(error.message, path=error.path) from error


def validate(context: TableContext, data: Storage) -> ValidationReport:
    """Compares the whole metadata table with the data. `data` is the storage of the data path. Raises
    MetadataUnavailableError for a table without a readable metadata table, CorruptFileError if the metadata table or
    the timeline is damaged, UnsupportedError for data files that this release does not read, ConflictError if the table
    changed meanwhile.
    """
    check_metadata(context)
    timeline = context.active.load()
    try:
        report = _Validation(context, data, timeline).run()
    except (StorageNotFoundError, FormatError) as error:
        if context.active.load() != timeline:
            raise _changed() from error
        raise
    if not report.is_clean and context.active.load() != timeline:
        raise _changed()
    return report


def check_metadata(context: TableContext, purpose: str = "validate") -> None:
    if not context.has_metadata_table:
        message = "the table has no metadata table: hoodie.table.metadata.partitions does not name `files`"
        remedy = f"there is nothing to {purpose}; readers list the storage"
        raise MetadataUnavailableError(message, path=context.config.path, remedy=remedy)


class _Validation:
    def __init__(self, context: TableContext, data: Storage, timeline: Timeline) -> None:
        self._storage = context.storage
        self._findings = Findings()
        self._subject = Subject(context, data, timeline, self._findings)
        deletions = deletions_at_work(timeline)
        for item in deletions:
            self._findings.not_checked(
                FILES_PARTITION,
                f"listed files that are missing: {item.action} {item.requested_time} is inflight and may delete them",
            )
        self._files = FilesCheck(self._subject, judges_missing=not deletions)
        self._checks = partition_checks(self._subject)
        self._reader = FileReader(self._subject, self._checks)
        requirements = frozenset[str]().union(*(check.row_columns() for check in self._checks))
        self._row_columns = [name for name in self._subject.reader.output_schema().names if name in requirements]
        self._partitions = self._read = self._rows = 0

    def run(self) -> ValidationReport:
        for partition, infos in walk_partitions(self._storage, self._storage.list_files):
            self._partition(partition, infos)
        for partition in self._files.not_walked():
            self._partition(partition, self._storage.list_files(partition))
        self._files.finish()
        for check in self._checks:
            check.finish()
        return self._findings.report(self._subject.metadata.partition_types, self._partitions, self._read, self._rows)

    def _partition(self, partition: str, infos: Sequence[FileInfo]) -> None:
        files = self._files.open_partition(partition, infos)
        if files is None:
            return
        self._partitions += 1
        for check in self._checks:
            check.open_partition(files)
        view = self._subject.view(files.partition, files.there.values())
        if any(check.file_columns() for check in self._checks):
            names = files.listed.keys() & files.there.keys()
            latest = {
                item.base_file.name for item in view.latest_merged_slices(files.partition) if item.base_file is not None
            }
            for group in view.all_file_groups(files.partition):
                self._read += self._reader.read_group(group, names, latest)
        if self._row_columns:
            for item in view.latest_merged_slices(files.partition):
                self._slice(item)
        for check in self._checks:
            check.close_partition(files)

    def _slice(self, item: FileSlice) -> None:
        """Passes the rows of a file slice to the checks. A damaged slice is a difference of `files`; its missing rows
        then also show as differences of the indexes.
        """
        try:
            for batch in self._subject.reader.read(item, self._row_columns):
                self._rows += batch.num_rows
                for check in self._checks:
                    if check.row_columns():
                        check.add_rows(item, batch)
        except CorruptFileError as error:
            group = item.file_group
            self._findings.add(
                FILES_PARTITION,
                f"the rows of the file group cannot be read: {error.message}",
                partition=group.partition,
                file=group.file_id,
            )


def _changed() -> ConflictError:
    return ConflictError(
        "the table was written to while it was validated", remedy="run it again when the writers pause"
    )
