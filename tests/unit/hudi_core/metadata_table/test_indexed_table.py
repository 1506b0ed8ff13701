"""The indexed table: its columns and versions, and what of a stored table is read when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from hudi_core.config.table_config import TableConfig
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.metadata_table.indexed_table import IndexedTable, StoredTable, load_index_definitions
from hudi_core.storage.base import Storage
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import Table

Golden = Callable[[str, str], GoldenCase]


def stored(golden: Golden, version: str = "9", case: str = "mdt_all_cow", **settings: str) -> StoredTable:
    table = Table(golden(version, case).table)
    return StoredTable(table.storage, table.config, settings)


def test_nothing_of_a_stored_table_is_read_before_it_is_needed(golden: Golden) -> None:
    config = Table(golden("9", "mdt_all_cow").table).config
    table = StoredTable(cast(Storage, object()), config, {"a": "b"})
    assert (table.config, table.settings, table.is_partitioned) == (config, {"a": "b"}, True)
    with pytest.raises(AttributeError):
        _ = table.schema
    with pytest.raises(AttributeError):
        _ = table.definitions


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_stored_table_is_what_its_files_say(golden: Golden, version: str) -> None:
    table = Table(golden(version, "mdt_all_cow").table)
    found = StoredTable(table.storage, table.config, {})
    assert found.definitions == load_index_definitions(table.storage, table.config)
    assert found.schema == table_schema(table.storage, table.config, table.data.load())
    assert found.history is None
    for path in (table.path / ".hoodie").rglob("*.commit"):
        path.unlink()
    assert found.schema["fields"], "it is read once"


@pytest.mark.parametrize("version", ["6", "9"])
def test_files_have_the_meta_columns_first_and_may_lack_the_partition_columns(golden: Golden, version: str) -> None:
    table = stored(golden, version)
    names = [item["name"] for item in table.stored_schema()["fields"]]
    assert names[:2] == ["_hoodie_commit_time", "_hoodie_commit_seqno"]
    assert table.arrow_schema().names == names
    (partition_field,) = table.config.partition_fields
    assert partition_field in names

    def fields(**changes: Any) -> list[str]:
        given = IndexedTable(replace(table.config, **changes), table.schema)
        return [item["name"] for item in given.stored_schema()["fields"]]

    assert fields(drop_partition_columns=True) == [name for name in names if name != partition_field]
    assert fields(populate_meta_fields=False) == names[5:]


def test_versions_of_indexes_by_definition_else_by_table(golden: Golden) -> None:
    config: TableConfig = stored(golden).config
    table = IndexedTable(config, {"fields": []})
    assert [table.version_of(name) for name in ("column_stats", "partition_stats", "secondary_index_x")] == [2, 2, 2]
    assert [table.version_of(name) for name in ("record_index", "bloom_filters")] == [1, 1]
    older = replace(stored(golden).definitions["column_stats"], version=1)
    assert IndexedTable(config, {"fields": []}, {"column_stats": older}).version_of("partition_stats") == 1
