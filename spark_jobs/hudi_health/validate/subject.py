"""The table that is validated, loaded once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final

import pyarrow as pa

from hudi_core.errors import ConfigError
from hudi_core.expr.bind import resolve
from hudi_core.expr.functions import evaluate
from hudi_core.expr.tree import Column, Operand
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.filegroup.read.slice_reader import SliceReader
from hudi_core.history.archived import CompletionTimes
from hudi_core.metadata_table.indexed_table import IndexDefinition
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.metadata_table.read.snapshot import MetadataTableSnapshot
from hudi_core.metadata_table.read.statistics import ColumnTypes
from hudi_core.metadata_table.records.file_statistics import FileChanges
from hudi_core.model.names import META_FIELDS
from hudi_core.query.context import reader_spec
from hudi_core.services.archive.listing import appended_log_bytes
from hudi_core.services.context import TableContext
from hudi_core.services.metadata.action_updates import clean_changes
from hudi_core.services.metadata.initialization import KeptListing
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.timeline.actions.commit import replaced_file_groups
from hudi_core.timeline.instant import Action
from hudi_core.timeline.schemas import renamed_columns
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_system_view import FileSystemView, PendingWork
from hudi_core.view.slicing import slicing_for
from hudi_health.validate.check import Findings, key_columns

_COMMITS: Final = 4
"""The number of commits whose paths are kept."""


class CommitWrites:
    """The files that completed commits of the timeline and its archive wrote."""

    def __init__(self, context: TableContext, timeline: Timeline, completion: CompletionTimes) -> None:
        self._context = context
        self._commits = {instant.requested_time: instant for instant in timeline.commits()}
        self._completion = completion
        self._paths = lru_cache(_COMMITS)(self._read)

    def wrote(self, instant: str, path: str) -> bool:
        """Returns whether the completed commit `instant` names the file. Also returns True if the commit is completed,
        but its files are no longer known.
        """
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
    """The validated table at `timeline`: everything that is the same for all partitions. `data` is the storage of the
    data path. In version 6, `written` has the bytes of log files by path that completed commits wrote. It is None if
    the names of log files contain the instant that wrote them. `findings` gets what cannot be compared.
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
        self.definitions: Mapping[str, IndexDefinition] = self.metadata.definitions
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
        """Yields the files that completed cleans deleted, with those of archived cleans. Raises CorruptFileError if a
        clean's file does not name them.
        """
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
        """Returns, by dotted name, the columns with statistics whose type has an order."""
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
        """Returns the columns whose values are the same in a query's rows and in the files."""
        hidden = {*self._output.rule.from_path, *self._output.rule.as_text}
        kept = {column: operand for column, operand in columns.items() if operand.path[0] not in hidden}
        if len(kept) < len(columns):
            self.findings.not_checked(name, "columns whose values queries take from the partition's path")
        return kept

    def resolved(self, name: str, operand: Operand) -> Operand | None:
        """Returns the operand over the stored columns; None if the table lacks one, or has several of the name."""
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
