"""The records that a clean writes into the partitions of a table that exists by its definitions only."""

from __future__ import annotations

import json
from typing import Any

from hudi_core.config.table_config import TableConfig
from hudi_core.config.versions import V6
from hudi_core.metadata_table.indexed_table import IndexDefinition, IndexedTable
from hudi_core.metadata_table.partitions.registry import clean_updates
from hudi_core.metadata_table.record import MetadataCodec, RecordEncoder, stored_schema
from hudi_core.metadata_table.records.file_statistics import FileChanges


def newest_schema() -> str:
    """The schema of version 6 with the member that indexes of version 2 have."""
    schema = json.loads(stored_schema(V6))
    for field in schema["fields"]:
        if field["name"] == "ColumnStatsMetadata":
            kind = {"type": "record", "name": "ValueType", "fields": [{"name": "typeOrdinal", "type": "int"}, INFO]}
            field["type"][1]["fields"].append({"name": "valueType", "type": ["null", kind], "default": None})
    return json.dumps(schema)


INFO = {"name": "additionalInfo", "type": ["null", "string"], "default": None}


NEWEST = newest_schema()


T = "20260101000000000"


BASE = "f1-0_0-1-2_20250101000000000.parquet"


LOG = ".f1-0_20250101000000000.log.1_0-1-2"


CHANGES = FileChanges(deleted={"p1": frozenset({BASE, LOG}), "p2": frozenset()}, dropped_partitions=frozenset({"p2"}))


def definition(name: str, type_: str, fields: tuple[str, ...], version: int = 2) -> IndexDefinition:
    return IndexDefinition(name, type_, "identity", fields, {}, version)


CONFIG = TableConfig.of(
    {
        "hoodie.table.name": "t",
        "hoodie.table.type": "COPY_ON_WRITE",
        "hoodie.table.version": "8",
        "hoodie.timeline.layout.version": "2",
    },
    path="hoodie.properties",
)


SCHEMA = {"type": "record", "name": "t", "fields": [{"name": "c", "type": "string"}]}


def indexed_table(definitions: dict[str, IndexDefinition]) -> IndexedTable:
    return IndexedTable(CONFIG, SCHEMA, definitions)


INDEXED = indexed_table(
    {
        "column_stats": definition("column_stats", "column_stats", ("a", "b")),
        "expr_index_day": definition("expr_index_day", "column_stats", ("ts",), version=1),
        "expr_index_low": definition("expr_index_low", "bloom_filters", ("name",)),
    }
)


def records(
    kinds: set[str], indexed: IndexedTable = INDEXED, changes: FileChanges = CHANGES
) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """The records as a reader decodes them."""
    encoder = RecordEncoder(NEWEST)
    codec = MetadataCodec(NEWEST, path="block")
    found = clean_updates(T, changes, kinds, indexed)
    return {name: [codec.decode(key, value) for key, value in encoder.cells(items)] for name, items in found.items()}
