"""One look at the data files of a table, which all checks share: each folder is listed once, each commit read once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, cached_property

from hudi_core.errors import FormatError, StorageNotFoundError
from hudi_core.filegroup.read.torn_tails import CompletedWrites
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.services.archive.listing import appended_log_bytes
from hudi_core.services.context import TableContext
from hudi_core.storage.base import FileInfo
from hudi_core.storage.one_look import look_again
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.committed_sizes import CommittedSizes
from hudi_core.view.file_system_view import FileSystemView
from hudi_core.view.listing import StorageListing, walk_partitions


class DataFiles:
    """What is known of a table's files at `timeline`, each part read when a check needs it first, and kept; a
    view.listing.FileListing. Memory: some 300 bytes for each data file.
    """

    def __init__(self, context: TableContext, timeline: Timeline) -> None:
        self.context = context
        self.storage = context.storage
        self.timeline = timeline
        self.history = cache(context.history)
        self.writes = CompletedWrites(context.active, timeline, self.history)
        self.metadata = MetadataTable(context.storage, context.config, timeline)

    @cached_property
    def by_partition(self) -> dict[str, list[FileInfo]]:
        """The files of the storage, partitions as walk_partitions orders them. Raises FormatError for folders that no
        table has.
        """
        return dict(walk_partitions(self.storage, StorageListing(self.storage).files))

    def partitions(self) -> list[str]:
        return sorted(self.by_partition)

    def files(self, partition: str) -> list[FileInfo]:
        return self.by_partition.get(partition, [])

    @cached_property
    def view(self) -> FileSystemView | None:
        """The slices in the storage; None beside a pending plan that cannot be read, which has a rule of its own."""
        try:
            return self.context.view(self.timeline, listing=self)
        except (FormatError, StorageNotFoundError):
            return None

    @cached_property
    def sizes(self) -> CommittedSizes:
        """Reads each commit, also for `writes`. Raises FormatError for one that cannot be read."""
        return CommittedSizes(self.timeline, self.writes.read_commit, self.history)

    @cached_property
    def written(self) -> Mapping[str, int] | None:
        """See appended_log_bytes. Raises FormatError for a commit or rollback that cannot be read."""
        return appended_log_bytes(self.context, self.timeline)

    def is_current(self) -> bool:
        look_again(self.storage)
        return self.context.active.load() == self.timeline
