"""The records that a clean writes to each kind, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import UnsupportedError
from hudi_core.metadata_table.index_definitions import IndexDefinition
from hudi_core.metadata_table.indexed_table import IndexedTable
from hudi_core.metadata_table.keys import bloom_filter_key, column_stats_key
from hudi_core.metadata_table.partitions import bloom_filters, column_stats
from hudi_core.metadata_table.partitions.registry import clean_updates
from hudi_core.metadata_table.record import ALL_PARTITIONS, MetadataCodec, RecordEncoder, schema_text
from hudi_core.metadata_table.records.file_statistics import FileChanges
from hudi_core.model.names import META_FIELDS


def newest_schema() -> str:
    """The schema of version 6 with the member that indexes of version 2 have."""
    schema = json.loads(schema_text())
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


def test_files_lists_what_is_gone() -> None:
    found = dict(records({"files"})["files"])
    assert found["p1"]["filesystemMetadata"] == {name: {"size": 0, "isDeleted": True} for name in (BASE, LOG)}
    assert found["p2"]["filesystemMetadata"] == {}
    assert (found[ALL_PARTITIONS]["type"], found[ALL_PARTITIONS]["filesystemMetadata"]) == (
        1,
        {"p2": {"size": 0, "isDeleted": True}},
    )


def test_kinds_that_a_clean_has_nothing_for() -> None:
    assert records({"files", "partition_stats", "record_index", "secondary_index_x"}).keys() == {"files"}


def test_statistics_of_every_file_and_indexed_column() -> None:
    found = dict(records({"files", "column_stats", "expr_index_day"})["column_stats"])
    assert found.keys() == {column_stats_key(column, "p1", name) for column in ("a", "b") for name in (BASE, LOG)}
    body = found[column_stats_key("a", "p1", BASE)]["ColumnStatsMetadata"]
    assert (body["fileName"], body["columnName"], body["isDeleted"], body["valueCount"], body["minValue"]) == (
        BASE,
        "a",
        True,
        -1,
        None,
    )
    assert body["valueType"] == {"typeOrdinal": 1, "additionalInfo": None}
    expression = dict(records({"expr_index_day"})["expr_index_day"])
    assert expression.keys() == {column_stats_key("ts", "p1", name) for name in (BASE, LOG)}
    assert expression[column_stats_key("ts", "p1", LOG)]["ColumnStatsMetadata"]["valueType"] is None


def test_without_a_definition_the_tables_columns_count() -> None:
    found = records({"column_stats"}, indexed_table({}))["column_stats"]
    assert {key for key, _ in found} == {
        column_stats_key(column, "p1", name) for name in (BASE, LOG) for column in (*META_FIELDS, "c")
    }


@pytest.mark.parametrize("kind", ["bloom_filters", "expr_index_low"])
def test_filters_of_base_files_alone(kind: str) -> None:
    ((key, datum),) = records({kind})[kind]
    assert key == bloom_filter_key("p1", BASE)
    assert datum["BloomFilterMetadata"] == {"type": "", "timestamp": T, "bloomFilter": b"", "isDeleted": True}


@pytest.mark.parametrize("name", ["unknown", "expr_index_other", "expr_index_odd"])
def test_a_kind_that_cannot_be_kept_true_is_refused(name: str) -> None:
    odd = indexed_table({"expr_index_odd": definition("expr_index_odd", "vector", ("v",))})
    with pytest.raises(UnsupportedError, match=name):
        records({name}, odd)


def test_deletions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of whole files: a file's statistics are all deleted or all left."""
    for module in (bloom_filters, column_stats):
        monkeypatch.setattr(module, "MAX_DELETIONS", 5)
    many = FileChanges(deleted={"p": frozenset(f"f{number}-0_0-1-2_{T}.parquet" for number in range(9))})
    found = records({"files", "column_stats", "bloom_filters"}, changes=many)
    assert len(found["column_stats"]) == 4
    assert len(found["bloom_filters"]) == 5
    assert len(dict(found["files"])["p"]["filesystemMetadata"]) == 9
