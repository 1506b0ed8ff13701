from __future__ import annotations

import base64
import io
from collections.abc import Collection, Mapping

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from hudi_core.codec.bloom import DYNAMIC, FOOTER, FOOTER_TYPE, OLD_FOOTER
from hudi_core.codec.parquet.writer import BaseFileWriter
from hudi_core.config.table_config import TableConfig
from hudi_core.errors import CorruptFileError, StorageNotFoundError
from hudi_core.expr.bind import bind
from hudi_core.expr.bound import row_mask
from hudi_core.expr.sql import parse_predicate
from hudi_core.expr.tree import Expr
from hudi_core.index.page_skipping import row_choice
from hudi_core.index.row_group_skipping import (
    MAX_BLOOM_KEYS,
    MAX_KEY,
    MIN_KEY,
    footer_may_match,
)
from hudi_core.view.file_group import DataFile
from tests.support.bloom_filters import build
from tests.support.memory_storage import MemoryStorage
from tests.support.random_predicates import SCHEMA, predicates, rows
from tests.support.slice_readers import RowGroups, made_up_spec
from tests.support.table_configs import config_of

FILE = DataFile("p", "f.parquet", 1)


def storage_with(footer: Mapping[str, str]) -> MemoryStorage:
    file = io.BytesIO()
    table = pa.table({"a": [1, 2]})
    writer = BaseFileWriter(file, table.schema, path="f.parquet")
    writer.write(table)
    writer.close(footer)
    storage = MemoryStorage()
    storage.write(FILE.path, file.getvalue())
    return storage


def bloom_of(*keys: str) -> dict[str, str]:
    return {
        FOOTER: build(pa.array(keys, pa.string()), entries=100).to_base64(),
        FOOTER_TYPE: DYNAMIC,
    }


def may_match(footer: Mapping[str, str], keys: Collection[str] | None) -> bool:
    return footer_may_match(storage_with(footer), FILE, None, keys)


def test_keys_by_their_range_and_filter() -> None:
    footer = {MIN_KEY: "b", MAX_KEY: "d", **bloom_of("b", "d")}
    assert may_match(footer, {"b"})
    assert not may_match(footer, {"a", "e"})
    assert not may_match(footer, {"c"})
    assert may_match(footer, {"c", "d"})
    assert not may_match(footer, set())
    assert may_match(footer, None)


def test_without_a_filter_or_a_range_the_other_decides() -> None:
    assert may_match({MIN_KEY: "b", MAX_KEY: "d"}, {"c"})
    assert not may_match({MIN_KEY: "b", MAX_KEY: "d"}, {"e"})
    assert not may_match(bloom_of("b"), {"c"})
    assert may_match({}, {"c"})


def test_a_range_in_either_order_of_texts() -> None:
    """U+1D11E comes before U+FFFF in UTF-16 and behind it in UTF-8."""
    assert may_match({MIN_KEY: "a", MAX_KEY: "\uffff"}, {"\U0001d11e"})
    assert may_match({MIN_KEY: "a", MAX_KEY: "\U0001d11e"}, {"\uffff"})
    assert not may_match({MIN_KEY: "b", MAX_KEY: "\uffff"}, {"a"})


def test_a_filter_is_not_tested_with_very_many_keys() -> None:
    assert may_match(bloom_of("b"), {f"x{number}" for number in range(MAX_BLOOM_KEYS + 1)})


def test_a_filter_without_a_type_code_is_a_simple_one() -> None:
    """BaseFileUtils.readBloomFilterFromMetadata: writers of old releases name no type."""
    row = base64.b64decode(bloom_of("b")[FOOTER])[13 + 12 :]
    for name in (FOOTER, OLD_FOOTER):
        footer = {name: base64.b64encode(row).decode()}
        assert may_match(footer, {"b"})
        assert not may_match(footer, {"a"})


def test_row_groups_decide_too() -> None:
    storage = storage_with({})
    assert not footer_may_match(storage, FILE, RowGroups([]), None)
    assert footer_may_match(storage, FILE, RowGroups([0]), None)
    assert footer_may_match(storage, FILE, RowGroups(None), None)


def test_a_broken_filter_and_a_missing_file_are_errors() -> None:
    with pytest.raises(CorruptFileError, match=r"f\.parquet"):
        may_match({FOOTER: "no base64!", FOOTER_TYPE: DYNAMIC}, {"a"})
    with pytest.raises(StorageNotFoundError):
        footer_may_match(MemoryStorage(), FILE, None, {"a"})


def footer(table: pa.Table, rows_per_group: int) -> tuple[pq.FileMetaData, pq.ParquetFile]:
    file = io.BytesIO()
    pq.write_table(table, file, row_group_size=rows_per_group, store_schema=False)
    opened = pq.ParquetFile(file)
    return opened.metadata, opened


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(batch=rows(1, 20), expr=predicates())
def test_the_row_groups_left_have_all_rows_that_match(batch: pa.RecordBatch, expr: Expr) -> None:
    bound = bind(expr, SCHEMA)
    choice = row_choice(bound, made_up_spec(config_of()))
    metadata, file = footer(pa.Table.from_batches([batch]), 3)
    chosen = None if choice is None else choice.row_groups(metadata)
    read = file.read() if chosen is None else file.read_row_groups(chosen)
    left = [row for part in read.cast(SCHEMA).to_batches() for row in part.filter(row_mask(bound, part)).to_pylist()]
    assert repr(left) == repr(batch.filter(row_mask(bound, batch)).to_pylist())


TABLE = pa.table({"a": pa.array(range(9), pa.int32()), "dt": ["x"] * 9, "u": [{"b": value} for value in range(9)]})


def chosen(
    text: str,
    schema: pa.Schema = TABLE.schema,
    config: TableConfig | None = None,
    renamed: Collection[str] = (),
) -> list[int] | None:
    spec = made_up_spec(config or config_of(), merged=False, renamed=renamed)
    choice = row_choice(bind(parse_predicate(text), schema), spec)
    return None if choice is None else choice.row_groups(footer(TABLE, 3)[0])


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("a = 4", [1]),
        ("a > 4", [1, 2]),
        ("a = 4 OR u.b = 8", [1, 2]),
        ("a > 100", []),
        ("a >= 0", None),
        ("a = 4 AND lower(dt) = 'y'", [1]),
        ("lower(dt) = 'y'", None),
        ("u IS NULL", None),
    ],
)
def test_row_groups_by_their_statistics(text: str, groups: list[int] | None) -> None:
    assert chosen(text) == groups


def test_a_widened_column_keeps_its_order_and_one_that_became_text_does_not() -> None:
    assert chosen("a = 4", pa.schema([pa.field("a", pa.int64())])) == [1]
    assert chosen("a = 4.0", pa.schema([pa.field("a", pa.float64())])) == [1]
    assert chosen("a = '4'", pa.schema([pa.field("a", pa.string())])) is None


def test_columns_that_the_file_lacks_or_names_otherwise_say_nothing() -> None:
    schema = TABLE.schema.append(pa.field("new", pa.int64()))
    assert chosen("new = 1", schema) is None
    assert chosen("a = 4", renamed={"a"}) is None


def test_a_column_that_is_read_from_the_path_is_not_filtered_by_the_file() -> None:
    """The path of these rows says z, whatever the file holds."""
    config = config_of({"hoodie.table.partition.fields": "dt"})
    assert chosen("dt = 'z'", config=config) is None
    assert chosen("dt = 'z'") == []


def test_an_empty_file_has_no_row_groups_to_read() -> None:
    file = io.BytesIO()
    with pq.ParquetWriter(file, TABLE.schema):
        pass
    choice = row_choice(bind(parse_predicate("a = 1"), TABLE.schema), made_up_spec(config_of(), merged=False))
    assert choice is not None
    assert choice.row_groups(pq.ParquetFile(file).metadata) == []
