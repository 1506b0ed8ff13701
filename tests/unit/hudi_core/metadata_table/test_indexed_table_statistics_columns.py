"""Which columns have statistics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pytest

from hudi_core.config.metadata_config import STATISTICS_COLUMN_COUNT, STATISTICS_COLUMNS
from hudi_core.errors import ConfigError
from hudi_core.metadata_table.indexed_table import (
    IndexedTable,
    StoredTable,
    chosen_columns,
    indexed_types,
    is_indexable,
    statistics_columns,
)
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import Table

Golden = Callable[[str, str], GoldenCase]
COLUMN_LIST, COLUMN_COUNT = STATISTICS_COLUMNS.name, STATISTICS_COLUMN_COUNT.name


def stored(golden: Golden) -> StoredTable:
    table = Table(golden("9", "mdt_all_cow").table)
    return StoredTable(table.storage, table.config, {})


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
    assert chosen_columns(given) == (*always, *expected)
    without = replace(given, config=replace(table.config, populate_meta_fields=False))
    assert statistics_columns(without) == expected


def test_a_definition_goes_before_the_options(golden: Golden) -> None:
    table = stored(golden)
    given = IndexedTable(table.config, table.schema, table.definitions, {COLUMN_LIST: "qty"})
    assert statistics_columns(given) == table.definitions["column_stats"].source_fields
    assert chosen_columns(given)[-1] == "qty"


@pytest.mark.parametrize("count", ["0", "-1", "few", str(1 << 31)])
def test_a_count_of_columns_that_is_no_positive_number_is_refused(golden: Golden, count: str) -> None:
    table = stored(golden)
    with pytest.raises(ConfigError, match=COLUMN_COUNT):
        statistics_columns(IndexedTable(table.config, table.schema, settings={COLUMN_COUNT: count}))


def test_an_index_without_a_column_is_refused(golden: Golden) -> None:
    table = stored(golden)
    config = replace(table.config, populate_meta_fields=False)
    with pytest.raises(ConfigError, match="no column is left"):
        statistics_columns(IndexedTable(config, table.schema, settings={COLUMN_LIST: "nowhere"}))


def test_columns_that_files_lack_have_no_type(golden: Golden) -> None:
    table = stored(golden)
    definition = replace(table.definitions["column_stats"], source_fields=("nowhere", "qty"))
    given = IndexedTable(table.config, table.schema, {"column_stats": definition})
    assert list(indexed_types(given)) == ["qty"]


def test_a_decimal_that_was_widened_stays_indexed(golden: Golden) -> None:
    """Version 1 gives no new index to it. A definition still names it, and readers take its old ranges."""
    table = stored(golden)
    wide = {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2}
    schema = {**table.schema, "fields": [*table.schema["fields"], {"name": "price", "type": ["null", wide]}]}
    definition = replace(table.definitions["column_stats"], source_fields=("qty", "price"), version=1)
    given = IndexedTable(table.config, schema, {"column_stats": definition})
    assert indexed_types(given) == {"qty": pa.int32(), "price": pa.decimal128(20, 2)}
    assert "price" not in chosen_columns(given)


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
