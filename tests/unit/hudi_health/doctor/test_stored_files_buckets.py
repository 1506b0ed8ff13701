"""Buckets of several file groups are found in tables of real Hudi to which a second file group was given."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_health.doctor.findings import DataFiles
from hudi_health.doctor.stored_files import shared_buckets
from tests.support.golden_cleans import context_of
from tests.support.golden_data import GoldenCase
from tests.support.hudictl_runner import hudictl
from tests.support.tiers import tiered
from tests.unit.hudi_health.doctor.test_examine import findings

Golden = Callable[[str, str], GoldenCase]
RULE = "bucket_of_several_groups"
BUCKETS = ("hoodie.index.type=BUCKET", "hoodie.bucket.index.num.buckets=4", "hoodie.combine.before.insert=true")


def shared(table: Path) -> list[str]:
    context = context_of(table)
    findings = shared_buckets(DataFiles(context, context.active.load()))
    return [path for finding in findings for path in finding.what.partition("(")[2].partition(")")[0].split(", ")]


def give_second_group(table: Path, instant: str | None = None) -> list[str]:
    """The paths of a file group and of its copy in the same bucket, which `instant` wrote, as a commit of the table."""
    file = max(table.glob("*/0000*.parquet"), key=lambda path: path.name.split("_")[-1])
    name = f"{file.name[:9]}ffff{file.name[13:]}"
    if instant is not None:
        name = f"{name.rpartition('_')[0]}_{instant}.parquet"
    shutil.copy2(file, file.with_name(name))
    return sorted(f"{file.parent.name}/{path.split('_')[0]}" for path in (file.name, name))


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
def test_a_second_file_group_is_found_and_the_fix_mends_it(golden: Golden, version: str) -> None:
    table = golden(version, "bucket_index_cow").table
    assert shared(table) == []
    groups = give_second_group(table)
    assert sorted(shared(table)) == groups
    (found,) = [item for item in findings(table) if item.rule == RULE]
    assert (found.severity, found.path in groups) == ("error", True)
    assert all(option in found.fix for option in (BUCKETS[0], BUCKETS[1].rstrip("4"), BUCKETS[2]))
    partition, rows = groups[0].partition("/")[0], table.parent / "rows.parquet"
    assert hudictl("read", table, "--where", f"dt = '{partition}'", "--output", rows).code == 0
    options = [part for option in BUCKETS for part in ("--option", option)]
    assert hudictl("insert-overwrite", table, "--source", rows, "--engine", "local", *options).code == 0
    assert shared(table) == []


def test_a_pending_write_is_no_second_file_group(golden: Golden) -> None:
    table = golden("9", "bucket_index_cow").table
    give_second_group(table, "20991231235959999")
    assert shared(table) == []


@pytest.mark.parametrize("name", ["bucket_index_mor", "bucket_index_consistent_mor", "mor_basic"])
def test_sound_tables_have_none(golden: Golden, name: str) -> None:
    assert shared(golden("9", name).table) == []
