"""The indexed table: which columns of it have statistics, and what of a stored table is read when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pyarrow as pa
import pytest

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConfigError
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.metadata_table.index_definitions import load_index_definitions
from hudi_core.metadata_table.indexed_table import (
    COLUMN_COUNT,
    COLUMN_LIST,
    IndexedTable,
    StoredTable,
    column_type,
    field_path,
    is_indexable,
    positive_setting,
)
from hudi_core.storage.base import Storage
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import Table

Golden = Callable[[str, str], GoldenCase]
NESTED = pa.schema(
    [
        ("id", pa.int64()),
        ("address", pa.struct([("city", pa.string()), ("geo", pa.struct([("lat", pa.float64())]))])),
        ("address.city", pa.int32()),
        ("tags", pa.list_(pa.string())),
    ]
)


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


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({COLUMN_LIST: " qty ,, name "}, ("qty", "name")),
        ({COLUMN_LIST: "qty", COLUMN_COUNT: "1"}, ("qty",)),
        ({COLUMN_COUNT: "1"}, ("id",)),
    ],
)
def test_a_new_index_gets_the_listed_columns_or_the_first(
    golden: Golden, settings: dict[str, str], expected: tuple[str, ...]
) -> None:
    table = stored(golden)
    given = IndexedTable(table.config, table.schema, settings=settings)
    always = ("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key")
    assert given.chosen_columns() == (*always, *expected)
    without = replace(given, config=replace(table.config, populate_meta_fields=False))
    assert without.statistics_columns() == expected


def test_a_definition_goes_before_the_options(golden: Golden) -> None:
    table = stored(golden)
    given = IndexedTable(table.config, table.schema, table.definitions, {COLUMN_LIST: "qty"})
    assert given.statistics_columns() == table.definitions["column_stats"].source_fields
    assert given.chosen_columns()[-1] == "qty"


@pytest.mark.parametrize("count", ["0", "-1", "few", str(1 << 31)])
def test_a_count_of_columns_that_is_no_positive_number_is_refused(golden: Golden, count: str) -> None:
    table = stored(golden)
    with pytest.raises(ConfigError, match=COLUMN_COUNT):
        IndexedTable(table.config, table.schema, settings={COLUMN_COUNT: count}).statistics_columns()


def test_an_index_without_a_column_is_refused(golden: Golden) -> None:
    table = stored(golden)
    config = replace(table.config, populate_meta_fields=False)
    with pytest.raises(ConfigError, match="no column is left"):
        IndexedTable(config, table.schema, settings={COLUMN_LIST: "nowhere"}).statistics_columns()


def test_columns_that_files_lack_have_no_type(golden: Golden) -> None:
    table = stored(golden)
    definition = replace(table.definitions["column_stats"], source_fields=("nowhere", "qty"))
    given = IndexedTable(table.config, table.schema, {"column_stats": definition})
    assert list(given.indexed_types()) == ["qty"]


@pytest.mark.parametrize(
    ("name", "path", "data_type"),
    [
        ("id", ["id"], pa.int64()),
        ("address.city", ["address.city"], pa.int32()),
        ("address.geo.lat", ["address", "geo", "lat"], pa.float64()),
        ("address.street", None, None),
        ("id.city", None, None),
        ("tags.element", None, None),
        ("nowhere", None, None),
    ],
)
def test_a_dotted_name_is_a_column_or_a_path_into_structs(
    name: str, path: list[str] | None, data_type: pa.DataType | None
) -> None:
    found = field_path(NESTED, name)
    assert (None if found is None else [item.name for item in found]) == path
    assert column_type(NESTED, name) == data_type


@pytest.mark.parametrize(
    ("data_type", "versions", "by_value"),
    [
        (pa.int32(), (True, True), True),
        (pa.string(), (True, True), True),
        (pa.list_(pa.int32()), (False, False), False),
        (pa.struct([("a", pa.int32())]), (False, False), False),
        (pa.null(), (False, False), False),
        (None, (False, False), False),
        (pa.decimal128(30, 15), (True, True), True),
        (pa.decimal128(31, 15), (False, True), True),
        (pa.decimal128(20, 16), (False, True), True),
        (pa.binary(4), (False, True), False),
    ],
)
def test_types_whose_bounds_an_index_stores(
    data_type: pa.DataType | None, versions: tuple[bool, bool], by_value: bool
) -> None:
    assert tuple(is_indexable(data_type, version) for version in (1, 2)) == versions
    assert is_indexable(data_type, 1, by_value=by_value) is by_value


def test_a_blank_setting_is_not_set() -> None:
    assert positive_setting({"a": "  "}, "a", 4) == positive_setting({}, "a", 4) == 4
    assert positive_setting({"a": " 7 "}, "a", 4) == 7
    for text in ("0", "1.5", "٣", str(1 << 31)):
        with pytest.raises(ConfigError, match="a is"):
            positive_setting({"a": text}, "a", 4)


def test_versions_of_indexes_by_definition_else_by_table(golden: Golden) -> None:
    config: TableConfig = stored(golden).config
    table = IndexedTable(config, {"fields": []})
    assert [table.version_of(name) for name in ("column_stats", "partition_stats", "secondary_index_x")] == [2, 2, 2]
    assert [table.version_of(name) for name in ("record_index", "bloom_filters")] == [1, 1]
    older = replace(stored(golden).definitions["column_stats"], version=1)
    assert IndexedTable(config, {"fields": []}, {"column_stats": older}).version_of("partition_stats") == 1
