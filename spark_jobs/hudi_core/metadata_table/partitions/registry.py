"""The one registry of kinds: which code keeps which partition of the metadata table (MetadataPartitionType).

What a clean tells each of them is clean_records, of a rollback metadata_table.write.rollback and rollback_deletion, of
a restore metadata_table.write.restore: these go by the same names, and refuse the same ones. The indexes of rows,
`record_index` and `secondary_index_*`, whose records come from rows by an engine's exchange, are in row_kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from hudi_core.errors import UnsupportedError
from hudi_core.metadata_table.extract.data_file import Wanted
from hudi_core.metadata_table.file_changes import FileChanges
from hudi_core.metadata_table.indexed_table import IndexedTable
from hudi_core.metadata_table.partitions.bloom_filters import BloomFiltersKind
from hudi_core.metadata_table.partitions.clean_updates import Indexed, clean_records
from hudi_core.metadata_table.partitions.clean_updates import Record as CleanRecord
from hudi_core.metadata_table.partitions.column_stats import ColumnStatsKind
from hudi_core.metadata_table.partitions.expression_index import ExpressionIndexKind
from hudi_core.metadata_table.partitions.files import FilesKind
from hudi_core.metadata_table.partitions.partition_stats import PartitionStatsKind
from hudi_core.metadata_table.partitions.protocol import Kind


def wanted_by(table: IndexedTable, kinds: Iterable[Kind]) -> Wanted:
    """What some kinds of a table must know of each file. Errors as IndexedTable.statistics_columns."""
    kinds = list(kinds)
    ranges = any(kind.needs.ranges for kind in kinds)
    return Wanted(
        table.stored_schema(),
        tuple(table.indexed_types()) if ranges else (),
        table.version_of("column_stats"),
        any(kind.needs.bloom for kind in kinds),
        tuple(kind.needs.expression for kind in kinds if kind.needs.expression is not None),
        table.history,
        table.config.features.indexes_all_columns,
    )


Make = Callable[[str, IndexedTable], Kind]

_NAMED: Final[Mapping[str, Make]] = {
    "files": FilesKind,
    "column_stats": ColumnStatsKind,
    "partition_stats": PartitionStatsKind,
    "bloom_filters": BloomFiltersKind,
}
_PREFIXED: Final[Mapping[str, Make]] = {"expr_index_": ExpressionIndexKind}


def kind_of(name: str, table: IndexedTable) -> Kind:
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


def kinds_of(names: Iterable[str], table: IndexedTable) -> dict[str, Kind]:
    """The kinds of the listed metadata partitions, by name, sorted; errors as kind_of."""
    return {name: kind_of(name, table) for name in sorted(names)}


def of_clean(
    instant: str, changes: FileChanges, names: Iterable[str], indexed: Indexed
) -> dict[str, Iterator[CleanRecord]]:
    """What a clean tells each kind: clean_records.clean_records."""
    return clean_records(instant, changes, tuple(names), indexed)
