"""The indexed table as input of the partition types: schema, index definitions with their versions
(HoodieIndexVersion), and options.

Which columns have statistics says statistics_columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from hudi_core.codec.avro.arrow import arrow_schema
from hudi_core.codec.avro.schema import AvroSchema, add_meta_fields, without_fields, without_meta_fields
from hudi_core.config.table_config import TableConfig
from hudi_core.filegroup.read.base_file import History
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.metadata_table.index_definitions import IndexDefinition, load_index_definitions
from hudi_core.metadata_table.partition_type import BLOOM_FILTERS, RECORD_INDEX, STATISTICS
from hudi_core.storage.base import Storage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.schema_history import internal_schema_history
from hudi_core.timeline.timeline import Timeline


@dataclass(frozen=True)
class IndexedTable:
    """`schema` is the table's Avro schema without meta fields; `definitions` are by metadata partition; `settings` are
    Hudi's options by name.

    `history` are the schemas that a schema-on-read table had (SchemaHistory.to_json): older files hold its renamed
    columns by other names.
    """

    config: TableConfig
    schema: AvroSchema
    definitions: Mapping[str, IndexDefinition] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    history: History | None = None

    @property
    def is_partitioned(self) -> bool:
        """Whether the table has partitions."""
        return bool(self.config.partition_fields)

    def stored_schema(self) -> AvroSchema:
        """The columns of data files, the `_hoodie_*` columns first where the rows have them; without columns that files
        omit.
        """
        file_schema = without_fields(without_meta_fields(self.schema), self.config.dropped_columns)
        return add_meta_fields(file_schema) if self.config.populate_meta_fields else file_schema

    def arrow_schema(self) -> pa.Schema:
        """The Arrow columns of stored_schema."""
        return arrow_schema(self.stored_schema())

    def version_of(self, partition: str) -> int:
        """The version of an index: as its definition says, else as the table's version has it; `column_stats` and
        `partition_stats` share one.
        """
        for name in (partition, *STATISTICS) if partition in STATISTICS else (partition,):
            if name in self.definitions:
                return self.definitions[name].version
        typed = partition not in (BLOOM_FILTERS, RECORD_INDEX)
        return 2 if typed and self.config.features.typed_statistics else 1


class StoredTable(IndexedTable):
    """The table in `storage` as it is now, of which nothing is read before it is needed.

    Errors of its members: those of load_index_definitions, and of table_schema, for a table without a schema.
    """

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
        """As stored."""
        return load_index_definitions(self._storage, self.config)

    @cached_property
    def schema(self) -> AvroSchema:
        """By the rule of table_schema."""
        return table_schema(self._storage, self.config, self._timeline)

    @cached_property
    def history(self) -> History | None:
        """Of a schema-on-read table."""
        found = internal_schema_history(self._storage, self._timeline)
        return None if found is None else found.to_json()

    @cached_property
    def _timeline(self) -> Timeline:
        return ActiveTimeline(self._storage, self.config).load()
