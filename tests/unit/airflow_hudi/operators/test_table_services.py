"""Services of many tables as one job, on tables of real Hudi."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from datetime import datetime, tzinfo
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jinja2
import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from airflow_hudi.hooks import HudiHook
from airflow_hudi.jobs.engine_job import EngineJob
from airflow_hudi.jobs.task_store import TaskStore
from airflow_hudi.operators import table_services
from airflow_hudi.operators.table_services import HudiTableServicesOperator
from airflow_hudi.task_fate import HudiJobFailed
from hudi_core.engine.local import LocalEngine
from hudi_core.request.results import job_result_from_json
from hudi_core.table import HudiTable
from hudi_core.verbs.batch import BatchRequest, parse_job
from hudi_core.verbs.run import RunRequest, ScheduleRequest
from tests.support.fake_spark_submit import RENDERED, Store, context, real_job
from tests.support.golden_data import GoldenCase
from tests.support.pending_operations import cut_plan
from tests.support.rows import assert_same_rows, read_parquet
from tests.support.table_invariants import read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
ONE = {"hoodie.clean.commits.retained": "1"}


class EarlyMorning(datetime):
    """Six o'clock of a day that is over."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> EarlyMorning:
        return cls.at("06:00")

    @classmethod
    def at(cls, text: str) -> EarlyMorning:
        return cls.fromisoformat(f"2026-01-05T{text}:00+00:00")


def operator_on(*tables: Path, **arguments: Any) -> HudiTableServicesOperator:
    given = {"task_id": "services", "tables": [str(table) for table in tables], "hudi_conn_id": None}
    return HudiTableServicesOperator(**{**given, **arguments})


def submitted_jobs(output: Path) -> list[Any]:
    return [parse_job(line) for line in output.read_text().splitlines()] if output.exists() else []


def states(table: Path, action: str) -> set[str]:
    timeline = HudiTable.open(str(table)).timeline()
    return {item.state.value for item in timeline if action in (item.action, item.pending_action)}


def of(result: dict[str, Any], table: Path, service: str) -> dict[str, Any]:
    (found,) = (item for item in result["results"] if (item["table"], item["service"]) == (str(table), service))
    return dict(found)


def test_what_is_due_is_one_spark_job_and_the_rest_none(golden: Golden, submitted: Path) -> None:
    """The tables with work are one submit; a table with nothing to do is not in it."""
    compacting, cleaning, idle = (
        golden("9", "mor_compaction_requested"),
        golden("8", "mor_compacted"),
        golden("6", "mor_basic"),
    )
    tables = [case.table for case in (compacting, cleaning, idle)]
    options = {**ONE, "hoodie.compact.inline.max.delta.commits": "50"}
    store = Store()
    result = operator_on(*tables, services="compaction, clean", options=options).execute(context(store))
    assert (result["tables"], result["failed"], result["done"] + result["nothing"]) == (3, 0, 6)
    assert of(result, tables[0], "compaction")["instants"][0]["state"] == "completed"
    assert of(result, tables[1], "clean")["instants"][0]["files_deleted"] > 0
    assert "hoodie.compact.inline.max.delta.commits" in of(result, tables[2], "compaction")["reason"]
    (batch,) = submitted_jobs(submitted)
    assert isinstance(batch, BatchRequest)
    assert (str(tables[2]), "compaction") not in {(item.table, item.service) for item in batch.requests}
    assert_same_rows(read_rows(tables[0]), read_parquet(compacting.expected / "after_snapshot.parquet"))
    other = operator_on(*tables, services="compaction", options=options, nothing_to_do="succeed").execute(context())
    assert (other["nothing"], other["seconds"]) == (3, 0.0)
    with pytest.raises(AirflowSkipException, match="none of 3 tables has work for compaction, rollback"):
        operator_on(*tables, services=["compaction", "rollback"], options=options).execute(context(Store()))
    again = operator_on(*tables, services="compaction", options=options).execute(context(store))  # cleared
    assert (again["done"], again["nothing"], "has work for compaction" in again["reason"]) == (0, 3, True)
    assert len(submitted_jobs(submitted)) == 1


def test_the_seconds_are_those_of_the_runs(golden: Golden, submitted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = [golden(version, "mor_compaction_requested").table for version in ("8", "9")]
    real_job(monkeypatch, before="sleep 1")  # as long as Spark's start
    result = operator_on(*tables, services="compaction", mode="execute").execute(context())
    runs = [item["instants"][0]["seconds"] for item in result["results"]]
    assert result["seconds"] == pytest.approx(sum(runs), abs=0.002)


def test_small_plans_need_no_spark(golden: Golden, submitted: Path) -> None:
    tables = [golden(version, "mor_compaction_requested").table for version in ("6", "8", "9")]
    result = operator_on(*tables, engine="auto", services=["compaction"]).execute(context())
    assert {item["engine"] for item in result["results"]} == {"local"}
    assert [states(table, "compaction") for table in tables] == [{"completed"}] * 3
    assert submitted_jobs(submitted) == []


def test_compactions_and_clusterings_are_planned_and_run_in_one_task(golden: Golden, submitted: Path) -> None:
    """Within a budget of bytes: each in several instants."""
    merge, copy = golden("8", "mor_basic").table, golden("9", "cow_basic").table
    options = {"hoodie.compact.inline.max.delta.commits": "1", "airflow_hudi.plan.max.bytes": "1"}
    given = {"engine": "auto", "services": ["compaction", "clustering"], "options": options}
    rows = [read_rows(table) for table in (merge, copy)]
    result = operator_on(merge, copy, **given).execute(context())
    assert (result["done"], result["nothing"], result["failed"]) == (3, 1, 0)
    assert "copy-on-write" in of(result, copy, "compaction")["reason"]
    for table, service in ((merge, "compaction"), (merge, "clustering"), (copy, "clustering")):
        done = of(result, table, service)["instants"]
        assert (len(done) > 1, {item["state"] for item in done}) == (True, {"completed"})
    for table, before in zip((merge, copy), rows, strict=True):
        assert_same_rows(read_rows(table), before)
    with pytest.raises(AirflowSkipException, match="none of 2 tables has work"):
        operator_on(merge, copy, **given).execute(context())


@pytest.mark.parametrize("engine", tiered(["spark", "auto", "local"], ["auto"]))
def test_who_runs_a_plan_of_others_says_which_options_were_not_used(
    golden: Golden, submitted: Path, engine: str
) -> None:
    """A plan of the task itself is none, also where another process runs it."""
    columns = "hoodie.clustering.plan.strategy.sort.columns"
    table, other = golden("9", "cow_basic").table, golden("8", "cow_basic").table
    request = ScheduleRequest(str(table), service="clustering", options={columns: "name"})
    planned = (HudiTable.open(str(table)).run(request, LocalEngine(1)).document or {})["instant"]
    options = {columns: "id", "airflow_hudi.engine.local.max.units": "1"}
    result = operator_on(table, other, services="clustering", engine=engine, options=options).execute(context())
    said = f"clustering {planned} was planned before, and is run by its plan, not by this run's {columns}"
    instants = {item["table"]: [done.get("reason") for done in item["instants"]] for item in result["results"]}
    assert instants[str(table)][0] == said
    assert {*instants[str(table)][1:], *instants[str(other)]} == {None}


def test_a_plan_of_an_earlier_try_is_the_tasks_own(golden: Golden, submitted: Path) -> None:
    columns, table, store = "hoodie.clustering.plan.strategy.sort.columns", golden("9", "cow_basic").table, Store()
    task = operator_on(table, services="clustering", engine="local", options={columns: "id"})
    TaskStore(store).after = str(int(1000 * time.time()))  # as the first try, which planned and died
    request = ScheduleRequest(str(table), service="clustering", options={columns: "id"})
    HudiTable.open(str(table)).run(request, LocalEngine(1))
    (result,) = task.execute(context(store))["results"]
    assert [item.get("reason") for item in result["instants"]] == [None]
    assert TaskStore(store).after is None


def test_one_tables_failure_stops_no_other_and_fails_the_task(golden: Golden, submitted: Path) -> None:
    broken, whole = golden("8", "mor_compaction_requested").table, golden("9", "mor_compaction_requested").table
    lost = min(path for path in broken.glob("2024-*/.*.log.1_*") if path.suffix != ".crc")
    lost.unlink()
    run = context()
    with pytest.raises(AirflowFailException, match=r"1 of 2 runs failed(.|\n)*" + str(broken)):
        operator_on(broken, whole, services="compaction").execute(run)
    pushed = run["ti"].pushed["return_value"]
    assert (pushed["done"], pushed["failed"]) == (1, 1)
    assert lost.name in str(of(pushed, broken, "compaction"))
    assert states(whole, "compaction") == {"completed"}


@pytest.mark.parametrize("engine", ["spark", "auto"])
def test_input_that_is_bad_everywhere_is_not_tried_again(golden: Golden, submitted: Path, engine: str) -> None:
    table = golden("8", "mor_basic").table
    wrong = {"airflow_hudi.nonsense": "1"}
    with pytest.raises(AirflowFailException, match=r"airflow_hudi\.nonsense"):
        operator_on(table, services="clean", options=wrong, engine=engine, **RENDERED).execute(context())
    for arguments, word in (
        ({"tables": ""}, "no table is named"),
        ({"services": ""}, "no service is named"),
        ({"services": "defragment"}, "not in this release"),
        ({"mode": "schedule"}, "mode is"),
        ({"engine": "flink"}, "engine is"),
    ):
        with pytest.raises(AirflowFailException, match=word):
            operator_on(table, **arguments, **RENDERED).execute(context())
    assert submitted_jobs(submitted) == []


def test_what_was_done_beside_the_task_is_kept_though_spark_is_not_there(
    golden: Golden, submitted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_SPARK_DEFAULT")
    whole, gone = golden("9", "mor_compaction_requested").table, tmp_path / "gone"
    run = context(Store())
    with pytest.raises(AirflowFailException, match=rf"1 of 2 runs failed\n.*{gone}: .*spark_default"):
        operator_on(gone, whole, services="compaction", engine="auto").execute(run)
    found = run["ti"].pushed["return_value"]
    assert (found["done"], found["failed"]) == (1, 1)
    kept = json.loads(run["task_state_store"].values["hudi_results"])
    assert [(item["table"], item["exit_code"]) for item in kept] == [(str(gone), 2), (str(whole), 0)]


def test_a_dropped_table_takes_no_result_of_a_driver_in_the_cluster(
    golden: Golden, submitted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = {"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": "cluster"}}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(cluster))
    real_job(monkeypatch, after="code=1")  # spark-submit has exit codes of its own
    whole, gone = golden("9", "mor_compaction_requested").table, tmp_path / "gone"
    run = context(Store())
    with pytest.raises(AirflowFailException, match=rf"1 of 2 runs failed\n.*{gone}.* is not a Hudi table"):
        operator_on(gone, whole, services="compaction").execute(run)
    assert of(run["ti"].pushed["return_value"], whole, "compaction")["instants"][0]["state"] == "completed"


def test_credentials_are_those_of_any_table_that_has_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HudiHook, "credentials", lambda self, table: {"key": "k"} if table.startswith("s3://") else {})
    for tables in (["/local/t", "s3://lake/t"], ["s3://lake/t", "/local/t"], ["/local/t"]):
        operator = HudiTableServicesOperator(task_id="services", tables=tables, hudi_conn_id=None)
        batch = BatchRequest(tuple(RunRequest(table, "clean") for table in tables))
        found = operator.new_job(batch)._settings.credentials()
        assert found == ({"key": "k"} if "s3://lake/t" in tables else {})


def test_what_an_earlier_try_completed_is_in_the_result(golden: Golden, submitted: Path, tmp_path: Path) -> None:
    """Though a table failed then; metrics count it once."""
    busy, broken = golden("9", "mor_compaction_requested").table, tmp_path / "broken"
    store = Store()
    both = {"services": "compaction", "mode": "execute", "engine": "local"}
    with pytest.raises(AirflowFailException, match="1 of 2 runs failed"):
        operator_on(busy, broken, **both).execute(context(store))
    shutil.copytree(golden("8", "cow_basic").table, broken)
    operator = operator_on(busy, broken, **both)
    result = operator.execute(context(store))
    (instant,) = of(result, busy, "compaction")["instants"]
    assert (instant["state"], instant["already_completed"], result["done"]) == ("completed", True, 1)
    assert [(work.table, work.instant, work.earlier) for work in operator.works] == [
        (str(busy), instant["instant"], True)
    ]
    assert store.values.keys() == {"hudi_done"}


def test_what_another_process_completed_meanwhile_is_its_work(
    golden: Golden, submitted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    instant = {"instant": "1", "action": "clustering", "state": "completed", "already_completed": True}
    report = {"table": "/t", "service": "clustering", "exit_code": 0, "instants": [instant]}
    reported = job_result_from_json({"results": [report]}, 0)
    monkeypatch.setattr(EngineJob, "run", lambda job: setattr(job, "result", reported) or 0)
    operator = operator_on(golden("9", "cow_basic").table, services="clustering", nothing_to_do="succeed")
    result = operator.execute(context(Store()))
    assert (result["done"], result["nothing"]) == (0, 1)
    assert [(work.earlier, work.elsewhere) for work in operator.works] == [(True, True)]


def test_execute_plans_nothing(golden: Golden, submitted: Path) -> None:
    table = golden("8", "mor_compacted").table
    result = operator_on(table, mode="execute", options=ONE, nothing_to_do="succeed").execute(context())
    assert [item["service"] for item in result["results"]] == ["rollback", "compaction", "clean"]
    assert (result["nothing"], states(table, "clean")) == (3, set())


def test_a_policy_says_what_is_due(golden: Golden, submitted: Path, tmp_path: Path) -> None:
    """By conditions of each table, in its order, with its options; the tables are those of the file."""
    due, idle = golden("9", "mor_basic").table, golden("8", "mor_basic").table
    file = tmp_path / "policy.yaml"
    file.write_text(
        "policies:\n"
        "  default: {services: {compaction: {commits: 1}, clean: }}\n"
        "  rare: {services: {compaction: {commits: 1000, log_ratio: 1000}}}\n"
        f"tables: [{due}, {{table: {idle}, policy: rare}}]\n"
    )
    rows = read_rows(due)
    result = operator_on(tables=[], policy=str(file), engine="auto").execute(context(Store()))
    assert (result["tables"], result["done"], result["nothing"], result["failed"]) == (2, 1, 2, 0)
    assert [item["state"] for item in of(result, due, "compaction")["instants"]] == ["completed"]
    assert "due at 1000" in of(result, idle, "compaction")["reason"]
    assert_same_rows(read_rows(due), rows)
    with pytest.raises(AirflowSkipException, match="none of 2 tables has work for compaction, clean"):
        operator_on(tables=[], policy=str(file), engine="auto").execute(context(Store()))
    assert submitted_jobs(submitted) == []


def test_nothing_runs_in_quiet_hours(golden: Golden, submitted: Path) -> None:
    table = golden("9", "mor_compaction_requested").table
    policy = {"quiet_hours": ["00:00-12:00", "12:00-00:00"]}
    with pytest.raises(AirflowSkipException, match="quiet hours of every table"):
        operator_on(table, policy=policy, engine="auto").execute(context(Store()))
    assert states(table, "compaction") == {"requested"}


def test_the_policy_is_that_of_the_whole_address(
    golden: Golden, submitted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the entry has it, and the task a name below the connection's base path."""
    table = golden("9", "mor_compaction_requested").table
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps({"conn_type": "hudi", "host": str(table.parent)}))
    quiet = {"quiet_hours": ["00:00-12:00", "12:00-00:00"]}
    policy = {"policies": {"default": {}, "quiet": quiet}, "tables": [{"table": f"file:{table}", "policy": "quiet"}]}
    for name in (table.name, f"{table.parent}//{table.name}"):
        with pytest.raises(AirflowSkipException, match="quiet hours of every table"):
            operator_on(tables=name, policy=policy, engine="auto", hudi_conn_id="lake").execute(context(Store()))
    assert states(table, "compaction") == {"requested"}


def test_an_archival_is_never_pending(golden: Golden, submitted: Path) -> None:
    task = operator_on(golden("9", "mor_basic").table, services="archive", mode="execute", nothing_to_do="succeed")
    assert task.execute(context(Store()))["reason"] == "an archival is never pending: mode='both' archives"


def test_what_is_started_ends_with_the_minutes_and_with_quiet_hours(
    golden: Golden, submitted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task that began before them starts no more, and that is no failure."""
    table = golden("9", "mor_compaction_requested").table
    monkeypatch.setattr(table_services, "datetime", EarlyMorning)
    hours = {"quiet_hours": ["08:00-18:00"]}
    eight, five_past = (int(EarlyMorning.at(text).timestamp()) for text in ("08:00", "06:05"))
    for given, until in (
        ({}, None),
        ({"policy": hours}, eight),
        ({"policy": hours, "max_minutes": "5"}, five_past),
        ({"max_minutes": 5}, five_past),
    ):
        operator = operator_on(table, engine="auto", nothing_to_do="succeed", **given)
        operator.begin(context())
        requests = operator._requests()
        assert {request.starts_until for request in requests} == {until}
    result = operator_on(table, engine="auto", nothing_to_do="succeed", policy=hours).execute(context())
    assert {item["reason"] for item in result["results"]} == {"the time until which work may be started is over"}
    assert states(table, "compaction") == {"requested"}


def test_a_task_rewrites_no_more_bytes_than_it_may(golden: Golden, submitted: Path) -> None:
    """One instant in any case, of each run: what is left is due for the next task."""
    merge, copy = golden("8", "mor_basic").table, golden("9", "cow_basic").table
    options = {"hoodie.compact.inline.max.delta.commits": "1"}
    given = {"engine": "auto", "services": ["compaction", "clustering"], "options": options}
    rows = [read_rows(table) for table in (merge, copy)]
    first = operator_on(merge, copy, max_bytes="1", **given).execute(context())
    runs = ((merge, "compaction"), (merge, "clustering"), (copy, "clustering"))
    assert [len(of(first, *run)["instants"]) for run in runs] == [1, 1, 1]
    rest = operator_on(merge, copy, max_bytes="1GiB", **given).execute(context())
    assert sum(len(of(rest, *run).get("instants") or ()) for run in runs) > 0
    assert rest["failed"] == 0
    for table, before in zip((merge, copy), rows, strict=True):
        assert_same_rows(read_rows(table), before)
    with pytest.raises(AirflowSkipException, match="none of 2 tables has work"):
        operator_on(merge, copy, **given).execute(context())


def test_what_others_leave_of_the_bytes_is_for_those_that_wrote_their_share(
    golden: Golden, submitted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy, idle = golden("8", "mor_basic").table, golden("9", "cow_basic").table
    jobs: list[Any] = []
    new_job = HudiTableServicesOperator.new_job

    def noted(self: HudiTableServicesOperator, batch: Any) -> Any:
        jobs.append([(request.table, request.max_bytes) for request in batch.requests])
        return new_job(self, batch)

    monkeypatch.setattr(HudiTableServicesOperator, "new_job", noted)
    options = {"hoodie.compact.inline.max.delta.commits": "1", "airflow_hudi.plan.max.bytes": "1"}
    given = {"engine": "local", "services": "compaction", "options": options}
    (size, *_) = [path.stat().st_size for path in busy.glob("*/*.parquet")]
    most = 3 * size
    result = operator_on(busy, idle, max_bytes=str(most), **given).execute(context())
    written = [item["bytes_written"] for item in of(result, busy, "compaction")["instants"]]
    assert jobs[0] == [(str(busy), most // 2), (str(idle), most // 2)]
    assert jobs[1] == [(str(busy), most - sum(written[:2]))]
    assert (len(jobs), len(written)) == (2, 3)
    with pytest.raises(AirflowSkipException, match="none of 1 tables has work"):
        operator_on(busy, **given).execute(context())


def test_a_plan_that_cannot_be_read_holds_up_no_younger_one(golden: Golden, submitted: Path) -> None:
    table = golden("6", "mor_compaction_requested_only").table
    instants = cut_plan(HudiTable.open(str(table)).context.active, table)
    broken = table / ".hoodie" / f"{instants[0]}.compaction.requested"
    broken.write_bytes(broken.read_bytes()[:-40])
    run = context()
    with pytest.raises(HudiJobFailed, match="1 of 1 runs failed"):
        operator_on(table, services="compaction", max_bytes="1GiB").execute(run)
    found = of(run["ti"].pushed["return_value"], table, "compaction")["instants"]
    assert [item["instant"] for item in found if not item.get("error")] == instants[1:]


def test_a_table_that_failed_is_tried_again_though_the_bytes_are_spent(
    golden: Golden, submitted: Path, tmp_path: Path
) -> None:
    """It succeeds by work, in whichever try."""
    whole, broken = golden("9", "mor_compaction_requested").table, tmp_path / "broken"
    store = Store()
    given = {"services": "compaction", "engine": "local", "max_bytes": 1}
    for _ in range(2):
        with pytest.raises(AirflowFailException, match=r"1 of 2 runs failed\n.*broken"):
            operator_on(whole, broken, **given).execute(context(store))
    assert states(whole, "compaction") == {"completed"}
    shutil.copytree(golden("8", "mor_compaction_requested").table, broken)
    result = operator_on(whole, broken, **given).execute(context(store))
    assert states(broken, "compaction") == {"completed"}
    assert (result["done"], result["failed"]) == (2, 0)


def test_bytes_of_an_earlier_try_count(golden: Golden, submitted: Path) -> None:
    table = golden("9", "mor_compaction_requested").table
    done = {"instant": "20240101000000000", "action": "compaction", "state": "completed", "bytes_written": 7}
    kept = [{"table": str(table), "service": "compaction", "exit_code": 0, "instants": [done]}]
    store = Store({"hudi_results": json.dumps(kept)})
    result = operator_on(table, services="compaction", engine="local", max_bytes=7).execute(context(store))
    assert [item["instant"] for item in of(result, table, "compaction")["instants"]] == [done["instant"]]
    assert states(table, "compaction") == {"requested"}
    # Those of a table that the task has no more, too.
    kept[0] |= {"table": "/gone", "exit_code": 1, "error": {"message": "lost"}}
    store = Store({"hudi_results": json.dumps(kept)})
    result = operator_on(table, services="compaction", engine="local", max_bytes=7).execute(context(store))
    assert [(item["table"], item["exit_code"]) for item in result["results"]] == [(str(table), 0), ("/gone", 0)]
    assert states(table, "compaction") == {"requested"}


def test_a_retry_in_quiet_hours_has_what_was_done_before_them(golden: Golden, submitted: Path) -> None:
    table = golden("9", "mor_compaction_requested").table
    done = {"instant": "20240101000000000", "action": "compaction", "state": "completed", "bytes_written": 7}
    failed = {"table": str(table), "service": "clean", "exit_code": 1, "error": {"message": "lost"}}
    kept = [failed, {"table": str(table), "service": "compaction", "exit_code": 0, "instants": [done]}]
    store = Store({"hudi_results": json.dumps(kept)})
    operator = operator_on(table, policy={"quiet_hours": ["00:00-12:00", "12:00-00:00"]}, engine="auto")
    result = operator.execute(context(store))
    assert (result["done"], result["failed"], result["results"]) == (
        1,
        0,
        [{**kept[1], "instants": [{**done, "already_completed": True}]}],
    )
    assert [(work.instant, work.earlier) for work in operator.works] == [(done["instant"], True)]
    assert store.values.keys() == {"hudi_done"}


def test_a_mapped_task_is_labelled_with_its_tables() -> None:
    with DAG("services"):
        mapped: Any = HudiTableServicesOperator.partial(task_id="services").expand(tables=["s3://lake/t"])
        named: Any = HudiTableServicesOperator.partial(task_id="named", map_index_template="{{ x }}").expand(
            tables=["t"]
        )
    label = jinja2.Template(mapped.map_index_template)
    assert label.render(task=SimpleNamespace(tables="s3://lake/t")) == "s3://lake/t"
    assert label.render(task=SimpleNamespace(tables=["a", "b"])) == "a, b"
    assert len(label.render(task=SimpleNamespace(tables=["a"] * 1000))) < 250  # characters of Airflow's database
    assert named.map_index_template == "{{ x }}"
    assert HudiTableServicesOperator(task_id="one", tables="t").map_index_template is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"max_minutes": "soon"}, "max_minutes is 'soon'"),
        ({"max_bytes": "many"}, "max_bytes 'many' is no size"),
        ({"max_bytes": 0}, "max_bytes is 0"),
        ({"max_minutes": 0}, "max_minutes is 0"),
        ({"services": "clean", "policy": {"services": {"clean": None}}}, "leave out services and mode"),
        ({"mode": "execute", "policy": {"services": {"clean": None}}}, "leave out services and mode"),
        ({"policy": {"services": {"clean": {"size": 1}}}}, "clean has no condition 'size'"),
        ({"policy": "/no/such/file"}, "cannot be read"),
    ],
)
def test_a_policy_that_cannot_be_is_bad_input(golden: Golden, given: dict[str, Any], message: str) -> None:
    with pytest.raises(AirflowFailException, match=message):
        operator_on(golden("9", "cow_basic").table, **given, **RENDERED).execute(context())
