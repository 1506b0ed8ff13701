"""The indexing operator on tables of real Hudi; the job's own code runs without Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from airflow_hudi.operators.service import HudiIndexingOperator
from hudi_core.services.indexing.build import group_counts
from hudi_core.storage.local import LocalStorage
from hudi_core.table import HudiTable
from hudi_core.timeline.instant import Action
from tests.support.fake_spark_submit import Store, context, requests
from tests.support.golden_data import GoldenCase
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["6", "8", "9"]
BLOOM = {"hoodie.metadata.index.bloom.filter.enable": "true"}


def operator_on(table: Path, **arguments: Any) -> HudiIndexingOperator:
    return HudiIndexingOperator(
        **{"task_id": "index", "table": str(table), "hudi_conn_id": None, "conflict_poll_interval": 0.1, **arguments}
    )


def instants(table: Path, state: str) -> list[str]:
    found = HudiTable.open(str(table)).timeline().of_actions(Action.INDEXING)
    return [instant.requested_time for instant in found if instant.state.value == state]


@pytest.mark.parametrize("version", tiered(VERSIONS, ["9"]))
def test_both_plans_and_builds_in_one_job(golden: Golden, submitted: Path, version: str) -> None:
    table = golden(version, "mor_basic").table
    store = Store()
    result = operator_on(table, options=BLOOM).execute(context(store))
    assert (result["action"], result["state"], result["already_completed"], result["reason"]) == (
        "indexing",
        "completed",
        False,
        None,
    )
    assert [result["instant"]] == instants(table, "completed")
    (request,) = requests(submitted)
    assert (request.verb, request.service, request.schedule, request.instant) == ("run", "indexing", True, None)
    assert "bloom_filters" in HudiTable.open(str(table)).config.metadata_partitions
    assert set(store.values) <= {"hudi_done"}
    other = operator_on(table, options=BLOOM, nothing_to_do="succeed").execute(context())
    assert (other["instant"], other["reason"]) == (None, "bloom_filters: built, or planned already")
    again = operator_on(table, options=BLOOM).execute(context(store))  # cleared: green, with what it had done
    assert (again["instant"], again["already_completed"]) == (result["instant"], True)
    assert again["reason"] == other["reason"]
    with pytest.raises(AirflowSkipException, match="built, or planned already"):
        operator_on(table, options=BLOOM).execute(context(Store()))
    assert len(requests(submitted)) == 1


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6"]))
def test_a_record_index_gets_as_many_file_groups_as_the_options_say(
    golden: Golden, submitted: Path, version: str
) -> None:
    table = golden(version, "mdt_record_index_lookup").table
    options = {"hoodie.metadata.record.index.enable": "true", "airflow_hudi.indexing.file_groups": "4"}
    result = operator_on(table, options=options).execute(context(Store()))
    assert (result["state"], instants(table, "completed")) == ("completed", [result["instant"]])
    assert group_counts(LocalStorage(table), "record_index") == {"record-index": 4}
    assert "record_index" in HudiTable.open(str(table)).config.metadata_partitions


def test_one_task_plans_and_the_next_builds(golden: Golden, submitted: Path) -> None:
    table = golden("8", "mor_basic").table
    planned = operator_on(table, mode="schedule", options=BLOOM).execute(context(Store()))
    assert (planned["state"], instants(table, "requested")) == ("requested", [planned["instant"]])
    done = operator_on(table, mode="execute", instant=planned["instant"]).execute(context(Store()))
    assert (done["instant"], done["state"]) == (planned["instant"], "completed")


@pytest.mark.parametrize("version", tiered(VERSIONS, ["8"]))
def test_what_hudi_planned_is_built(golden: Golden, submitted: Path, version: str) -> None:
    table = golden(version, "indexing_requested").table
    (planned,) = instants(table, "requested")
    result = operator_on(table, mode="execute").execute(context())
    assert (result["instant"], result["state"]) == (planned, "completed")
    assert "column_stats" in HudiTable.open(str(table)).config.metadata_partitions


def test_without_a_name_of_an_index_nothing_is_done(golden: Golden, submitted: Path) -> None:
    table = golden("8", "mor_basic").table
    with pytest.raises(
        AirflowSkipException, match=r"name no index .* hoodie\.metadata\.global\.record\.level\.index\.enable"
    ):
        operator_on(table).execute(context())
    with pytest.raises(AirflowFailException, match="no index 'unknown' is defined"):
        operator_on(table, options={"hoodie.index.name": "unknown"}).execute(context())
    assert requests(submitted) == []
