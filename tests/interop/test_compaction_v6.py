"""Real Apache Hudi judges the tables on which we ran a compaction that it had scheduled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.table import HudiTable
from hudi_core.verbs.run import RunRequest
from tests.interop.changes import after_upsert, upsert_rows, user_columns, write_parquet
from tests.interop.real_hudi import RealHudi
from tests.support.golden_data import GoldenCase
from tests.support.rows import assert_same_rows, read_parquet

pytestmark = [pytest.mark.hudi, pytest.mark.slow]

CASES = [
    "mor_compaction_requested",
    "mor_compaction_requested_only",
    "compaction_inflight",
    "payload_default",
    "payload_overwrite_latest",
    "schema_evolution_mor_compaction_requested",
]
Golden = Callable[[str, str], GoldenCase]


def compact(table: Path) -> str:
    """Runs the table's oldest pending compaction by our engine; returns its instant."""
    result = HudiTable.open(str(table)).run(
        RunRequest(table=str(table), service="compaction", owner="test"), LocalEngine(2)
    )
    (done,) = result.instants
    assert done.state == "completed", done
    return done.instant


def serviced(golden: Golden, case: str) -> GoldenCase:
    """A golden table after our run of its pending compaction."""
    chosen = golden("6", case)
    instant = compact(chosen.table)
    assert (chosen.table / ".hoodie" / f"{instant}.commit").stat().st_size > 0
    return chosen


def assert_hudi_reads(hudi: RealHudi, chosen: GoldenCase) -> None:
    """Metadata table on and off, snapshot and read-optimized: the rows of the case's expected result."""
    for metadata in (True, False):
        for query in ("snapshot", "read_optimized"):
            expected = read_parquet(chosen.expected / f"after_{query}.parquet")
            assert_same_rows(hudi.snapshot(chosen.table, metadata=metadata, query=query), expected)


def assert_metadata_equals_storage(hudi: RealHudi, chosen: GoldenCase) -> None:
    """Hudi's own validation of the metadata table's file list, where the table has one."""
    if (chosen.table / ".hoodie" / "metadata" / ".hoodie").is_dir():
        answer = hudi.ask("validate_metadata", base=str(chosen.table))
        assert answer["wrong"] == []
        assert answer["files"] >= 3


def write_on_top(hudi: RealHudi, chosen: GoldenCase, scratch: Path, *, options: dict[str, str] | None = None) -> None:
    """Real Hudi upserts, schedules a further compaction and executes it; the rows are right after each step."""
    base = str(chosen.table)
    before = read_parquet(chosen.expected / "after_snapshot.parquet")
    rows = upsert_rows(before, 5, "top")
    hudi.ask("write", base=base, operation="upsert", parquet=write_parquet(rows, scratch, "upsert"), options=options)
    expected = after_upsert(before, rows)
    # Real Hudi rewrites small base files where rows are new; rows that are only updated go to logs.
    rows = upsert_rows(expected, 5, "again").slice(0, 5)
    hudi.ask("write", base=base, operation="upsert", parquet=write_parquet(rows, scratch, "update"), options=options)
    expected = after_upsert(expected, rows)
    for metadata in (True, False):
        assert_same_rows(user_columns(hudi.snapshot(chosen.table, metadata=metadata)), expected)
    instant = hudi.ask("schedule_compaction", base=base, options=options)
    assert instant is not None
    hudi.ask("compact", base=base, instant=instant, options=options)
    for metadata in (True, False):
        assert_same_rows(user_columns(hudi.snapshot(chosen.table, metadata=metadata)), expected)
        assert_same_rows(user_columns(hudi.snapshot(chosen.table, metadata=metadata, query="read_optimized")), expected)


@pytest.mark.conformance
@pytest.mark.parametrize("case", CASES)
def test_native_version_reads_writes_and_compacts_what_we_compacted(
    golden: Golden, hudi_0_15: RealHudi, tmp_path: Path, case: str
) -> None:
    chosen = serviced(golden, case)
    assert_hudi_reads(hudi_0_15, chosen)
    assert_metadata_equals_storage(hudi_0_15, chosen)
    write_on_top(hudi_0_15, chosen, tmp_path)
    assert_metadata_equals_storage(hudi_0_15, chosen)


@pytest.mark.conformance
@pytest.mark.parametrize("case", CASES)
def test_version_1_2_reads_what_we_compacted(golden: Golden, hudi_1_2: RealHudi, case: str) -> None:
    chosen = serviced(golden, case)
    assert_hudi_reads(hudi_1_2, chosen)
    assert_metadata_equals_storage(hudi_1_2, chosen)


@pytest.mark.conformance
def test_version_1_2_writes_and_compacts_at_table_version_6(golden: Golden, hudi_1_2: RealHudi, tmp_path: Path) -> None:
    chosen = serviced(golden, "mor_compaction_requested")
    write_on_top(hudi_1_2, chosen, tmp_path)
    assert "hoodie.table.version=6" in (chosen.table / ".hoodie" / "hoodie.properties").read_text()
    assert_metadata_equals_storage(hudi_1_2, chosen)


@pytest.mark.conformance
def test_version_1_2_upgrades_the_table_to_version_9(golden: Golden, hudi_1_2: RealHudi, tmp_path: Path) -> None:
    chosen = serviced(golden, "mor_compaction_requested")
    write_on_top(
        hudi_1_2, chosen, tmp_path, options={"hoodie.write.auto.upgrade": "true", "hoodie.write.table.version": "9"}
    )
    assert "hoodie.table.version=9" in (chosen.table / ".hoodie" / "hoodie.properties").read_text()


@pytest.mark.conformance
def test_a_compaction_after_ours_and_one_of_ours_after_hudis(
    golden: Golden, hudi_0_15: RealHudi, tmp_path: Path
) -> None:
    """We and real Hudi take turns on one table: its upsert, our compaction of the plan it scheduled, twice."""
    chosen = serviced(golden, "mor_compaction_requested_only")
    base = str(chosen.table)
    expected = read_parquet(chosen.expected / "after_snapshot.parquet")
    for turn in ("first", "second"):
        rows = upsert_rows(hudi_0_15.snapshot(chosen.table, metadata=False), 7, turn).slice(0, 7)
        expected = after_upsert(expected, rows)
        hudi_0_15.ask("write", base=base, operation="upsert", parquet=write_parquet(rows, tmp_path, turn))
        scheduled = hudi_0_15.ask("schedule_compaction", base=base)
        assert compact(chosen.table) == scheduled
        for metadata in (True, False):
            for query in ("snapshot", "read_optimized"):
                assert_same_rows(
                    user_columns(hudi_0_15.snapshot(chosen.table, metadata=metadata, query=query)), expected
                )
        assert_metadata_equals_storage(hudi_0_15, chosen)
