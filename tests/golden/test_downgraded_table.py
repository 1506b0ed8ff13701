"""A table of version 9 that real Hudi 1.2.0 downgraded to 6: its metadata table was compacted at the downgrade, and
then `column_stats` dropped, and begun again under an earlier instant.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.errors import CorruptFileError
from hudi_core.table import HudiTable
from tests.support.hudictl_runner import hudictl
from tests.unit.hudi_health.doctor.test_examine import findings

Reported = Callable[[str], Path]
WHERES = {"id = 'k1'": 1, "ts > 1": 4, "v = 'v2' and part = 'p0'": 2, "v = 'none'": 0}
"""Predicates, and how many rows real Hudi reads by each."""


def count(table: Path, where: str | None = None, metadata: str = "on") -> int:
    return sum(batch.num_rows for batch in HudiTable.open(str(table)).read(where=where, metadata=metadata).batches)


def assert_whole(table: Path) -> None:
    assert count(table) == 6
    assert {where: count(table, where) for where in WHERES} == WHERES
    assert hudictl("metadata", "validate", table).code == 0
    assert [item.rule for item in findings(table) if item.severity == "error"] == []


def test_it_is_read_by_its_indexes_and_clustered(reported: Reported) -> None:
    table = reported("downgraded_9_to_6")
    output = table.parent / "rows.parquet"
    assert "(2 pruned)" in hudictl("read", table, "--where", "id = 'k1'", "--output", output).out
    assert_whole(table)
    assert hudictl("run", "clustering", table, "--schedule", "--engine", "local").code == 0
    assert_whole(table)


def test_a_missing_file_of_the_index_that_began_again_is_found(reported: Reported) -> None:
    table = reported("downgraded_9_to_6")
    (victim,) = table.glob(".hoodie/metadata/column_stats/col-stats-0000-0_*.hfile")
    victim.unlink()
    with pytest.raises(CorruptFileError, match="is not there"):
        count(table, "id = 'k1'")
    (found,) = [item for item in findings(table) if item.severity == "error"]
    assert (found.rule, found.path) == ("index_damaged", str(victim.relative_to(table)))


def test_what_lies_behind_the_compaction_of_the_downgrade_is_refused(reported: Reported) -> None:
    """Log files of version 9 name no base file: layout 1 would lose the rows below them. Hudi 0.15 fails there."""
    table = reported("downgraded_9_to_6")
    output = table.parent / "rows.parquet"
    before = {path: path.read_bytes() for path in table.rglob("*") if path.is_file()}
    first, second, third, compaction = (f"202611281334{time}" for time in ("11409", "18011", "22649", "29495"))
    refused = [hudictl("read", table, "--as-of", time, "--output", output, "--json") for time in (second, third)]
    refused += [hudictl("restore", table, "--instant", time, "--json") for time in (first, second, third)]
    since = ("--query", "incremental", "--begin", first, "--end", third)
    refused.append(hudictl("read", table, *since, "--output", output, "--json"))
    assert {(done.code, done.error["type"]) for done in refused} == {(2, "UnsupportedError")}
    assert all("downgrade" in done.error["message"] for done in refused)
    listed = hudictl("restore", table, "--dry-run", "--json").document["restorable"]
    assert [item["instant"] for item in listed if item["reason"] is None] == [compaction]
    assert {path: path.read_bytes() for path in table.rglob("*") if path.is_file()} == before


def test_what_the_downgrade_did_not_cut_off_is_read_and_restored(reported: Reported) -> None:
    table = reported("downgraded_9_to_6")
    for instant, rows in {"20261128133411409": 4, "20261128133429495": 6}.items():
        assert sum(batch.num_rows for batch in HudiTable.open(str(table)).read(as_of=instant).batches) == rows
    assert hudictl("restore", table, "--instant", "20261128133429495").code == 0
    assert_whole(table)
