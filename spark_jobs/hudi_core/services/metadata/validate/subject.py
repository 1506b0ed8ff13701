"""The table that is validated, loaded once: its timeline, its metadata table, and its file readers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.filegroup.read.slice_reader import SliceReader
from hudi_core.history.completion import CompletionTimes
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.metadata_table.read.snapshot import MetadataTableSnapshot
from hudi_core.metadata_table.records.file_statistics import FileChanges
from hudi_core.query.slices_plan import reader_spec
from hudi_core.services.archive.listing import appended_log_bytes
from hudi_core.services.context import TableContext
from hudi_core.services.metadata.action_updates import clean_changes
from hudi_core.services.metadata.initialization import KeptListing
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.timeline.actions.commit import replaced_file_groups
from hudi_core.timeline.instant import Action
from hudi_core.timeline.schema_history import renamed_columns
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
    """Everything that is the same for all partitions.

    `written`: as FilesCheck has it. `renamed` are columns that older files hold under another name (schema-on-read).
    """

    def __init__(self, context: TableContext, data: Storage, timeline: Timeline) -> None:
        """The table as of `timeline`; `data` is the storage of the data path. Errors are those of the reads of timeline
        and metadata table.
        """
        storage, config, active = context.storage, context.config, context.active
        self.context = context
        self.timeline = timeline
        self.schema = table_schema(storage, config, timeline)
        self.metadata = MetadataTable(storage, config, timeline, self.schema, context.zone)
        self.metadata_snapshot = MetadataTableSnapshot(storage, config, timeline)
        spec = reader_spec(context, self.schema, timeline, merge_logs=True)
        self.reader = SliceReader(data, spec)
        self.renamed = renamed_columns(spec.history)
        completion = CompletionTimes(timeline, context.history)
        self.writes = CommitWrites(context, timeline, completion)
        self.written = appended_log_bytes(context, timeline)
        self._pending = PendingWork.read(active, timeline)
        self._replaced = replaced_file_groups(timeline, active.read_commit)
        self._slicing = slicing_for(active.layout, timeline, completion.of)

    def cleans(self) -> Iterator[FileChanges]:
        """What completed cleans deleted, of the timeline and its archive. Raises CorruptFileError where one does not
        say it.
        """
        archive = self.context.history()
        for instant in archive.timeline().of_actions(Action.CLEAN):
            if content := archive.content(instant):
                yield clean_changes(content, path=f"archived {instant.action} {instant.requested_time}")
        active = self.context.active
        for instant in self.timeline.of_actions(Action.CLEAN).completed():
            if content := active.read_of(instant):
                yield clean_changes(content, path=active.path_of(instant))

    def view(self, partition: str, files: Iterable[FileInfo]) -> FileSystemView:
        """The slices of one partition that has these files."""
        listing = KeptListing({partition: sorted(files, key=lambda info: info.path)})
        return FileSystemView(listing, self.timeline, self._pending, self._replaced, self._slicing)
