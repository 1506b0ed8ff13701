"""`metadata validate`: compares the metadata table with the data files and rows, by partition type. Nothing is written.

The data is read by the code of queries, not by that which writes the metadata table, so that errors there are detected.
The table is walked once, partition by partition. Of a partition, every listed base and log file that is there is read
once (the columns that are indexed), and the rows of the latest slices once more, merged. Each partition type's module
describes its exact and loose comparisons, and its memory.
"""

from __future__ import annotations

from hudi_core.errors import (
    ConflictError,
    CorruptFileError,
    FormatError,
    MetadataUnavailableError,
    StorageNotFoundError,
)
from hudi_core.metadata_table.partition_type import FILES_PARTITION
from hudi_core.services.context import TableContext
from hudi_core.services.metadata.validate.check import Findings, PartitionCheck, PartitionFiles, ValidationReport
from hudi_core.services.metadata.validate.files import FilesCheck, deletions_at_work
from hudi_core.services.metadata.validate.records import FileReader
from hudi_core.services.metadata.validate.registry import partition_checks
from hudi_core.services.metadata.validate.subject import Subject
from hudi_core.storage.base import Storage
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import FileSlice
from hudi_core.view.listing import walk_partitions


def validate(context: TableContext, data: Storage) -> ValidationReport:
    """Compares everything; `data` is the storage of the data path.

    Raises MetadataUnavailableError for a table without a metadata table that could be read, CorruptFileError where that
    or the timeline is damaged, UnsupportedError for data files that this release does not read, ConflictError when the
    table changed meanwhile.
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


def check_metadata(context: TableContext) -> None:
    """Raises MetadataUnavailableError for a table without a metadata table."""
    if not context.has_metadata_table:
        raise MetadataUnavailableError(
            "the table has no metadata table: hoodie.table.metadata.partitions does not name `files`",
            path=context.config.path,
            remedy="there is nothing to validate; readers list the storage",
        )


class _Validation:
    def __init__(self, context: TableContext, data: Storage, timeline: Timeline) -> None:
        self._storage = context.storage
        self._findings = Findings()
        self._subject = Subject(context, data, timeline)
        deletions = deletions_at_work(timeline)
        for item in deletions:
            self._findings.not_checked(
                FILES_PARTITION,
                f"listed files that are missing: {item.action} {item.requested_time} is inflight and may delete them",
            )
        self._files = FilesCheck(
            self._subject.metadata,
            self._findings,
            wrote=self._subject.writes.wrote,
            written=self._subject.written,
            judges_missing=not deletions,
        )
        self._checks: list[PartitionCheck] = partition_checks(self._subject, self._findings)
        self._reader = FileReader(self._subject, self._checks, self._findings)
        requirements = frozenset[str]().union(*(check.row_columns() for check in self._checks))
        self._row_columns = [name for name in self._subject.reader.output_schema().names if name in requirements]
        self._partitions = self._read = self._rows = 0

    def run(self) -> ValidationReport:
        for partition, infos in walk_partitions(self._storage, self._storage.list_files):
            self._partition(self._files.open_partition(partition, infos))
        for partition in self._files.not_walked():
            infos = self._storage.list_files(partition)
            if infos:
                self._partition(self._files.open_partition(partition, infos))
            else:
                self._files.absent_partition(partition)
        self._files.finish()
        for check in self._checks:
            check.finish()
        return self._findings.report(self._subject.metadata.partition_types, self._partitions, self._read, self._rows)

    def _partition(self, files: PartitionFiles) -> None:
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
        """Gives a slice's rows to the checks. A damaged one is a difference of `files`; what is missing of its rows
        then shows in the indexes.
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
