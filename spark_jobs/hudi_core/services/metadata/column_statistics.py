"""Finds missing records of columns in `column_stats` and `partition_stats`, while writers go on, for columns.py."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from hudi_core.codec.columns import column_type
from hudi_core.engine.serializer import from_text, to_text
from hudi_core.errors import ConfigError, ConflictError, StorageNotFoundError, UnsupportedError
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.extract.data_file import StatisticsRequirements
from hudi_core.metadata_table.indexed_table import IndexedTable, is_indexable
from hudi_core.metadata_table.initialize.exchange import files_of_all_slices, read_statistics
from hudi_core.metadata_table.initialize.initialize import Sizes
from hudi_core.metadata_table.keys import column_id, column_stats_key
from hudi_core.metadata_table.partition_type import COLUMN_STATS, PARTITION_STATS
from hudi_core.metadata_table.partitions.single_files import deleted_ranges
from hudi_core.metadata_table.read.snapshot import MetadataTableSnapshot
from hudi_core.metadata_table.records.column_stats import (
    ColumnStats,
    ColumnStatsRules,
    file_record,
    partition_record,
    whole_key,
)
from hudi_core.metadata_table.records.file_statistics import (
    ColumnRange,
    DataFileRef,
    FileChanges,
    FileStatistics,
    Record,
)
from hudi_core.metadata_table.records.range_merge import as_type, contains, is_like, is_unknown, may_be_false, merged
from hudi_core.metadata_table.write.staged_logs import Workers
from hudi_core.services.context import TableContext
from hudi_core.services.metadata.initialization import Snapshot, indexed_table
from hudi_core.timeline.instant import COMMIT_ACTIONS
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import FileSlice

_AT_ONCE: Final = 10_000
"""The most files whose statistics one run of the engine returns."""
_LEAVE_OUT: Final = "leave the column out"


def check_indexable(table: IndexedTable, columns: Sequence[str]) -> None:
    """Raises ConfigError for a column that files do not have, UnsupportedError for one that is not indexed."""
    stored, version = table.arrow_schema(), table.version_of(COLUMN_STATS)
    for name in columns:
        found = column_type(stored, name)
        if found is None:
            message = f"the data files have no column {name!r}"
            remedy = "name a column of the table's schema"
            raise ConfigError(message, path=table.config.path, remedy=remedy)
        if not is_indexable(found, version):
            raise UnsupportedError(
                f"the column {name!r} is of the type {found}, of which the index holds nothing", remedy=_LEAVE_OUT
            )


@dataclass(frozen=True, slots=True)
class _Known:
    """One file: its FileStatistics as text, and the columns that the index has of it already."""

    size: int
    text: bytes
    recorded: tuple[str, ...]

    def ranges(self) -> tuple[ColumnRange, ...]:
        return from_text(FileStatistics, self.text).ranges


class ColumnStatisticsReader:
    """Reads statistics of columns. Memory: 200 bytes per file and column of it; one file group of the index."""

    def __init__(self, columns: Sequence[str], workers: Workers) -> None:
        self._columns = columns
        self._workers = workers
        self._version = 1
        self._files: dict[tuple[str, str], _Known] = {}
        self._left: dict[str, tuple[str, str]] = {}
        """The keys of records in the index that belong to no listed file, with their column and file name."""

    def read(self, context: TableContext, snapshot: Snapshot) -> int:
        """Reads the missing statistics of the listed files. Returns how many files were read; the index has those of
        the others. Raises as check_indexable; UnsupportedError for a file without a known range; ConflictError for a
        file that a clean has deleted meanwhile; and the errors of reading.
        """
        table = indexed_table(context, snapshot.timeline)
        check_indexable(table, self._columns)
        self._version = table.version_of(COLUMN_STATS)
        requirements = StatisticsRequirements(
            table.stored_schema(), tuple(self._columns), self._version, history=table.history
        )
        whole = context.config.features.log_name_has_delta_commit
        listed = files_of_all_slices(snapshot.committed())
        sizes = {place: known.size for place, known in self._files.items()}
        new = [file for file in listed if sizes.get((file.partition, file.name)) != file.size]
        keys = {
            column_stats_key(column, file.partition, file.name): (file, column)
            for file in new
            for column in self._columns
        }
        stored: dict[DataFileRef, dict[str, ColumnRange]] = defaultdict(dict)
        doubtful: dict[DataFileRef, dict[str, ColumnRange]] = defaultdict(dict)
        for key, found in self._records(context, snapshot.timeline, COLUMN_STATS, keys if self._files else None):
            if key not in keys:
                self._left[key] = (found.range.column, found.name)
                continue
            file, column = keys[key]
            self._left.pop(key, None)
            if not is_unknown(found.range) and not may_be_false(found.range):
                # A log file of version 6 may have grown since: its record may describe only a part.
                (stored if whole or file.is_base else doubtful)[file][column] = found.range
        unread = [file for file in new if len(stored[file]) < len(self._columns)]
        for file in new:
            if len(stored[file]) == len(self._columns):
                self._keep(FileStatistics(file, tuple(stored[file].values())), stored[file])
        for at in range(0, len(unread), _AT_ONCE):
            for statistics in self._read(unread[at : at + _AT_ONCE], requirements):
                wide = {
                    item.column
                    for item in statistics.ranges
                    if item.column in (old := doubtful[statistics.file]) and contains(old[item.column], item)
                }
                self._keep(statistics, {*stored[statistics.file], *wide})
        return len(unread)

    def missing(self, listed: Sizes) -> Iterator[tuple[str, Record]]:
        """Yields the records that `column_stats` lacks of the files in `listed`, each with its column."""
        for (partition, name), known in self._files.items():
            if listed.get(partition, {}).get(name) != known.size:
                continue
            file = DataFileRef(partition, name, known.size, True)
            for found in known.ranges():
                record = None if found.column in known.recorded else file_record(file, found)
                if record is not None:
                    yield found.column, record

    def left_over(self, listed: Sizes) -> Iterator[Record]:
        """Yields deletions of the columns' records of files that are not in `listed`: nothing else deletes them."""
        for key, (column, name) in self._left.items():
            # Only the key says the partition, by its hash.
            ((_, datum),) = deleted_ranges(FileChanges(deleted={"": frozenset((name,))}), [column], self._version)
            yield key, datum
        for (partition, name), known in self._files.items():
            if name not in listed.get(partition, {}):
                changes = FileChanges(deleted={partition: frozenset((name,))})
                yield from deleted_ranges(changes, known.recorded, self._version)

    def whole_ranges(self, context: TableContext, snapshot: Snapshot) -> Iterator[Record]:
        """Yields the records of the columns that `partition_stats` lacks, by the slices of `snapshot`, whose files have
        all been read. A record widens the range that the index has, or will have from a pending write. It replaces a
        range of another type. Raises ConflictError where a write is pending whose range a replacement would hide,
        UnsupportedError for an unknown range.
        """
        stored = indexed_table(context, snapshot.timeline).arrow_schema()
        types = {name: found for name in self._columns if (found := column_type(stored, name)) is not None}
        recorded = self._records(context, snapshot.timeline, PARTITION_STATS)
        older = {key: item.range for key, item in recorded if item.range.least is not None}
        is_written = len(snapshot.timeline.pending().of_actions(*COMMIT_ACTIONS)) > 0
        by_partition: dict[str, dict[str, ColumnRange]] = {}
        for item in snapshot.slices(context):
            self._add(by_partition.setdefault(item.file_group.partition, {}), item)
        for partition, ranges in sorted(by_partition.items()):
            for column, found in ranges.items():
                typed = as_type(found, types[column], self._version)
                remaining = older.get(whole_key(column, partition))
                replaces = remaining is not None and not is_like(remaining, typed)
                record = partition_record(partition, typed, widens=not replaces)
                if record is None:
                    raise UnsupportedError(
                        f"the range of {column} in the partition {partition!r} is not known", remedy=_LEAVE_OUT
                    )
                if replaces and is_written:
                    raise ConflictError(
                        f"the partition {partition!r} has a range of {column} of another type, which cannot be "
                        "replaced while writes are pending",
                        path=context.config.path,
                        remedy="run this again when they are completed or rolled back",
                    )
                if remaining is None or replaces or not contains(remaining, typed):
                    yield record

    def _add(self, ranges: dict[str, ColumnRange], item: FileSlice) -> None:
        for file in item.files:
            known = self._files.get((file.partition, file.name))
            for found in () if known is None else known.ranges():
                both = merged((ranges[found.column], found) if found.column in ranges else (found,))
                ranges[found.column] = found if both is None else both

    def _records(
        self, context: TableContext, timeline: Timeline, index: str, keys: Collection[str] | None = None
    ) -> Iterator[tuple[str, ColumnStats]]:
        snapshot = MetadataTableSnapshot(context.storage, context.config, timeline)
        partition = snapshot.partition(index, ColumnStatsRules(counted=True))
        found = (
            partition.with_prefixes([column_id(name) for name in self._columns])
            if keys is None
            else partition.lookup(keys).items()
        )
        return ((key, item) for key, item in found if not item.is_deleted)

    def _read(self, files: Sequence[DataFileRef], requirements: StatisticsRequirements) -> Iterator[FileStatistics]:
        try:
            yield from read_statistics(self._workers, files, requirements)
        except StorageNotFoundError as error:
            raise ConflictError(
                f"a file was deleted before it was read: {error.message}", path=error.path, remedy="run this again"
            ) from error

    def _keep(self, statistics: FileStatistics, recorded: Collection[str]) -> None:
        """Keeps a file's statistics. Raises UnsupportedError for a column without record: readers take it for null."""
        file = statistics.file
        ranges = [item for item in statistics.ranges if item.value_count or not statistics.partial]
        unrecorded = set(self._columns).difference(
            item.column for item in ranges if file_record(file, item) is not None
        )
        if unrecorded and statistics.rows and not statistics.partial:
            message = f"the range of {', '.join(sorted(unrecorded))} is not known"
            raise UnsupportedError(message, path=f"{file.partition}/{file.name}", remedy=_LEAVE_OUT)
        text = to_text(FileStatistics(file, tuple(ranges))).encode("ascii")
        self._files[file.partition, file.name] = _Known(file.size, text, tuple(recorded))
