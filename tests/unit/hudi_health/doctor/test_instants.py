from __future__ import annotations

import os
import time
from typing import Any

import pytest

from hudi_core.model.names import CLAIMS
from hudi_core.services.takeover import PendingPlan
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.instant_time import parse_instant
from hudi_health.doctor.findings import Finding
from hudi_health.doctor.instants import PendingObservations, archived_behind, stalled_instants
from tests.support.golden_cleans import context_of
from tests.unit.hudi_health.doctor.test_examine import VERSIONS, Golden, findings

T = "20261120223342658"


def pending(
    action: str = Action.COMMIT,
    state: State = State.INFLIGHT,
    *,
    kind: str = "write",
    restores_to: str = "",
    runs_here: bool = True,
    **seen: Any,
) -> PendingObservations:
    plan = PendingPlan(Instant(T, action, state, None, action), kind, restores_to=restores_to, runs_here=runs_here)
    return PendingObservations(plan, **{"age": 7200.0, **seen})


def found(*seen: PendingObservations) -> list[Finding]:
    return list(stalled_instants(seen, "/data/t", 3600.0))


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


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (pending(), ["stuck_instant"]),
        (pending(age=3000.0), []),
        (pending(age=None), ["stuck_instant"]),
        (pending(alive=True), []),
        (pending(age=5.0, owner="process 1 on h"), ["stuck_instant"]),
        (pending(age=5.0, owner="process 1 on h", alive=True), []),
        (pending(Action.COMPACTION, State.REQUESTED, kind="compaction", age=5.0, owner="process 1 on h"), []),
        (pending(problem="the plan is not Avro"), ["unreadable_plan"]),
    ],
)
def test_stuck_instants(item: PendingObservations, expected: list[str]) -> None:
    assert [finding.rule for finding in found(item)] == expected


@pytest.mark.parametrize(
    ("action", "state", "way_out"),
    [
        (Action.INDEXING, State.COMPLETED, "before: hudictl run archive /data/t"),
        (Action.CLEAN, State.INFLIGHT, f"before: bring clean {T} to its end, then: hudictl run archive /data/t"),
        (
            Action.DELTA_COMMIT,
            State.COMPLETED,
            f"before: delete the savepoint: hudictl savepoint delete /data/t --instant {T}; then: hudictl "
            "run archive "
            "/data/t",
        ),
    ],
)
def test_commits_that_were_archived_behind_an_older_instant(action: str, state: State, way_out: str) -> None:
    later = ["20261120223300000", "20261120223400000", "20261120223350000"]
    finding = archived_behind(Instant(T, action, state, T, action), later, "/data/t")
    assert (finding.rule, finding.severity, finding.instant) == ("archive_overtook", "error", T)
    assert finding.what.startswith(
        f"3 commits up to 20261120223400000 are archived, but {action} {T}, which is older, is on the timeline"
    )
    assert finding.fix.endswith(way_out)


@pytest.mark.parametrize(
    ("kind", "way_out"),
    [
        ("write", f"hudictl rollback /data/t --instant {T}"),
        (Action.ROLLBACK, f"hudictl rollback /data/t --instant {T}"),
        (Action.RESTORE, "finish it: hudictl restore /data/t --instant 20261120223300000"),
        (Action.SAVEPOINT, f"hudictl savepoint delete /data/t --instant {T}"),
        ("compaction", f"hudictl run compaction /data/t --instant {T}; or drop it: hudictl unschedule /data/t {T}"),
        ("clean", f"finish it: hudictl run clean /data/t --instant {T}"),
        ("indexing", f"hudictl run indexing /data/t --instant {T}; or drop it: hudictl unschedule /data/t {T}"),
    ],
)
def test_a_stuck_instant_says_who_had_it_what_waits_and_the_way_out(kind: str, way_out: str) -> None:
    (finding,) = found(
        pending(
            kind=kind,
            owner="nightly (process 7 on h)",
            blocks=("archival of later instants",),
            restores_to="20261120223300000",
        )
    )
    assert (finding.instant, finding.age_seconds, finding.owner, finding.blocks) == (
        T,
        7200.0,
        "nightly (process 7 on h)",
        ("archival of later instants",),
    )
    assert "nightly (process 7 on h)" in finding.what
    assert "2 hours" in finding.what
    assert way_out in finding.fix


@pytest.mark.parametrize("kind", ["compaction", "log_compaction", "clustering"])
def test_no_command_that_this_release_refuses_is_offered(kind: str) -> None:
    (finding,) = found(pending(kind=kind, runs_here=False))
    assert "hudictl run" not in finding.fix
    assert f"drop it: hudictl unschedule /data/t {T}" in finding.fix


@pytest.mark.parametrize(("kind", "offered"), [("compaction", True), (Action.RESTORE, True), (Action.ROLLBACK, False)])
def test_a_damaged_plan_is_dropped_only_where_that_can_be_done(kind: str, offered: bool) -> None:
    (finding,) = found(pending(kind=kind, problem="no Avro"))
    assert (finding.rule, "hudictl unschedule" in finding.fix) == ("unreadable_plan", offered)
