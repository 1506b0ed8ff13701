"""Makes a table of a folder without files. `.hoodie/hoodie.properties` is the table: of two creates at once one creates
the file, and the other finds it.

Hudi 1.x opens no table without the folder of its timeline. An object store has no empty folders: a file, which Hudi
passes over, keeps it. Other folders are made when something is put into them, also by Hudi.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hudi_core.codec.avro.arrow import arrow_schema
from hudi_core.codec.avro.schema import AvroSchema, field_names
from hudi_core.config.metadata_config import METADATA_ENABLE
from hudi_core.config.new_table import NewTable
from hudi_core.config.options import check_options, warn_of_misspelt
from hudi_core.config.properties import CREATED, stamped_properties
from hudi_core.config.rows_config import NEW_ENCODING, TYPED_PARTITION_FIELDS
from hudi_core.config.table_config import BACKUP, CREATE_SCHEMA, PROPERTIES, TableConfig
from hudi_core.errors import ConfigError, StorageExistsError, UnsupportedError
from hudi_core.filegroup.merge.table_policy import MergePolicy
from hudi_core.filegroup.write.key_generator import KeyGenerator
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.partition_type import COLUMN_STATS, PARTITION_STATS
from hudi_core.services.create.properties import differences, new_properties
from hudi_core.services.create.schema import schema_given, schema_like
from hudi_core.services.indexing.planner import BY_SWITCH
from hudi_core.storage.base import Storage

_THERE = "the table is there"
_DRY_RUN = "a dry run"
_KEEPER = ".hoodie/timeline/history/.airflow_hudi"
"""The file that keeps the folder of the timeline. In layout 1 that is the folder of the properties."""


@dataclass(frozen=True, slots=True)
class Created:
    """What a create did. `reason` says why it made no table."""

    uri: str
    config: TableConfig
    schema: AvroSchema
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "table": self.uri,
            "created": self.reason is None,
            "name": self.config.name,
            "type": self.config.table_type,
            "version": self.config.version,
            "columns": field_names(self.schema),
            "properties": {name: text for name, text in self.config.raw.items() if name != CREATE_SCHEMA},
            "schema": self.schema,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class Creation:
    """A table that is to be made at the root of `storage`. Its schema is given, as Avro or by the address of such a
    file, or it is that of a table like a Parquet file.
    """

    storage: Storage
    table: NewTable
    options: Mapping[str, str]
    storage_options: Mapping[str, str]
    schema: str = ""
    like: str = ""

    def find(self) -> Created | None:
        """Returns the table that is there already; None where none is. Writes nothing. Raises ConfigError naming the
        properties of another table than the wanted one, and the errors of the schema and of TableConfig.load.
        """
        if not self._is_table():
            return None
        there = TableConfig.load(self.storage)
        wanted, schema = self._wanted()
        found = differences(there.raw, wanted.raw)
        if found:
            raise ConfigError(
                f"there is another table at {self.storage.uri}: {'; '.join(map(str, found))}",
                path=PROPERTIES,
                remedy="create the table elsewhere, or as it is there",
            )
        return Created(self.storage.uri, there, schema, _THERE)

    def run(self, *, dry_run: bool = False) -> Created:
        """Creates the table, unless it is there or this is a dry run. Raises as `find`; UnsupportedError for a storage
        that cannot create a file exclusively, and ConfigError for a folder that holds files.
        """
        if not self.storage.supports_exclusive_create:
            raise UnsupportedError(
                f"{self.storage.uri} cannot create a file exclusively, so it cannot carry a timeline", path=PROPERTIES
            )
        there = self.find()
        if there is not None:
            return there
        wanted, schema = self._wanted()
        file = _first_file(self.storage)
        if file is None and dry_run:
            return Created(self.storage.uri, wanted, schema, _DRY_RUN)
        if file is None and self._creates(wanted):
            return Created(self.storage.uri, wanted, schema)
        there = self.find()  # another process may have created it meanwhile
        if there is not None:
            return there
        raise ConfigError(
            f"{self.storage.uri} is no Hudi table and holds files",
            path=file or PROPERTIES,
            remedy="create the table in an empty folder; rows of Parquet files come into it by `hudictl write`",
        )

    def _is_table(self) -> bool:
        return self.storage.exists(PROPERTIES) or self.storage.exists(BACKUP)

    def _wanted(self) -> tuple[TableConfig, AvroSchema]:
        """Returns the properties and the schema of the new table. Raises ConfigError for a column that it lacks,
        UnsupportedError for keys, partitions and merges that this engine does not write.
        """
        check_options(self.options)
        warn_of_misspelt(self.options)
        load = (schema_like, self.like) if self.like else (schema_given, self.schema)
        schema = load[0](self.table, load[1], self.storage_options)
        config = TableConfig.of(new_properties(self.table, self.options, schema))
        _check_columns(self.table, config, self.options, schema)
        return config, schema

    def _creates(self, wanted: TableConfig) -> bool:
        """Creates the table's files; returns False where another process created the table before."""
        if wanted.layout_version > 1:
            self.storage.write(_KEEPER, b"")
        try:
            self.storage.create_exclusive(PROPERTIES, stamped_properties(wanted.raw, CREATED))
        except StorageExistsError:
            return False
        return True


def first_indexes(config: TableConfig, options: Mapping[str, str]) -> tuple[str, ...] | None:
    """Returns what Hudi's first write puts into the metadata table of a new table beside `files`; None where the table
    gets no metadata table (HoodieMetadataConfig). Hudi 1.x has statistics of columns by default.
    """
    if not METADATA_ENABLE.read(options):
        return None
    by_default = {COLUMN_STATS, PARTITION_STATS} if config.version >= 8 else set()
    names = {name for key, name in BY_SWITCH if replace(key, default=name in by_default).read(options)}
    if COLUMN_STATS not in names or config.version < 8 or not config.partition_fields:
        names.discard(PARTITION_STATS)
    return tuple(sorted(names))


def _first_file(storage: Storage) -> str | None:
    """Returns a file below the root; None where there is none but, perhaps, that of a create which did not finish."""
    folders = [""]
    while folders:
        folder = folders.pop()
        file = next((info.path for info in storage.list_files(folder) if info.path != _KEEPER), None)
        if file is not None:
            return file
        folders += storage.list_folders(folder)
    return None


def _check_columns(table: NewTable, config: TableConfig, options: Mapping[str, str], schema: AvroSchema) -> None:
    columns = arrow_schema(schema, path=config.path)
    for name in (*table.record_key, *table.partition_columns, *table.ordering):
        if name not in columns.names:
            raise ConfigError(
                f"the schema has no column {name!r}",
                path=config.path,
                remedy=f"name columns of it: {', '.join(columns.names)}",
            )
    # Rows of the new table will show how keys of one field are made; no row of it contradicts an option now.
    typed = {TYPED_PARTITION_FIELDS.name: ",".join(table.partition_by)}
    keys = KeyGenerator.of(config, {**options, **typed}, labels_one=not NEW_ENCODING.read(options))
    keys.check(columns, path=config.path)
    MergePolicy.for_table(config, options)
