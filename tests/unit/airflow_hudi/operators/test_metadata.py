"""The metadata table's verbs as an operator, on tables of real Hudi; the job's own code runs without Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_hudi.operators.metadata import HudiMetadataOperator
from hudi_core.metadata_table.record import FileEntry
from hudi_core.table import HudiTable
from tests.support.damaged_tables import DamagedTable
from tests.support.fake_spark_submit import RENDERED, context, requests
from tests.support.golden_data import GoldenCase
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["6", "8", "9"]


def made(table: Path, **arguments: Any) -> HudiMetadataOperator:
    return HudiMetadataOperator(
        task_id="metadata", table=str(table), hudi_conn_id=None, conflict_poll_interval=0.1, **arguments
    )


def listed(table: Path) -> frozenset[str]:
    return HudiTable.open(str(table)).config.metadata_partitions


@pytest.mark.slow
@pytest.mark.parametrize("version", tiered(VERSIONS, ["6"]))
def test_a_metadata_table_goes_and_comes(golden: Golden, submitted: Path, version: str) -> None:
    table = golden(version, "mor_basic").table
    before = listed(table)
    gone = made(table, verb="drop").execute(context())
    assert (gone["table"], gone["dropped"], gone["partitions"]) == (str(table), sorted(before), [])
    assert listed(table) == frozenset()
    come = made(table, verb="create", partitions="files, column_stats").execute(context())
    assert (come["created"], come["reason"]) == (["column_stats", "files"], None)
    again = made(table, verb="create", partitions=["column_stats"]).execute(context())
    assert (again["created"], again["reason"]) == ([], "all of them are there")
    updated = made(table, options={"hoodie.metadata.compact.max.delta.commits": "1"}).execute(context())
    assert (updated["applied"], updated["partitions"]) == ([], ["column_stats", "files"])
    assert made(table, verb="validate").execute(context())["differences"] == []
    requested = requests(submitted)
    assert [item.verb for item in requested] == [
        "metadata_drop",
        "metadata_create",
        "metadata_update",
        "metadata_validate",
    ]
    assert [item.partitions for item in requested[:2]] == [(), ("files", "column_stats")]


@pytest.mark.slow
def test_columns_come_and_go(golden: Golden, submitted: Path) -> None:
    table = golden("9", "mor_basic").table
    gone = made(table, verb="drop", columns="amount, note").execute(context())
    assert (gone["dropped"], gone["columns"], gone["reason"]) == ([], ["amount", "note"], None)
    come = made(table, verb="create", columns=["amount"]).execute(context())
    assert (come["created"], come["columns"], come["reason"]) == ([], ["amount"], None)
    again = made(table, verb="create", columns=["amount"]).execute(context())
    assert (again["columns"], again["reason"]) == ([], "all of them are there")
    assert made(table, verb="validate").execute(context())["differences"] == []
    assert [item.columns for item in requests(submitted)[:2]] == [("amount", "note"), ("amount",)]
    with pytest.raises(AirflowFailException, match="takes no columns"):
        made(table, verb="update", columns="amount", **RENDERED).execute(context())


def test_differences_fail_the_task_where_that_was_requested(golden: Golden, submitted: Path) -> None:
    table = DamagedTable(golden("8", "mor_basic").table)
    partition = table.metadata.partitions()[0]
    table.list_files(partition, {"x_0-0-0_20240101000000000.parquet": FileEntry(7)})
    seen = context()
    with pytest.raises(AirflowFailException, match=r"differences: 1\nfiles .*x_0-0-0"):
        made(table.path, verb="validate").execute(seen)
    assert len(seen["ti"].pushed["return_value"]["differences"]) == 1
    assert len(made(table.path, verb="validate", fail_on_differences=False).execute(context())["differences"]) == 1


def test_what_makes_no_sense_is_refused(golden: Golden, submitted: Path) -> None:
    table = golden("9", "mor_basic").table
    with pytest.raises(AirflowFailException, match="one of create, update, drop, validate"):
        made(table, verb="rebuild", **RENDERED).execute(context())
    with pytest.raises(AirflowFailException, match="no partition record_index"):
        made(table, verb="update", partitions=["record_index"]).execute(context())
    with pytest.raises(AirflowFailException, match="takes no partitions"):
        made(table, verb="validate", partitions=["files"], **RENDERED).execute(context())
    with pytest.raises(AirflowFailException, match="no partition of a metadata table"):
        made(table, verb="drop", partitions=[".hoodie"], **RENDERED).execute(context())
    assert listed(table)
