"""Corrupt log blocks are findings where a query would skip them, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_health.doctor.examine import examine
from hudi_health.doctor.findings import DataFiles, Finding
from hudi_health.doctor.stored_files import damaged_logs
from tests.support.golden_cleans import context_of
from tests.support.golden_data import GoldenCase
from tests.support.hudictl_runner import hudictl
from tests.support.tiers import tiered

RULES = ("corrupt_log_block", "torn_log_tail")
Golden = Callable[[str, str], GoldenCase]


def found(table: Path, *, files: bool = True) -> list[Finding]:
    report = examine(context_of(table), files=files)
    return [finding for finding in report.findings if finding.rule in RULES]


def read_count(table: Path, output: Path) -> int:
    """Without the metadata table, by whose sizes a file that was cut is an error."""
    count = hudictl("read", table, "--output", output, "--metadata", "off", "--json").document["corrupt_log_blocks"]
    assert isinstance(count, int)
    return count


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
@pytest.mark.parametrize("name", ["log_corrupt_middle", "log_corrupt_tail", "log_truncated"])
def test_what_a_query_skips_is_found(golden: Golden, tmp_path: Path, version: str, name: str) -> None:
    table = golden(version, name).table
    count = read_count(table, tmp_path / "out.parquet")
    findings = found(table)
    assert len(findings) == count > 0
    lost = name == "log_truncated"
    for finding in findings:
        assert (finding.rule, finding.severity) == (
            ("corrupt_log_block", "error") if lost else ("torn_log_tail", "info")
        )
        assert finding.path is not None
        assert (table / finding.path).is_file()
        assert "corrupt log block" in finding.what
        assert ("of the file are of deltacommit" in finding.what) == lost
        assert ("--allow-corrupt-log-blocks" if lost else "--schedule") in finding.fix
    assert found(table, files=False) == []


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_torn_upload_is_found_by_its_file(golden: Golden, tmp_path: Path, version: str) -> None:
    table = golden(version, "mor_basic").table
    assert found(table) == []
    log = max(table.glob("2024-01-02/.*.log.*"), key=lambda path: path.name)
    log.write_bytes(log.read_bytes()[:-40])
    assert [finding.path for finding in found(table)] == [f"2024-01-02/{log.name}"]
    assert read_count(table, tmp_path / "out.parquet") == 1


def test_a_file_that_is_no_log_file_is_found(golden: Golden) -> None:
    table = golden("9", "mor_basic").table
    log = max(table.glob("2024-01-02/.*.log.*"), key=lambda path: path.name)
    log.write_bytes(b"nonsense" + log.read_bytes()[8:])
    (finding,) = found(table)
    assert finding.path == f"2024-01-02/{log.name}"
    assert "magic" in finding.what
    assert "fail" in finding.fix


def test_a_copy_on_write_table_has_no_log_files(golden: Golden) -> None:
    context = context_of(golden("9", "cow_basic").table)
    assert [*damaged_logs(DataFiles(context, context.active.load()))] == []
