"""Plans say what they read and what they rule out. That their rows are right is tested in tests/golden."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.query.read_plan import ReadPlan
from hudi_core.table import HudiTable
from tests.support.golden_data import GoldenCase
from tests.support.rows import assert_same_rows, read_parquet
from tests.support.splits import slice_of
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]


def rows(plan: ReadPlan) -> pa.Table:
    return pa.Table.from_batches(plan.batches(), plan.schema)


def test_bytes_are_those_of_the_files(golden: Golden) -> None:
    base = golden("9", "mor_basic").table
    plan = HudiTable.open(str(base)).plan()
    for split in plan.splits:
        assert split["bytes"] == sum((base / file.path).stat().st_size for file in slice_of(split).files)
    assert plan.files_read == sum(1 + len(slice_of(split).log_files) for split in plan.splits)
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


@pytest.mark.parametrize("version", tiered(["8", "9"], ["9"]))
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


def test_a_table_without_commits_has_columns_and_no_rows(golden: Golden) -> None:
    for version in ("6", "8", "9"):
        plan = HudiTable.open(str(golden(version, "empty_table_no_commits").table)).plan()
        assert (plan.splits, rows(plan).num_rows) == ((), 0)
        assert len(plan.schema) > 5
