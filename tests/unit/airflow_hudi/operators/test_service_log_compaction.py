"""The log compaction operator on tables of real Hudi; the job's own code runs without Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowSkipException

from airflow_hudi.operators.service import HudiLogCompactionOperator
from airflow_hudi.task_fate import HudiJobFailed
from hudi_core.table import HudiTable
from tests.support.fake_spark_submit import Store, context, real_job, requests
from tests.support.golden_data import GoldenCase
from tests.support.log_compactions import FROM_ONE, PLANNED, VERSIONS, planned
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]


def operator_on(table: Path, **arguments: Any) -> HudiLogCompactionOperator:
    fields = {"task_id": "merge", "table": str(table), "hudi_conn_id": None, "conflict_poll_interval": 0.1}
    return HudiLogCompactionOperator(**{**fields, **arguments})


def states(table: Path) -> dict[str, str]:
    """The log compactions of the timeline, by instant."""
    timeline = HudiTable.open(str(table)).timeline()
    return {item.requested_time: item.state.value for item in timeline if item.pending_action == "logcompaction"}


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6"]))
def test_what_a_writer_planned_is_run(golden: Golden, submitted: Path, version: str) -> None:
    table = golden(version, PLANNED).table
    instant, rows = planned(table), read_rows(table)
    result = operator_on(table).execute(context(Store()))
    assert (result["instant"], result["state"], result["files_written"], result["records"]) == (
        instant,
        "completed",
        3,
        120,
    )
    (request,) = requests(submitted)
    assert (request.verb, request.service, request.instant) == ("run", "log_compaction", instant)
    assert states(table) == {instant: "completed"}
    assert_same_rows(read_rows(table), rows, ignore=())


@pytest.mark.parametrize("version", tiered(VERSIONS, ["9"]))
def test_planned_by_one_task_and_run_by_the_next(golden: Golden, submitted: Path, version: str) -> None:
    table = golden(version, "mor_basic").table
    made = operator_on(table, mode="schedule", options=FROM_ONE).execute(context(Store()))
    assert states(table) == {made["instant"]: "requested"}
    done = operator_on(table, instant=made["instant"]).execute(context(Store()))
    assert (done["instant"], done["state"], done["files_written"]) == (made["instant"], "completed", 3)
    again = operator_on(table, instant=made["instant"]).execute(context(Store()))
    assert again["already_completed"] is True


@pytest.mark.parametrize("version", tiered(VERSIONS, ["8"]))
def test_both_in_one_job_and_a_retry_that_says_so(
    golden: Golden, submitted: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    table, store = golden(version, "mor_basic").table, Store()
    real_job(monkeypatch, after="kill -KILL $PPID")
    with pytest.raises(HudiJobFailed):
        operator_on(table, mode="both", options=FROM_ONE).execute(context(store))
    real_job(monkeypatch)
    count = len(requests(submitted))
    result = operator_on(table, mode="both", options=FROM_ONE).execute(context(store))
    assert (result["state"], result["already_completed"], len(requests(submitted))) == ("completed", True, count)
    assert states(table) == {result["instant"]: "completed"}


def test_without_the_option_nothing_is_planned(golden: Golden, submitted: Path) -> None:
    table = golden("8", "mor_basic").table
    with pytest.raises(AirflowSkipException, match=r"hoodie\.log\.compaction\.enable"):
        operator_on(table, mode="both").execute(context(Store()))
    with pytest.raises(AirflowSkipException, match="no log_compaction is pending on mor_basic"):
        operator_on(table, mode="execute").execute(context(Store()))
    assert requests(submitted) == []
    assert states(table) == {}
