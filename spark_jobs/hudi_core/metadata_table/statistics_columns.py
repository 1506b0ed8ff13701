"""Which columns have statistics in `column_stats` and `partition_stats`: by the index's definition, else by the options
and the schema (HoodieTableMetadataUtil.getColumnsToIndex and isColumnTypeSupported of 0.15 and 1.x).
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from hudi_core.codec.column_paths import column_named, column_type
from hudi_core.config.metadata_config import STATISTICS_COLUMN_COUNT, STATISTICS_COLUMNS
from hudi_core.errors import ConfigError
from hudi_core.metadata_table.indexed_table import IndexedTable
from hudi_core.metadata_table.partition_type import COLUMN_STATS, STATISTICS
from hudi_core.model.names import COMMIT_TIME, META_FIELDS, OPERATION, PARTITION_PATH, RECORD_KEY

_ALWAYS: Final = (COMMIT_TIME, PARTITION_PATH, RECORD_KEY)
_V1_DIGITS: Final = 15
"""Of a decimal, on either side of the point: version 1 stores decimal(30, 15)."""


def statistics_columns(table: IndexedTable) -> tuple[str, ...]:
    """The columns whose statistics are kept, by dotted name; those that the index is defined to have, where it is
    defined, else chosen_columns.

    Raises ConfigError for an option that is no number, or when no column is left.
    """
    definition = next((table.definitions[name] for name in STATISTICS if name in table.definitions), None)
    defined = definition.source_fields if definition is not None else ()
    # Readers look for a column by the name that it has now.
    found = tuple(column_named(name, table.arrow_schema()) for name in defined) or chosen_columns(table)
    if not found:
        raise ConfigError(
            f"no column is left for the index column_stats: {STATISTICS_COLUMNS.name} names none that could be indexed",
            remedy="name columns of the table in it, or leave it out",
        )
    return found


def chosen_columns(table: IndexedTable) -> tuple[str, ...]:
    """The columns that a new index gets by the options and the schema.

    In table version 6 the configured ones or all; later `_hoodie_commit_time`, `_hoodie_partition_path` and
    `_hoodie_record_key` besides the configured ones, or the first 32 (STATISTICS_COLUMN_COUNT) of a type that has an
    order.
    """
    stored = table.arrow_schema()
    version = table.version_of(COLUMN_STATS)
    listed = STATISTICS_COLUMNS.read(table.settings)
    if table.config.features.indexes_all_columns:
        return tuple(column_named(name, stored) for name in listed) or tuple(stored.names)
    always = [name for name in _ALWAYS if table.config.populate_meta_fields]
    excluded = _ALWAYS if listed else (*META_FIELDS, OPERATION)
    names = [column_named(name, stored) for name in listed] or stored.names
    chosen = [name for name in names if name not in excluded and is_indexable(column_type(stored, name), version)]
    most = len(listed) or STATISTICS_COLUMN_COUNT.read(table.settings)
    return tuple(dict.fromkeys([*always, *chosen[:most]]))


def indexed_types(table: IndexedTable) -> dict[str, pa.DataType]:
    """Those of statistics_columns that data files have and whose values have an order, with their types: of others
    nothing is held.

    A wide decimal among them has been indexed, as all are in table version 6, or since it was widened. Ranges of whole
    partitions would be stale without it.
    """
    stored, version = table.arrow_schema(), table.version_of(COLUMN_STATS)
    types = {name: column_type(stored, name) for name in statistics_columns(table)}
    return {
        name: data_type
        for name, data_type in types.items()
        if data_type is not None and is_indexable(data_type, version, by_value=True)
    }


def is_indexable(data_type: pa.DataType | None, version: int, *, by_value: bool = False) -> bool:
    """Whether a type's values have bounds that an index of that version stores: no lists, maps or structs; in version 1
    no wide decimals, unless each value is looked at (`by_value`, as 0.15 does:
    HoodieTableMetadataUtil.tryUpcastDecimal).
    """
    if data_type is None or pa.types.is_nested(data_type) or pa.types.is_null(data_type):
        return False
    if version == 1 and pa.types.is_decimal(data_type):
        return by_value or bool(data_type.scale <= _V1_DIGITS and data_type.precision - data_type.scale <= _V1_DIGITS)
    return not (version == 1 and pa.types.is_fixed_size_binary(data_type))
