"""Which check each listed partition of the metadata table gets, and what is said of those without one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.config.table_config import METADATA, update_properties
from hudi_core.metadata_table.indexed_table import put_index_definitions
from hudi_core.metadata_table.partitions.registry import PARTITION_TYPES
from hudi_core.metadata_table.partitions.single_files import FilesPartition
from hudi_core.storage.arrow_store import open_data_storage
from hudi_health.validate.check import Findings
from hudi_health.validate.registry import _CHECKS, partition_checks
from hudi_health.validate.subject import Subject
from tests.support.golden_cleans import context_of
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import Table

Golden = Callable[[str, str], GoldenCase]


def checked(table: Path, options: dict[str, str] | None = None) -> tuple[dict[str, str], dict[str, str]]:
    """The class of each partition's check, and why others have none or a part of one."""
    context, findings = context_of(table, options), Findings()
    subject = Subject(context, open_data_storage(str(table)), context.active.load(), findings)
    checks = {check.name: type(check).__name__ for check in partition_checks(subject)}
    return checks, {item.partition_type: item.why for item in findings.report((), 0, 0, 0).not_checked}


def test_every_partition_type_has_a_check_but_the_listing() -> None:
    assert set(PARTITION_TYPES) - set(_CHECKS) == {FilesPartition}


@pytest.mark.parametrize("version", ["8", "9"])
def test_checks_of_a_table_with_every_index(golden: Golden, version: str) -> None:
    checks, not_checked = checked(golden(version, "mdt_all_cow").table, {"airflow_hudi.read.zone": "UTC"})
    assert checks == {
        "bloom_filters": "BloomFiltersCheck",
        "column_stats": "ColumnStatsCheck",
        "expr_index_idx_day": "ExpressionStatsCheck",
        "expr_index_idx_low": "ExpressionFiltersCheck",
        "partition_stats": "PartitionStatsCheck",
        "record_index": "RecordIndexCheck",
        "secondary_index_idx_name": "SecondaryIndexCheck",
    }
    assert "secondary_index_idx_name" not in not_checked


def test_values_of_an_unknown_zone_are_not_compared(golden: Golden) -> None:
    checks, not_checked = checked(golden("9", "mdt_all_cow").table)
    assert checks["expr_index_idx_day"] == "ExpressionStatsCheck"
    assert "airflow_hudi.read.zone" in not_checked["expr_index_idx_day"]


def test_a_partition_that_no_release_knows(golden: Golden) -> None:
    table = Table(golden("9", "mdt_all_cow").table)
    listed = ",".join(sorted(table.config.metadata_partitions | {"vector_index"}))
    update_properties(table.storage, {METADATA.name: listed})
    checks, not_checked = checked(table.path)
    assert "vector_index" not in checks
    assert not_checked["vector_index"] == "a partition type that this release does not know"


def test_indexes_without_their_definitions(golden: Golden) -> None:
    table = Table(golden("9", "mdt_all_cow").table)
    names = [name for name in table.config.metadata_partitions if name.startswith(("expr_index_", "secondary_index_"))]
    put_index_definitions(table.storage, table.config, [], names)
    checks, not_checked = checked(table.path)
    assert set(names).isdisjoint(checks)
    assert not_checked["secondary_index_idx_name"] == "its definition names no single column of the table"
    assert not_checked["expr_index_idx_day"] == "an expression that predicates cannot name"
