from __future__ import annotations

import shutil

import pytest

from tests.support.golden_cleans import context_of
from tests.support.tiers import tiered
from tests.unit.hudi_health.doctor.test_examine import VERSIONS, Golden, findings


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
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
    severity, path = "error" if when.startswith("before") else "warning", late.relative_to(table).as_posix()
    assert (finding.rule, finding.severity, finding.instant, finding.path) == (expected, severity, instant, path)
    assert finding.what.startswith(f"1 file ({path}) of instant {instant}, ")
    assert findings(table, files=False) == []
    for number in range(6):
        shutil.copy(whole, late.with_name(f"late-{number + 1}_0-0-0_{instant}.parquet"))
    (finding,) = [item for item in findings(table) if item.rule.startswith("orphan")]
    assert finding.path == path
    assert finding.what.startswith(f"7 files ({path}, ")
    assert f" and 2 more) of instant {instant}, " in finding.what
