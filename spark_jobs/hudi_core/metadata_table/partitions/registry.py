"""The one registry of kinds: which code keeps which partition of the metadata table (MetadataPartitionType).

What a clean tells each of them is clean_records, of a rollback metadata_table.write.rollback and rollback_deletion, of
a restore metadata_table.write.restore: these go by the same names, and refuse the same ones. The indexes of rows,
`record_index` and `secondary_index_*`, whose records come from rows by an engine's exchange, are in row_level.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from hudi_core.errors import UnsupportedError
from hudi_core.metadata_table.extract.data_file import StatisticsRequirements
from hudi_core.metadata_table.file_changes import FileChanges
from hudi_core.metadata_table.indexed_table import IndexedTable
from hudi_core.metadata_table.partition_type import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    EXPRESSION_PREFIX,
    FILES_PARTITION,
    PARTITION_STATS,
)
from hudi_core.metadata_table.partitions.bloom_filters import BloomFiltersPartition
from hudi_core.metadata_table.partitions.clean_updates import Indexed, clean_records
from hudi_core.metadata_table.partitions.clean_updates import Record as CleanRecord
from hudi_core.metadata_table.partitions.column_stats import ColumnStatsPartition
from hudi_core.metadata_table.partitions.expression_index import ExpressionIndexPartition
from hudi_core.metadata_table.partitions.files import FilesPartition
from hudi_core.metadata_table.partitions.partition_stats import PartitionStatsPartition
from hudi_core.metadata_table.partitions.protocol import PartitionType


def requirements_of(table: IndexedTable, partition_types: Iterable[PartitionType]) -> StatisticsRequirements:
    """What some kinds of a table must know of each file. Errors as IndexedTable.statistics_columns."""
    partition_types = list(partition_types)
    ranges = any(partition_type.needs.ranges for partition_type in partition_types)
    return StatisticsRequirements(
        table.stored_schema(),
        tuple(table.indexed_types()) if ranges else (),
        table.version_of(COLUMN_STATS),
        any(partition_type.needs.bloom for partition_type in partition_types),
        tuple(
            partition_type.needs.expression
            for partition_type in partition_types
            if partition_type.needs.expression is not None
        ),
        table.history,
        table.config.features.indexes_all_columns,
    )


Make = Callable[[str, IndexedTable], PartitionType]

_NAMED: Final[Mapping[str, Make]] = {
    FILES_PARTITION: FilesPartition,
    COLUMN_STATS: ColumnStatsPartition,
    PARTITION_STATS: PartitionStatsPartition,
    BLOOM_FILTERS: BloomFiltersPartition,
}
_PREFIXED: Final[Mapping[str, Make]] = {EXPRESSION_PREFIX: ExpressionIndexPartition}


def partition_type_of(name: str, table: IndexedTable) -> PartitionType:
    """The kind that keeps metadata partition `name` of a table.

    Raises UnsupportedError for a partition that no kind here keeps true on this table: the caller refuses the action,
    or delists the partition when the user asks for that, and never leaves it stale (facts 8.10).
    """
    make = _NAMED.get(name) or next(
        (make for prefix, make in _PREFIXED.items() if name.startswith(prefix) and name != prefix), None
    )
    if make is None:
        raise UnsupportedError(
            f"the metadata partition `{name}` holds records that this release cannot keep true",
            path=f".hoodie/metadata/{name}",
            remedy=(
                f"drop it with `hudictl metadata drop TABLE --partition {name}`, or the metadata table: Hudi's next "
                "write builds it anew"
            ),
        )
    return make(name, table)


def partition_types_of(names: Iterable[str], table: IndexedTable) -> dict[str, PartitionType]:
    """The kinds of the listed metadata partitions, by name, sorted; errors as partition_type_of."""
    return {name: partition_type_of(name, table) for name in sorted(names)}


def of_clean(
    instant: str, changes: FileChanges, names: Iterable[str], indexed: Indexed
) -> dict[str, Iterator[CleanRecord]]:
    """What a clean tells each kind: clean_records.clean_records."""
    return clean_records(instant, changes, tuple(names), indexed)
