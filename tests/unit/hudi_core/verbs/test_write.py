"""Requests of writes and overwrites: what means nothing is refused, and JSON keeps the rest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_core.config.engine_config import EngineConfig
from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConfigError, HudiError
from hudi_core.table import HudiTable
from hudi_core.verbs.request import parse_request
from hudi_core.verbs.write import MAX_TOKEN, OPERATIONS, DeletePartitionRequest, InsertOverwriteRequest, WriteRequest
from tests.support.changed_tables import open_context
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import own_rows, places, put_source
from tests.support.table_invariants import read_rows

Golden = Callable[[str, str], GoldenCase]


@pytest.mark.parametrize(
    "request_",
    [
        InsertOverwriteRequest("/t", source="s3://bucket/rows", token="a/b c", whole_table=True, dry_run=True),
        InsertOverwriteRequest("/t", source="rows.parquet", partitions=("a=1/b=2", "")),
        InsertOverwriteRequest("/t", query="SELECT * FROM rows", token="x", dry_run=True),
        InsertOverwriteRequest("/t", dataframe="jobs.orders:of_day", dataframe_args={"day": "2026-01-01"}),
        DeletePartitionRequest("/t", partitions=("2024-01-01",), token="x"),
        *(WriteRequest("/t", operation=operation, source="rows.parquet", token="x") for operation in OPERATIONS),
        WriteRequest("/t", operation="upsert", query="SELECT 1", dry_run=True, options={"hoodie.index.type": "BLOOM"}),
        WriteRequest("/t", operation="delete", where="day < '2026-01-01'", token="x"),
        WriteRequest("/t", operation="delete", dataframe="jobs.orders:gone", dataframe_args={"day": "2026-01-01"}),
    ],
)
def test_requests_cross_processes(request_: Any) -> None:
    assert parse_request(request_.to_json()) == request_
    assert request_.needs_executors


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"source": ""}, "needs a source"),
        ({"source": "x", "query": "SELECT 1"}, "exclude each other"),
        ({"dataframe": "a:b", "query": "SELECT 1"}, "query and dataframe exclude each other"),
        ({"source": "x", "dataframe_args": {"a": "b"}}, "are for a dataframe"),
        ({"dataframe": "os.system"}, "is no function"),
        ({"dataframe": "a:b", "dataframe_args": {"password": "x"}}, "dataframe_args"),
        ({"source": "https://user:secret@host/rows"}, "the address of the source"),
        ({"source": "x", "whole_table": True, "partitions": ("a",)}, "exclude each other"),
        ({"source": "x", "partitions": ("a", "a")}, "named twice"),
        ({"source": "x", "token": ""}, "is no token"),
        ({"source": "x", "token": "a\nb"}, "is no token"),
    ],
)
def test_what_means_nothing_is_refused(given: dict[str, Any], error: str) -> None:
    with pytest.raises(HudiError, match=error):
        InsertOverwriteRequest("/t", **given)


def test_a_delete_names_partitions() -> None:
    with pytest.raises(ConfigError, match="needs a partition"):
        DeletePartitionRequest("/t")


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"operation": ""}, "'' is no operation of write.*bulk_insert, insert, upsert, delete"),
        ({"operation": "merge"}, "'merge' is no operation"),
        ({"operation": "insert_overwrite"}, "'insert_overwrite' is no operation"),
        ({"source": " "}, "write needs a source"),
        ({"query": "SELECT 1"}, "source and query exclude each other"),
        ({"dataframe": "a:b"}, "source and dataframe exclude each other"),
        ({"operation": "delete", "where": "a = 1"}, "source and where exclude each other"),
        ({"source": "", "where": "a = 1"}, "`where` is for the operation delete"),
        ({"source": "", "dataframe": "no function"}, "is no function"),
        ({"dataframe_args": {"a": "b"}}, "are for a dataframe"),
        ({"source": "", "dataframe": "a:b", "dataframe_args": {"password": "x"}}, "dataframe_args"),
        ({"source": "https://user:secret@host/rows"}, "the address of the source"),
        ({"options": {"fs.s3a.secret.key": "x"}}, "options must not hold secrets"),
        ({"token": "a" * (MAX_TOKEN + 1)}, "is no token"),
        ({"token": "a\x7fb"}, "is no token"),
    ],
)
def test_a_write_that_means_nothing_is_refused(given: dict[str, Any], error: str) -> None:
    with pytest.raises(HudiError, match=error) as refused:
        WriteRequest("/t", **{"operation": "upsert", "source": "rows.parquet", **given})
    assert refused.value.exit_code == 2


@pytest.mark.parametrize("name", ["partitions", "whole_table", "instant"])
def test_a_write_has_no_field_of_another_verb(name: str) -> None:
    text = WriteRequest("/t", operation="upsert", source="rows.parquet").to_json()
    with pytest.raises(ConfigError, match=f"write takes no {name}"):
        parse_request(text.replace('"operation"', f'"{name}": null, "operation"'))


def test_a_session_is_asked_for_what_only_spark_has(golden: Golden, tmp_path: Path) -> None:
    table = golden("9", "cow_basic").table
    source = put_source(own_rows(table, read_rows(table)), tmp_path, files=3)
    context, config = open_context(table), EngineConfig()
    sizes = [path.stat().st_size for path in source.iterdir()]
    of_table = list(context.slice_sizes())
    for operation, due in (("insert", sizes), ("upsert", of_table), ("delete", of_table)):
        by_files = WriteRequest(str(table), operation=operation, source=str(source))
        assert not by_files.asks_session
        found = by_files.extent(context, config)
        assert (found.units, found.size, found.for_spark) == (len(due), sum(due), None)
    assert WriteRequest(str(table), operation="delete", where="id = 'a'").extent(context, config).size == sum(of_table)
    for name, value in (("query", "SELECT 1"), ("dataframe", "a:b")):
        given: dict[str, Any] = {"operation": "delete", name: value}
        request = WriteRequest(str(table), **given)
        assert request.asks_session
        assert request.extent(context, config).for_spark


@pytest.mark.parametrize("operation", ["UPSERT", "upsert"])
def test_a_write_is_done_once(golden: Golden, tmp_path: Path, operation: str) -> None:
    """By any spelling of its operation."""
    table = golden("9", "cow_basic").table
    rows = read_rows(table)
    source = str(put_source(own_rows(table, rows.slice(0, 3)), tmp_path))

    def run(**given: Any) -> dict[str, Any]:
        request = WriteRequest(str(table), **{"operation": operation, "source": source, "token": "a", **given})
        return HudiTable.open(str(table)).run(request, LocalEngine(1)).to_dict()

    done, again = run(), run(operation="upsert")
    assert (done["operation"], done["updated"], again["instant"]) == ("UPSERT", 3, done["instant"])
    assert [done["repeated"], again["repeated"]] == [False, True]
    with pytest.raises(ConfigError, match="the token is that of UPSERT"):
        run(operation="delete")
    assert places(read_rows(table)) == places(rows)


@pytest.mark.parametrize("operation", ["upsert", "delete"])
def test_an_index_that_is_not_looked_into_is_refused_by_name(golden: Golden, tmp_path: Path, operation: str) -> None:
    table = golden("9", "cow_basic").table
    source = str(put_source(own_rows(table, read_rows(table).slice(0, 3)), tmp_path))
    options = {"hoodie.index.type": "HBASE"}
    request = WriteRequest(str(table), operation=operation, source=source, options=options)
    with pytest.raises(HudiError, match="HBASE") as refused:
        HudiTable.open(str(table), {}, options).run(request, LocalEngine(1))
    assert refused.value.exit_code == 2
    inserts = WriteRequest(str(table), operation="insert", source=source, options=options)
    assert HudiTable.open(str(table), {}, options).run(inserts, LocalEngine(1)).to_dict()["inserted"] == 3
