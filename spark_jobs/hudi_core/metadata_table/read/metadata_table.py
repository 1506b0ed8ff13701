"""The metadata table for queries: the files of each partition, and the indexes (HoodieBackedTableMetadata)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa

from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.codec.bloom import BloomFilter
from hudi_core.config.table_config import TableConfig
from hudi_core.errors import MetadataUnavailableError
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.metadata_table.indexed_table import IndexDefinition, load_index_definitions
from hudi_core.metadata_table.keys import bloom_filter_key, secondary_hashed_part
from hudi_core.metadata_table.partition_type import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    FILES_PARTITION,
    PARTITION_STATS,
    RECORD_INDEX,
)
from hudi_core.metadata_table.read import statistics
from hudi_core.metadata_table.read.completeness import Completeness, indexes_in_doubt
from hudi_core.metadata_table.read.file_group import FOLDER, data_files
from hudi_core.metadata_table.read.group_reader import T
from hudi_core.metadata_table.read.partition import HashedPart, MetadataPartition, check_numbers
from hudi_core.metadata_table.read.row_level import (
    RecordIndex,
    RecordIndexRules,
    RecordLocation,
    SecondaryIndexRules,
    record_keys,
)
from hudi_core.metadata_table.read.snapshot import MetadataTableSnapshot
from hudi_core.metadata_table.record import ALL_PARTITIONS, RecordRules
from hudi_core.metadata_table.records.column_stats import ColumnStatsRules
from hudi_core.metadata_table.records.file_statistics import BloomFilterRules
from hudi_core.metadata_table.records.files import FilesRules, live_entries, partition_key, partition_of_key
from hudi_core.model.names import FileGroupId
from hudi_core.model.partition import check_file_names, check_partitions, join
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.timeline.timeline import Timeline

log = logging.getLogger(__name__)


class MetadataTable:
    """The metadata table at `data_timeline`; a view.listing.FileListing. It is read on demand and kept: a MetadataTable
    is one view. A query raises MetadataUnavailableError when the table has no readable metadata table, or the metadata
    table lacks the requested partition; CorruptFileError when it is damaged or names files outside the table.
    """

    def __init__(
        self,
        storage: Storage,
        config: TableConfig,
        data_timeline: Timeline,
        schema: AvroSchema | None = None,
        zone: str | None = None,
    ) -> None:
        """`schema` gives the types of statistics, `zone` is the instants' time zone; the defaults are the table's."""
        self._metadata_snapshot = MetadataTableSnapshot(storage, config, data_timeline)
        self._schema = schema
        self._zone = zone or config.timezone
        self._opened: dict[tuple[str, type], MetadataPartition[Any]] = {}

    @property
    def partition_types(self) -> frozenset[str]:
        """The partitions that can be read: `files`, `column_stats`, `secondary_index_<name>` and so on."""
        return self._metadata_snapshot.config.metadata_partitions

    def has_index(self, name: str) -> bool:
        """Returns whether an index is listed and has files; a restore by Hudi 0.15.0 lists an index without files."""
        if name not in self.partition_types:
            return False
        if any(data_files(self._metadata_snapshot.files(name))):
            return True
        log.warning(
            "%s is listed and has no files: it is not used (`hudictl metadata drop` takes it off the list)", name
        )
        return False

    def check_available(self) -> None:
        """Raises MetadataUnavailableError where no metadata table can be read, or where it lacks a completed write."""
        if lacking := self.completeness.unrecorded_writes:
            raise MetadataUnavailableError(
                f"the metadata table lacks {lacking[0].action} {lacking[0].requested_time}, which its writer did not "
                "record",
                path=FOLDER,
                remedy="run `hudictl metadata update TABLE`",
            )

    def partitions(self) -> list[str]:
        """Returns all partition paths, sorted; `[""]` for a table without partitions."""
        partitions = [partition_of_key(key) for key in self._file_entries(ALL_PARTITIONS)]
        check_partitions(partitions, source=FOLDER)
        return sorted(partitions)

    def list_files(self, partition: str) -> dict[str, int]:
        """Returns the names and sizes in bytes of a partition's files; empty for an unknown partition."""
        files = self._file_entries(partition_key(partition))
        check_file_names(files, source=FOLDER)
        return files

    def files(self, partition: str) -> list[FileInfo]:
        """Returns the data files of a partition, sorted, without modification times."""
        paths = {join(partition, name): size for name, size in self.list_files(partition).items()}
        return [FileInfo(path, size, 0.0) for path, size in sorted(paths.items())]

    def column_stats(
        self,
        columns: Sequence[str],
        partitions: Iterable[str] | None = None,
        files: Mapping[str, Iterable[str]] | None = None,
    ) -> dict[str, pa.Table]:
        """Returns, per column (dotted name), the statistics of its values in each base and log file, sorted by
        partition and file. It reads `files` (partition path to plain names) by point lookups; without `files`, all
        files of `partitions`, or of the table. Columns of the result: `partition`, `file`: string; `min`, `max`: the
        column's type as Spark reports it, null where unknown or where all values are null (the null type for a nested
        or unknown column); `null_count`, `value_count`, `uncompressed_size` (bytes, 0 for a log file): int64;
        `is_tight`: bool. A file without a row in the result is not indexed: it may match.
        """
        return statistics.column_stats(
            self._partition(COLUMN_STATS, ColumnStatsRules()), columns, self._types, self.partitions, partitions, files
        )

    def partition_stats(self, columns: Sequence[str]) -> dict[str, pa.Table]:
        """Returns, per column, the statistics of each whole partition: a table like column_stats, without `file`."""
        return statistics.partition_stats(self._partition(PARTITION_STATS, ColumnStatsRules()), columns, self._types)

    def expression_stats(self, index: str) -> pa.Table:
        """Returns an expression index's column_stats per file. `min` and `max` have the type of the stored values."""
        return statistics.expression_stats(self._partition(index, ColumnStatsRules()), self.partitions)

    def bloom_filters(self, partition: str, names: Iterable[str]) -> dict[str, BloomFilter]:
        """Returns the filters over record keys of a partition's base files. Files without a filter are absent."""
        return self.expression_blooms(BLOOM_FILTERS, partition, names)

    def expression_blooms(self, index: str, partition: str, names: Iterable[str]) -> dict[str, BloomFilter]:
        """Returns the filters of an expression index of type bloom_filters for base files of a partition."""
        keys = {bloom_filter_key(partition, file): file for file in names}
        found = self._partition(index, BloomFilterRules()).lookup(keys)
        return {keys[key]: stored.parse() for key, stored in found.items() if not stored.is_deleted and stored.text}

    def record_locations(self, keys: Iterable[str]) -> dict[str, tuple[RecordLocation, ...]]:
        return self.record_index.locations(keys)

    def secondary_keys(self, index: str, values: Iterable[str | None]) -> dict[str | None, list[str]]:
        """Returns, for each of `values`, the sorted record keys of its rows in a secondary index's column. Values are
        text, as Java prints them. The answer is as of `data_timeline`; values without rows are absent.
        """
        definition = self.definitions.get(index)
        by_value = definition is not None and definition.version > 1
        hashed = secondary_hashed_part if by_value else str
        partition = self._partition(index, SecondaryIndexRules(), hashed, numbered=True)
        return record_keys(partition, values, by_value=by_value)

    def current(self, index: str) -> bool:
        return self._metadata_snapshot.current(index)

    def covers_all_rows(self, index: str) -> bool:
        """Returns whether a secondary index has every row: then a value without keys has no rows. False where a commit
        was written while the index was built: Hudi 1.2.0 omits the changes of a write that enables an index.
        """
        built = self._metadata_snapshot.built_at(index)
        if built is None:
            return True
        commits = self._metadata_snapshot.data_timeline.commits()
        return not any(instant.requested_time < built < instant.completed_at for instant in commits)

    @cached_property
    def indexes_in_doubt(self) -> frozenset[str]:
        """The indexes with files that completeness.indexes_in_doubt returns; also `partition_stats` where
        Completeness.has_overtaken_ranges says so.
        """
        snapshot = self._metadata_snapshot
        names = set(indexes_in_doubt(snapshot.storage, snapshot.config))
        if PARTITION_STATS not in names and self.has_index(PARTITION_STATS) and self.completeness.has_overtaken_ranges:
            names.add(PARTITION_STATS)
        return frozenset(filter(self.has_index, names))

    @property
    def may_have_narrow_ranges(self) -> bool:
        """Whether partition_stats may exclude partitions with matching rows; also where a writer of the table's own
        release writes without keeping partition_stats.
        """
        return (
            not self._metadata_snapshot.config.features.has_all_indexes
            or bool(self.completeness.uncommitted)
            or PARTITION_STATS in self.indexes_in_doubt
        )

    def groups_in_doubt(self, index: str) -> frozenset[FileGroupId] | None:
        """Returns Completeness.groups_in_doubt; None (all) for an index that does not cover all rows."""
        is_covered = index == RECORD_INDEX or self.covers_all_rows(index)
        return self.completeness.groups_in_doubt(index) if is_covered else None

    @cached_property
    def record_index(self) -> RecordIndex:
        snapshot = self._metadata_snapshot
        groups = snapshot.groups(RECORD_INDEX, RecordIndexRules(self._zone))
        return RecordIndex(snapshot.folder(RECORD_INDEX), groups, is_remote=snapshot.is_remote)

    @cached_property
    def completeness(self) -> Completeness:
        return Completeness(self._metadata_snapshot)

    def _file_entries(self, key: str) -> dict[str, int]:
        return live_entries(self._partition(FILES_PARTITION, FilesRules()).get(key))

    def _partition(
        self, name: str, rules: RecordRules[T], hashed: HashedPart = str, *, numbered: bool = False
    ) -> MetadataPartition[T]:
        key = name, type(rules)
        if key not in self._opened:
            found = self._metadata_snapshot.partition(name, rules, hashed)
            if numbered:
                check_numbers(self._metadata_snapshot.folder(name), found.groups)
            self._opened[key] = found
        return self._opened[key]

    @cached_property
    def definitions(self) -> dict[str, IndexDefinition]:
        return load_index_definitions(self._metadata_snapshot.storage, self._metadata_snapshot.config)

    @cached_property
    def _types(self) -> statistics.ColumnTypes:
        schema = self._schema
        if schema is None:
            snapshot = self._metadata_snapshot
            schema = table_schema(snapshot.storage, snapshot.config, snapshot.data_timeline)
        return statistics.ColumnTypes(schema)
