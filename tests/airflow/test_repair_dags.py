"""The DAGs that examine and repair a table, for real, on the local engine and by spark-submit: results in XCom, the
timeline at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.airflow.dag_runs import engines, environment_for, pending, run_dag, run_dags, timeline
from tests.support.golden_data import GoldenCase
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import read_rows
from tests.support.tiers import tiered

pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.slow]

Golden = Callable[[str, str], GoldenCase]

YES = {"confirm": "yes"}


@pytest.mark.conformance
def test_a_savepoint_by_hand_and_the_way_back(golden: Golden, airflow_environment: dict[str, str]) -> None:
    table = golden("8", "mor_basic").table
    commits = [instant.requested_time for instant in timeline(table).commits()]
    target = commits[-2]
    confs = [
        {"verb": "savepoint", "instant": target, "comment": "before the repair", **YES},
        {"verb": "restore", "instant": target, "dry_run": True, **YES},
        {"verb": "restore", "instant": target, "dry_run": False, **YES},
    ]

    results, output = run_dag(environment_for(airflow_environment, table), "hudi_repair", confs)

    assert [result["state"] for result in results] == ["success"] * 3, output[-8000:]
    kept, would, restored = (result["xcom"][conf["verb"]] for conf, result in zip(confs, results, strict=True))
    assert (kept["instant"], kept["comment"], kept["files"] > 0) == (target, "before the repair", True)
    assert (would["dry_run"], would["instant"], would["removed"]) == (True, None, restored["removed"])
    assert [item["instant"] for item in would["restorable"] if item["reason"] is None][-2:] == commits[-2:]
    assert (restored["target"], restored["removed"]["instants"]) == (target, commits[-1:])
    assert [instant.requested_time for instant in timeline(table).commits()] == commits[:-1]
    assert results[-1]["tasks"]["savepoint"] == "skipped"


@pytest.mark.conformance
def test_further_repairs_by_hand(golden: Golden, airflow_environment: dict[str, str]) -> None:
    table = golden("8", "savepoint_mor").table
    (target,) = timeline(table).of_actions("savepoint").requested_times
    confs = [{"verb": "delete_savepoint", "instant": target, **YES}, {"verb": "rollback", **YES}]

    results, output = run_dag(environment_for(airflow_environment, table), "hudi_repair", confs)

    assert [result["state"] for result in results] == ["success"] * 2, output[-8000:]
    deleted, rolled_back = (result["xcom"][conf["verb"]] for conf, result in zip(confs, results, strict=True))
    assert (deleted["instant"], deleted["deleted"]) == (target, True)
    assert rolled_back["reason"] is not None
    assert timeline(table).of_actions("savepoint").instants == ()


@engines
def test_a_stuck_plan_is_found_freed_and_dropped(
    golden: Golden, airflow_environment: dict[str, str], engine: str
) -> None:
    table = golden("9", "compaction_inflight").table
    (instant,) = pending(table, "compaction")
    environment = {
        **environment_for(airflow_environment, table, engine),
        "AIRFLOW_HUDI_WRITER_OPTIONS": '{"airflow_hudi.doctor.stuck_minutes": "1"}',
    }
    runs: list[tuple[str, dict[str, Any]]] = [
        ("hudi_doctor", {"fail_on": "warning", "probe_store": True}),
        ("hudi_repair", {"verb": "takeover", "instant": instant, **YES}),
        ("hudi_repair", {"verb": "unschedule", "instant": instant, **YES}),
    ]

    (ill, freeing, dropping), output = run_dags(environment, runs)

    assert ill["tasks"] == {"doctor": "failed", "probe_wanted": "success", "probe_store": "success"}, output[-8000:]
    assert [result["state"] for result in (freeing, dropping)] == ["success"] * 2, output[-8000:]
    (finding,) = ill["xcom"]["doctor"]["findings"]
    assert (finding["rule"], finding["severity"], finding["instant"]) == ("stuck_instant", "warning", instant)
    assert f"warning stuck_instant: {finding['what']} - fix: {finding['fix']}" in output
    if engine == "spark":
        (setup,) = ill["xcom"]["doctor"]["executors"]["setups"]
        assert [name for name in ("pyarrow", "numpy", "fastavro") if setup[name] is None] == []
    assert ill["xcom"]["probe_store"]["can_carry_timeline"] is True
    assert not (table / ".airflow_hudi_probe").exists()
    freed, dropped = freeing["xcom"]["takeover"], dropping["xcom"]["unschedule"]
    assert (freed["instant"], freed["state"]) == (instant, "requested")
    assert (dropped["instant"], dropped["action"]) == (instant, "compaction")
    assert dropped["unblocks"]["file_groups"] > 0
    assert pending(table, "compaction") == []


@pytest.mark.conformance
def test_a_healthy_table_is_not_probed_unasked(golden: Golden, airflow_environment: dict[str, str]) -> None:
    table = golden("9", "mor_basic").table

    (well,), output = run_dag(
        environment_for(airflow_environment, table), "hudi_doctor", [{"fail_on": "never", "probe_store": False}]
    )

    assert well["tasks"] == {"doctor": "success", "probe_wanted": "success", "probe_store": "skipped"}, output[-8000:]
    assert well["xcom"]["doctor"]["findings"] == []


@pytest.mark.parametrize(
    ("version", "engine"),
    tiered([("9", "local"), *((version, "spark") for version in ("6", "8", "9"))], [("9", "local")]),
)
def test_a_drill_restores_what_it_broke(
    golden: Golden, airflow_environment: dict[str, str], version: str, engine: str
) -> None:
    table = golden(version, "cow_basic").table
    rows, before = read_rows(table), timeline(table)
    newest = before.commits().instants[-1].requested_time

    environment = environment_for(airflow_environment, table, engine)
    environment["AIRFLOW__HUDI__TABLE_LINK"] = "https://console.example/{path}"

    (result,), output = run_dag(environment, "hudi_drill", [YES])

    assert result["state"] == "success", output[-8000:]
    link = f"https://console.example/{str(table).strip('/')}"
    assert {name: found for name, found in result["links"].items() if found} == dict.fromkeys(
        ("savepoint", "break_table", "restore", "doctor", "delete_savepoint"), link
    )
    assert set(result["tasks"].values()) == {"success"}
    broken, restored = result["xcom"]["break_table"], result["xcom"]["restore"]
    assert (broken["operation"], broken["replaced_file_groups"] > 0) == ("DELETE_PARTITION", True)
    assert (restored["target"], result["xcom"]["check"]) == (newest, {"instant": newest})
    assert broken["instant"] in restored["removed"]["instants"]
    assert timeline(table).commits().instants[-1].requested_time == newest
    assert not timeline(table).contains(broken["instant"])
    assert [item for item in timeline(table) if item.action == "savepoint"] == []
    assert_same_rows(read_rows(table), rows, ignore=())


@pytest.mark.conformance
def test_a_drill_that_cannot_break_the_table_fails_and_keeps_its_savepoint(
    golden: Golden, airflow_environment: dict[str, str]
) -> None:
    table = golden("9", "cow_basic").table
    rows = read_rows(table)
    (result,), output = run_dag(
        environment_for(airflow_environment, table), "hudi_drill", [{"partition": "no/such/partition", **YES}]
    )
    assert result["state"] == "failed", output[-8000:]
    assert [result["tasks"][name] for name in ("savepoint", "break_table", "restore")] == [
        "success",
        "failed",
        "success",
    ]
    assert [result["tasks"][name] for name in ("check", "delete_savepoint")] == ["upstream_failed"] * 2
    assert [item.action for item in timeline(table) if item.action == "savepoint"] == ["savepoint"]
    assert_same_rows(read_rows(table), rows, ignore=())
