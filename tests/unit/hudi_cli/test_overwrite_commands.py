"""insert-overwrite and delete-partition, as scripts and as people see them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.golden_data import GoldenCase
from tests.support.hudictl_runner import hudictl
from tests.support.overwrites import own_rows, put_source, within
from tests.support.table_invariants import assert_metadata_true, read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
LOCAL = ("--engine", "local")


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6"]))
def test_rows_replace_a_partition(golden: Golden, tmp_path: Path, version: str) -> None:
    table = golden(version, "mor_basic").table
    rows = read_rows(table)
    name = min(rows.column("_hoodie_partition_path").to_pylist())
    given = put_source(own_rows(table, within(rows, name).slice(0, 4)), tmp_path)
    asked = ("insert-overwrite", table, "--source", given, "--token", "today", *LOCAL)
    assert "would replace" in hudictl(*asked, "--dry-run").out
    would = hudictl(*asked, "--dry-run", "--json").document
    assert (would["instant"], would["records"], would["files_written"], would["reason"]) == (None, 4, 0, "a dry run")
    document = hudictl(*asked, "--json").document
    assert document["records"] == 4
    assert not document["repeated"]
    assert document["engine"] == "local"
    assert document["replaced_file_groups"] > 0
    assert within(read_rows(table), name).num_rows == 4
    assert document["reason"] is None
    again = hudictl(*asked, "--json").document
    why = f"an earlier run with the same token did it, as instant {document['instant']}"
    assert again == {**document, "repeated": True, "reason": why, "engine": None}
    assert hudictl(*asked, "--dry-run", "--json").document == again
    assert "done before" in hudictl(*asked).out
    assert "done before" in hudictl(*asked[:-1], "spark").out, "Spark is not started for that"
    assert_metadata_true(table)


def test_partitions_are_deleted(golden: Golden) -> None:
    table = golden("9", "cow_basic").table
    rows = read_rows(table)
    first, second, *others = sorted(set(rows.column("_hoodie_partition_path").to_pylist()))
    done = hudictl("delete-partition", table, "--partition", first, "--partition", second)
    assert "in 2 partitions are replaced by 0 rows in 0 files" in done.out
    assert set(read_rows(table).column("_hoodie_partition_path").to_pylist()) == set(others)


def test_bad_input_is_told(golden: Golden, tmp_path: Path) -> None:
    table = golden("9", "cow_basic").table
    missing = hudictl("delete-partition", table, "--partition", "nowhere", "--json")
    assert missing.code == 2
    assert "no partition 'nowhere'" in missing.error["message"]
    source = hudictl("insert-overwrite", table, "--source", tmp_path / "none", *LOCAL, "--json")
    assert source.code == 2
    both = hudictl("insert-overwrite", table, "--source", tmp_path, "--whole-table", "--partition", "a", "--json")
    assert both.code == 2
    assert "exclude each other" in both.error["message"]
    assert hudictl("delete-partition", table).code == 2


def test_nothing_to_do_is_told(golden: Golden, tmp_path: Path) -> None:
    table = golden("9", "cow_basic").table
    given = put_source(own_rows(table, read_rows(table)).slice(0, 0), tmp_path)
    assert "nothing to do: the source has no rows" in hudictl("insert-overwrite", table, "--source", given, *LOCAL).out
