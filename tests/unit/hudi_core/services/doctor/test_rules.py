"""Each rule of the doctor on observations, and on those beside them that must be no finding."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hudi_core.services.doctor.finding import (
    ClockObservations,
    Counted,
    Finding,
    ListingObservations,
    LockObservations,
    Observations,
    OrphanObservations,
    Overtaken,
    PendingObservations,
    StoreObservations,
    Wheel,
    WrongSize,
)
from hudi_core.services.doctor.rules import diagnose
from hudi_core.timeline.instant import Action, Instant, State

T = "20261120223342658"
ZOOKEEPER = "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider"
IN_PROCESS = "org.apache.hudi.client.transaction.lock.InProcessLockProvider"
CLOCK = ClockObservations("UTC", "UTC", "UTC", 0.2, (-0.1, -0.2, -0.1), -5.0, -5.0, T)
HEALTHY = Observations(
    "/data/t", {}, 3600.0, CLOCK, LockObservations(None, ".hoodie/lock"), StoreObservations("file", True, True)
)


def pending(action: str = Action.COMMIT, state: State = State.INFLIGHT, **observed: Any) -> PendingObservations:
    return PendingObservations(Instant(T, action, state, None, action), **{"kind": "write", "age": 7200.0, **observed})


def found(**observed: Any) -> list[Finding]:
    return diagnose(replace(HEALTHY, **observed))


def rules(**observed: Any) -> list[str]:
    return [finding.rule for finding in found(**observed)]


def test_a_healthy_table_has_no_finding() -> None:
    assert found() == []


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
    assert rules(pending=(item,)) == expected


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
    (finding,) = found(overtaken=Overtaken(Instant(T, action, state, T, action), 3, "20261120223400000"))
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
        pending=(
            pending(
                kind=kind,
                owner="nightly (process 7 on h)",
                blocks=("archival of later instants",),
                restores_to="20261120223300000",
            ),
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
    (finding,) = found(pending=(pending(kind=kind, runs_here=False),))
    assert "hudictl run" not in finding.fix
    assert f"drop it: hudictl unschedule /data/t {T}" in finding.fix


@pytest.mark.parametrize(
    ("observed", "expected"),
    [
        ({"store": StoreObservations("s3", True, True)}, [("store_unproven", "info")]),
        ({"store": StoreObservations("gs", False, False)}, [("store_not_atomic", "error")]),
        ({"wheels": (Wheel("s3fs", "driver", "s3", "airflow-hudi[s3]", None),)}, [("missing_wheel", "error")]),
        ({"wheels": (Wheel("s3fs", "driver", "s3", "airflow-hudi[s3]", "2025.7"),)}, []),
        (
            {"wheels": (Wheel("polars", "driver", "logs", "airflow-hudi[engine]", None, is_optional=True),)},
            [("missing_wheel", "info")],
        ),
        ({"metadata_drop_unfinished": True}, [("metadata_drop_unfinished", "warning")]),
        ({"strange_names": (".hoodie/T_20xx.deltacommit",)}, [("timeline_name", "error")]),
        ({"orphans": OrphanObservations(True, visible={T: ("p/a", "p/b")})}, [("orphan_visible", "error")]),
        ({"orphans": OrphanObservations(True, hidden={T: ("p/a",)})}, [("orphan_hidden", "warning")]),
        ({"listings": ListingObservations(Counted(["p/a"], 1))}, [("metadata_missing_file", "warning")]),
        ({"listings": ListingObservations(unlisted=Counted(["p/a"], 1))}, [("metadata_unlisted", "error")]),
        (
            {"listings": ListingObservations(wrong_size=Counted([WrongSize("p/a", 1, 2)], 1))},
            [("metadata_wrong_size", "error")],
        ),
        ({"listings": ListingObservations(problem="no HFile")}, [("metadata_unreadable", "error")]),
    ],
)
def test_what_else_is_found(observed: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert [(finding.rule, finding.severity) for finding in found(**observed)] == expected


def test_the_worst_comes_first() -> None:
    severities = [
        item.severity
        for item in found(
            store=StoreObservations("s3", True, True),
            pending=(pending(),),
            orphans=OrphanObservations(True, {T: ("p/a",)}),
        )
    ]
    assert severities == ["error", "warning", "info"]


@pytest.mark.parametrize(("kind", "offered"), [("compaction", True), (Action.RESTORE, True), (Action.ROLLBACK, False)])
def test_a_damaged_plan_is_dropped_only_where_that_can_be_done(kind: str, offered: bool) -> None:
    (finding,) = found(pending=(pending(kind=kind, problem="no Avro"),))
    assert (finding.rule, "hudictl unschedule" in finding.fix) == ("unreadable_plan", offered)
