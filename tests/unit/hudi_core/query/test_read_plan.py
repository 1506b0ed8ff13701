"""Splits travel as JSON and are read anywhere. That their rows are right is tested in tests/golden."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.errors import ConfigError, FormatError, StorageNotFoundError
from hudi_core.filegroup.read import read_spec as output
from hudi_core.model.names import FileGroupId
from hudi_core.query.read_plan import ReadPlan, read_split, split_of
from hudi_core.table import HudiTable
from hudi_core.view.file_group import DataFile
from tests.support.golden_data import GoldenCase
from tests.support.rows import assert_same_rows
from tests.support.splits import change_of, slice_of
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]

QUERIES: list[dict[str, Any]] = [
    {},
    {"query": "read_optimized", "columns": ["id", "_hoodie_commit_time"]},
    {"query": "incremental", "begin": "000", "where": "qty > 10"},
    {"query": "cdc", "begin": "000", "columns": ["after", "op"]},
]


def rows(plan: ReadPlan) -> pa.Table:
    return pa.Table.from_batches(plan.batches(), plan.schema)


@pytest.mark.parametrize("requested", QUERIES, ids=lambda requested: requested.get("query", "snapshot"))
@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
def test_splits_are_read_from_their_json(golden: Golden, version: str, requested: dict[str, Any]) -> None:
    """As an executor does: nothing but JSON, and a new storage."""
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


@pytest.mark.parametrize("requested", QUERIES, ids=lambda requested: requested.get("query", "snapshot"))
def test_what_all_splits_share_is_worked_out_once(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, requested: dict[str, Any]
) -> None:
    options = {"hoodie.no.other.test": str(requested)}
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


def test_a_split_cannot_lead_out_of_the_table(golden: Golden) -> None:
    plan = HudiTable.open(str(golden("9", "cdc_mor").table)).plan()
    item = slice_of(plan.splits[0])
    for leading_out in (
        replace(item, file_group=FileGroupId("../elsewhere", item.file_group.file_id)),
        replace(item, base_file=DataFile(item.file_group.partition, "../x.parquet", 1)),
    ):
        with pytest.raises(FormatError):
            list(read_split(plan.common, split_of(leading_out)))
    changes = HudiTable.open(str(golden("9", "cdc_cow").table)).plan(query="cdc", begin="000")
    logged = next(change for change in map(change_of, changes.splits) if change.logs)
    for damaged in (
        replace(logged, partition="/etc"),
        replace(logged, logs=(DataFile(logged.partition, "../../passwd", 1),)),
    ):
        with pytest.raises(FormatError):
            list(read_split(changes.common, split_of(damaged)))


@pytest.mark.parametrize("query", ["snapshot", "cdc"])
def test_json_of_another_release_is_refused(golden: Golden, query: str) -> None:
    requested = {"begin": "000"} if query == "cdc" else {}
    plan = HudiTable.open(str(golden("9", "cdc_mor").table)).plan(query=query, **requested)  # type: ignore[arg-type]
    for common, split in (
        ({}, plan.splits[0]),
        ({**plan.common, "reader": {}}, plan.splits[0]),
        ({**plan.common, "reader": "{"}, plan.splits[0]),
        (plan.common, {}),
        (plan.common, {"part": 3}),
        (plan.common, {"part": "[]"}),
    ):
        with pytest.raises(ConfigError):
            list(read_split(common, split))


def test_a_file_that_is_gone_is_named(golden: Golden) -> None:
    base = golden("9", "cow_basic").table
    plan = HudiTable.open(str(base)).plan()
    (file,) = slice_of(plan.splits[0]).files
    victim = base / file.path
    victim.unlink()
    with pytest.raises(StorageNotFoundError, match=victim.name):
        rows(plan)
