"""The engine of every operator, on tables of real Hudi: what has work runs beside the task, what has none submits
nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_hudi.operators.alert import HudiAlertOperator
from airflow_hudi.operators.archive import HudiArchiveOperator
from airflow_hudi.operators.create import HudiCreateTableOperator
from airflow_hudi.operators.doctor import HudiDoctorOperator, HudiProbeStoreOperator
from airflow_hudi.operators.metadata import HudiMetadataOperator
from airflow_hudi.operators.overwrite import HudiDeletePartitionOperator, HudiInsertOverwriteOperator
from airflow_hudi.operators.repair import (
    HudiRestoreOperator,
    HudiSavepointOperator,
    HudiTakeoverOperator,
    HudiUnscheduleOperator,
)
from airflow_hudi.operators.rollback import HudiRollbackOperator
from airflow_hudi.operators.service import (
    HudiCleanOperator,
    HudiClusteringOperator,
    HudiCompactionOperator,
    HudiIndexingOperator,
    HudiLogCompactionOperator,
)
from airflow_hudi.operators.table_services import HudiTableServicesOperator
from airflow_hudi.operators.write import HudiWriteOperator
from hudi_core.table import HudiTable
from tests.support.fake_spark_submit import RENDERED, Store, context, requests
from tests.support.golden_archives import TIGHT
from tests.support.golden_data import GoldenCase
from tests.support.tiers import tiered
from tests.unit.airflow_hudi.operators.test_arguments import operators

Golden = Callable[[str, str], GoldenCase]
BLOOM = {"hoodie.metadata.index.bloom.filter.enable": "true"}
COMPACT = {"hoodie.metadata.compact.max.delta.commits": "1"}
EAGER = {"hoodie.cleaner.policy.failed.writes": "EAGER"}
ONE = {"hoodie.clean.commits.retained": "1"}


def made(operator: Any, table: Path, /, **arguments: Any) -> Any:
    named = "tables" if operator is HudiTableServicesOperator else "table"
    return operator(**{"task_id": "task", named: str(table), "hudi_conn_id": None, **arguments})


def pending(table: Path) -> dict[str, Any]:
    return {"instant": [item.requested_time for item in HudiTable.open(str(table)).timeline().pending()][-1]}


def commits(table: Path) -> list[str]:
    return [item.requested_time for item in HudiTable.open(str(table)).timeline().commits()]


def like_a_golden_table(table: Path) -> dict[str, Any]:
    """A new table beside it."""
    named = {"table": str(table.parent / "new"), "table_name": "new", "table_version": 9, "record_key": "id"}
    return {**named, "like": str(min(table.glob("*/*.parquet")))}


WORK: list[tuple[str, str, Any, Callable[[Path], dict[str, Any]]]] = [
    ("compaction", "mor_compaction_requested", HudiCompactionOperator, lambda _: {}),
    ("log_compaction", "log_compaction_requested", HudiLogCompactionOperator, lambda _: {}),
    ("clustering", "clustering_requested_cow", HudiClusteringOperator, lambda _: {}),
    ("clean", "mor_compacted", HudiCleanOperator, lambda _: {"options": ONE}),
    ("rollback", "failed_inflight_cow", HudiRollbackOperator, lambda _: {"options": EAGER}),
    ("archive", "archived_timeline_cow", HudiArchiveOperator, lambda _: {"options": TIGHT}),
    ("indexing", "mor_basic", HudiIndexingOperator, lambda _: {"options": BLOOM}),
    ("create", "mor_basic", HudiMetadataOperator, lambda _: {"verb": "create", "partitions": "bloom_filters"}),
    ("drop", "mor_basic", HudiMetadataOperator, lambda _: {"verb": "drop"}),
    ("update", "mor_basic", HudiMetadataOperator, lambda _: {"options": COMPACT}),
    ("validate", "mor_basic", HudiMetadataOperator, lambda _: {"verb": "validate"}),
    ("doctor", "mor_basic", HudiDoctorOperator, lambda _: {"fail_on": None}),
    ("probe", "mor_basic", HudiProbeStoreOperator, lambda _: {"writers": 2, "rounds": 1}),
    ("create table", "mor_basic", HudiCreateTableOperator, like_a_golden_table),
    ("restore", "mor_basic", HudiRestoreOperator, lambda table: {"instant": commits(table)[0]}),
    ("savepoint", "mor_basic", HudiSavepointOperator, lambda _: {}),
    ("takeover", "compaction_inflight", HudiTakeoverOperator, pending),
    ("unschedule", "clustering_requested_cow", HudiUnscheduleOperator, pending),
    (
        "write",
        "cow_basic",
        HudiWriteOperator,
        lambda table: {"operation": "upsert", "source": str(min(table.glob("*/*.parquet")))},
    ),
    (
        "overwrite",
        "cow_basic",
        HudiInsertOverwriteOperator,
        lambda table: {"source": str(min(table.glob("*/*.parquet")))},
    ),
    ("delete", "cow_basic", HudiDeletePartitionOperator, lambda table: {"partitions": min(table.glob("20*")).name}),
    ("table services", "mor_compaction_requested", HudiTableServicesOperator, lambda _: {"services": "compaction"}),
]
EXTENTS = ["compaction", "archive", "create", "update", "doctor", "probe", "overwrite", "delete", "table services"]
"""Of the work, what is measured in ways of its own before an engine is chosen, and what is not measured."""


def test_every_operator_is_tried() -> None:
    assert {operator for _, _, operator, _ in WORK} == set(operators()) - {HudiAlertOperator}, "which runs no job"


@pytest.mark.parametrize(
    ("name", "case", "operator", "arguments"), tiered([pytest.param(*work, id=work[0]) for work in WORK], EXTENTS)
)
def test_work_is_done_beside_the_task(
    golden: Golden, submitted: Path, name: str, case: str, operator: Any, arguments: Callable[[Path], dict[str, Any]]
) -> None:
    """But for a probe with `auto`: what a cluster's storage does is found out there."""
    table = golden("8", case).table
    task = made(operator, table, engine="local" if name == "probe" else "auto", **arguments(table))
    result = task.execute(context(Store()))
    assert requests(submitted) == []
    (done,) = [item.result for item in task._job.result.items] if name == "table services" else [task._job.result]
    assert (done.engine, result.get("reason")) == (None if name in ("probe", "create table") else "local", None)


@pytest.mark.parametrize("where", ["connection", "configuration"])
def test_the_engine_is_that_of_the_connection_or_the_configuration(
    golden: Golden, submitted: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    table = golden("9", "mor_basic").table
    extra = {"engine": "local"} if where == "connection" else {}
    monkeypatch.setenv("AIRFLOW_CONN_HUDI_DEFAULT", json.dumps({"conn_type": "hudi", "extra": extra}))
    if where == "configuration":
        monkeypatch.setenv("AIRFLOW__HUDI__ENGINE", "local")
    made(HudiMetadataOperator, table, verb="validate", hudi_conn_id="hudi_default").execute(context())
    made(HudiDoctorOperator, table, fail_on=None, hudi_conn_id="hudi_default").execute(context())
    assert requests(submitted) == []


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["9"]))
def test_an_update_with_nothing_to_do_is_not_submitted(golden: Golden, submitted: Path, version: str) -> None:
    table = golden(version, "mor_basic").table
    first = made(HudiMetadataOperator, table).execute(context())
    sent = len(requests(submitted))
    again = made(HudiMetadataOperator, table).execute(context())
    assert len(requests(submitted)) == sent
    assert again == {**first, "applied": [], "widened": []}


@pytest.mark.parametrize("version", tiered(["6", "9"], ["6"]))
def test_a_restore_with_nothing_to_roll_back_is_not_submitted(golden: Golden, submitted: Path, version: str) -> None:
    table = golden(version, "mor_basic").table
    *_, target, newest = commits(table)

    def restore(instant: str) -> dict[str, Any]:
        return dict(made(HudiRestoreOperator, table, instant=instant).execute(context()))

    assert restore(newest)["reason"] == "nothing was written after it"
    assert requests(submitted) == []
    done, again = restore(target), restore(target)
    assert (again["instant"], again["reason"]) == (done["instant"], "nothing was written after it")
    assert [request.verb for request in requests(submitted)] == ["restore"]


@pytest.mark.parametrize("verb", ["update", "validate"])
def test_a_table_without_a_metadata_table_is_refused_without_a_job(golden: Golden, submitted: Path, verb: str) -> None:
    table = golden("9", "mor_basic").table
    made(HudiMetadataOperator, table, verb="drop", engine="local").execute(context())
    with pytest.raises(AirflowFailException, match="no metadata table"):
        made(HudiMetadataOperator, table, verb=verb).execute(context())
    assert requests(submitted) == []


ARGUMENTS = ("options", "storage_options", "conf", "env_vars")


def test_numbers_and_booleans_are_as_good_as_texts(
    golden: Golden, submitted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A template that is rendered to a native object gives them, too."""
    table = golden("9", "mor_basic").table
    values = {name: {"HUDI_TEST": True, "HUDI_COUNT": 24, "HUDI_SHARE": 0.5} for name in ARGUMENTS}
    made(HudiDoctorOperator, table, fail_on=None, **values).execute(context())
    (request,) = requests(submitted)
    expected = {"HUDI_TEST": "true", "HUDI_COUNT": "24", "HUDI_SHARE": "0.5"}
    assert request.options == request.storage_options == expected


@pytest.mark.parametrize("name", ARGUMENTS)
@pytest.mark.parametrize("value", [None, ["x"]])
@pytest.mark.parametrize("operator", [HudiDoctorOperator, HudiTableServicesOperator])
def test_other_values_are_bad_input(golden: Golden, submitted: Path, operator: Any, name: str, value: Any) -> None:
    table = golden("9", "mor_basic").table
    with pytest.raises(AirflowFailException, match=f"the values of HUDI_TEST in {name} are no texts"):
        made(operator, table, **{name: {"HUDI_TEST": value}}, **RENDERED).execute(context(Store()))
    assert requests(submitted) == []
