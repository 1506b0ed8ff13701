"""Writes of rows as operators, on tables of real Hudi; the job's own code runs without Spark."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException, TaskDeferred

from airflow_hudi.operators.overwrite import HudiInsertOverwriteOperator
from airflow_hudi.operators.write import HudiWriteOperator
from airflow_hudi.task_fate import HudiJobFailed
from hudi_core.errors import ConfigError
from hudi_core.table import HudiTable
from hudi_core.verbs.write import WriteRequest
from tests.support.fake_spark_submit import RENDERED, real_job, requests
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import own_rows, places, put_source, within
from tests.support.table_invariants import assert_metadata_true, read_rows
from tests.support.tiers import tiered
from tests.unit.airflow_hudi.operators.test_overwrite import DAY, START, of_interval

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["6", "8", "9"]
COUNTS = ("inserted", "updated", "deleted")
TOKEN = "airflow:maintenance/compact@2026-02-01T00:00:00+00:00/2026-02-02T00:00:00+00:00"


def made(table: Path, operation: str = "upsert", **arguments: Any) -> HudiWriteOperator:
    fields = {"task_id": "write", "table": str(table), "hudi_conn_id": None, "conflict_poll_interval": 0.1}
    return HudiWriteOperator(**{**fields, "operation": operation, **arguments})


def commits(table: Path) -> list[str]:
    return [item.requested_time for item in HudiTable.open(str(table)).timeline().commits()]


def some_rows(table: Path, count: int = 4) -> pa.Table:
    """Rows of one partition, with the columns that Hudi adds."""
    rows = read_rows(table)
    return within(rows, min(rows.column("_hoodie_partition_path").to_pylist())).slice(0, count)


def some_source(table: Path, folder: Path, count: int = 4) -> Path:
    return put_source(own_rows(table, some_rows(table, count)), folder)


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6"]))
def test_an_interval_is_written_once(golden: Golden, submitted: Path, tmp_path: Path, version: str) -> None:
    """An insert is no upsert: a second one would double the rows."""
    table = golden(version, "cow_basic").table
    rows, before = read_rows(table), commits(table)
    added = some_rows(table)
    write = made(table, "insert", source=str(some_source(table, tmp_path)))
    first = write.execute(of_interval())
    assert {name: first[name] for name in ("operation", "partitions", "repeated", "reason", "token")} == {
        "operation": "INSERT",
        "partitions": 1,
        "repeated": False,
        "reason": None,
        "token": TOKEN,
    }
    assert [first[name] for name in COUNTS] == [4, 0, 0]
    for again in (
        write.execute(of_interval(try_number=3)),
        write.execute(of_interval(run_id="backfill__of_the_same_day")),
    ):
        assert again == {**first, "repeated": True, "reason": again["reason"], "engine": None}
        assert "same token" in again["reason"]
    assert commits(table) == [*before, first["instant"]]
    assert places(read_rows(table)) == places(rows) + places(added)
    assert_metadata_true(table)
    assert not write.execute(of_interval(START + DAY))["repeated"]


def test_rows_are_updated_deleted_and_inserted(golden: Golden, submitted: Path, tmp_path: Path) -> None:
    table = golden("9", "cow_basic").table
    rows = read_rows(table)
    source = str(some_source(table, tmp_path))

    def counts(operation: str) -> list[int]:
        done = made(table, operation, source=source, token=operation).execute(of_interval())
        assert (done["operation"], done["replaced_file_groups"]) == (operation.upper(), 0)
        return [done[name] for name in COUNTS]

    assert counts("upsert") == [0, 4, 0]
    assert counts("delete") == [0, 0, 4]
    assert counts("bulk_insert") == [4, 0, 0]
    assert places(read_rows(table)) == places(rows)
    written = [request for request in requests(submitted) if isinstance(request, WriteRequest)]
    assert [(item.operation, item.token) for item in written] == [
        (operation, operation) for operation in ("upsert", "delete", "bulk_insert")
    ]


def test_rows_that_a_predicate_selects_are_deleted_once(golden: Golden, submitted: Path) -> None:
    table = golden("9", "cow_basic").table
    rows = read_rows(table)
    names = rows.column("_hoodie_partition_path")
    chosen = min(names.to_pylist())
    kept = rows.filter(pa.compute.not_equal(names, chosen))
    delete = made(table, "delete", where=f"dt = '{chosen}'")
    done, again = delete.execute(of_interval()), delete.execute(of_interval())
    assert (done["deleted"], done["repeated"]) == (rows.num_rows - kept.num_rows, False)
    assert (again["instant"], again["repeated"]) == (done["instant"], True)
    assert places(read_rows(table)) == places(kept)


@pytest.mark.parametrize("version", tiered(VERSIONS, ["8"]))
def test_a_job_that_died_before_its_report_is_not_done_again(
    golden: Golden, submitted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    table = golden(version, "cow_basic").table
    rows, before = read_rows(table), commits(table)
    added = some_rows(table)
    source = str(some_source(table, tmp_path))
    real_job(monkeypatch, after="kill -KILL $PPID")
    with pytest.raises(HudiJobFailed):
        made(table, "insert", source=source).execute(of_interval())
    real_job(monkeypatch)
    result = made(table, "insert", source=source).execute(of_interval(try_number=3))
    assert (result["repeated"], commits(table)) == (True, [*before, result["instant"]])
    assert places(read_rows(table)) == places(rows) + places(added)


def test_runs_of_one_day_side_by_side_write_once(golden: Golden, submitted: Path, tmp_path: Path) -> None:
    """The one that comes second waits for the other, and reports what that did."""
    table = golden("9", "cow_basic").table
    rows = read_rows(table)
    added = some_rows(table)
    source, done = str(some_source(table, tmp_path)), list[dict[str, Any]]()

    def run(number: int) -> None:
        write = made(table, "insert", source=source, conflict_takeover_after=60.0)
        done.append(write.execute(of_interval(run_id=f"run_{number}")))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(item["repeated"] for item in done) == [False, True]
    assert len({item["instant"] for item in done}) == 1
    assert places(read_rows(table)) == places(rows) + places(added)


def test_other_operations_of_a_task_are_other_work_where_it_is_mapped(golden: Golden, submitted: Path) -> None:
    table = golden("9", "cow_basic").table
    source = str(min(table.glob("*/*.parquet")))
    done = [
        made(table, operation, source=source).execute(of_interval(map_index=0))
        for operation in ("upsert", "insert", "upsert")
    ]
    assert [item["repeated"] for item in done] == [False, False, True]
    assert done[0]["token"] == done[2]["token"] != done[1]["token"]


def test_a_source_without_rows_is_nothing_to_do(golden: Golden, submitted: Path, tmp_path: Path) -> None:
    table = golden("9", "cow_basic").table
    before = commits(table)
    source = str(some_source(table, tmp_path, 0))
    result = made(table, source=source).execute(of_interval())
    assert (result["instant"], result["operation"], result["reason"]) == (None, "UPSERT", "the source has no rows")
    with pytest.raises(AirflowSkipException, match="no rows"):
        made(table, source=source, nothing_to_do="skip").execute(of_interval())
    assert commits(table) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"operation": "merge"}, "'merge' is no operation"),
        ({"operation": ""}, "is no operation of write"),
        ({"source": " "}, "needs a source"),
        ({"source": "/nowhere/rows"}, "/nowhere/rows"),
        ({"query": "select 1"}, "exclude each other"),
        ({"source": "", "where": "dt = 'a'"}, "is for the operation delete"),
        ({"options": {"hoodie.index.type": "HBASE"}}, "hoodie.index.type=HBASE"),
    ],
)
def test_bad_input_is_not_retried(golden: Golden, submitted: Path, arguments: dict[str, Any], message: str) -> None:
    table = golden("9", "cow_basic").table
    before = commits(table)
    given = {"source": str(min(table.glob("*/*.parquet"))), **arguments, **RENDERED}
    with pytest.raises(AirflowFailException, match=message):
        made(table, **given).execute(of_interval())
    assert commits(table) == before


def test_a_token_of_other_work_is_refused(golden: Golden, submitted: Path, tmp_path: Path) -> None:
    table = golden("9", "cow_basic").table
    source = str(some_source(table, tmp_path))
    made(table, "upsert", source=source, token="a").execute(of_interval())
    with pytest.raises(AirflowFailException, match="the token is that of UPSERT"):
        made(table, "insert", source=source, token="a").execute(of_interval())


def test_only_an_address_can_be_waited_for() -> None:
    with pytest.raises(ConfigError, match="wait_for_source is of a source"):
        HudiWriteOperator(task_id="t", table="a", operation="upsert", query="select 1", wait_for_source=5)


@pytest.mark.parametrize("case", ["cow_basic", "mor_basic"])
def test_what_is_written_needs_no_source(golden: Golden, submitted: Path, tmp_path: Path, case: str) -> None:
    """Before, it is waited for in the triggerer; an overwrite by the same name is other work."""
    table = golden("9", case).table
    given: dict[str, Any] = {"source": f"{tmp_path}/source", "token": "a", "wait_for_source": "2h"}
    write = made(table, "bulk_insert", **given)
    with pytest.raises(TaskDeferred) as deferred:
        write.execute(of_interval())
    some_source(table, tmp_path)
    event = {"event": {"status": "success", "table": f"{tmp_path}/source"}}
    done = write.resume_execution(deferred.value.method_name, event, of_interval())
    assert [done[name] for name in COUNTS] == [4, 0, 0]
    (tmp_path / "source").rename(tmp_path / "gone")
    assert write.execute(of_interval(try_number=3))["repeated"]
    other = HudiInsertOverwriteOperator(task_id="t", table=str(table), hudi_conn_id=None, **given)
    with pytest.raises(TaskDeferred):
        other.execute(of_interval())
