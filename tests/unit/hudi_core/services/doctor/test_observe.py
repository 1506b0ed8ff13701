from __future__ import annotations

import os
import time

import pytest

from hudi_core.model.claim_names import CLAIMS
from hudi_core.timeline.instant import State
from hudi_core.timeline.instant_time import parse_instant
from tests.support.golden_cleans import context_of
from tests.unit.hudi_core.services.doctor.test_examine import VERSIONS, Golden, findings


@pytest.mark.parametrize("version", VERSIONS)
def test_a_plan_that_cannot_be_read_is_a_finding(golden: Golden, version: str) -> None:
    table = golden(version, "mor_compaction_requested").table
    active = context_of(table).active
    (pending,) = active.load().pending_compactions()
    path = table / active.path(pending.requested_time, pending.action, State.REQUESTED)
    written = path.stat()
    path.write_bytes(b"no plan")
    os.utime(
        path, ns=(written.st_atime_ns, written.st_mtime_ns)
    )  # its age is evidence of the zone: now may be a whole quarter of an hour later
    (finding,) = findings(table)
    assert (finding.rule, finding.instant) == ("unreadable_plan", pending.requested_time)
    assert "not an Avro container" in finding.what


def test_a_claim_that_cannot_be_read_is_a_finding(golden: Golden) -> None:
    table = golden("9", "mor_compaction_requested").table
    (pending,) = context_of(table).active.load().pending_compactions()
    claim = table / CLAIMS / pending.requested_time / "000001.json"
    claim.parent.mkdir(parents=True)
    claim.write_bytes(b"no claim")
    (finding,) = findings(table)
    assert (finding.rule, finding.instant) == ("unreadable_plan", pending.requested_time)
    assert "the claim is not JSON" in finding.what


@pytest.mark.parametrize("version", VERSIONS)
def test_the_age_of_a_plan_is_the_younger_of_its_files_and_its_instants(golden: Golden, version: str) -> None:
    table = golden(version, "mor_compaction_requested").table
    active = context_of(table).active
    (plan,) = active.load().pending_compactions()
    path = table / active.path(plan.requested_time, plan.action, State.REQUESTED)
    drawn = parse_instant(plan.requested_time, "UTC").timestamp()
    zone = {"airflow_hudi.timeline.zone": "UTC"}
    for made, age in ((0.0, time.time() - drawn), (time.time() - 5000, 5000.0)):
        os.utime(path, (made, made))
        (finding,) = [item for item in findings(table, zone) if item.rule == "stuck_instant"]
        assert finding.age_seconds == pytest.approx(min(age, time.time() - drawn), abs=60)
