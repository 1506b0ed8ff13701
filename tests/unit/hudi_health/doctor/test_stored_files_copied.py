"""Copies of base files under another file id are found by the names in their rows, and nothing else is."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_health.doctor.examine import examine
from hudi_health.doctor.findings import DataFiles
from hudi_health.doctor.stored_files import copied_files
from tests.support.golden_cleans import context_of
from tests.support.golden_data import GoldenCase

Golden = Callable[[str, str], GoldenCase]


def found(table: Path) -> list[str]:
    """The copies that are named, each with its original."""
    context = context_of(table)
    findings = copied_files(DataFiles(context, context.active.load()))
    return [finding.what.partition("(")[2].partition(")")[0] for finding in findings]


def newest(table: Path, partition: str) -> Path:
    return max(table.glob(f"{partition}/*.parquet"), key=lambda path: path.name.rsplit("_", 1)[-1])


@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize("partition", ["2024-01-01", "2024-01-03"])
def test_a_copy_is_found_in_any_partition(golden: Golden, version: str, partition: str) -> None:
    table = golden(version, "cow_basic").table
    assert found(table) == []
    path = newest(table, "2024-01-01")
    shutil.copy(path, table / partition / f"copy-{path.name}")
    assert found(table) == [f"{partition}/copy-{path.name} of {path.name}"]
    rules = [finding.rule for finding in examine(context_of(table)).findings]
    assert rules.count("file_by_two_names") == 1
    assert "file_by_two_names" not in [finding.rule for finding in examine(context_of(table), files=False).findings]


def test_a_copy_of_an_older_version_of_a_file_is_found(golden: Golden) -> None:
    """Its file group is read by a newer file."""
    table = golden("9", "cow_basic").table
    path = min(table.glob("2024-01-01/*.parquet"), key=lambda path: path.name.rsplit("_", 1)[-1])
    assert path != newest(table, "2024-01-01")
    shutil.copy(path, path.with_name(f"copy-{path.name}"))
    assert found(table) == [f"2024-01-01/copy-{path.name} of {path.name}"]


@pytest.mark.parametrize("version", ["6", "9"])
def test_names_of_a_replaced_file_group_are_lawful(golden: Golden, version: str) -> None:
    """As early releases left them when they clustered: the file of such a name is not read."""
    table = golden(version, "clustered_cow").table
    context = context_of(table)
    view = context.view(context.active.load())
    replaced = [
        group.slices[0].base_file
        for partition in view.partitions()
        for group in view.all_file_groups(partition)
        if view.replaced_at(group.id) is not None and group.slices
    ]
    original = next(file for file in replaced if file is not None)
    instant = max(context.active.load().commits().requested_times)
    group = original.name.split("_")[0]
    shutil.copy(table / original.path, table / original.partition / f"copy-{group}_0-0-0_{instant}.parquet")
    assert found(table) == []
