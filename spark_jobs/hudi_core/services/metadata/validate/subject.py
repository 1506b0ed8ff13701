"""The table that is validated, loaded once: its timeline, its metadata table, and its file readers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.filegroup.read.slice_reader import SliceReader
from hudi_core.history.completion import CompletionTimes
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.metadata_table.read.snapshot import MetadataTableSnapshot
from hudi_core.metadata_table.records.file_statistics import FileChanges
from hudi_core.model.names import FileGroupId
from hudi_core.query.slices_plan import reader_spec
from hudi_core.services.archive.listing import written_log_bytes
from hudi_core.services.context import TableContext
from hudi_core.services.metadata.completed_changes import clean_changes
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.timeline.actions.commit import replaced_file_groups
from hudi_core.timeline.instant import Action, Instant
from hudi_core.timeline.schema_history import renamed_columns
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.fs_view import FileSystemView
from hudi_core.view.pending import PendingWork
from hudi_core.view.slicing import Slicing, slicing_for

_COMMITS: Final = 4


class CommitWrites:
    """Which files completed commits wrote, of the timeline and its archive. The paths of the last _COMMITS requested
    are kept.
    """

    def __init__(self, context: TableContext, timeline: Timeline, completion: CompletionTimes) -> None:
        self._context = context
        self._commits = {instant.requested_time: instant for instant in timeline.commits()}
        self._completion = completion
        self._paths: dict[str, frozenset[str] | None] = {}

    def wrote(self, instant: str, path: str) -> bool:
        """Whether a completed commit of `instant` names the file, or nothing says any more which files it wrote."""
        if not self._completion.is_completed(instant):
            return False
        if instant not in self._paths:
            while len(self._paths) >= _COMMITS:
                del self._paths[next(iter(self._paths))]
            self._paths[instant] = self._read(instant)
        paths = self._paths[instant]
        return paths is None or path in paths

    def _read(self, instant: str) -> frozenset[str] | None:
        found = self._commits.get(instant)
        commit = self._context.history().commit(instant) if found is None else self._context.active.read_commit(found)
        if commit is None:
            return None
        stats = list(commit.write_stats())
        return frozenset(stat.path for stat in stats) | frozenset(path for stat in stats for path, _ in stat.cdc_stats)


@dataclass(frozen=True)
class Subject:
    """Everything that is the same for all partitions.

    `written`: as FilesCheck has it. `renamed` are columns that older files hold under another name (schema-on-read).
    """

    context: TableContext
    timeline: Timeline
    schema: AvroSchema
    metadata: MetadataTable
    metadata_snapshot: MetadataTableSnapshot
    reader: SliceReader
    writes: CommitWrites
    written: Mapping[str, int] | None
    renamed: frozenset[str]
    pending: PendingWork
    replaced: Mapping[FileGroupId, Instant]
    slicing: Slicing

    @staticmethod
    def open(context: TableContext, data: Storage, timeline: Timeline, schema: AvroSchema | None = None) -> Subject:
        """The table as of `timeline`; `data` is the storage of the data path. Errors are those of the reads of timeline
        and metadata table.
        """
        config, active = context.config, context.active
        found = table_schema(context.storage, config, timeline) if schema is None else schema
        spec = reader_spec(context, found, timeline, merge_logs=True)
        completion = CompletionTimes(timeline, context.history)
        appended = config.is_merge_on_read and not config.features.log_name_has_delta_commit
        return Subject(
            context,
            timeline,
            found,
            MetadataTable(context.storage, config, timeline, found, context.zone),
            MetadataTableSnapshot(context.storage, config, timeline),
            SliceReader(data, spec),
            CommitWrites(context, timeline, completion),
            written_log_bytes(active, timeline) if appended else None,
            renamed_columns(spec.history),
            PendingWork.read(active, timeline),
            replaced_file_groups(timeline, active.read_commit),
            slicing_for(active.layout, timeline, completion.of),
        )

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
        listing = _OnePartition(partition, sorted(files, key=lambda info: info.path))
        return FileSystemView(listing, self.timeline, self.pending, self.replaced, self.slicing)


@dataclass(frozen=True, slots=True)
class _OnePartition:
    """view.listing.FileListing of one partition."""

    partition: str
    infos: list[FileInfo]

    def partitions(self) -> list[str]:
        return [self.partition]

    def files(self, partition: str) -> list[FileInfo]:
        return self.infos if partition == self.partition else []
