"""The indexes that the options request, by the names of Hudi's writers and indexer (HoodieMetadataConfig,
HoodieIndexingConfig).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hudi_core.config.keys import ConfigKey
from hudi_core.config.services.indexing_config import (
    BLOOM_FILTERS_ENABLE,
    COLUMN_STATS_ENABLE,
    EXPRESSION_COLUMN,
    EXPRESSION_OPTIONS,
    EXPRESSION_TYPE,
    INDEX_NAME,
    PARTITION_STATS_ENABLE,
    PARTITIONED_RECORD_INDEX_ENABLE,
    RECORD_INDEX_ENABLE,
    SECONDARY_COLUMN,
)
from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConfigError, UnsupportedError
from hudi_core.metadata_table.index_definitions import IndexDefinition
from hudi_core.metadata_table.partition_type import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    EXPRESSION_PREFIX,
    PARTITION_STATS,
    RECORD_INDEX,
    SECONDARY_INDEX,
    SECONDARY_PREFIX,
)
from hudi_core.model.partition import check_file_name
from hudi_core.services.metadata.initialization import partitioned_record_index

_IDENTITY: Final = "identity"
_BY_SWITCH: Final[tuple[tuple[ConfigKey[bool], str], ...]] = (
    (BLOOM_FILTERS_ENABLE, BLOOM_FILTERS),
    (COLUMN_STATS_ENABLE, COLUMN_STATS),
    (PARTITION_STATS_ENABLE, PARTITION_STATS),
    (RECORD_INDEX_ENABLE, RECORD_INDEX),
    (PARTITIONED_RECORD_INDEX_ENABLE, RECORD_INDEX),
)
NONE_NAMED: Final = (
    f"the options name no index to build: set one of {', '.join(key.name for key, _ in _BY_SWITCH)} to true, or name a "
    f"column by {SECONDARY_COLUMN.name} or {EXPRESSION_COLUMN.name}"
)
"""Why nothing is planned then."""


@dataclass(frozen=True, slots=True)
class RequestedIndexes:
    """The requested partitions of the metadata table, sorted, with the definitions of those that need one."""

    names: tuple[str, ...]
    definitions: Mapping[str, IndexDefinition]


def requested_indexes(
    config: TableConfig, defined: Mapping[str, IndexDefinition], options: Mapping[str, str]
) -> RequestedIndexes:
    """The indexes that `options` name, if any; `defined` are those that the table has definitions of.

    Raises ConfigError when they name an index otherwise than it is defined; UnsupportedError for one that the table's
    version does not have.
    """
    names = {name for key, name in _BY_SWITCH if key.read(options)}
    definitions = {}
    for item in _defined_by(config, defined, options):
        definitions[item.name] = item
        names.add(item.name)
    definitions.update(partitioned_record_index(config, options))
    if not config.partition_fields and PARTITION_STATS in names:
        raise UnsupportedError("a table without partitions has no statistics of them", path=config.path)
    return RequestedIndexes(tuple(sorted(names)), definitions)


def _defined_by(
    config: TableConfig, defined: Mapping[str, IndexDefinition], options: Mapping[str, str]
) -> list[IndexDefinition]:
    """The requested secondary or expression indexes, by a column, or by the name of one that is defined."""
    found = []
    for prefix, column in (
        (SECONDARY_PREFIX, SECONDARY_COLUMN.read(options)),
        (EXPRESSION_PREFIX, EXPRESSION_COLUMN.read(options)),
    ):
        named = INDEX_NAME.read(options)
        if column is None and named is None:
            continue
        name = _full_name(prefix, named or f"{column}")
        known = defined.get(name)
        if known is None and column is None:
            continue
        if not config.features.merge_modes:
            raise UnsupportedError(f"an index such as {name} needs table version 8", path=config.path)
        made = known if column is None else _definition(prefix, name, column, config, options)
        if known and made and (made.source_fields, made.function) != (known.source_fields, known.function):
            raise ConfigError(
                f"the index {name} is defined already, on {', '.join(known.source_fields)}",
                remedy="drop it first, or choose another name",
            )
        found += [item for item in (known or made,) if item is not None]
    if not found and INDEX_NAME.read(options) is not None:
        raise ConfigError(
            f"no index {INDEX_NAME.read(options)!r} is defined",
            remedy=f"name its column by {SECONDARY_COLUMN.name} or {EXPRESSION_COLUMN.name}",
        )
    return found


def _definition(
    prefix: str, name: str, column: str, config: TableConfig, options: Mapping[str, str]
) -> IndexDefinition:
    version = 2 if config.features.typed_statistics else 1
    if prefix == SECONDARY_PREFIX:
        return IndexDefinition(name, SECONDARY_INDEX, _IDENTITY, (column,), {}, version)
    settings = _settings(EXPRESSION_OPTIONS.read(options))
    partition_type = EXPRESSION_TYPE.read(options).lower()
    if partition_type == SECONDARY_INDEX:
        raise ConfigError(
            f"{EXPRESSION_TYPE.name} is {partition_type}, which holds no expression",
            remedy=f"use {SECONDARY_COLUMN.name}",
        )
    return IndexDefinition(name, partition_type, settings.get("expr", _IDENTITY), (column,), settings, version)


def _settings(value: str | None) -> dict[str, str]:
    pairs = [part.split("=", 1) for part in (value or "").split(",") if part.strip()]
    if any(len(pair) != 2 for pair in pairs):
        raise ConfigError(f"{EXPRESSION_OPTIONS.name} is {value!r}", remedy=EXPRESSION_OPTIONS.doc)
    return {name.strip(): text.strip() for name, text in pairs}


def _full_name(prefix: str, name: str) -> str:
    return check_file_name(name if name.startswith(prefix) else f"{prefix}{name}", source=INDEX_NAME.name)
