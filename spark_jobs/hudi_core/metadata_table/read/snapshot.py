"""A snapshot of a table's metadata table: its properties, timeline, valid log blocks and partitions."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import Final

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import MetadataUnavailableError, StorageNotFoundError
from hudi_core.filegroup.merge.table_policy import reads_as_hudi_1
from hudi_core.metadata_table.instants import is_initialization, is_solo, rolled_back_by, valid_instants
from hudi_core.metadata_table.partition_type import FILES_PARTITION
from hudi_core.metadata_table.read.file_group import (
    ROOT,
    BlockFilter,
    MergedSlice,
    data_files,
    load_metadata_config,
    merged_slices,
    partition_folders,
)
from hudi_core.metadata_table.read.group_reader import GroupReader, T
from hudi_core.metadata_table.read.partition import HashedPart, MetadataPartition
from hudi_core.metadata_table.read.whole_files import refuse_missing, refuse_short
from hudi_core.metadata_table.record import RecordRules
from hudi_core.model.partition import check_file_name
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.storage.one_look import content_of, is_small, look_again
from hudi_core.storage.overlapped import is_remote, look_ahead, overlapped
from hudi_core.timeline.actions.commit import written_files
from hudi_core.timeline.actions.write_stats import WrittenFile
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, Instant
from hudi_core.timeline.timeline import Timeline

_FEW: Final = 16
"""The most files of a partition that are read ahead."""


def partitions_there(storage: Storage, config: TableConfig) -> frozenset[str]:
    """Returns the listed partitions that have a folder; none without a readable metadata table with `files`."""
    try:
        MetadataTableSnapshot(storage, config, Timeline()).timeline  # noqa: B018 (read for its error)
    except MetadataUnavailableError:
        return frozenset()
    there = config.metadata_partitions.intersection(partition_folders(storage))
    return there if FILES_PARTITION in there else frozenset()


class MetadataTableSnapshot:
    """The metadata table at `data_timeline`. Everything is read on demand and only once."""

    def __init__(self, storage: Storage, config: TableConfig, data_timeline: Timeline) -> None:
        self.storage = storage
        self.config = config
        self.data_timeline = data_timeline
        self._listed: dict[str, tuple[FileInfo, ...]] = {}
        self._stats: dict[Instant, tuple[WrittenFile, ...]] = {}

    def groups(self, name: str, rules: RecordRules[T]) -> list[GroupReader[T]]:
        """Returns the file groups of partition `name`, sorted by file id. Raises MetadataUnavailableError when the
        properties do not list it, or no metadata table can be read; CorruptFileError like checked_slices.
        """
        if name not in self.config.metadata_partitions:
            raise MetadataUnavailableError(
                f"the table has no such metadata: hoodie.table.metadata.partitions does not name `{name}`",
                path=self.config.path,
                remedy=None if name == FILES_PARTITION else "read it without that index",
            )
        return [GroupReader(self.storage, item, self.blocks, rules) for item in self.checked_slices(name)]

    def checked_slices(self, name: str) -> list[MergedSlice]:
        """Returns merged_slices of a partition. Raises CorruptFileError for a file that is gone or lost bytes."""
        folder, files = self.folder(name), self.files(name)
        timeline, metadata_config = self.timeline, self._metadata_config
        slices = merged_slices(folder, files, timeline, metadata_config.layout_version)
        # No reader counts an instant that is pending on the data timeline. A writer that was taken for dead may have
        # completed it on the metadata timeline after its rollback.
        pending = self.data_timeline.pending_changes().requested_times
        counted = timeline.filter(lambda instant: instant.requested_time not in pending)
        by_name = metadata_config.features.log_name_has_delta_commit

        def check() -> None:
            refuse_short(
                folder, files, slices, counted, self._stats_of_all, self._stats_of_attempts, named_by_writer=by_name
            )
            if by_name:
                refuse_missing(folder, files, slices, timeline, pending, self._stats_of)

        overlapped(self.storage, (check, partial(self._read_ahead, slices)))
        return slices

    def _read_ahead(self, slices: Sequence[MergedSlice]) -> None:
        """Reads the files of few and small slices, which a query needs next."""
        files = [info for item in slices for info in item.files]
        if len(files) <= _FEW:
            small = (info for info in files if is_small(info.size))
            reads = (partial(content_of, self.storage, info, partial(self.storage.read, info.path)) for info in small)
            look_ahead(self.storage, *reads)

    def current(self, name: str) -> bool:
        """Returns whether the properties list partition `name` now, and the files of its folder at the snapshot still
        exist. The number of file groups is not stored, and the properties may be older than a drop or resize, which
        delists the index first: a snapshot during the deletion would miss keys. After a clean it is False without need.
        """
        look_again(self.storage)
        if name not in TableConfig.load(self.storage).metadata_partitions:
            return False
        before = {info.name for info in self._listed.get(name, ())}
        return before <= {info.name for info in self.storage.list_files(self.folder(name))}

    def files(self, name: str) -> tuple[FileInfo, ...]:
        """Returns the files of the partition's folder, as they were at the first listing."""
        if name not in self._listed:
            self._listed[name] = tuple(self.storage.list_files(self.folder(name)))
        return self._listed[name]

    def wrote(self, instant: str, name: str) -> bool:
        """Returns whether the deltacommit of `instant` wrote to partition `name`, by the deltacommit's metadata."""
        found = self.timeline.completed().find(instant, Action.DELTA_COMMIT)
        if found is None:
            return False
        return any(stat.path.startswith(f"{name}/") for stat in self._stats_of(found))

    def partition(self, name: str, rules: RecordRules[T], hashed: HashedPart = str) -> MetadataPartition[T]:
        """Opens partition `name`. Raises the errors of `groups`, and CorruptFileError when it has no file group."""
        return MetadataPartition(name, self.folder(name), self.groups(name, rules), hashed, is_remote=self.is_remote)

    @property
    def is_remote(self) -> bool:
        """Whether a read is a round trip: then parallel reads are faster."""
        return is_remote(self.storage)

    def folder(self, name: str) -> str:
        """Returns the partition's folder, relative to the data table's base path. Raises FormatError for a name that is
        no folder name.
        """
        return f"{ROOT}/{check_file_name(name, source=self.config.path)}"

    def built_at(self, name: str) -> str | None:
        """Returns the completion time of the deltacommit that last initialized a partition; in layout 1 its requested
        time. None where its files were cleaned and it was archived, or for an index of an indexing action.
        """
        files = data_files(self.files(name))
        first = {parsed.instant for _, parsed in files if is_initialization(parsed.instant)}
        for instant in reversed(self.timeline.commits().instants):
            time = instant.requested_time
            if time in first or (is_solo(time) and name in self._active.read_commit(instant).partition_to_write_stats):
                return instant.completed_at
        return None

    @cached_property
    def timeline(self) -> Timeline:
        """The metadata timeline. Raises MetadataUnavailableError when no metadata table can be read."""
        if FILES_PARTITION not in self.config.metadata_partitions:
            message = "the table has no metadata table: hoodie.table.metadata.partitions does not name `files`"
            raise MetadataUnavailableError(message, path=self.config.path)
        guessed = ActiveTimeline(self.storage, self.config, ROOT)  # most have the layout of their table
        look_ahead(self.storage, partial(load_metadata_config, self.storage), guessed.load)
        timeline = self._active.load()
        if timeline.last_completed() is None:
            message = "the table's metadata table holds no completed instant"
            raise MetadataUnavailableError(message, path=ROOT)
        return timeline

    def _stats_of(self, commit: Instant) -> tuple[WrittenFile, ...]:
        if commit not in self._stats:
            active = self._active
            self._stats[commit] = tuple(written_files(active.read_of(commit), path=active.path_of(commit)))
        return self._stats[commit]

    def _stats_of_all(self, commits: Sequence[Instant]) -> dict[Instant, tuple[WrittenFile, ...]]:
        """Returns _stats_of for each commit, without commits that were archived meanwhile."""
        missing = [item for item in commits if item not in self._stats]
        overlapped(self.storage, [partial(self._read_stats, item) for item in missing])
        return {item: self._stats[item] for item in commits if item in self._stats}

    def _stats_of_attempts(self, commit: Instant) -> list[WrittenFile]:
        """Returns the write stats of each completed file of a commit: two attempts at an instant may each leave one."""
        active = self._active
        path = active.path_of(commit)
        return [stat for found in active.read_all_completed(commit) for stat in written_files(found, path=path)]

    def _read_stats(self, commit: Instant) -> None:
        with suppress(StorageNotFoundError):
            self._stats_of(commit)

    @property
    def _active(self) -> ActiveTimeline:
        return ActiveTimeline(self.storage, self._metadata_config, ROOT)

    @cached_property
    def _metadata_config(self) -> TableConfig:
        return load_metadata_config(self.storage)

    @cached_property
    def blocks(self) -> BlockFilter:
        """The log blocks that count: blocks of committed, valid instants. Raises the errors of `timeline`."""
        timeline, suffixes = self.timeline, self._metadata_config.features.metadata_suffixes
        rolled_back = partial(rolled_back_by, ActiveTimeline(self.storage, self.config))
        last, commits = timeline.last_completed(), timeline.commits()
        pending = timeline.pending().requested_times
        valid = valid_instants(self.data_timeline, timeline, rolled_back, suffixes=suffixes)
        return BlockFilter(
            frozenset(time for time in valid - pending if commits.contains_or_before_start(time)),
            latest="" if last is None else last.requested_time,
            stop_at_newer=not reads_as_hudi_1(self._metadata_config),
        )
