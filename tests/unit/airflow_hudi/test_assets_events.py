"""The asset events of tasks, on tables of real Hudi."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import Asset, AssetAlias
from airflow.sdk.execution_time.context import OutletEventAccessors

from airflow_hudi import assets
from airflow_hudi.assets import changed_partitions_asset, table_asset, written_partitions
from airflow_hudi.operators.overwrite import HudiInsertOverwriteOperator
from airflow_hudi.operators.service import HudiCompactionOperator
from airflow_hudi.operators.table_services import HudiTableServicesOperator
from airflow_hudi.operators.write import HudiWriteOperator
from hudi_core.errors import StorageError
from hudi_core.table import HudiTable
from tests.support.fake_spark_submit import Store, context, real_job
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import own_rows, put_source, within
from tests.support.table_invariants import read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]


@pytest.fixture(autouse=True)
def real(submitted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_job(monkeypatch)


def with_events() -> tuple[Any, OutletEventAccessors]:
    events = OutletEventAccessors()
    return {**context(Store()), "outlet_events": events}, events


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
def test_an_overwrite_tells_its_table_and_the_partitions_that_changed(
    golden: Golden, tmp_path: Path, version: str
) -> None:
    table = golden(version, "mor_basic").table
    rows = read_rows(table)
    name = min(rows.column("_hoodie_partition_path").to_pylist())
    kept = within(rows, name)
    asset, changed, other = table_asset(str(table)), changed_partitions_asset(str(table)), Asset("s3://somewhere/else")
    write = HudiInsertOverwriteOperator(
        task_id="t",
        table=str(table),
        hudi_conn_id=None,
        source=str(put_source(own_rows(table, kept), tmp_path)),
        outlets=[asset, changed, other],
    )
    given, events = with_events()
    done = write.execute(given)
    (instant,) = events[asset].extra["instants"]
    assert instant["completed"] is None if version == "6" else instant["completed"] > instant["instant"]
    assert {key: value for key, value in instant.items() if key != "completed"} == {
        "instant": done["instant"],
        "action": "replacecommit",
        "state": "completed",
        "operation": "INSERT_OVERWRITE",
        "partitions": [name],
        "rows": kept.num_rows,
    }
    assert events[asset].extra["table"] == str(table)
    assert events[changed].partition_keys == {name}
    assert events[other].extra == {}
    # As a consumer reads it.
    assert written_partitions({asset: [events[asset]]}) == {name}


@pytest.mark.parametrize("operation", ["upsert", "delete"])
def test_a_write_tells_its_table_and_the_partitions_that_changed(
    golden: Golden, tmp_path: Path, operation: str
) -> None:
    table = golden("9", "cow_basic").table
    rows = read_rows(table)
    name = min(rows.column("_hoodie_partition_path").to_pylist())
    asset, changed = table_asset(str(table)), changed_partitions_asset(str(table))
    write = HudiWriteOperator(
        task_id="t",
        table=str(table),
        hudi_conn_id=None,
        operation=operation,
        source=str(put_source(own_rows(table, within(rows, name).slice(0, 3)), tmp_path)),
        outlets=[asset, changed],
    )
    given, events = with_events()
    done = write.execute(given)
    (instant,) = events[asset].extra["instants"]
    assert (instant["instant"], instant["operation"]) == (done["instant"], operation.upper())
    assert (instant["partitions"], instant["action"]) == ([name], "commit")
    assert events[changed].partition_keys == {name}
    assert written_partitions({asset: [events[asset]]}) == {name}


def test_a_task_that_is_run_again_tells_the_same(golden: Golden) -> None:
    case = golden("8", "mor_compaction_requested")
    asset = table_asset(str(case.table))
    store, told = Store(), []
    for _ in range(2):
        compact = HudiCompactionOperator(task_id="t", table=str(case.table), hudi_conn_id=None, outlets=[asset])
        events = OutletEventAccessors()
        compact.execute({**context(store), "outlet_events": events})
        told.append(events[asset].extra)
    assert told[0] == told[1]
    assert told[0]["instants"][0]["operation"] == "COMPACT"
    assert written_partitions({asset: [events[asset]]}) == set()


def test_an_alias_has_an_event_of_each_table_that_had_work(golden: Golden) -> None:
    busy, idle = golden("9", "mor_compaction_requested").table, golden("9", "cow_basic").table
    alias = AssetAlias("hudi tables")
    services = HudiTableServicesOperator(
        task_id="t",
        tables=[str(busy), str(idle)],
        services=["compaction"],
        mode="execute",
        hudi_conn_id=None,
        outlets=[alias],
    )
    given, events = with_events()
    done = services.execute(given)
    (event,) = events[alias].asset_alias_events
    assert (event.dest_asset_key.uri, event.extra["table"]) == (table_asset(str(busy)).uri, str(busy))
    (instant,) = [item for result in done["results"] for item in result.get("instants") or ()]
    assert [item["instant"] for item in event.extra["instants"]] == [instant["instant"]]
    assert event.extra["instants"][0]["rows"] > 0


def lose(table: Path, operator: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table has no properties when the work is done."""
    serve = operator.serve

    def serve_and_lose(*arguments: Any) -> dict[str, Any]:
        result: dict[str, Any] = serve(*arguments)
        (table / ".hoodie/hoodie.properties").rename(table / "elsewhere")
        return result

    monkeypatch.setattr(operator, "serve", serve_and_lose)


def test_a_table_that_cannot_be_read_takes_no_event_from_another(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lost, whole = (golden(version, "mor_compaction_requested").table for version in ("8", "9"))
    given = {"services": ["compaction"], "mode": "execute", "hudi_conn_id": None, "outlets": [AssetAlias("tables")]}
    services = HudiTableServicesOperator(task_id="t", tables=[str(lost), str(whole)], **given)
    lose(lost, services, monkeypatch)
    context_given, events = with_events()
    assert services.execute(context_given)["done"] == 2
    (event,) = events[services.outlets[0]].asset_alias_events
    assert event.extra["table"] == str(whole)
    assert f"The work on {lost} is done, and has no event" in caplog.text


def test_storage_that_fails_is_looked_at_again(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    table = golden("9", "mor_compaction_requested").table
    asset = table_asset(str(table))
    compact = HudiCompactionOperator(task_id="t", table=str(table), hudi_conn_id=None, outlets=[asset])
    monkeypatch.setattr(assets, "_LOOK_AGAIN_SECONDS", 0.0)
    details, failures = assets.instant_details, [StorageError("slow down"), StorageError("slow down")]

    def sometimes(*arguments: Any) -> dict[str, Any]:
        if failures:
            raise failures.pop()
        return details(*arguments)

    monkeypatch.setattr(assets, "instant_details", sometimes)
    given, events = with_events()
    done = compact.execute(given)
    assert [item["instant"] for item in events[asset].extra["instants"]] == [done["instant"]]
    assert failures == []


def test_what_cannot_be_told_fails_no_task_whose_work_is_done(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    table = golden("9", "mor_compaction_requested").table
    compact = HudiCompactionOperator(
        task_id="t", table=str(table), hudi_conn_id=None, outlets=[table_asset(str(table))]
    )
    lose(table, compact, monkeypatch)
    given, events = with_events()
    assert compact.execute(given)["state"] == "completed"
    assert events[compact.outlets[0]].extra == {}
    (table / "elsewhere").rename(table / ".hoodie/hoodie.properties")
    assert HudiTable.open(str(table)).timeline().pending().instants == ()
