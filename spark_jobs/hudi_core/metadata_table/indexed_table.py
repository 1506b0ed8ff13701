"""The indexed table, as input of the partition types, and the columns that have statistics. The index's definition
names these columns, else options and schema do (HoodieTableMetadataUtil.getColumnsToIndex and isColumnTypeSupported of
0.15 and 1.x). Also reads and changes index definitions; services/metadata/columns.py adds columns.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import Any, Final

import pyarrow as pa

from hudi_core.codec.avro.arrow import arrow_schema
from hudi_core.codec.avro.schema import AvroSchema, add_meta_fields, without_fields, without_meta_fields
from hudi_core.codec.columns import column_named, column_type
from hudi_core.config.metadata_config import STATISTICS_COLUMN_COUNT, STATISTICS_COLUMNS
from hudi_core.config.table_config import TableConfig, update_properties
from hudi_core.errors import ConfigError, CorruptFileError, FormatError, StorageNotFoundError
from hudi_core.filegroup.read.base_file import History
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.partition_type import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    DEFINITIONS_PATH,
    RECORD_INDEX,
    STATISTICS,
)
from hudi_core.model.names import COMMIT_TIME, META_FIELDS, OPERATION, PARTITION_PATH, RECORD_KEY
from hudi_core.model.partition import check_relative_path
from hudi_core.storage.base import Storage
from hudi_core.timeline.actions.content import dump, load_object, member, read_stable, text, texts
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.schemas import internal_schema_history
from hudi_core.timeline.timeline import Timeline

_ALWAYS: Final = (COMMIT_TIME, PARTITION_PATH, RECORD_KEY)
_V1_DIGITS: Final = 15
"""The digits of a decimal on either side of the point: version 1 stores decimal(30, 15)."""

PATH_KEY: Final = "hoodie.table.index.defs.path"
_FOLDER: Final = ".hoodie/"
_RESTORE: Final = "restore the file from a copy, or drop and create the indexes again"


@dataclass(frozen=True)
class IndexedTable:
    """The table that indexes describe. `schema` has no meta fields; `definitions` are by metadata partition; `settings`
    are Hudi's options by name. `history` is SchemaHistory.to_json of a table whose older files have other column names.
    """

    config: TableConfig
    schema: AvroSchema
    definitions: Mapping[str, IndexDefinition] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    history: History | None = None

    @property
    def is_partitioned(self) -> bool:
        return bool(self.config.partition_fields)

    def stored_schema(self) -> AvroSchema:
        """Returns the columns of data files; the `_hoodie_*` columns come first where the rows have them."""
        file_schema = without_fields(without_meta_fields(self.schema), self.config.dropped_columns)
        return add_meta_fields(file_schema) if self.config.populate_meta_fields else file_schema

    def arrow_schema(self) -> pa.Schema:
        return arrow_schema(self.stored_schema())

    def version_of(self, partition: str) -> int:
        """Returns the version of an index (HoodieIndexVersion): of its definition, which `column_stats` and
        `partition_stats` share, else the table's default.
        """
        for name in (partition, *STATISTICS) if partition in STATISTICS else (partition,):
            if name in self.definitions:
                return self.definitions[name].version
        typed = partition not in (BLOOM_FILTERS, RECORD_INDEX)
        return 2 if typed and self.config.features.typed_statistics else 1


class StoredTable(IndexedTable):
    """The table as it is now. A property reads its value at the first use, and raises the errors of
    load_index_definitions and table_schema.
    """

    _storage: Storage

    def __init__(
        self, storage: Storage, config: TableConfig, settings: Mapping[str, str], schema: AvroSchema | None = None
    ) -> None:
        """Takes the `schema` of a commit that changes the stored schema; None: the stored one."""
        known = {"config": config, "settings": settings, "_storage": storage}
        # The base class's generated __init__ sets its fields in the same way.
        for name, value in (known if schema is None else {**known, "schema": schema}).items():
            object.__setattr__(self, name, value)

    @cached_property
    def definitions(self) -> Mapping[str, IndexDefinition]:
        return load_index_definitions(self._storage, self.config)

    @cached_property
    def schema(self) -> AvroSchema:
        return table_schema(self._storage, self.config, self._timeline)

    @cached_property
    def history(self) -> History | None:
        found = internal_schema_history(self._storage, self._timeline)
        return None if found is None else found.to_json()

    @cached_property
    def _timeline(self) -> Timeline:
        return ActiveTimeline(self._storage, self.config).load()


def statistics_columns(table: IndexedTable) -> tuple[str, ...]:
    """Returns the dotted names of the columns whose statistics are kept: from the index's definition, else from
    chosen_columns. Raises ConfigError for an option that is no number, or when no column is left.
    """
    definition = next((table.definitions[name] for name in STATISTICS if name in table.definitions), None)
    defined = definition.source_fields if definition is not None else ()
    # Readers look for a column by its present name.
    found = tuple(column_named(name, table.arrow_schema()) for name in defined) or chosen_columns(table)
    if not found:
        raise ConfigError(
            f"no column is left for the index column_stats: {STATISTICS_COLUMNS.name} names none that could be indexed",
            remedy="name columns of the table in it, or leave it out",
        )
    return found


def chosen_columns(table: IndexedTable) -> tuple[str, ...]:
    """Returns the columns of a new index. Version 6: the configured ones, else all. Later: three `_hoodie_*` columns
    and the configured ones, else the first 32 (STATISTICS_COLUMN_COUNT) whose type has an order.
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
    """Returns the columns of statistics_columns that files have and whose values have an order, with their types. Wide
    decimals are kept: the index has them, because table version 6 indexes them, or because the column was widened
    later. Without them the ranges of whole partitions would be stale.
    """
    stored, version = table.arrow_schema(), table.version_of(COLUMN_STATS)
    types = {name: column_type(stored, name) for name in statistics_columns(table)}
    return {
        name: data_type
        for name, data_type in types.items()
        if data_type is not None and is_indexable(data_type, version, by_value=True)
    }


def is_indexable(data_type: pa.DataType | None, version: int, *, by_value: bool = False) -> bool:
    """Returns whether an index stores bounds of a type; version 1: wide decimals only `by_value` (tryUpcastDecimal)."""
    if data_type is None or pa.types.is_nested(data_type) or pa.types.is_null(data_type):
        return False
    if version == 1 and pa.types.is_decimal(data_type):
        return by_value or bool(data_type.scale <= _V1_DIGITS and data_type.precision - data_type.scale <= _V1_DIGITS)
    return not (version == 1 and pa.types.is_fixed_size_binary(data_type))


@dataclass(frozen=True, slots=True)
class IndexDefinition:
    """The definition of an index. `name` is the metadata partition's, `type` its records' (`column_stats`,
    `secondary_index` …), `function` the source field's (`identity`, `lower` …). `version` is 1 (default) or 2.
    """

    name: str
    type: str
    function: str
    source_fields: tuple[str, ...]
    options: Mapping[str, str]
    version: int

    @property
    def is_partitioned(self) -> bool:
        """Whether a record index has separate file groups for each data partition."""
        return self.options.get("isPartitioned") == "true"


def load_index_definitions(storage: Storage, config: TableConfig) -> dict[str, IndexDefinition]:
    """Reads the index definitions, by name; returns none where the properties name no file, or the file is absent.
    Raises FormatError for a path outside of `.hoodie`, CorruptFileError for a file that Hudi does not write.
    """
    path = _path_of(config)
    if not path:
        return {}
    try:
        data = read_stable(storage, path)
    except StorageNotFoundError:
        return {}
    return parse_index_definitions(data, path=path)


def _path_of(config: TableConfig) -> str:
    path = config.raw.get(PATH_KEY, "").strip()
    check_relative_path(path, source=config.path)
    if path and not path.startswith(_FOLDER):
        raise FormatError(
            f"{PATH_KEY} is {path!r}, which is not below {_FOLDER}", path=config.path, remedy="correct the property"
        )
    return path


def put_index_definitions(
    storage: Storage, config: TableConfig, added: Collection[IndexDefinition], removed: Collection[str] = ()
) -> TableConfig:
    """Adds or replaces definitions, and removes others by name. Returns the properties, which name the file. The caller
    loaded `config` under the table lock. Repeatable. Raises the errors of load_index_definitions.
    """
    old = load_index_definitions(storage, config)
    new = {name: item for name, item in (old | {item.name: item for item in added}).items() if name not in removed}
    if new == old:
        return config
    path = _path_of(config) or DEFINITIONS_PATH
    storage.write(path, render_index_definitions(new))
    return config if _path_of(config) else update_properties(storage, {PATH_KEY: path})


def define_added_columns(storage: Storage, new: IndexedTable, old: AvroSchema) -> None:
    """Adds the columns of `new` that the schema `old` lacks to the definition of `column_stats`, if a new index would
    have them. A writer of Hudi 1.x does so with its next commit (updateColumnsToIndexWithColStats). By then every file
    with such a column must have its statistics: Hudi's filters read it as null in other files. The caller holds the
    table lock, and no file has the columns yet. Raises the errors of load_index_definitions.
    """
    definition = new.definitions.get(COLUMN_STATS)
    if definition is None or not definition.source_fields:
        return
    stored, version = new.arrow_schema(), new.version_of(COLUMN_STATS)
    known = {*definition.source_fields, *arrow_schema(old).names}
    added = [
        name for name in chosen_columns(new) if name not in known and is_indexable(column_type(stored, name), version)
    ]
    if added:
        changed = replace(definition, source_fields=(*definition.source_fields, *added))
        put_index_definitions(storage, new.config, [changed])


def render_index_definitions(definitions: Mapping[str, IndexDefinition]) -> bytes:
    """Returns the definitions file as Hudi 1.2 writes it. Hudi 1.0 ignores the versions of indexes; without them Hudi
    1.2 fails, also in table version 8.
    """
    return dump(
        {
            "indexDefinitions": {
                name: {
                    "indexName": item.name,
                    "indexType": item.type,
                    "indexFunction": item.function,
                    "sourceFields": list(item.source_fields),
                    "indexOptions": dict(item.options),
                    "version": f"V{item.version}",
                }
                for name, item in definitions.items()
            }
        }
    )


def parse_index_definitions(data: bytes, *, path: str) -> dict[str, IndexDefinition]:
    """Reads a definitions file. Raises CorruptFileError with `path`."""
    try:
        document = load_object(data, path=path) if data.strip() else {}
        entries = member(document, "indexDefinitions", dict, path=path, default={})
        return {name: _definition(name, entry, path) for name, entry in entries.items()}
    except CorruptFileError as error:
        raise CorruptFileError(f"index definitions: {error.message}", path=path, remedy=_RESTORE) from error


def _definition(name: str, entry: Any, path: str) -> IndexDefinition:
    if not isinstance(entry, dict):
        raise CorruptFileError(f"{name!r} is not a JSON object", path=path)
    version = text(entry, "version", path=path) or "V1"
    if version not in ("V1", "V2"):
        raise CorruptFileError(f"{name!r} is of the unknown version {version!r}", path=path)
    options = member(entry, "indexOptions", dict, path=path, default={})
    return IndexDefinition(
        text(entry, "indexName", path=path) or name,
        text(entry, "indexType", path=path),
        text(entry, "indexFunction", path=path),
        tuple(texts(entry, "sourceFields", path=path)),
        {key: str(value) for key, value in options.items()},
        int(version[1:]),
    )
