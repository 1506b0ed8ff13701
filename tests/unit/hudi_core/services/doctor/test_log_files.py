from __future__ import annotations

from dataclasses import replace

import pytest

from hudi_core.services.doctor.finding import KEPT, Counted
from hudi_core.services.doctor.log_files import corrupt_logs, find_corrupt_logs
from tests.support.golden_cleans import context_of
from tests.unit.hudi_core.services.doctor.test_examine import VERSIONS, Golden, findings
from tests.unit.hudi_core.services.doctor.test_rules import HEALTHY


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", ["log_corrupt_middle", "log_corrupt_tail", "log_truncated"])
def test_logs_that_queries_read_in_part(golden: Golden, version: str, case: str) -> None:
    table = golden(version, case).table
    named = [finding for finding in findings(table) if finding.rule == "corrupt_log_file"]
    assert named
    for finding in named:
        assert (finding.severity, ".log." in str(finding.path)) == ("error", True)
        assert (table / str(finding.path)).is_file()
        assert "are no block" in finding.what
    assert "corrupt_log_file" not in [finding.rule for finding in findings(table, files=False)]


@pytest.mark.parametrize("version", VERSIONS)
def test_logs_that_are_whole(golden: Golden, version: str) -> None:
    table = golden(version, "mor_basic").table
    context = context_of(table)
    assert find_corrupt_logs(context, context.active.load()) == Counted()


@pytest.mark.parametrize("version", ["8", "9"])
def test_a_log_that_is_none(golden: Golden, version: str) -> None:
    table = golden(version, "mor_basic").table
    path = sorted(table.glob("*/.*.log.*"))[-1]
    path.write_bytes(b"no log" * 100)
    context = context_of(table)
    found = find_corrupt_logs(context, context.active.load())
    assert [name for name, _ in found.first] == [path.relative_to(table).as_posix()]


def test_a_plan_that_cannot_be_read_has_a_finding_of_its_own(golden: Golden) -> None:
    table = golden("9", "mor_compaction_requested").table
    (plan,) = table.glob(".hoodie/timeline/*.compaction.requested")
    plan.write_bytes(b"x")
    context = context_of(table)
    assert find_corrupt_logs(context, context.active.load()) == Counted()


def test_no_more_than_are_kept_are_named() -> None:
    counted: Counted[tuple[str, str]] = Counted()
    for number in range(KEPT + 7):
        counted.add((f"p/{number}", "torn"))
    found = list(corrupt_logs(replace(HEALTHY, corrupt_logs=counted)))
    assert len(found) == KEPT + 1
    assert found[-1].what == "7 more log files are damaged"
