from __future__ import annotations

import os

import pytest

from hudi_core.timeline.instant import State
from hudi_core.timeline.instant_time import parse_instant
from tests.support.golden_cleans import context_of
from tests.unit.hudi_core.services.doctor.test_examine import VERSIONS, Golden, findings, rules


@pytest.mark.parametrize("version", VERSIONS)
def test_writers_in_another_zone(golden: Golden, version: str) -> None:
    """The files' times are set to when their instants say they were made, in another zone."""
    table = golden(version, "mor_compacted").table
    context = context_of(table)
    for instant in context.active.load():
        path = table / context.active.path(instant.requested_time, instant.pending_action, State.REQUESTED)
        if path.exists():
            made = parse_instant(instant.requested_time, "Asia/Kolkata").timestamp() + 0.3
            os.utime(path, (made, made))
    utc = {"airflow_hudi.timeline.zone": "UTC"}
    (finding,) = [item for item in findings(table, utc) if item.rule == "timeline_zone"]
    assert "+5.5 h" in finding.what
    assert "timeline_zone" not in rules(table, {"airflow_hudi.timeline.zone": "Asia/Kolkata"})
