"""The indexed table as input of the partition types, and which of its columns have statistics: by the index's
definition, else by options and schema (HoodieTableMetadataUtil.getColumnsToIndex and isColumnTypeSupported of 0.15 and
1.x). Index definitions are read and changed here. How a column is added to an index: services/metadata/columns.py.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
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
from hudi_core.metadata_table.partition_type import BLOOM_FILTERS, COLUMN_STATS, RECORD_INDEX, STATISTICS
from hudi_core.model.names import COMMIT_TIME, META_FIELDS, OPERATION, PARTITION_PATH, RECORD_KEY
from hudi_core.model.partition import check_relative_path
from hudi_core.storage.base import Storage
from hudi_core.timeline.actions.content import dump, load_object, member, read_stable, text, texts
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.schemas import internal_schema_history
from hudi_core.timeline.timeline import Timeline

_ALWAYS: Final = (COMMIT_TIME, PARTITION_PATH, RECORD_KEY)
_V1_DIGITS: Final = 15
"""Of a decimal, on either side of the point: version 1 stores decimal(30, 15)."""

PATH_KEY: Final = "hoodie.table.index.defs.path"
_FOLDER: Final = ".hoodie/"
DEFAULT_PATH: Final = ".hoodie/.index_defs/index.json"
_RESTORE: Final = "restore the file from a copy, or drop and create the indexes again"


@dataclass(frozen=True)
class IndexedTable:
    """`schema` is without meta fields, `definitions` are by metadata partition, `settings` Hudi's options by name;
    `history` as SchemaHistory.to_json, whose older files hold columns by other names.
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
        """The columns of data files, the `_hoodie_*` columns first where the rows have them."""
        file_schema = without_fields(without_meta_fields(self.schema), self.config.dropped_columns)
        return add_meta_fields(file_schema) if self.config.populate_meta_fields else file_schema

    def arrow_schema(self) -> pa.Schema:
        return arrow_schema(self.stored_schema())

    def version_of(self, partition: str) -> int:
        """Of an index (HoodieIndexVersion): as defined, `column_stats` and `partition_stats` as one, or the table's."""
        for name in (partition, *STATISTICS) if partition in STATISTICS else (partition,):
            if name in self.definitions:
                return self.definitions[name].version
        typed = partition not in (BLOOM_FILTERS, RECORD_INDEX)
        return 2 if typed and self.config.features.typed_statistics else 1


class StoredTable(IndexedTable):
    """The table as it is now, read where it is needed; errors of load_index_definitions and table_schema."""

    _storage: Storage

    def __init__(
        self, storage: Storage, config: TableConfig, settings: Mapping[str, str], schema: AvroSchema | None = None
    ) -> None:
        """`schema` is that of a commit that changes the stored one."""
        known = {"config": config, "settings": settings, "_storage": storage}
        # As the base class's generated __init__ sets the fields that are not read here.
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
    """The columns whose statistics are kept, by dotted name: as the index is defined, else chosen_columns. Raises
    ConfigError for an option that is no number, or when no column is left.
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
    """The columns of a new index. In table version 6 the configured ones or all; later three `_hoodie_*` columns
    besides the configured ones, or the first 32 (STATISTICS_COLUMN_COUNT) of a type that has an order.
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
    """Those of statistics_columns that files have and whose values have an order, with their types. A wide decimal
    among them has been indexed, as in table version 6, or since it was widened: whole ranges would be stale without it.
    """
    stored, version = table.arrow_schema(), table.version_of(COLUMN_STATS)
    types = {name: column_type(stored, name) for name in statistics_columns(table)}
    return {
        name: data_type
        for name, data_type in types.items()
        if data_type is not None and is_indexable(data_type, version, by_value=True)
    }


def is_indexable(data_type: pa.DataType | None, version: int, *, by_value: bool = False) -> bool:
    """Whether an index stores bounds of a type. Version 1: wide decimals only `by_value` (tryUpcastDecimal of 0.15)."""
    if data_type is None or pa.types.is_nested(data_type) or pa.types.is_null(data_type):
        return False
    if version == 1 and pa.types.is_decimal(data_type):
        return by_value or bool(data_type.scale <= _V1_DIGITS and data_type.precision - data_type.scale <= _V1_DIGITS)
    return not (version == 1 and pa.types.is_fixed_size_binary(data_type))


@dataclass(frozen=True, slots=True)
class IndexDefinition:
    """`name` is the metadata partition's, `type` what its records are (`column_stats`, `secondary_index` …), `function`
    what is applied to the source field (`identity`, `lower` …). `version` is 1, also of a definition without one, or 2.
    """

    name: str
    type: str
    function: str
    source_fields: tuple[str, ...]
    options: Mapping[str, str]
    version: int

    @property
    def is_partitioned(self) -> bool:
        """Of a record index: whether it is one per data partition."""
        return self.options.get("isPartitioned") == "true"


def load_index_definitions(storage: Storage, config: TableConfig) -> dict[str, IndexDefinition]:
    """By name; none where the properties name no file, or it is not there. Raises FormatError when the properties' path
    leaves `.hoodie`, CorruptFileError when the file is not what Hudi writes.
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
    """Adds or replaces definitions, and takes others away by name; returns the properties, which name the file then.
    Under the table lock, as is `config`. May be repeated. Raises as load_index_definitions.
    """
    old = load_index_definitions(storage, config)
    new = {name: item for name, item in (old | {item.name: item for item in added}).items() if name not in removed}
    if new == old:
        return config
    path = _path_of(config) or DEFAULT_PATH
    storage.write(path, render_index_definitions(new))
    return config if _path_of(config) else update_properties(storage, {PATH_KEY: path})


def render_index_definitions(definitions: Mapping[str, IndexDefinition]) -> bytes:
    """As Hudi 1.2 writes it; 1.0 passes over versions of indexes, without which 1.2 fails in table version 8, too."""
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
    """Raises CorruptFileError naming `path`."""
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
