"""The file that defines a table's indexes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from hudi_core.config.table_config import TableConfig
from hudi_core.engine.local import LocalEngine
from hudi_core.errors import CorruptFileError, FormatError, SizeLimitError
from hudi_core.metadata_table.indexed_table import PATH_KEY, load_index_definitions, parse_index_definitions
from hudi_core.services.metadata.index_drop import drop_metadata
from hudi_core.services.metadata.maintain import create_metadata
from hudi_core.storage.local import LocalStorage
from tests.support.golden_cleans import context_of
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import Table
from tests.unit.hudi_core.services.indexing.test_job import OWNER, differences

Golden = Callable[[str, str], GoldenCase]
PATH = ".hoodie/.index_defs/index.json"


def test_definitions_of_real_hudi(golden: Golden) -> None:
    storage = LocalStorage(golden("9", "mdt_all_cow").table)
    definitions = load_index_definitions(storage, TableConfig.load(storage))
    assert set(definitions) == {
        "record_index",
        "column_stats",
        "secondary_index_idx_name",
        "expr_index_idx_day",
        "expr_index_idx_low",
    }
    day = definitions["expr_index_idx_day"]
    assert (day.type, day.function, day.source_fields, day.version) == ("column_stats", "from_unixtime", ("ts",), 2)
    assert day.options == {"expr": "from_unixtime", "format": "yyyy-MM-dd"}
    assert not definitions["record_index"].is_partitioned
    assert definitions["column_stats"].source_fields[:4] == (
        "_hoodie_commit_time",
        "_hoodie_partition_path",
        "_hoodie_record_key",
        "id",
    )
    older = LocalStorage(golden("8", "mdt_all_cow").table)
    assert {item.version for item in load_index_definitions(older, TableConfig.load(older)).values()} == {1}


def test_tables_without_definitions_have_none(golden: Golden) -> None:
    storage = LocalStorage(golden("6", "mdt_all_cow").table)
    assert load_index_definitions(storage, TableConfig.load(storage)) == {}
    newer = LocalStorage(golden("9", "mdt_all_cow").table)
    newer.delete(PATH)
    assert load_index_definitions(newer, TableConfig.load(newer)) == {}


@pytest.fixture(scope="module")
def damage_is_read_at_once() -> None:
    """Not here: a test's file has a writer."""


def test_definitions_are_read_when_their_writer_is_through(golden: Golden) -> None:
    storage = LocalStorage(golden("9", "mdt_all_cow").table)
    config = TableConfig.load(storage)
    whole, data = load_index_definitions(storage, config), storage.read(PATH)
    storage.write(PATH, b"")
    writer = threading.Timer(0.05, storage.write, (PATH, data))
    writer.start()
    assert load_index_definitions(storage, config) == whole
    writer.join()


@pytest.mark.parametrize(
    "path", ["../index.json", "/etc/passwd", "index.json", ".hoodie/../x", "a//b", "s3://bucket/index.json"]
)
def test_a_path_that_leaves_the_tables_own_folder_is_refused(golden: Golden, path: str) -> None:
    storage = LocalStorage(golden("9", "mdt_all_cow").table)
    config = TableConfig.load(storage)
    forged = replace(config, raw={**config.raw, PATH_KEY: path})
    with pytest.raises(FormatError) as caught:
        load_index_definitions(storage, forged)
    assert caught.value.path == config.path


@pytest.mark.parametrize("data", [b"", b" \n", b"{}", b'{"indexDefinitions": {}}'])
def test_nothing_defined(data: bytes) -> None:
    assert parse_index_definitions(data, path=PATH) == {}


@pytest.mark.parametrize(
    "data",
    [
        b"{",
        b"[]",
        b"\xff",
        b"[" * 100_000,
        b'{"indexDefinitions": []}',
        b'{"indexDefinitions": {"a": 1}}',
        b'{"indexDefinitions": {"a": {"sourceFields": "x"}}}',
        b'{"indexDefinitions": {"a": {"sourceFields": [1]}}}',
        b'{"indexDefinitions": {"a": {"indexOptions": []}}}'.replace(b"[]", b"[1]"),
        b'{"indexDefinitions": {"a": {"version": "V3"}}}',
    ],
)
def test_other_content_is_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptFileError) as caught:
        parse_index_definitions(data, path=PATH)
    assert caught.value.path == PATH


def test_a_huge_file_is_not_read(golden: Golden) -> None:
    case = golden("9", "mdt_all_cow")
    with (case.table / PATH).open("r+b") as file:
        file.truncate((16 << 20) + 1)
    storage = LocalStorage(case.table)
    with pytest.raises(SizeLimitError, match="definitions"):
        load_index_definitions(storage, TableConfig.load(storage))


@pytest.mark.parametrize(
    ("label", "case"),
    [("6-by-1.2.0", "mor_basic"), ("6-by-1.2.0", "cow_basic"), ("8", "mor_basic"), ("6", "mor_basic")],
)
def test_a_rebuilt_index_is_defined_as_by_real_hudi(golden: Golden, label: str, case: str) -> None:
    """Hudi 1.x defines the column statistics of tables of version 6, too; 0.15 knows no definitions."""
    table = Table(golden(label, case).table)
    real = load_index_definitions(table.storage, table.config)
    drop_metadata(context_of(table.path), ["files"], OWNER)
    assert load_index_definitions(table.storage, table.config) == {}
    create_metadata(context_of(table.path, {}), ["column_stats"], LocalEngine(1), OWNER)
    defined = load_index_definitions(table.storage, table.config)
    assert defined.keys() == ({"column_stats"} if label != "6" else set())
    if "column_stats" in real:  # of more columns: ours has all of them in version 6, as 0.15 has
        ours, theirs = defined["column_stats"], real["column_stats"]
        assert (ours.type, ours.function, ours.options, ours.version) == (
            theirs.type,
            theirs.function,
            theirs.options,
            theirs.version,
        )
        assert set(ours.source_fields) >= set(theirs.source_fields)
    assert differences(table.path) == []
