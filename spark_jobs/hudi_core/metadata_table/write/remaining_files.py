"""The files of a partition that remain beside a commit's own files, and their statistics in the indexes. The statistics
of both make the ranges of whole partitions (HoodieMetadataWriteUtils.getFilesToFetchColumnStats).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from hudi_core.config.table_config import TableConfig
from hudi_core.history.archived import load_history
from hudi_core.metadata_table.extract.data_file import StatisticsRequirements, read_file_statistics
from hudi_core.metadata_table.keys import column_id, column_stats_key, partition_id
from hudi_core.metadata_table.partition_type import COLUMN_STATS
from hudi_core.metadata_table.partitions.protocol import PartitionType
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.metadata_table.read.partition import MetadataPartition
from hudi_core.metadata_table.read.snapshot import MetadataTableSnapshot
from hudi_core.metadata_table.records.column_stats import ColumnStats, ColumnStatsRules, whole_key
from hudi_core.metadata_table.records.file_statistics import ColumnRange, DataFileRef, FileStatistics
from hudi_core.metadata_table.records.range_merge import is_unknown, may_be_false
from hudi_core.model.names import BaseFileName, parse_data_file
from hudi_core.storage.base import Storage
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.view.file_group import FileSlice
from hudi_core.view.file_system_view import load_view
from hudi_core.view.listing import FileListing

_READERS = 16


class RemainingFiles:
    """The other files, after a commit, of each partition that it writes to. The caller holds the table lock."""

    def __init__(
        self,
        storage: Storage,
        config: TableConfig,
        instant: str,
        metadata: CommitMetadata,
        listing: FileListing | None = None,
    ) -> None:
        """Takes `listing` for a commit that has completed: the existing files, with its own files."""
        self._instant = instant
        self._has_completed = listing is not None
        self._replaced = metadata.replaced_file_ids or {}
        self.storage = storage
        self.written = metadata.partition_to_write_stats
        active = ActiveTimeline(storage, config)
        timeline = active.load()
        self.metadata_snapshot = MetadataTableSnapshot(storage, config, timeline)
        found = MetadataTable(storage, config, timeline) if listing is None else listing
        self._view = load_view(active, found, timeline, lambda: load_history(storage, config))
        self._indexes: dict[str, MetadataPartition[ColumnStats]] = {}
        self.partitions = frozenset({*self.written, *self._replaced})

    def index(self, name: str) -> MetadataPartition[ColumnStats]:
        if name not in self._indexes:
            self._indexes[name] = self.metadata_snapshot.partition(name, ColumnStatsRules(counted=True))
        return self._indexes[name]

    def of(self, partition: str) -> list[DataFileRef]:
        """Returns the other files of a partition. A base file that the commit writes replaces the file group's older
        files, but not log files that were already written on top of the new base file.
        """
        slices = self._view.latest_merged_slices(partition)
        stats = self.written.get(partition, ())
        if self._has_completed:
            names = {stat.name for stat in stats}
            return [DataFileRef.of(file) for item in slices for file in item.data_files if file.name not in names]
        rewritten = {stat.file_id for stat in stats if isinstance(parse_data_file(stat.name), BaseFileName)}
        replaced = frozenset(self._replaced.get(partition, ()))
        found: list[DataFileRef] = []
        for item in slices:
            file_id = item.file_group.file_id
            kept = self._on_top(item) if file_id in rewritten else item
            if kept is not None and file_id not in replaced:
                found += map(DataFileRef.of, kept.data_files)
        return found

    def _on_top(self, item: FileSlice) -> FileSlice | None:
        """Returns the slice that this commit, a pending compaction, has started for later log files; else None."""
        group = self._view.file_group(item.file_group)
        latest = None if group is None else group.latest_slice()
        return latest if latest is not None and latest.base_instant == self._instant else None


def remaining_of(
    files: RemainingFiles, partition_type: PartitionType, requirements: StatisticsRequirements
) -> Callable[[str], tuple[FileStatistics, ...] | None]:
    """Returns CommitUpdate.remaining for one partition type. It reads a file where the index lacks something of it."""
    expression = partition_type.needs.expression
    columns = requirements.columns if expression is None else ()
    expressions = () if expression is None else (expression,)
    of_file = replace(requirements, columns=columns, bloom=False, expressions=expressions)

    def read(partition: str) -> tuple[FileStatistics, ...] | None:
        if partition not in files.partitions:
            return None
        names = files.of(partition)
        if expression is None:
            known, unknown = remaining_statistics(files.index(COLUMN_STATS), partition, names, columns)
        else:
            index, column = files.index(expression.partition), expression.column
            known, unknown = remaining_expressions(index, expression.partition, partition, names, column)
        with ThreadPoolExecutor(max_workers=_READERS, thread_name_prefix="remaining") as pool:
            return (*known, *pool.map(partial(read_file_statistics, files.storage, requirements=of_file), unknown))

    return read


def recorded_of(
    files: RemainingFiles, partition_type: PartitionType, requirements: StatisticsRequirements
) -> Callable[[str], Mapping[str, ColumnRange] | None]:
    """Returns CommitUpdate.recorded for one partition type: its index's records of whole partitions."""
    expression = partition_type.needs.expression
    columns = requirements.columns if expression is None else (expression.column,)

    def read(partition: str) -> Mapping[str, ColumnRange] | None:
        if partition not in files.partitions:
            return None
        keys = {whole_key(name, partition, of_expression=expression is not None): name for name in columns}
        records = files.index(partition_type.partition).lookup(keys)
        return {keys[key]: stored.range for key, stored in records.items() if not stored.is_deleted}

    return read


def remaining_statistics(
    index: MetadataPartition[ColumnStats], partition: str, files: Iterable[DataFileRef], columns: Sequence[str]
) -> tuple[list[FileStatistics], list[DataFileRef]]:
    """Returns, for files of one partition, the statistics that the index has completely, and the files that must be
    read. Statistics are complete with ranges of all `columns`, with their bounds, of which none may be false
    (range_merge). A range may be missing because a writer omitted it, or because the column was added after the file.
    Makes one prefix lookup per column. Memory: its records.
    """
    by_name = {file.name: file for file in files}
    found: dict[str, dict[str, ColumnRange]] = {name: {} for name in by_name}
    for name, stored in _ranges(index, partition, by_name, columns):
        if not (is_unknown(stored) or may_be_false(stored)):
            found[name][stored.column] = stored
    whole = [
        FileStatistics(file, tuple(found[name][column] for column in columns))
        for name, file in by_name.items()
        if len(found[name]) == len(columns)
    ]
    return whole, [file for name, file in by_name.items() if len(found[name]) < len(columns)]


def remaining_expressions(
    index: MetadataPartition[ColumnStats], name: str, partition: str, files: Iterable[DataFileRef], column: str
) -> tuple[list[FileStatistics], list[DataFileRef]]:
    """Returns the same for the expression index `name` over `column`; files without rows lack a record and are read."""
    by_name = {file.name: file for file in files}
    found = {
        file: FileStatistics(by_name[file], expressions={name: stored})
        for file, stored in _ranges(index, partition, by_name, [column])
        # `value_count` is without nulls here: a range without bounds and values is a range of nulls only.
        if stored.least is not None or not stored.value_count
    }
    return list(found.values()), [file for file in by_name.values() if file.name not in found]


def _ranges(
    index: MetadataPartition[ColumnStats], partition: str, files: Collection[str], columns: Sequence[str]
) -> Iterator[tuple[str, ColumnRange]]:
    for key, stored in index.with_prefixes([column_id(column) + partition_id(partition) for column in columns]):
        if stored.name not in files or stored.of_partition or stored.is_deleted:
            continue
        if key == column_stats_key(stored.range.column, partition, stored.name):
            yield stored.name, stored.range
