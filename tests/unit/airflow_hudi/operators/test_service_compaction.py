from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from airflow_hudi.operators.service import HudiCompactionOperator
from airflow_hudi.task_fate import HudiJobFailed, HudiJobKilled
from hudi_core.config.engine_config import Mode
from hudi_core.errors import ConfigError
from hudi_core.verbs.run import RunRequest
from hudi_submit import local_process
from tests.support.fake_spark_submit import RENDERED, Store, context, requests

OLD, NEW = "20260102000000000", "20260103000000000"
COMMIT = json.dumps(
    {
        "partitionToWriteStats": {
            "dt=1": [
                {
                    "fileId": "a",
                    "path": "dt=1/a.parquet",
                    "partitionPath": "dt=1",
                    "prevCommit": "null",
                    "numWrites": 7,
                    "fileSizeInBytes": 100,
                },
                {
                    "fileId": "b",
                    "path": "dt=1/b.parquet",
                    "partitionPath": "dt=1",
                    "prevCommit": "null",
                    "numWrites": 5,
                    "fileSizeInBytes": 50,
                },
            ]
        },
        "compacted": True,
        "extraMetadata": {},
        "operationType": "COMPACT",
    }
)


@pytest.fixture
def output(submitted: Path) -> Path:
    return submitted


def completes(monkeypatch: pytest.MonkeyPatch, table: Path, instant: str, code: int = 0) -> None:
    commit = table.parent / "commit.json"
    commit.write_text(COMMIT)
    monkeypatch.setenv("FAKE_ACTION", f"cp {commit} {table}/.hoodie/{instant}.commit; exit {code}")


def operator_on(table: Path, **arguments: Any) -> HudiCompactionOperator:
    fields = {"task_id": "compact", "table": str(table), "hudi_conn_id": None, "mode": "execute"}
    return HudiCompactionOperator(**{**fields, **arguments})


def test_runs_the_oldest_pending_compaction(
    table: Path, put: Callable[..., None], output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(f"{OLD}.compaction.requested")
    put(f"{NEW}.compaction.requested")
    completes(monkeypatch, table, OLD)
    result = operator_on(table, options={"hoodie.x": "1"}, storage_options={"region": "eu"}, metadata="off").execute(
        context()
    )
    assert {**result, "seconds": 0} == {
        "table": str(table),
        "instant": OLD,
        "action": "compaction",
        "state": "completed",
        "files_written": 2,
        "bytes_written": 150,
        "files_deleted": 0,
        "records": 12,
        "seconds": 0,
        "already_completed": False,
        "engine": None,
        "reason": None,
    }
    (request,) = requests(output)
    assert request == RunRequest(
        table=str(table),
        service="compaction",
        instant=OLD,
        owner="airflow:maintenance/compact/r1/-1#2",
        run_id="r1",
        options={"hoodie.x": "1"},
        storage_options={"region": "eu"},
        metadata="off",
    )


def test_runs_the_instant_that_it_is_given(
    table: Path, put: Callable[..., None], output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(f"{OLD}.compaction.requested")
    put(f"{NEW}.compaction.requested")
    completes(monkeypatch, table, NEW)
    assert operator_on(table, instant=NEW).execute(context())["instant"] == NEW


def test_a_completed_instant_is_a_success_without_a_job(table: Path, put: Callable[..., None], output: Path) -> None:
    put(f"{OLD}.compaction.requested")
    put(f"{OLD}.commit", COMMIT.encode())
    result = operator_on(table, instant=OLD).execute(context())
    assert result["already_completed"]
    assert result["records"] == 12
    assert requests(output) == []


def test_an_instant_that_does_not_exist_is_bad_input(table: Path, put: Callable[..., None], output: Path) -> None:
    """No retry would find it."""
    with pytest.raises(AirflowFailException, match=f"holds no compaction at instant {OLD}"):
        operator_on(table, instant=OLD).execute(context())
    put(f"{OLD}.deltacommit.requested")
    with pytest.raises(AirflowFailException, match=f"{OLD} is a deltacommit, no compaction"):
        operator_on(table, instant=OLD).execute(context())
    assert requests(output) == []


def test_a_task_that_did_its_work_stays_green_when_it_is_cleared(
    table: Path, put: Callable[..., None], output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store()
    put(f"{OLD}.compaction.requested")
    completes(monkeypatch, table, OLD)
    assert operator_on(table).execute(context(store))["already_completed"] is False
    again = operator_on(table, instant="").execute(context(store))
    assert (again["instant"], again["already_completed"], again["seconds"]) == (OLD, True, 0.0)
    assert "no compaction is pending on trips" in again["reason"]
    put(f"{NEW}.compaction.requested")
    completes(monkeypatch, table, NEW)
    assert operator_on(table).execute(context(store))["instant"] == NEW
    (table / f".hoodie/{NEW}.commit").unlink()
    (table / f".hoodie/{NEW}.compaction.requested").unlink()
    archived = operator_on(table).execute(context(store))
    assert (archived["instant"], archived["state"]) == (NEW, None)


def test_nothing_pending_is_a_skip_or_a_success(table: Path, output: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AirflowSkipException):
        operator_on(table).execute(context())
    assert "Nothing to do: no compaction is pending on trips" in capsys.readouterr().out
    result = operator_on(table, nothing_to_do="succeed").execute(context())
    assert (result["instant"], result["files_written"]) == (None, 0)
    with pytest.raises(ConfigError, match="nothing_to_do"):
        operator_on(table, nothing_to_do="fail")


def test_a_failed_job_is_named(
    table: Path, put: Callable[..., None], output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(f"{OLD}.compaction.requested")
    error = json.dumps({"error": {"type": "ExecutionError", "message": "executor lost", "path": None, "remedy": None}})
    monkeypatch.setenv("FAKE_ACTION", f"echo 'HUDI_RESULT {error}'; exit 1")
    with pytest.raises(HudiJobFailed, match=r"exit code 1.*: executor lost"):
        operator_on(table).execute(context())


def test_input_that_no_retry_can_mend_fails_for_good(
    table: Path, put: Callable[..., None], output: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(f"{OLD}.compaction.requested")
    monkeypatch.setenv("FAKE_ACTION", "exit 2")
    with pytest.raises(AirflowFailException):
        operator_on(table).execute(context())
    with pytest.raises(AirflowFailException, match="Hudi table"):
        operator_on(tmp_path / "bin").execute(context())
    with pytest.raises(AirflowFailException, match="secrets"):
        operator_on(table, storage_options={"secret": "x"}, **RENDERED).execute(context())


def test_another_process_completes_the_instant(
    table: Path, put: Callable[..., None], output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(f"{OLD}.compaction.requested")
    commit = table.parent / "commit.json"
    commit.write_text(COMMIT)
    monkeypatch.setenv("FAKE_ACTION", f"(sleep 0.4; cp {commit} {table}/.hoodie/{OLD}.commit) >/dev/null 2>&1 & exit 3")
    # The stand-in for the other owner is in the job's own group, so the job must be seen to leave it alone.
    result = operator_on(table, conflict_poll_interval=0.1).execute(context())
    assert (result["state"], result["already_completed"], result["seconds"]) == ("completed", True, 0.0)
    assert result["reason"] == "another process completed it"
    assert len(requests(output)) == 1


def test_a_retry_takes_up_the_instant_that_it_had_started(
    table: Path, put: Callable[..., None], output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store()
    put(f"{NEW}.compaction.requested")
    monkeypatch.setenv("FAKE_ACTION", "exit 1")
    with pytest.raises(HudiJobFailed):
        operator_on(table).execute(context(store))
    put(f"{OLD}.compaction.requested")
    put(f"{NEW}.commit", COMMIT.encode())
    result = operator_on(table).execute(context(store))
    assert (result["instant"], result["already_completed"]) == (NEW, True)
    assert store.values == {"hudi_done": json.dumps({"instant": NEW})}
    completes(monkeypatch, table, OLD)
    assert operator_on(table).execute(context(store))["instant"] == OLD


def test_template_fields_are_arguments_kept_as_given() -> None:
    given = {name: f"{{{{ {name} }}}}" for name in HudiCompactionOperator.template_fields}
    operator = HudiCompactionOperator(task_id="compact", **given)
    assert {name: getattr(operator, name) for name in HudiCompactionOperator.template_fields} == given


def test_on_kill_ends_the_job_and_leaves_the_instant_to_a_retry(
    table: Path, put: Callable[..., None], output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(f"{OLD}.compaction.requested")
    ended = table.parent / "ended"
    monkeypatch.setenv("FAKE_ACTION", f"trap 'touch {ended}; exit 143' TERM; while :; do sleep 0.05; done")
    operator = operator_on(table)
    with ThreadPoolExecutor(1) as pool:
        task = pool.submit(operator.execute, context())
        while not output.exists():
            time.sleep(0.02)
        time.sleep(0.2)
        operator.on_kill()
        with pytest.raises(HudiJobKilled):
            task.result(20)
    assert ended.exists()
    completes(monkeypatch, table, OLD)
    assert operator_on(table).execute(context())["state"] == "completed"


def test_on_kill_before_a_job_does_nothing(table: Path) -> None:
    operator_on(table).on_kill()


@pytest.mark.parametrize(
    ("argument", "connection", "configuration", "engine"),
    [("local", "spark", "spark", "local"), (None, "auto", "spark", "auto"), (None, None, "local", "local")],
)
def test_the_engine_comes_from_the_task_the_connection_or_the_configuration(
    table: Path,
    output: Path,
    monkeypatch: pytest.MonkeyPatch,
    argument: str | None,
    connection: str | None,
    configuration: str,
    engine: str,
) -> None:
    extra = {} if connection is None else {"engine": connection}
    monkeypatch.setenv("AIRFLOW_CONN_HUDI_TEST", json.dumps({"conn_type": "hudi", "extra": extra}))
    monkeypatch.setenv("AIRFLOW__HUDI__ENGINE", configuration)
    operator = operator_on(table, hudi_conn_id="hudi_test", engine=argument)
    job = operator.new_job(RunRequest(str(table), "compaction"), looks=False)
    assert job._mode == Mode(engine)


def test_the_engine_is_spark_where_nothing_names_one(
    table: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_HUDI_TEST", json.dumps({"conn_type": "hudi"}))
    monkeypatch.delenv("AIRFLOW__HUDI__ENGINE", raising=False)
    for conn_id in ("hudi_test", None):
        operator = operator_on(table, hudi_conn_id=conn_id)
        job = operator.new_job(RunRequest(str(table), "compaction"))
        assert (job._settings.engine, job._mode) == ("spark", Mode.LOOK)
        named = operator.new_job(RunRequest(str(table), "compaction"), looks=False)
        assert named._mode is None


SPARK_LINE = "26/11/24 01:30:14 INFO SparkContext: Running Spark version 3.5.3"


@pytest.mark.parametrize(
    ("argument", "configuration", "shown"),
    [({}, None, False), ({}, "True", True), ({"spark_log": True}, None, True), ({"spark_log": False}, "True", False)],
)
def test_sparks_lines_are_shown_where_the_task_or_the_configuration_asks_for_them(
    table: Path,
    put: Callable[..., None],
    output: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    argument: dict[str, bool],
    configuration: str | None,
    shown: bool,
) -> None:
    put(f"{OLD}.compaction.requested")
    completes(monkeypatch, table, OLD)
    monkeypatch.setenv("FAKE_ACTION", f"echo '{SPARK_LINE}'; {os.environ['FAKE_ACTION']}")
    if configuration is None:
        monkeypatch.delenv("AIRFLOW__HUDI__SPARK_LOG", raising=False)
    else:
        monkeypatch.setenv("AIRFLOW__HUDI__SPARK_LOG", configuration)
    operator_on(table, **argument).execute(context())
    assert (SPARK_LINE in capsys.readouterr().out) == shown


@pytest.mark.parametrize("report", ["nothing", "a conflict"])
def test_the_loser_of_two_runs_that_plan_says_that_it_did_nothing(
    table: Path, output: Path, monkeypatch: pytest.MonkeyPatch, report: str
) -> None:
    """Another process plans and completes an instant while this task's job runs."""
    commit, hoodie = table.parent / "commit.json", table / ".hoodie"
    commit.write_text(COMMIT)
    other = f"touch {hoodie}/{NEW}.compaction.requested; cp {commit} {hoodie}/{NEW}.commit"
    nothing: dict[str, Any] = {"version": 1, "instants": [], "reason": "none is due", "engine": "local"}
    busy = {"error": {"type": "ConflictError", "message": "held by another", "path": None, "remedy": None}}
    document, code = (nothing, 0) if report == "nothing" else (busy, 3)
    monkeypatch.setenv("FAKE_ACTION", f"{other}; echo 'HUDI_RESULT {json.dumps(document)}'; exit {code}")
    monkeypatch.setattr(local_process, "COMMAND", ("false",))  # the job is submitted without a look
    result = operator_on(table, mode="both").execute(context(Store()))
    assert (result["instant"], result["state"], result["already_completed"]) == (NEW, "completed", True)
    assert (result["seconds"], result["engine"]) == (0.0, None)
    assert result["reason"] == "another process completed it"
    assert len(requests(output)) == 1


@pytest.mark.parametrize("reports", [True, False])
def test_who_planned_and_completed_an_instant_did_it(
    table: Path, output: Path, monkeypatch: pytest.MonkeyPatch, reports: bool
) -> None:
    """By its report or, where that was not received, by the job's exit code."""
    commit, hoodie = table.parent / "commit.json", table / ".hoodie"
    commit.write_text(COMMIT)
    item = {"instant": NEW, "action": "compaction", "state": "completed", "seconds": 2.5}
    line = f"; echo 'HUDI_RESULT {json.dumps({'version': 1, 'instants': [item], 'engine': 'spark'})}'"
    done = f"touch {hoodie}/{NEW}.compaction.requested; cp {commit} {hoodie}/{NEW}.commit"
    monkeypatch.setenv("FAKE_ACTION", done + (line if reports else ""))
    monkeypatch.setattr(local_process, "COMMAND", ("false",))
    result = operator_on(table, mode="both").execute(context(Store()))
    assert (result["instant"], result["already_completed"], result["reason"]) == (NEW, False, None)
    assert result["engine"] == ("spark" if reports else None)
    assert (result["seconds"] == 2.5) == reports


@pytest.mark.parametrize("engine", ["auto", "local"])
def test_on_kill_ends_the_process_group_beside_the_task(
    table: Path, put: Callable[..., None], output: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    put(f"{OLD}.compaction.requested")
    pids = table.parent / "pids"
    group = f"sleep 600 & echo $$ $! > {pids}.new; mv {pids}.new {pids}; wait"
    monkeypatch.setattr(local_process, "COMMAND", ("/bin/sh", "-c", group))
    operator = operator_on(table, engine=engine)
    with ThreadPoolExecutor(1) as pool:
        task = pool.submit(operator.execute, context())
        while not pids.exists():
            time.sleep(0.02)
        operator.on_kill()
        with pytest.raises(HudiJobKilled):
            task.result(20)
    deadline = time.monotonic() + 20
    while any(is_alive(int(pid)) for pid in pids.read_text().split()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert requests(output) == []


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
