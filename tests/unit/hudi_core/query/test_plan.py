"""Plans: they travel as JSON, and say what they read and what they rule out. That their rows are right is tested in
tests/golden.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.errors import ConfigError, FormatError, StorageNotFoundError
from hudi_core.filegroup.read import output_columns as output
from hudi_core.query.execute import read_split
from hudi_core.query.read_plan import ReadPlan
from hudi_core.table import HudiTable
from tests.support.golden_data import GoldenCase
from tests.support.rows import assert_same_rows, read_parquet

Golden = Callable[[str, str], GoldenCase]

ASKED: list[dict[str, Any]] = [
    {},
    {"query": "read_optimized", "columns": ["id", "_hoodie_commit_time"]},
    {"query": "incremental", "begin": "000", "where": "qty > 10"},
    {"query": "cdc", "begin": "000", "columns": ["after", "op"]},
]


def rows(plan: ReadPlan) -> pa.Table:
    return pa.Table.from_batches(plan.batches(), plan.schema)


@pytest.mark.parametrize("requested", ASKED, ids=lambda requested: requested.get("query", "snapshot"))
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_splits_are_read_by_whoever_gets_their_json(golden: Golden, version: str, requested: dict[str, Any]) -> None:
    """As an executor does: nothing but JSON, and a storage opened anew."""
    plan = HudiTable.open(str(golden(version, "cdc_mor").table)).plan(**requested)
    common, splits = json.loads(json.dumps(plan.common)), json.loads(json.dumps(plan.splits))
    batches = [batch for split in splits for batch in read_split(common, split)]
    assert all(batch.schema == plan.schema for batch in batches)
    found = pa.Table.from_batches(batches, plan.schema)
    assert found.num_rows > 0
    assert_same_rows(found, rows(plan), ignore=())
    assert all(split["bytes"] > 0 for split in splits)
    if "columns" in requested:
        assert plan.schema.names == requested["columns"]


@pytest.mark.parametrize("requested", ASKED, ids=lambda requested: requested.get("query", "snapshot"))
def test_what_all_splits_share_is_worked_out_once(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, requested: dict[str, Any]
) -> None:
    options = {"hoodie.nobody.asked.before": str(requested)}
    plan = HudiTable.open(str(golden("8", "cdc_mor").table), options=options).plan(**requested)
    calls: list[AvroSchema] = []
    resolved = output.arrow_schema

    def counted(schema: AvroSchema, *, path: str) -> pa.Schema:
        calls.append(schema)
        return resolved(schema, path=path)

    monkeypatch.setattr(output, "arrow_schema", counted)
    assert len(plan.splits) > 1
    assert rows(plan).num_rows
    assert rows(plan).num_rows
    assert len(calls) == 1


@pytest.mark.slow
def test_queries_that_share_a_process_do_not_mix(golden: Golden) -> None:
    table = HudiTable.open(str(golden("8", "mor_basic").table))
    requested = [{"columns": [name], "where": f"qty > {bound}"} for name in ("id", "qty") for bound in range(6)]
    plans = [table.plan(**options) for options in requested]  # type: ignore[arg-type]
    first = [rows(plan) for plan in plans]
    assert len({found.num_rows for found in first}) > 1
    assert [rows(plan) for plan in plans] == first


def test_bytes_are_those_of_the_files(golden: Golden) -> None:
    base = golden("9", "mor_basic").table
    plan = HudiTable.open(str(base)).plan()
    for split in plan.splits:
        names = [split["base_file"]["name"], *(log["name"] for log in split["log_files"])]
        assert split["bytes"] == sum((base / split["partition"] / name).stat().st_size for name in names)
    assert plan.files_read == sum(1 + len(split["log_files"]) for split in plan.splits)
    assert (plan.files_pruned, plan.report["files"]) == (0, 0)


@pytest.mark.parametrize("metadata", ["on", "off"])
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_what_a_predicate_rules_out_is_not_read(golden: Golden, version: str, metadata: str) -> None:
    case = golden(version, "cow_basic")
    table = HudiTable.open(str(case.table))
    plan = table.plan(where="dt = '2024-01-02'", metadata=metadata)  # type: ignore[arg-type]
    assert (plan.files_read, plan.files_pruned, len(plan.splits)) == (1, 2, 1)
    assert plan.report["by_kind"] == {"partition_path": 2}
    expected = read_parquet(case.expected / "snapshot.parquet")
    assert_same_rows(rows(plan), expected.filter(pa.compute.equal(expected["dt"], "2024-01-02")), ignore=())
    nothing = table.plan(where="dt = '1999-01-01'", metadata=metadata)  # type: ignore[arg-type]
    assert (nothing.files_read, nothing.files_pruned, rows(nothing).num_rows) == (0, 3, 0)
    assert nothing.schema == plan.schema


@pytest.mark.parametrize("version", ["8", "9"])
def test_statistics_rule_files_out_of_the_latest_snapshot_and_of_older_ones(golden: Golden, version: str) -> None:
    """Statistics of files hold for every query that reads them."""
    table = HudiTable.open(str(golden(version, "mdt_all_cow").table))
    first = table.timeline().commits().first()
    assert first is not None
    requested: list[dict[str, Any]] = [
        {},
        {"as_of": first.requested_time},
        {"query": "incremental", "begin": "000"},
        {"query": "read_optimized"},
    ]
    for query in requested:
        whole = rows(table.plan(**query))
        least = min(value for value in whole["ts"].to_pylist() if value is not None)
        plan = table.plan(**query, where=f"ts < {least}")
        assert (plan.files_read, rows(plan).num_rows) == (0, 0)
        assert plan.files_pruned > 0
        kept = table.plan(**query, where=f"ts <= {least}")
        assert_same_rows(rows(kept), whole.filter(pa.compute.equal(whole["ts"], least)), ignore=())


def test_a_split_cannot_lead_out_of_the_table(golden: Golden) -> None:
    plan = HudiTable.open(str(golden("9", "cdc_mor").table)).plan()
    for field, value in (("partition", "../elsewhere"), ("base_file", {"name": "../x.parquet", "size": 1})):
        with pytest.raises(FormatError):
            list(read_split(plan.common, {**plan.splits[0], field: value}))
    changes = HudiTable.open(str(golden("9", "cdc_cow").table)).plan(query="cdc", begin="000")
    logged = next(split for split in changes.splits if split["logs"])
    for damaged in ({**logged, "partition": "/etc"}, {**logged, "logs": [{"name": "../../passwd", "size": 1}]}):
        with pytest.raises(FormatError):
            list(read_split(changes.common, damaged))


@pytest.mark.parametrize("query", ["snapshot", "cdc"])
def test_json_of_another_release_is_refused(golden: Golden, query: str) -> None:
    requested = {"begin": "000"} if query == "cdc" else {}
    plan = HudiTable.open(str(golden("9", "cdc_mor").table)).plan(query=query, **requested)  # type: ignore[arg-type]
    for common, split in (
        ({}, plan.splits[0]),
        ({**plan.common, "reader": {}}, plan.splits[0]),
        ({**plan.common, "reader": "{"}, plan.splits[0]),
        (plan.common, {}),
        (plan.common, {"partition": 3}),
    ):
        with pytest.raises(ConfigError):
            list(read_split(common, split))


def test_a_file_that_is_gone_is_named(golden: Golden) -> None:
    base = golden("9", "cow_basic").table
    plan = HudiTable.open(str(base)).plan()
    victim: Path = base / plan.splits[0]["partition"] / plan.splits[0]["base_file"]["name"]
    victim.unlink()
    with pytest.raises(StorageNotFoundError, match=victim.name):
        rows(plan)


def test_a_table_without_commits_has_columns_and_no_rows(golden: Golden) -> None:
    for version in ("6", "8", "9"):
        plan = HudiTable.open(str(golden(version, "empty_table_no_commits").table)).plan()
        assert (plan.splits, rows(plan).num_rows) == ((), 0)
        assert len(plan.schema) > 5
