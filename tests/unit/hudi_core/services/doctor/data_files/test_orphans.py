from __future__ import annotations

import shutil

import pytest

from hudi_core.services.doctor.finding import Finding, OrphanObservations
from tests.support.golden_cleans import context_of
from tests.unit.hudi_core.services.doctor.test_examine import VERSIONS, Golden, findings
from tests.unit.hudi_core.services.doctor.test_rules import T, found


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("when", ["before the timeline begins", "after it began"])
def test_a_base_file_that_landed_after_its_rollback(golden: Golden, version: str, when: str) -> None:
    """Older than the timeline it is visible to readers, later it will be."""
    table = golden(version, "archived_timeline_cow").table
    context = context_of(table)
    first = min(context.active.load().commits().requested_times)
    archived = sorted(context.history().timeline().requested_times)
    instant = str(int(archived[len(archived) // 2] if when.startswith("before") else first) + 1)
    (whole, *_) = table.glob("*/*.parquet")
    late = whole.with_name(f"late-0_0-0-0_{instant}.parquet")
    shutil.copy(whole, late)
    (finding,) = [item for item in findings(table) if item.rule.startswith("orphan")]
    expected = "orphan_visible" if when.startswith("before") else "orphan_hidden"
    assert (finding.rule, finding.instant, finding.path) == (expected, instant, late.relative_to(table).as_posix())
    assert findings(table, files=False) == []


def test_visible_files_are_errors_and_hidden_ones_warnings() -> None:
    orphans = OrphanObservations(True, visible={T: ("p/a", "p/b")}, hidden={f"{T}1": ("p/c",)})

    def short(finding: Finding) -> tuple[str, str, str | None, str | None]:
        return finding.rule, finding.severity, finding.instant, finding.path

    visible, hidden = found(orphans=orphans)
    assert short(visible) == ("orphan_visible", "error", T, "p/a")
    assert visible.what.startswith("2 files (p/a, p/b) of instant ")
    assert short(hidden) == ("orphan_hidden", "warning", f"{T}1", "p/c")
    assert hidden.what.startswith("1 file (p/c) of instant ")


def test_some_paths_are_shown_and_all_are_counted() -> None:
    (finding,) = found(orphans=OrphanObservations(True, hidden={T: tuple(f"p/{letter}" for letter in "abcdefg")}))
    assert finding.what.startswith("7 files (p/a, p/b, p/c, p/d, p/e and 2 more) of instant ")
