"""The registry of partition types (MetadataPartitionType): one line makes a type known everywhere."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Final

from hudi_core.errors import CorruptFileError, UnsupportedError
from hudi_core.metadata_table.extract.data_file import StatisticsRequirements
from hudi_core.metadata_table.indexed_table import IndexedTable, indexed_types
from hudi_core.metadata_table.partition_type import COLUMN_STATS, FILES_PARTITION
from hudi_core.metadata_table.partitions.protocol import Data, MergeData, PartitionType, unknown_partition
from hudi_core.metadata_table.partitions.row_indexes import RecordIndexPartition, SecondaryIndexPartition
from hudi_core.metadata_table.partitions.row_level import RowLevelPartition
from hudi_core.metadata_table.partitions.single_files import BloomFiltersPartition, ColumnStatsPartition, FilesPartition
from hudi_core.metadata_table.partitions.whole_ranges import ExpressionIndexPartition, PartitionStatsPartition
from hudi_core.metadata_table.records.file_statistics import FileChanges, Record

PARTITION_TYPES: Final[tuple[type[PartitionType], ...]] = (
    FilesPartition,
    ColumnStatsPartition,
    BloomFiltersPartition,
    RecordIndexPartition,
    PartitionStatsPartition,
    ExpressionIndexPartition,
    SecondaryIndexPartition,
)
"""The partition types, in the order of their initialization."""
_PREFIX_END: Final = "_"


def registered(name: str) -> type[PartitionType] | None:
    for item in PARTITION_TYPES:
        if name == item.name:
            return None if name.endswith(_PREFIX_END) else item
        if item.name.endswith(_PREFIX_END) and name.startswith(item.name):
            return item
    return None


def maintained(name: str) -> type[PartitionType]:
    """Returns the type of a partition. Raises UnsupportedError where this release does not make its records."""
    found = registered(name)
    if found is None:
        raise unknown_partition(name)
    return found


def check_names(names: Iterable[str]) -> None:
    """Raises UnsupportedError, which lists the metadata partitions that can be made, for any other name."""
    unknown = next((name for name in names if registered(name) is None), None)
    if unknown is not None:
        known = (item.name + ("<name>" if item.name.endswith(_PREFIX_END) else "") for item in PARTITION_TYPES)
        raise UnsupportedError(
            f"this release makes no metadata partition `{unknown}`", remedy=f"it makes: {', '.join(known)}"
        )


def initialization_order(name: str) -> tuple[int, str]:
    """Returns a sort key: the order of the registry, then unknown names."""
    found = registered(name)
    return (len(PARTITION_TYPES) if found is None else PARTITION_TYPES.index(found), name)


def known_partition(name: str, table: IndexedTable) -> PartitionType:
    """Returns a partition's type for cleans, rollbacks and restores. Raises UnsupportedError for an unknown one."""
    made = maintained(name)(name, table)
    made.check()
    return made


def partition_type_of(name: str, table: IndexedTable) -> PartitionType:
    """Returns a partition's type for commits. Raises UnsupportedError if unknown, not exact, or a row-level index."""
    made = maintained(name)(name, table)
    made.check_commit()
    return made


def partition_types_of(names: Iterable[str], table: IndexedTable) -> dict[str, PartitionType]:
    return {name: partition_type_of(name, table) for name in sorted(names)}


def row_level_class(name: str) -> type[RowLevelPartition]:
    """Returns the type of a row-level index. Raises UnsupportedError for a partition that is none."""
    found = maintained(name)
    if not issubclass(found, RowLevelPartition):
        raise unknown_partition(name)
    return found


def row_level_type(name: str, table: IndexedTable) -> RowLevelPartition:
    return row_level_class(name)(name, table)


def requirements_of(table: IndexedTable, partition_types: Iterable[PartitionType]) -> StatisticsRequirements:
    """Returns the statistics of each file that the partition types need. Raises the errors of statistics_columns."""
    needs = [item.needs for item in partition_types]
    return StatisticsRequirements(
        table.stored_schema(),
        tuple(indexed_types(table)) if any(item.ranges for item in needs) else (),
        table.version_of(COLUMN_STATS),
        any(item.bloom for item in needs),
        tuple(item.expression for item in needs if item.expression is not None),
        table.history,
        table.config.features.indexes_all_columns,
    )


def clean_updates(
    instant: str, changes: FileChanges, names: Collection[str], table: IndexedTable
) -> dict[str, Iterable[Record]]:
    """Returns the records of a clean, by metadata partition, for the partitions of `names` that it changes
    (HoodieTableMetadataUtil.convertMetadataToRecords(HoodieCleanMetadata)). `changes.deleted` are the files of its
    plan. Raises the errors of known_partition.
    """
    found = [known_partition(name, table) for name in _files_last(names)]
    return {item.partition: item.of_clean(instant, changes) for item in found if item.updated_by_clean}


def restore_updates(
    instant: str, changes: FileChanges, names: Collection[str], table: IndexedTable
) -> dict[str, Iterable[Record]]:
    """Returns the records of a restore. Partitions other than `files` change only where files are deleted."""
    found = [known_partition(name, table) for name in _files_last(names if changes.deleted else ())]
    return {item.partition: item.of_restore(instant, changes) for item in found if item.updated_by_clean}


def rollback_updates(changes: FileChanges, names: Collection[str], table: IndexedTable) -> dict[str, Iterable[Record]]:
    """Returns the records of a rollback in version 6, beyond the rollback commands, which every partition gets."""
    found = [item(name, table) for name in _files_last(names) if (item := registered(name)) is not None]
    return {item.partition: item.of_rollback(changes) for item in found}


def _files_last(names: Collection[str]) -> list[str]:
    return [*sorted({*names} - {FILES_PARTITION}), FILES_PARTITION]


def merge_data(key: str, older: Data, newer: Data, *, path: str) -> Data:
    """Returns the datum that a compaction writes for two data of one key, in the form of `newer`
    (HoodieMetadataPayload.preCombine). `path` is the file of `newer`. Raises CorruptFileError for different types.
    """
    record_type = newer.get("type")
    if older.get("type") != record_type:
        raise CorruptFileError(
            f"metadata records {key!r} of the types {older.get('type')!r} and {record_type!r} do not merge", path=path
        )
    merge = _merges(PARTITION_TYPES).get(record_type)
    return newer if merge is None else merge(key, older, newer, path=path)


@lru_cache(maxsize=4)
def _merges(partition_types: tuple[type[PartitionType], ...]) -> Mapping[object, MergeData]:
    return {record_type: merge for item in partition_types for record_type, merge in item.merges.items()}
