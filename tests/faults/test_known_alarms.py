"""More bugs of real Hudi by their ids: a stalled instant must be reported, and what is written beside a pending
compaction must stay.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_core.timeline.instant import Action
from hudi_core.view.slicing import Slicing
from hudi_health.doctor import instants
from hudi_health.doctor.examine import examine
from hudi_health.doctor.findings import Finding
from tests.support.golden_cleans import context_of
from tests.support.golden_data import GoldenCase
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import assert_compacted, assert_readable, pending_instants, read_rows
from tests.unit.hudi_core.services.compaction.test_job import compact, pending_instant

Golden = Callable[[str, str], GoldenCase]
SIX_HOURS = {"airflow_hudi.doctor.stuck_minutes": "360"}
AT_ONCE = {"airflow_hudi.doctor.stuck_minutes": "0"}


def alarms(context_options: dict[str, str], case: GoldenCase) -> list[Finding]:
    return [
        finding
        for finding in examine(context_of(case.table, context_options)).findings
        if finding.rule == "stuck_instant"
    ]


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_hudi_8567_hudi_11535_one_old_inflight_instant_raises_the_alarm(
    golden: Golden, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One dead write held the metadata table's compaction, and archival, back for months. Guard: the doctor's rule
    stalled_instants.
    """
    case = golden(version, "mor_basic")
    active = context_of(case.table).active
    oldest = active.load().commits().instants[0].requested_time
    dead = str(int(oldest) + 1)
    active.create_requested(dead, Action.DELTA_COMMIT)
    active.to_inflight(dead, Action.DELTA_COMMIT)
    assert alarms(SIX_HOURS, case) == [], "it began this minute"
    (finding,) = alarms(AT_ONCE, case)
    assert finding.instant == dead
    assert finding.age_seconds is not None
    assert 0 <= finding.age_seconds < 600
    assert {"archival of later instants", "compaction of the metadata table"} <= set(finding.blocks)
    assert f"hudictl rollback {case.table} --instant {dead}" in finding.fix
    monkeypatch.setattr(instants, "stalled_instants", lambda *_: ())
    assert alarms(AT_ONCE, case) == [], "nothing would be reported"


def test_hudi_3692_rows_appended_while_a_compaction_is_pending_stay(
    golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writers of version 6 append to the slice that the pending compaction will begin. Guard: such a slice is visible
    (view.slicing).
    """
    table = golden("6", "mor_compaction_requested").table
    instant, rows, pending = pending_instant(table), read_rows(table, "off"), pending_instants(table)
    assert any(f"_{instant}.log." in path.name for path in table.glob("*/.*")), "nothing was appended behind the plan"
    assert_readable(table, rows)
    visible = Slicing.slice_visible
    with monkeypatch.context() as unguarded:
        unguarded.setattr(
            Slicing, "slice_visible", lambda self, base: base not in self._compactions and visible(self, base)
        )
        for metadata in ("on", "off"):
            with pytest.raises(AssertionError, match="missing"):
                assert_same_rows(read_rows(table, metadata), rows)
    compact(table)
    assert_compacted(table, instant, rows, pending)
