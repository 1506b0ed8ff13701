"""The table that is validated, loaded once, and the registry of checks: which check each partition type gets. One line
adds a check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final

import pyarrow as pa

from hudi_core.config.read_config import READ_ZONE
from hudi_core.errors import ConfigError
from hudi_core.expr.bind import resolve
from hudi_core.expr.functions import evaluate, needs_zone
from hudi_core.expr.tree import Column, Operand
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.filegroup.read.slice_reader import SliceReader
from hudi_core.history.archived import CompletionTimes
from hudi_core.index.expression_indexes import indexed_operand
from hudi_core.metadata_table.indexed_table import IndexDefinition
from hudi_core.metadata_table.keys import secondary_hashed_part
from hudi_core.metadata_table.partition_type import BLOOM_FILTERS, COLUMN_STATS, FILES_PARTITION
from hudi_core.metadata_table.partitions.bloom_filters import BloomFiltersPartition
from hudi_core.metadata_table.partitions.column_stats import ColumnStatsPartition
from hudi_core.metadata_table.partitions.expression_index import ExpressionIndexPartition
from hudi_core.metadata_table.partitions.partition_stats import PartitionStatsPartition
from hudi_core.metadata_table.partitions.protocol import PartitionType
from hudi_core.metadata_table.partitions.record_index import RecordIndexPartition
from hudi_core.metadata_table.partitions.registry import registered
from hudi_core.metadata_table.partitions.secondary_index import SecondaryIndexPartition
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.metadata_table.read.row_level import SecondaryIndexRules
from hudi_core.metadata_table.read.snapshot import MetadataTableSnapshot
from hudi_core.metadata_table.read.statistics import ColumnTypes
from hudi_core.metadata_table.records.file_statistics import FileChanges
from hudi_core.model.names import META_FIELDS
from hudi_core.query.slices_plan import reader_spec
from hudi_core.services.archive.listing import appended_log_bytes
from hudi_core.services.context import TableContext
from hudi_core.services.metadata.action_updates import clean_changes
from hudi_core.services.metadata.initialization import KeptListing
from hudi_core.services.metadata.validate.bloom_filters import BloomFiltersCheck, ExpressionFiltersCheck
from hudi_core.services.metadata.validate.check import Findings, PartitionCheck, key_columns
from hudi_core.services.metadata.validate.column_stats import (
    ColumnStatsCheck,
    ExpressionStatsCheck,
    PartitionStatsCheck,
)
from hudi_core.services.metadata.validate.row_indexes import RecordIndexCheck, SecondaryIndexCheck, can_print
from hudi_core.services.metadata.validate.true_ranges import VALUE, IndexedOperands
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.timeline.actions.commit import replaced_file_groups
from hudi_core.timeline.instant import Action
from hudi_core.timeline.schemas import renamed_columns
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_system_view import FileSystemView
from hudi_core.view.pending import PendingWork
from hudi_core.view.slicing import slicing_for

_COMMITS: Final = 4
"""Commits whose paths are kept."""


class CommitWrites:
    """Which files completed commits wrote, of the timeline and its archive."""

    def __init__(self, context: TableContext, timeline: Timeline, completion: CompletionTimes) -> None:
        self._context = context
        self._commits = {instant.requested_time: instant for instant in timeline.commits()}
        self._completion = completion
        self._paths = lru_cache(_COMMITS)(self._read)

    def wrote(self, instant: str, path: str) -> bool:
        """Whether a completed commit of `instant` names the file, or nothing says any more which files it wrote."""
        if not self._completion.is_completed(instant):
            return False
        paths = self._paths(instant)
        return paths is None or path in paths

    def _read(self, instant: str) -> frozenset[str] | None:
        found = self._commits.get(instant)
        commit = self._context.history().commit(instant) if found is None else self._context.active.read_commit(found)
        if commit is None:
            return None
        stats = list(commit.write_stats())
        return frozenset(stat.path for stat in stats) | frozenset(path for stat in stats for path, _ in stat.cdc_stats)


class Subject:
    """Everything that is the same for all partitions, as of `timeline`; `data` is the storage of the data path.

    `written`: as FilesCheck has it. What cannot be compared is reported to `findings`.
    """

    def __init__(self, context: TableContext, data: Storage, timeline: Timeline, findings: Findings) -> None:
        storage, config, active = context.storage, context.config, context.active
        self.context = context
        self.findings = findings
        self.schema = table_schema(storage, config, timeline)
        self.metadata = MetadataTable(storage, config, timeline, self.schema, context.zone)
        self.snapshot = MetadataTableSnapshot(storage, config, timeline)
        spec = reader_spec(context, self.schema, timeline, merge_logs=True)
        self.reader = SliceReader(data, spec)
        completion = CompletionTimes(timeline, context.history)
        self.writes = CommitWrites(context, timeline, completion)
        self.written = appended_log_bytes(context, timeline)
        self.definitions: Mapping[str, IndexDefinition] = self.metadata.index_definitions()
        self.key_columns = key_columns(config)
        self._timeline = timeline
        self._pending = PendingWork.read(active, timeline)
        self._replaced = replaced_file_groups(timeline, active.read_commit)
        self._slicing = slicing_for(active.layout, timeline, completion.of)
        self._output = spec.output
        self._stored: pa.Schema = spec.output.stored
        self._types = ColumnTypes(self.schema)
        self._renamed = renamed_columns(spec.history)

    def cleans(self) -> Iterator[FileChanges]:
        """What completed cleans deleted, archived ones, too. CorruptFileError where one does not say it."""
        archive = self.context.history()
        for instant in archive.timeline().of_actions(Action.CLEAN):
            if content := archive.content(instant):
                yield clean_changes(content, path=f"archived {instant.action} {instant.requested_time}")
        active = self.context.active
        for instant in self._timeline.of_actions(Action.CLEAN).completed():
            if content := active.read_of(instant):
                yield clean_changes(content, path=active.path_of(instant))

    def view(self, partition: str, files: Iterable[FileInfo]) -> FileSystemView:
        listing = KeptListing({partition: sorted(files, key=lambda info: info.path)})
        return FileSystemView(listing, self._timeline, self._pending, self._replaced, self._slicing)

    def columns(self, name: str) -> dict[str, Column]:
        """The columns with statistics that are of a type that has an order, by dotted name."""
        definition = self.definitions.get(name)
        fields = [field["name"] for field in self.schema["fields"]]
        meta = META_FIELDS if self.context.config.populate_meta_fields else ()
        names = definition.source_fields if definition is not None and definition.source_fields else (*meta, *fields)
        found: dict[str, Column] = {}
        for column in dict.fromkeys(names):
            path = tuple(column.split("."))
            if path[0] in self._renamed:
                self.findings.not_checked(name, "columns that older files hold under another name")
            elif path[0] in self._stored.names and not pa.types.is_null(self._types.of(column)[0]):
                found[column] = Column(path)
        return found

    def columns_as_stored(self, name: str, columns: Mapping[str, Column]) -> dict[str, Column]:
        """Those whose values in a query's rows are those of the files."""
        hidden = {*self._output.rule.from_path, *self._output.rule.as_text}
        kept = {column: operand for column, operand in columns.items() if operand.path[0] not in hidden}
        if len(kept) < len(columns):
            self.findings.not_checked(name, "columns whose values queries take from the partition's path")
        return kept

    def resolved(self, name: str, operand: Operand) -> Operand | None:
        """Over the stored columns; None for a column that the table lacks, or holds under several names."""
        try:
            found = resolve(operand, self._stored)
            self.type_of(found)
        except ConfigError as error:
            self.findings.not_checked(name, error.message)
            return None
        return found

    def type_of(self, operand: Operand) -> pa.DataType:
        return evaluate(operand, self.no_rows(), "UTC").type

    def no_rows(self) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist([], schema=self._stored)


def partition_checks(subject: Subject) -> list[PartitionCheck]:
    checks: list[PartitionCheck] = []
    for name in sorted(subject.metadata.partition_types - {FILES_PARTITION}):
        partition_type = registered(name)
        make = None if partition_type is None else _CHECKS.get(partition_type)
        if make is None:
            subject.findings.not_checked(name, "a partition type that this release does not know")
        else:
            checks.extend(make(subject, name))
    return checks


def _column_stats(subject: Subject, name: str) -> Iterator[PartitionCheck]:
    leaves = subject.context.config.features.cleans_leave_statistics
    yield ColumnStatsCheck(
        subject.metadata,
        IndexedOperands(subject.columns(name)),
        subject.findings,
        has_definition=name in subject.definitions,
        left_by=subject.cleans if leaves else tuple,
    )


def _partition_stats(subject: Subject, name: str) -> Iterator[PartitionCheck]:
    columns = subject.columns_as_stored(name, subject.columns(COLUMN_STATS))
    yield PartitionStatsCheck(subject.metadata, IndexedOperands(columns), subject.findings)


def _secondary_index(subject: Subject, name: str) -> Iterator[PartitionCheck]:
    definition, findings = subject.definitions.get(name), subject.findings
    fields = () if definition is None else definition.source_fields
    column = subject.resolved(name, Column(tuple(fields[0].split(".")))) if len(fields) == 1 else None
    if definition is None or not isinstance(column, Column):
        findings.not_checked(name, "its definition names no single column of the table")
        return
    if not subject.columns_as_stored(name, {"": column}):
        return
    value_type = subject.type_of(column)
    if not can_print(value_type):
        findings.not_checked(name, f"values of type {value_type}, whose printed form depends on the writer")
        return
    by_value = definition.version > 1
    partition = subject.snapshot.partition(name, SecondaryIndexRules(), secondary_hashed_part if by_value else str)
    is_whole = subject.metadata.covers_all_rows(name)
    if not is_whole:
        findings.not_checked(
            name, "pairs that it lacks: it was built while a commit was written, and readers do not ask it"
        )
    yield SecondaryIndexCheck(partition, column, subject.key_columns, findings, by_value=by_value, is_whole=is_whole)


def _expression_index(subject: Subject, name: str) -> Iterator[PartitionCheck]:
    definition, findings = subject.definitions.get(name), subject.findings
    written = None if definition is None else indexed_operand(definition)
    operand = None if written is None else subject.resolved(name, written)
    if definition is None or operand is None:
        findings.not_checked(name, "an expression that predicates cannot name")
        return
    zone = READ_ZONE.read(subject.context.options)
    has_values = zone is not None or not needs_zone(operand, subject.no_rows(), "UTC")
    if not has_values:
        findings.not_checked(
            name, f"values, as they depend on the zone of local time; give the writers' as {READ_ZONE.name}"
        )
    value = IndexedOperands({VALUE: operand}, zone or "UTC", has_values)
    if definition.type == COLUMN_STATS:
        yield ExpressionStatsCheck(name, definition.source_fields[0], subject.snapshot, value, findings)
    elif definition.type == BLOOM_FILTERS:
        yield ExpressionFiltersCheck(name, subject.snapshot, value, findings)
    else:
        findings.not_checked(name, f"an index of type {definition.type!r}")


_CHECKS: Final[Mapping[type[PartitionType], Callable[[Subject, str], Iterable[PartitionCheck]]]] = {
    ColumnStatsPartition: _column_stats,
    PartitionStatsPartition: _partition_stats,
    BloomFiltersPartition: lambda subject, _: [
        BloomFiltersCheck(subject.snapshot, subject.key_columns, subject.findings)
    ],
    RecordIndexPartition: lambda subject, _: [
        RecordIndexCheck(subject.metadata.record_index, subject.key_columns, subject.findings)
    ],
    SecondaryIndexPartition: _secondary_index,
    ExpressionIndexPartition: _expression_index,
}
