"""Overwrites as operators, on tables of real Hudi; the job's own code runs without Spark."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSensorTimeout, AirflowSkipException, TaskDeferred
from airflow.sdk.io.fs import _register_filesystems
from airflow.utils.types import DagRunType
from fsspec.implementations.memory import MemoryFileSystem

from airflow_hudi.operators.base import BaseHudiOperator
from airflow_hudi.operators.overwrite import HudiDeletePartitionOperator, HudiInsertOverwriteOperator
from airflow_hudi.operators.tokens import token_of
from airflow_hudi.task_fate import HudiJobFailed, HudiJobKilled, HudiSensorFailed
from hudi_core.errors import ConfigError
from hudi_core.table import HudiTable
from hudi_core.verbs.write import InsertOverwriteRequest
from tests.support.fake_spark_submit import RENDERED, Store, context, real_job, requests
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import own_rows, places, put_source, within
from tests.support.table_invariants import assert_metadata_true, read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["6", "8", "9"]
DAY = timedelta(days=1)
START = datetime(2026, 2, 1, tzinfo=timezone.utc)


def of_interval(start: datetime = START, store: Store | None = None, **changes: Any) -> Any:
    """What a task sees in the run of a day."""
    found = context(store or Store())
    for name, value in changes.items():
        setattr(found["ti"], name, value)
    return {**found, "data_interval_start": start, "data_interval_end": start + DAY}


def made(operator: type[BaseHudiOperator], table: Path, **arguments: Any) -> BaseHudiOperator:
    fields = {"task_id": "overwrite", "table": str(table), "hudi_conn_id": None, "conflict_poll_interval": 0.1}
    return operator(**{**fields, **arguments})


def replaced(table: Path) -> list[str]:
    return [item.requested_time for item in HudiTable.open(str(table)).timeline() if item.action == "replacecommit"]


def halved(table: Path, folder: Path) -> tuple[Path, pa.Table, pa.Table]:
    """A source with half of a partition's rows; the rows of the table then, and those that it has now."""
    rows = read_rows(table)
    name = min(rows.column("_hoodie_partition_path").to_pylist())
    kept = within(rows, name).slice(0, within(rows, name).num_rows // 2)
    return (
        put_source(own_rows(table, kept), folder),
        pa.concat_tables([kept, within(rows, name, outside=True)]),
        rows,
    )


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6"]))
def test_an_interval_is_written_once(golden: Golden, submitted: Path, tmp_path: Path, version: str) -> None:
    table = golden(version, "mor_basic").table
    source, expected, _ = halved(table, tmp_path)
    write = made(HudiInsertOverwriteOperator, table, source=str(source))
    first = write.execute(of_interval())
    assert (first["operation"], first["partitions"], first["repeated"], first["reason"]) == (
        "INSERT_OVERWRITE",
        1,
        False,
        None,
    )
    assert first["token"] == "airflow:maintenance/compact@2026-02-01T00:00:00+00:00/2026-02-02T00:00:00+00:00"
    assert places(read_rows(table)) == places(expected)
    for again in (
        write.execute(of_interval(try_number=3)),
        write.execute(of_interval(run_id="backfill__of_the_same_day")),
    ):
        assert (again["instant"], again["records"], again["repeated"]) == (first["instant"], first["records"], True)
        assert "same token" in again["reason"]
    assert replaced(table) == [first["instant"]]
    assert_metadata_true(table)


def test_other_intervals_tasks_and_tokens_are_other_work(golden: Golden, submitted: Path, tmp_path: Path) -> None:
    table = golden("9", "cow_basic").table
    source, *_ = halved(table, tmp_path)
    write = made(HudiInsertOverwriteOperator, table, source=str(source))
    results = [
        write.execute(of_interval()),
        write.execute(of_interval(START + DAY)),
        write.execute(of_interval(map_index=0)),
        write.execute(of_interval(map_index=1)),
        write.execute(of_interval(task_id="other")),
        made(HudiInsertOverwriteOperator, table, source=str(source), token="again").execute(of_interval()),
    ]
    assert [item["repeated"] for item in results] == [False] * 6
    assert len({item["token"] for item in results}) == 6
    assert len(set(replaced(table))) == 6


def test_a_mapped_task_with_other_work_has_another_token(golden: Golden, submitted: Path) -> None:
    """The list that is mapped may be another one when the run is cleared."""
    table = golden("9", "cow_basic").table
    names = sorted(set(read_rows(table).column("_hoodie_partition_path").to_pylist()))
    done = [
        made(HudiDeletePartitionOperator, table, partitions=name).execute(of_interval(map_index=0))
        for name in (names[0], names[1], names[0])
    ]
    assert [item["repeated"] for item in done] == [False, False, True]
    assert done[0]["instant"] == done[2]["instant"] != done[1]["instant"]


def test_without_an_interval_the_run_is_the_name_of_the_work(golden: Golden, submitted: Path, tmp_path: Path) -> None:
    table = golden("8", "cow_basic").table
    source, *_ = halved(table, tmp_path)
    write = made(HudiInsertOverwriteOperator, table, source=str(source), token="")
    first, again = write.execute(context(Store())), write.execute(context(Store()))
    assert (first["token"], first["repeated"], again["repeated"]) == ("airflow:maintenance/compact@r1", False, True)


@pytest.mark.parametrize("partition", [None, START])
def test_a_run_that_no_schedule_started_is_work_of_its_own(golden: Golden, partition: datetime | None) -> None:
    """Airflow gives one by hand or by TriggerDagRunOperator the last interval that is over, which is that of a
    scheduled run with another `ds`; an event says that there are new rows.
    """
    write = made(HudiInsertOverwriteOperator, golden("9", "cow_basic").table)

    def token(run_type: DagRunType) -> str:
        run = SimpleNamespace(partition_date=partition, run_type=run_type)
        return token_of(write, {**of_interval(), "dag_run": run})

    others = {kind: token(kind) for kind in DagRunType}
    of_schedule = {others.pop(DagRunType.SCHEDULED), others.pop(DagRunType.BACKFILL_JOB)}
    assert {*others.values()} == {"airflow:maintenance/compact@r1"}
    assert {"manual", "operator_triggered", "asset_materialization", "asset_triggered"} <= {*map(str, others)}
    assert len(of_schedule - {*others.values()}) == 1


def test_a_partition_of_the_schedule_is_the_name_of_the_work(golden: Golden) -> None:
    """A backfill that is run again makes another run of it, without an interval."""
    write = made(HudiInsertOverwriteOperator, golden("9", "cow_basic").table)

    def token(date: datetime | None = START, run_type: str = "backfill", **changes: Any) -> str:
        run = {**of_interval(**changes), "data_interval_start": None, "data_interval_end": None}
        run["dag_run"] = SimpleNamespace(partition_date=date, run_type=run_type)
        return token_of(write, run)

    assert token() == token(run_id="backfill__1") == "airflow:maintenance/compact@2026-02-01T00:00:00+00:00"
    assert token(START.astimezone(timezone(timedelta(hours=2))), "scheduled") == token()
    assert len({token(), token(START + DAY), token(task_id="other"), token(dag_id="other")}) == 4
    # Each event of an asset's partition is other work, whether its key has a date or not.
    assert token(run_type="asset_triggered") == token(date=None) == "airflow:maintenance/compact@r1"


def test_a_long_name_becomes_a_token_of_its_own(golden: Golden, submitted: Path, tmp_path: Path) -> None:
    table = golden("9", "cow_basic").table
    source, *_ = halved(table, tmp_path)
    write = made(HudiInsertOverwriteOperator, table, source=str(source))
    tokens = [write.execute(of_interval(dag_id="d" * 240 + last))["token"] for last in "abb"]
    assert len(set(tokens)) == 2
    assert all(len(token) < 100 for token in tokens)
    assert len(replaced(table)) == 2


@pytest.mark.parametrize("version", tiered(VERSIONS, ["8"]))
def test_a_job_that_died_before_its_report_is_not_done_again(
    golden: Golden, submitted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    table = golden(version, "mor_basic").table
    source, expected, _ = halved(table, tmp_path)
    write = made(HudiInsertOverwriteOperator, table, source=str(source))
    real_job(monkeypatch, after="kill -KILL $PPID")
    with pytest.raises(HudiJobFailed):
        write.execute(of_interval())
    real_job(monkeypatch)
    result = made(HudiInsertOverwriteOperator, table, source=str(source)).execute(of_interval(try_number=3))
    assert (result["repeated"], replaced(table)) == (True, [result["instant"]])
    assert places(read_rows(table)) == places(expected)


def test_the_whole_table(golden: Golden, submitted: Path, tmp_path: Path) -> None:
    table = golden("9", "mor_basic").table
    source, *_ = halved(table, tmp_path)
    result = made(HudiInsertOverwriteOperator, table, source=str(source), whole_table="True").execute(of_interval())
    assert (result["operation"], read_rows(table).num_rows) == ("INSERT_OVERWRITE_TABLE", result["records"])
    (request,) = requests(submitted)
    assert isinstance(request, InsertOverwriteRequest)
    assert request.whole_table is True


@pytest.mark.parametrize("version", tiered(VERSIONS, ["9"]))
def test_partitions_are_deleted_once(golden: Golden, submitted: Path, version: str) -> None:
    table = golden(version, "mor_basic").table
    rows = read_rows(table)
    names = sorted(set(rows.column("_hoodie_partition_path").to_pylist()))[:2]
    delete = made(HudiDeletePartitionOperator, table, partitions=", ".join(names))
    result, again = delete.execute(of_interval()), delete.execute(of_interval())
    assert (result["operation"], result["partitions"], result["repeated"]) == ("DELETE_PARTITION", 2, False)
    assert (again["instant"], again["repeated"]) == (result["instant"], True)
    assert places(read_rows(table)) == places(within(rows, *names, outside=True))
    assert_metadata_true(table)


def test_partitions_of_a_list_are_taken_as_they_are(golden: Golden, submitted: Path, tmp_path: Path) -> None:
    """Blanks are part of a path, and the path of the one partition of a table without partition columns is empty."""
    table = golden("9", "mor_basic").table
    source, _, rows = halved(table, tmp_path)
    name = min(rows.column("_hoodie_partition_path").to_pylist())
    for operator, given in (
        (HudiDeletePartitionOperator, [f" {name}"]),
        (HudiDeletePartitionOperator, [name, ""]),
        (HudiInsertOverwriteOperator, [f"{name} "]),
        (HudiInsertOverwriteOperator, [""]),
    ):
        arguments = {} if operator is HudiDeletePartitionOperator else {"source": str(source)}
        with pytest.raises(AirflowFailException):
            made(operator, table, partitions=given, **arguments).execute(of_interval())
    assert replaced(table) == []
    assert [getattr(request, "partitions", None) for request in requests(submitted)] == [(f"{name} ",), ("",)]
    whole = golden("9", "non_partitioned_mor").table
    assert read_rows(whole).num_rows
    result = made(HudiDeletePartitionOperator, whole, partitions=[""]).execute(of_interval())
    assert (result["operation"], result["partitions"], read_rows(whole).num_rows) == ("DELETE_PARTITION", 1, 0)


def test_a_source_without_rows_is_nothing_to_do(golden: Golden, submitted: Path, tmp_path: Path) -> None:
    table = golden("9", "mor_basic").table
    rows = read_rows(table)
    source = put_source(own_rows(table, rows.slice(0, 0)), tmp_path)
    result = made(HudiInsertOverwriteOperator, table, source=str(source)).execute(of_interval())
    assert (result["instant"], "no rows" in result["reason"]) == (None, True)
    with pytest.raises(AirflowSkipException, match="no rows"):
        made(HudiInsertOverwriteOperator, table, source=str(source), nothing_to_do="skip").execute(of_interval())
    assert replaced(table) == []


@pytest.mark.parametrize(
    ("operator", "arguments", "message"),
    [
        (HudiInsertOverwriteOperator, {"source": " "}, "needs a source"),
        (HudiInsertOverwriteOperator, {"source": "/nowhere", "whole_table": "all"}, "true or false"),
        (HudiInsertOverwriteOperator, {"source": "/nowhere/rows"}, "/nowhere/rows"),
        (HudiDeletePartitionOperator, {"partitions": ""}, "needs a partition"),
        (HudiDeletePartitionOperator, {"partitions": "no/such"}, "no/such"),
    ],
)
def test_bad_input_is_not_retried(
    golden: Golden, submitted: Path, operator: Any, arguments: dict[str, Any], message: str
) -> None:
    table = golden("9", "mor_basic").table
    with pytest.raises(AirflowFailException, match=message):
        made(operator, table, **arguments, **RENDERED).execute(of_interval())
    assert replaced(table) == []


def waiting(table: Path, late: Path, **arguments: Any) -> Any:
    given = {"source": str(late), "wait_for_source": "2h", "source_poll_interval": 0.05, **arguments}
    return made(HudiInsertOverwriteOperator, table, **given)


def test_a_late_source_is_waited_for_in_the_triggerer(golden: Golden, submitted: Path, tmp_path: Path) -> None:
    table = golden("9", "mor_basic").table
    write = waiting(table, tmp_path / "source")
    with pytest.raises(TaskDeferred) as deferred:
        write.execute(of_interval())
    assert deferred.value.timeout == timedelta(hours=2)
    assert deferred.value.trigger.serialize()[1] == {
        "table": f"{tmp_path}/source",
        "condition": {"kind": "source", "address": f"{tmp_path}/source", "marker": "", "hudi_conn_id": None},
        "hudi_conn_id": None,
        "poll_interval": 0.05,
        "max_errors": 5,
    }
    assert requests(submitted) == []
    _, expected, _ = halved(table, tmp_path)
    event = {"status": "success", "table": f"{tmp_path}/source"}
    resumed = waiting(table, tmp_path / "source")
    done = resumed.resume_execution(deferred.value.method_name, {"event": event}, of_interval())
    assert (done["repeated"], done["partitions"]) == (False, 1)
    assert places(read_rows(table)) == places(expected)
    (tmp_path / "source").rename(tmp_path / "gone")
    assert write.execute(of_interval(try_number=3))["repeated"], "what is written needs no source"
    (tmp_path / "gone").rename(tmp_path / "source")
    assert not write.execute(of_interval(START + DAY))["repeated"], "no wait where the source is there"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"source": "s3://KEY:SECRET@lake/rows"}, r"the address of the source must not hold.*s3://\*\*\*@lake/rows"),
        ({"source": "abfss://c@a.dfs.core.windows.net/rows?sig=SECRET"}, "the address of the source must not hold"),
        ({"whole_table": "maybe"}, "true or false"),
        ({"query": "select 1"}, "exclude each other"),
        ({"token": "a\nb"}, "no token"),
        ({"options": {"fs.s3a.secret.key": "SECRET"}}, "options must not hold secrets"),
    ],
)
@pytest.mark.parametrize("storage_conn_id", [None, "keys"])
def test_bad_input_is_not_waited_for(
    golden: Golden,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    storage_conn_id: str | None,
    arguments: dict[str, Any],
    message: str,
) -> None:
    """An address with a secret would be in the log, in the trigger's row and in what a timeout says."""
    fields = {"conn_type": "hudi", "extra": {"storage_conn_id": storage_conn_id}}
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps(fields))
    monkeypatch.setitem(cast("dict[str, Any]", _register_filesystems()), "s3", lambda conn_id: MemoryFileSystem())
    write = waiting(golden("9", "cow_basic").table, tmp_path / "rows", hudi_conn_id="lake", query="{{ rendered }}")
    for name, value in {"query": "", **arguments}.items():
        setattr(write, name, value)  # as rendered
    with pytest.raises(AirflowFailException, match=message) as refused:
        write.execute(of_interval())
    assert "SECRET" not in f"{refused.value}{caplog.text}"


def test_a_source_that_does_not_come_is_named_with_the_wait(golden: Golden, submitted: Path, tmp_path: Path) -> None:
    table = golden("9", "cow_basic").table
    with pytest.raises(AirflowSensorTimeout) as late:
        waiting(table, tmp_path / "rows").resume_execution("__fail__", {"error": "Trigger timeout"}, of_interval())
    reason = "has not arrived: no Parquet files, or not the same at two looks, after a wait of 7200 s"
    assert str(late.value) == f"the source {tmp_path}/rows {reason}"
    here = waiting(table, tmp_path / "rows", wait_for_source=1, source_marker="_SUCCESS", deferrable=False)
    with pytest.raises(AirflowSensorTimeout, match="has not arrived: no _SUCCESS in it after a wait of 1 s"):
        here.execute(of_interval())
    for permanent, kind in ((False, HudiSensorFailed), (True, AirflowFailException)):
        failed = {"event": {"status": "error", "message": "no bucket", "is_permanent": permanent}}
        with pytest.raises(kind, match="no bucket"):
            waiting(table, tmp_path / "rows").resume_execution("execute_complete", failed, of_interval())
    assert requests(submitted) == []


def test_a_wait_in_the_worker_goes_on_or_is_stopped(golden: Golden, submitted: Path, tmp_path: Path) -> None:
    table = golden("9", "cow_basic").table
    source, *_ = halved(table, tmp_path / "late")
    write = waiting(table, tmp_path / "rows", deferrable=False)
    timer = threading.Timer(0.3, source.rename, [tmp_path / "rows"])
    timer.start()
    assert write.execute(of_interval())["repeated"] is False
    stopped = waiting(table, tmp_path / "other", deferrable=False)
    timer = threading.Timer(0.3, stopped.on_kill)
    timer.start()
    with pytest.raises(HudiJobKilled):
        stopped.execute(of_interval(START + DAY))


@pytest.mark.parametrize(
    "arguments",
    [
        {"source": "rows"},
        {"source": "/"},
        {"source": "", "query": "select 1"},
        *({"wait_for_source": wait} for wait in ("soon", -5, timedelta(seconds=-5), True, False, float("inf"))),
    ],
)
def test_only_an_address_can_be_waited_for(tmp_path: Path, arguments: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        waiting(tmp_path, tmp_path / "rows", **arguments)
