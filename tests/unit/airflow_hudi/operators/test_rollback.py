"""The rollback operator on tables of real Hudi; the job's own code runs without Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from airflow_hudi.operators.rollback import HudiRollbackOperator
from hudi_core.table import HudiTable
from tests.golden_data import GoldenCase
from tests.unit.airflow_hudi.operators.fake_spark import Store, context, requests

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["6", "8", "9"]
EAGER = {"hoodie.cleaner.policy.failed.writes": "EAGER"}


def operator_on(table: Path, **arguments: Any) -> HudiRollbackOperator:
    return HudiRollbackOperator(**{"task_id": "undo", "table": str(table), "hudi_conn_id": None, "conflict_poll_interval": 0.1, **arguments})


def pending(table: Path, action: str) -> list[str]:
    return [item.requested_time for item in HudiTable.open(str(table)).timeline().pending() if item.pending_action == action]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_failed_write_is_rolled_back_in_one_job(golden: Golden, submitted: Path, version: str) -> None:
    table = golden(version, "failed_inflight_mor").table
    failed = pending(table, "deltacommit")
    store = Store()
    result = operator_on(table, options=EAGER).execute(context(store))
    assert (result["action"], result["state"]) == ("rollback", "completed")
    assert [item["target"] for item in result["instants"]] == failed
    assert result["files_deleted"] == sum(item["files_deleted"] for item in result["instants"])
    assert result["instant"] == result["instants"][-1]["instant"]
    assert pending(table, "deltacommit") == pending(table, "rollback") == []
    assert len(requests(submitted)) == 1
    assert store.values == {}
    again = operator_on(table, options=EAGER, nothing_to_do="succeed").execute(context(store))
    assert again["instant"] is None
    assert "no rollback is pending" in again["reason"]
    with pytest.raises(AirflowSkipException, match="no rollback is pending"):
        operator_on(table, options=EAGER).execute(context(store))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_rollback_is_planned_by_one_task_and_run_by_the_next(golden: Golden, submitted: Path, version: str) -> None:
    table = golden(version, "failed_inflight_mor").table
    planned = operator_on(table, mode="schedule", options=EAGER).execute(context(Store()))
    assert (planned["state"], pending(table, "rollback")) == ("requested", [planned["instant"]])
    named = operator_on(table, mode="execute", instant=planned["instant"]).execute(context(Store()))
    assert (named["instant"], named["state"]) == (planned["instant"], "completed")
    assert pending(table, "deltacommit") == []


def test_a_pending_rollback_is_finished(golden: Golden, submitted: Path) -> None:
    table = golden("8", "failed_inflight_mor").table
    planned = operator_on(table, mode="schedule", options=EAGER).execute(context())
    done = operator_on(table, mode="execute").execute(context())
    assert [item["instant"] for item in done["instants"]] == [planned["instant"]]
    count = len(requests(submitted))
    nothing = operator_on(table, mode="execute", nothing_to_do="succeed").execute(context())
    assert "has no pending rollback" in nothing["reason"]
    assert len(requests(submitted)) == count


@pytest.mark.parametrize("version", VERSIONS)
def test_one_write_by_name(golden: Golden, submitted: Path, version: str) -> None:
    table = golden(version, "mor_basic").table
    newest = [item.requested_time for item in HudiTable.open(str(table)).timeline().commits()][-1]
    result = operator_on(table, target=newest).execute(context())
    assert (result["target"], result["removed"]["instants"], result["reason"]) == (newest, [newest], None)
    assert not HudiTable.open(str(table)).timeline().commits().contains(newest)
    again = operator_on(table, target=newest).execute(context())
    assert again["target"] == newest
    with pytest.raises(AirflowFailException):
        operator_on(table, target="20200101000000000").execute(context())


def test_a_target_goes_with_nothing_else(golden: Golden, submitted: Path) -> None:
    table = golden("6", "mor_basic").table
    for wrong in ({"mode": "schedule"}, {"instant": "20260101000000000"}):
        with pytest.raises(AirflowFailException, match="target"):
            operator_on(table, target="20260102000000000", **wrong).execute(context())
    assert requests(submitted) == []
