"""The indexes of rows by name: `record_index` and `secondary_index_*`. Their records come from rows by an exchange, not
from facts of files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from hudi_core.errors import CorruptFileError, UnsupportedError
from hudi_core.metadata_table.index_definitions import IndexDefinition
from hudi_core.metadata_table.indexed_table import IndexedTable, column_type
from hudi_core.metadata_table.partitions.protocol import numbered_file_ids
from hudi_core.metadata_table.partitions.record_groups import RecordGroups, global_group_count, partitioned_group_count
from hudi_core.metadata_table.partitions.record_index import RecordIndexRows
from hudi_core.metadata_table.partitions.row_units import AnyIndexRows
from hudi_core.metadata_table.partitions.secondary_index import SecondaryIndexRows, value_texts
from hudi_core.metadata_table.read.record_index import PARTITION as RECORD_INDEX
from hudi_core.metadata_table.read.secondary_index import PREFIX as SECONDARY_PREFIX

Counts = Mapping[str | None, int]
"""File groups: all of them under None, or those of each data partition (RecordIndex.parts)."""
_REWRITES: Final = frozenset({"COMPACT", "LOG_COMPACT"})
_DEFINITIONS: Final = ".hoodie/.index_defs/index.json"


def is_row_level(name: str) -> bool:
    """Whether a metadata partition is such an index."""
    return name == RECORD_INDEX or (name.startswith(SECONDARY_PREFIX) and name != SECONDARY_PREFIX)


def moves_rows(operation: str | None) -> bool:
    """Whether a commit of an operation (`operationType`) can tell such an index anything: compactions leave each row
    where and as it is.
    """
    return operation not in _REWRITES


def index_rows(name: str, table: IndexedTable, counts: Counts, schema: str, zone: str) -> AnyIndexRows:
    """What makes the rows of an index; `schema` is that of the stored records (record.block_schema), `zone` that of
    instants.

    Raises UnsupportedError for a column that this release cannot keep an index on, CorruptFileError for an index
    without a definition.
    """
    if name == RECORD_INDEX:
        return RecordIndexRows(RecordGroups(counts), schema, zone)
    definition = _definition(name, table)
    (column,) = definition.source_fields
    kind = column_type(table.arrow_schema(), column)
    if kind is None:
        raise UnsupportedError(
            f"the index {name} is on {column!r}, which is no column that data files hold", path=_DEFINITIONS
        )
    value_texts(pa.nulls(0, kind), column)
    return SecondaryIndexRows(name, column, counts[None], schema, definition.version > 1)


def group_counts(name: str, table: IndexedTable, records: Mapping[str, int]) -> dict[str | None, int]:
    """How many file groups a new index gets, for the number of rows in each data partition; errors as
    global_group_count.
    """
    definition = table.definitions.get(name)
    if name == RECORD_INDEX and definition is not None and definition.is_partitioned:
        return {partition: partitioned_group_count(table.settings, count) for partition, count in records.items()}
    return {None: global_group_count(table.settings, sum(records.values()))}


def row_file_ids(name: str, counts: Counts) -> list[str]:
    """The ids of the file groups, in the order of an exchange's shards."""
    if name == RECORD_INDEX:
        return RecordGroups(counts).file_ids()
    return numbered_file_ids(f"{name.replace('_', '-')}-", counts[None])


def _definition(name: str, table: IndexedTable) -> IndexDefinition:
    definition = table.definitions.get(name)
    if definition is None or len(definition.source_fields) != 1:
        raise CorruptFileError(f"the index {name} has no definition that names its one column", path=_DEFINITIONS)
    return definition
