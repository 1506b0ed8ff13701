"""The archive operator on tables of real Hudi; the job's own code runs without Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from airflow_hudi.operators.archive import HudiArchiveOperator
from hudi_core.table import HudiTable
from tests.support.fake_spark_submit import RENDERED, Store, context, requests
from tests.support.golden_data import GoldenCase
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
FEW = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}


def operator_on(table: Path, **arguments: Any) -> HudiArchiveOperator:
    return HudiArchiveOperator(**{"task_id": "archive", "table": str(table), "hudi_conn_id": None, **arguments})


def times(table: Path) -> list[str]:
    return sorted(HudiTable.open(str(table)).timeline().requested_times)


@pytest.mark.parametrize(
    ("version", "mode"), tiered([("6", "execute"), ("8", "both"), ("9", "execute")], [("6", "execute")])
)
def test_old_instants_go_and_are_counted(golden: Golden, submitted: Path, version: str, mode: str) -> None:
    table = golden(version, "cleaned_commits_mor").table
    before = times(table)
    would = operator_on(table, mode="schedule", options=FEW).execute(context())
    assert times(table) == before
    result = operator_on(table, mode=mode, options=FEW).execute(context())
    gone = sorted(set(before) - set(times(table)))
    assert (result["instants"], result["first"], result["last"]) == (len(gone), gone[0], gone[-1])
    assert {**would, "seconds": 0} == {**result, "seconds": 0, "dry_run": True}
    assert [request.needs_executors for request in requests(submitted)] == [False, False]


@pytest.mark.parametrize("mode", ["schedule", "execute"])
def test_nothing_to_archive_is_a_reason(golden: Golden, submitted: Path, mode: str) -> None:
    table = golden("8", "mor_basic").table
    result = operator_on(table, mode=mode, nothing_to_do="succeed").execute(context())
    assert (result["instants"], result["first"]) == (0, None)
    assert "hoodie.keep.max.commits" in result["reason"]
    assert result["seconds"] == 0.0
    with pytest.raises(AirflowSkipException, match=r"hoodie\.keep\.max\.commits"):
        operator_on(table, mode=mode).execute(context(Store()))
    assert requests(submitted) == []


def test_a_task_that_archived_stays_green_when_it_is_cleared(golden: Golden, submitted: Path) -> None:
    table, store = golden("8", "cleaned_commits_mor").table, Store()
    result = operator_on(table, options=FEW).execute(context(store))
    again = operator_on(table, options=FEW).execute(context(store))
    assert {**again, "reason": None} == {**result, "seconds": 0.0}
    assert again["reason"]
    with pytest.raises(AirflowSkipException):
        operator_on(table, options=FEW).execute(context(Store()))
    assert len(requests(submitted)) == 1


def test_an_unknown_mode_fails_for_good(golden: Golden, submitted: Path) -> None:
    with pytest.raises(AirflowFailException, match="mode"):
        operator_on(golden("8", "mor_basic").table, mode="plan", **RENDERED).execute(context())
