"""What the result of a write counts, compared with the rows that real Hudi's commits left in a table."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.services.write.work import WriteResult
from tests.support.changed_tables import open_context
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import delete, overwrite, own_rows, put_source, within
from tests.support.table_invariants import read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]


def results(table: Path) -> list[WriteResult]:
    active = open_context(table).active
    commits = active.load().commits().instants
    return [WriteResult.of(item.requested_time, active.read_commit(item)) for item in commits]


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
def test_inserts_less_deletes_are_the_rows_of_the_table(golden: Golden, version: str) -> None:
    table = golden(version, "cow_basic").table
    counted = [(done.operation, done.inserted, done.updated, done.deleted) for done in results(table)]
    assert counted == [("INSERT", 120, 0, 0), ("UPSERT", 30, 80, 0), ("DELETE", 0, 0, 11)]
    assert read_rows(table).num_rows == 120 + 30 - 11


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
def test_records_are_the_rows_of_whole_new_files(golden: Golden, version: str) -> None:
    """A base file that is written anew has the rows that did not change, too."""
    table = golden(version, "cow_basic").table
    assert [(done.files_written, done.partitions, done.records) for done in results(table)] == [
        (3, 3, 120),
        (3, 3, 150),
        (3, 3, 139),
    ]


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
def test_an_overwrite_counts_what_it_replaces(golden: Golden, version: str) -> None:
    table = golden(version, "insert_overwrite_table").table
    last = results(table)[-1]
    assert (last.operation, last.partitions, last.replaced_file_groups) == ("INSERT_OVERWRITE_TABLE", 3, 3)
    assert (last.records, last.inserted, last.updated) == (40, 40, 0)
    assert read_rows(table).num_rows == 40


def test_a_run_returns_what_its_commit_counts(golden: Golden, tmp_path: Path) -> None:
    """A partition that is emptied counts, though no file is written there."""
    table = golden("9", "cow_basic").table
    rows = read_rows(table)
    first, second = sorted(set(rows.column("_hoodie_partition_path").to_pylist()))[:2]
    mine = own_rows(table, within(rows, first))
    done = overwrite(table, put_source(mine, tmp_path))
    assert (done.partitions, done.inserted, done.updated, done.deleted) == (1, mine.num_rows, 0, 0)
    emptied = delete(table, second)
    assert (emptied.partitions, emptied.files_written, emptied.inserted, emptied.records) == (1, 0, 0, 0)
    stored = results(table)[-2:]
    for returned, of_commit in zip((done, emptied), stored, strict=True):
        document = json.loads(json.dumps(returned.to_dict()))
        assert document == {**of_commit.to_dict(), "engine": "local"}
