"""Which files still hold a partition's rows once a commit is there, and what the indexes know of them: what statistics
of whole partitions are made of, besides the commit's own files (HoodieMetadataWriteUtils.getFilesToFetchColumnStats).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property

from hudi_core.config.table_config import TableConfig
from hudi_core.history.load import load_history
from hudi_core.metadata_table.extract.data_file import StatisticsRequirements, read_file_statistics
from hudi_core.metadata_table.extract.stored_ranges import remaining_expressions, remaining_statistics
from hudi_core.metadata_table.partition_type import COLUMN_STATS
from hudi_core.metadata_table.partitions.protocol import PartitionType
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.metadata_table.read.partition import MetadataPartition
from hudi_core.metadata_table.read.snapshot import MetadataTableSnapshot
from hudi_core.metadata_table.records.column_stats import ColumnStats, ColumnStatsRules, whole_key
from hudi_core.metadata_table.records.file_statistics import ColumnRange, DataFileRef, FileStatistics
from hudi_core.model.names import BaseFileName, parse_data_file
from hudi_core.model.stats import WriteStat
from hudi_core.storage.base import Storage
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.view.file_group import DataFile, FileSlice
from hudi_core.view.fs_view import load_view
from hudi_core.view.listing import FileListing

_READERS = 16


class RemainingFiles:
    """Of each partition that a pending commit writes to or replaces file groups of, the other files in the slices after
    it.

    The caller holds the table lock, so that no other commit completes meanwhile. Memory: the names of the partitions'
    files.
    """

    def __init__(
        self,
        storage: Storage,
        config: TableConfig,
        instant: str,
        metadata: CommitMetadata,
        listing: FileListing | None = None,
    ) -> None:
        """`listing`, of a commit that has completed already: the existing files, including its files."""
        self._instant = instant
        self._has_completed = listing is not None
        self._replaced = metadata.replaced_file_ids or {}
        self.storage = storage
        self.written = metadata.partition_to_write_stats
        active = ActiveTimeline(storage, config)
        timeline = active.load()
        self.metadata_snapshot = MetadataTableSnapshot(storage, config, timeline)
        found = MetadataTable(storage, config, timeline).listing() if listing is None else listing
        self._view = load_view(active, found, timeline, lambda: load_history(storage, config))

    @property
    def partitions(self) -> frozenset[str]:
        """Those partitions."""
        return frozenset({*self.written, *self._replaced})

    def of(self, partition: str) -> list[DataFileRef]:
        """A base file that the commit writes takes the place of what was there, but for the logs that were written on
        top of it already.
        """
        if self._has_completed:
            metadata_timeline = {stat.path.rpartition("/")[2] for stat in self.written.get(partition, ())}
            slices = self._view.latest_merged_slices(partition)
            files = (
                file
                for item in slices
                for file in (*(() if item.base_file is None else (item.base_file,)), *item.log_files)
            )
            return [_reference(file) for file in files if file.name not in metadata_timeline]
        rewritten = {stat.file_id for stat in self.written.get(partition, ()) if _is_base(stat)}
        replaced = frozenset(self._replaced.get(partition, ()))
        found: list[DataFileRef] = []
        for item in self._view.latest_merged_slices(partition):
            file_id = item.file_group.file_id
            kept = self._on_top(item) if file_id in rewritten else item
            if kept is not None and file_id not in replaced:
                found += map(_reference, (*(() if kept.base_file is None else (kept.base_file,)), *kept.log_files))
        return found

    def _on_top(self, item: FileSlice) -> FileSlice | None:
        """The slice that the pending compaction of a file group started for later logs; None where the commit is no
        compaction.
        """
        group = self._view.file_group(item.file_group)
        latest = None if group is None else group.latest_slice()
        return latest if latest is not None and latest.base_instant == self._instant else None


class RemainingStatistics(Mapping[str, tuple[FileStatistics, ...]]):
    """The remaining files of CommitUpdate for one partition type: by partition, their records in its index or
    `column_stats`.

    A file of which the index does not have all is read. A partition is read on demand and not kept: memory is one
    partition's ranges, some 400 bytes for each column of each file.
    """

    def __init__(
        self, files: RemainingFiles, partition_type: PartitionType, requirements: StatisticsRequirements
    ) -> None:
        """`requirements` are those of the table's partition types for a file."""
        self._files = files
        self._expression = partition_type.needs.expression
        if self._expression is None:
            self._requirements = replace(requirements, bloom=False, expressions=())
        else:
            self._requirements = replace(requirements, columns=(), bloom=False, expressions=(self._expression,))

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._files.partitions))

    def __len__(self) -> int:
        return len(self._files.partitions)

    def __getitem__(self, partition: str) -> tuple[FileStatistics, ...]:
        if partition not in self._files.partitions:
            raise KeyError(partition)
        files = self._files.of(partition)
        if self._expression is None:
            known, unknown = remaining_statistics(self._index, partition, files, self._requirements.columns)
        else:
            known, unknown = remaining_expressions(
                self._index, self._expression.partition, partition, files, self._expression.column
            )
        return (*known, *self._read(unknown))

    def _read(self, unknown: list[DataFileRef]) -> list[FileStatistics]:
        with ThreadPoolExecutor(max_workers=_READERS, thread_name_prefix="standing") as pool:
            return list(
                pool.map(lambda file: read_file_statistics(self._files.storage, file, self._requirements), unknown)
            )

    @cached_property
    def _index(self) -> MetadataPartition[ColumnStats]:
        name = COLUMN_STATS if self._expression is None else self._expression.partition
        return self._files.metadata_snapshot.partition(name, ColumnStatsRules(counted=True))


class RecordedRanges(Mapping[str, Mapping[str, ColumnRange]]):
    """The recorded ranges of CommitUpdate for one partition type: its index's records of the partitions of
    RemainingFiles.

    Looked up on demand, and not kept.
    """

    def __init__(
        self, files: RemainingFiles, partition_type: PartitionType, requirements: StatisticsRequirements
    ) -> None:
        """`requirements` are those of the table's partition types for a file."""
        self._files = files
        self._name = partition_type.partition
        expression = partition_type.needs.expression
        self._columns = requirements.columns if expression is None else (expression.column,)
        self._of_expression = expression is not None

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._files.partitions))

    def __len__(self) -> int:
        return len(self._files.partitions)

    def __getitem__(self, partition: str) -> Mapping[str, ColumnRange]:
        if partition not in self._files.partitions:
            raise KeyError(partition)
        keys = {whole_key(column, partition, of_expression=self._of_expression): column for column in self._columns}
        return {keys[key]: stored.range for key, stored in self._index.lookup(keys).items() if not stored.is_deleted}

    @cached_property
    def _index(self) -> MetadataPartition[ColumnStats]:
        return self._files.metadata_snapshot.partition(self._name, ColumnStatsRules(counted=True))


def _is_base(stat: WriteStat) -> bool:
    return isinstance(parse_data_file(stat.path.rpartition("/")[2]), BaseFileName)


def _reference(file: DataFile) -> DataFileRef:
    return DataFileRef(file.partition, file.name, file.size, isinstance(parse_data_file(file.name), BaseFileName))
