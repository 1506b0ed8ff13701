"""What `airflow backfill create` does with the shipped DAGs, and with operators in a DAG of one's own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest

from demo.rest import Airflow
from demo.run import connections, environment
from demo.stack import Stack
from hudi_core.engine.local import LocalEngine
from hudi_core.table import HudiTable
from hudi_core.verbs.write import WriteRequest
from tests.airflow.airflow_forks import RESULT, ROOT, TIMEOUT_SECONDS, run_program
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import overwrite, own_rows, places, put_source, within
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import assert_metadata_true, read_rows

pytestmark = [pytest.mark.airflow, pytest.mark.slow]

SHIPPED = sorted(path.stem for path in (ROOT / "dags").glob("*.py"))
SCHEDULES = (
    *("SCHEDULE", "DOCTOR_SCHEDULE", "INDEXING_SCHEDULE", "METADATA_SCHEDULE", "MAINTENANCE_SCHEDULE"),
    *("OVERWRITE_SCHEDULE", "DELETION_SCHEDULE", "MERGE_SCHEDULE"),
)
OF_AN_INTERVAL = ("hudi_insert_overwrite", "hudi_delete_partition", "hudi_merge_day")
"""What each run of these DAGs does depends on its data interval."""
RUNS = [f"backfill__2026-02-0{day}T00:00:00+00:00" for day in (1, 2, 3)]
INTERVAL_RUNS = [f"backfill__2026-02-0{day + 1}T00:00:00+00:00" for day in (1, 2, 3)]
"""Of the same days: Airflow names a run after the moment from which it may start, which is when the day is over."""
INFLIGHT = {"replacecommit": "*.replacecommit.inflight", "commit": "*[0-9].inflight"}
"""The names of inflight files; that of a commit names no action."""
DAYS = ("--from-date", "2026-02-01", "--to-date", "2026-02-03")
OWN_DAG = """
import os
from datetime import datetime, timezone
from airflow.sdk import DAG
from airflow_hudi.operators.service import HudiCleanOperator
with DAG("own", schedule="@daily", start_date=datetime(2026, 1, 1, tzinfo=timezone.utc), catchup=False,
         end_date=datetime(2026, 2, 28, tzinfo=timezone.utc), max_active_runs=1):
    HudiCleanOperator(task_id="clean", table=os.environ["AIRFLOW_HUDI_TABLE"],
                      options={"hoodie.clean.commits.retained": "1"})
"""


def test_shipped_dags_that_ignore_the_interval_refuse_a_backfill(
    airflow_environment: dict[str, str], tmp_path: Path
) -> None:
    """Of a DAG of one's own the same command makes a run for each day. Those of the others have the day as interval."""
    folder = tmp_path / "dags"
    shutil.copytree(ROOT / "dags", folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "own.py").write_text(OWN_DAG)
    variables = {
        **airflow_environment,
        **{f"AIRFLOW_HUDI_{name}": "@daily" for name in SCHEDULES},
        "AIRFLOW_HUDI_TABLE": "orders",
        "AIRFLOW__CORE__DAGS_FOLDER": str(folder),
    }

    output = run_program(variables, "tests.airflow.create_backfills", [*SHIPPED, "own"])

    lines = [line.removeprefix(RESULT) for line in output.splitlines() if line.startswith(RESULT)]
    found = {result["dag"]: (result["error"], result["runs"]) for result in map(json.loads, lines)}
    days = [f"2026-02-0{day}" for day in (1, 2, 3, 4)]
    of_intervals = {run: [day, day, end] for run, day, end in zip(INTERVAL_RUNS, days, days[1:], strict=False)}
    refused: dict[str, tuple[str | None, dict[str, list[str]]]] = {
        name: (None, of_intervals)
        if name in OF_AN_INTERVAL
        else (f"Dag with dag_id: '{name}' does not allow backfill runs", {})
        for name in SHIPPED
    }
    of_moments = {run: [day] * 3 for run, day in zip(RUNS, days, strict=False)}
    assert found == {**refused, "own": (None, of_moments)}


@pytest.mark.conformance
@pytest.mark.spark
def test_the_first_run_of_a_backfill_does_the_work_of_all(
    golden: Callable[[str, str], GoldenCase], tmp_path: Path
) -> None:
    """The runs follow each other by --max-active-runs; the DAG's own limit does not hold for a backfill."""
    table = golden("9", "clean_requested_mor").table
    folder = tmp_path / "dags"
    folder.mkdir()
    (folder / "own.py").write_text(OWN_DAG)
    variables = {f"AIRFLOW_CONN_{name.upper()}": json.dumps(fields) for name, fields in connections(table).items()}
    variables |= {**environment(tmp_path, table), "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False"}
    with Stack(tmp_path / "airflow", folder, variables) as stack:
        stack.wait_until_healthy(TIMEOUT_SECONDS)
        backfill(stack, "own", "--max-active-runs", "1")
        assert _final_states(stack.api) == dict(zip(RUNS, ["success", "skipped", "skipped"], strict=True))
        result = stack.api.xcom("own", RUNS[0], "clean")
    assert (result["action"], result["state"], result["files_deleted"] > 0) == ("clean", "completed", True)


@pytest.mark.conformance  # on SQLite, Airflow's services lock each other out where the machine is busy
@pytest.mark.parametrize("killed", [0, 3])
def test_a_backfill_overwrites_each_interval_once(
    golden: Callable[[str, str], GoldenCase], tmp_path: Path, killed: int
) -> None:
    """Three days side by side, each with rows of its own, also where jobs are killed while they write; the same
    backfill again changes nothing.
    """
    table = golden("9", "mor_basic").table
    rows = read_rows(table)
    names = sorted(set(rows.column("_hoodie_partition_path").to_pylist()))[: len(RUNS)]
    kept = [within(rows, name).slice(0, 2 + number) for number, name in enumerate(names)]
    for day, chosen in enumerate(kept, 1):
        put_source(own_rows(table, chosen), tmp_path / "rows", name=f"2026-02-0{day}")
    variables = {
        "AIRFLOW_HUDI_OVERWRITE_SCHEDULE": "@daily",
        "AIRFLOW_HUDI_OVERWRITE_SOURCE": f"{tmp_path}/rows/{{{{ ds }}}}",
    }
    _backfill_twice(tmp_path, table, "hudi_insert_overwrite", "overwrite", variables, killed=killed)
    assert places(read_rows(table)) == places(pa.concat_tables([*kept, within(rows, *names, outside=True)]))


@pytest.mark.conformance  # as above
def test_a_backfill_deletes_each_interval_once(golden: Callable[[str, str], GoldenCase], tmp_path: Path) -> None:
    """Three days side by side, each with a partition of its own; the same backfill again changes nothing, also where a
    partition has been written anew.
    """
    table = golden("9", "mor_basic").table
    rows = read_rows(table)
    names = sorted(set(rows.column("_hoodie_partition_path").to_pylist()))[: len(RUNS)]
    of_day = {f"2026-02-0{day}": name for day, name in enumerate(names, 1)}
    variables = {
        "AIRFLOW_HUDI_DELETION_SCHEDULE": "@daily",
        "AIRFLOW_HUDI_DELETED_PARTITIONS": f"{{{{ {of_day}.get(ds, '') }}}}",
    }
    anew = within(rows, names[0]).slice(0, 2)
    source = put_source(own_rows(table, anew), tmp_path / "rows")

    def write_anew() -> None:
        assert places(read_rows(table)) == places(within(rows, *names, outside=True))
        overwrite(table, source)

    found = _backfill_twice(tmp_path, table, "hudi_delete_partition", "delete", variables, between=write_anew)
    assert [(result["partitions"], result["replaced_file_groups"] > 0) for result in found] == [(1, True)] * len(RUNS)
    assert places(read_rows(table)) == places(pa.concat_tables([anew, within(rows, *names, outside=True)]))


@pytest.mark.conformance  # as above
@pytest.mark.parametrize("killed", [0, 3])
def test_a_backfill_merges_each_day_once(golden: Callable[[str, str], GoldenCase], tmp_path: Path, killed: int) -> None:
    """Three days side by side, each with changed rows and a new one, also where jobs are killed while they write; the
    same backfill again changes nothing, also where a row has been changed since.
    """
    table = golden("9", "cow_basic").table
    rows = read_rows(table)
    names = sorted(set(rows.column("_hoodie_partition_path").to_pylist()))[: len(RUNS)]
    days = []
    for day, name in enumerate(names, 1):
        changed = with_value(own_rows(table, within(rows, name).slice(0, 2 + day)), "name", f"day {day}")
        days.append(pa.concat_tables([changed, with_value(changed.slice(0, 1), "id", f"new on day {day}")]))
        put_source(days[-1], tmp_path / "rows", name=f"2026-02-0{day}")
    variables = {
        "AIRFLOW_HUDI_MERGE_SCHEDULE": "@daily",
        "AIRFLOW_HUDI_MERGE_SOURCE": f"{tmp_path}/rows/{{{{ ds }}}}",
    }
    later = with_value(days[0].slice(0, 1), "name", "later")
    source = str(put_source(later, tmp_path, name="later"))

    def change_a_row() -> None:
        assert_same_rows(own_rows(table, read_rows(table)), merged(own_rows(table, rows), *days), ignore=())
        HudiTable.open(str(table)).run(WriteRequest(str(table), operation="upsert", source=source), LocalEngine(1))

    found = _backfill_twice(
        tmp_path,
        table,
        "hudi_merge_day",
        "merge",
        variables,
        action="commit",
        killed=killed,
        between=change_a_row,
    )
    counts = [[result[name] for name in ("inserted", "updated", "deleted")] for result in found]
    assert counts == [[1, 2 + day, 0] for day in (1, 2, 3)]
    assert_same_rows(own_rows(table, read_rows(table)), merged(own_rows(table, rows), *days, later), ignore=())


def with_value(rows: pa.Table, column: str, value: str) -> pa.Table:
    """The rows with one text in a column."""
    return rows.set_column(rows.schema.get_field_index(column), column, pa.array([value] * rows.num_rows))


def merged(rows: pa.Table, *written: pa.Table) -> pa.Table:
    """The rows after upserts, by their key `id`."""
    for new in written:
        kept = pa.compute.invert(pa.compute.is_in(rows.column("id"), value_set=new.column("id")))
        rows = pa.concat_tables([rows.filter(kept), new])
    return rows


def _backfill_twice(
    home: Path,
    table: Path,
    dag: str,
    task: str,
    variables: dict[str, str],
    *,
    action: str = "replacecommit",
    killed: int = 0,
    between: Callable[[], None] = lambda: None,
) -> list[dict[str, Any]]:
    """The XComs of a backfill by a DAG of ours, of whose jobs some are killed, once a second backfill has found them
    done. It checks that each interval has one commit, of this action.
    """
    before = _commits(table, action)
    folder = home / "dags"
    folder.mkdir()
    shutil.copy(ROOT / "dags" / f"{dag}.py", folder)
    given = {f"AIRFLOW_CONN_{name.upper()}": json.dumps(fields) for name, fields in connections(table).items()}
    given |= {
        **environment(home, table),
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__HUDI__ENGINE": "local",
        **variables,
    }
    with Stack(home / "airflow", folder, given) as stack:
        stack.wait_until_healthy(TIMEOUT_SECONDS)
        killer = threading.Thread(target=kill_jobs, args=(stack, table, INFLIGHT[action], killed), daemon=True)
        killer.start()
        backfill(stack, dag)
        killer.join(TIMEOUT_SECONDS)
        assert not killer.is_alive(), "no job was killed"
        first = _results(stack.api, dag, task, repeated=None if killed else False)
        commits = _commits(table, action).keys() - before.keys()
        between()
        written = _commits(table, action)
        backfill(stack, dag, "--reprocess-behavior", "completed")
        again = _results(stack.api, dag, task, repeated=True)
    assert [result["instant"] for result in again] == [result["instant"] for result in first]
    assert {result["instant"] for result in first} == commits
    assert len(commits) == len(RUNS)
    assert set(written.values()) == {"completed"}
    assert _commits(table, action) == written
    assert_metadata_true(table)
    return again


def _commits(table: Path, action: str) -> dict[str, str]:
    """The instants of an action on the timeline, with their states."""
    timeline = HudiTable.open(str(table)).timeline()
    return {item.requested_time: item.state.value for item in timeline if item.action == action}


def kill_jobs(stack: Stack, table: Path, inflight_files: str, count: int) -> None:
    """Kills the jobs of so many writes when each is inflight."""
    done: set[str] = set()
    while len(done) < count:
        time.sleep(0.02)
        inflight = {path.name for path in table.glob(f".hoodie/timeline/{inflight_files}")} - done
        if inflight:
            done.add(min(inflight))
            for process in psutil.process_iter():
                with suppress(psutil.Error):
                    home = process.environ().get("AIRFLOW_HOME")
                    if "hudi_cli.job" in process.cmdline() and home == str(stack.home):
                        process.kill()


def backfill(stack: Stack, dag: str, *options: str) -> None:
    """As a user asks for it; again while Airflow has not yet closed the one before, which it does each half minute, or
    its services have SQLite locked: what was created then is not created again.
    """
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while True:
        created = subprocess.run(
            [str(Path(sys.executable).with_name("airflow")), "backfill", "create", "--dag-id", dag, *DAYS, *options],
            env={**os.environ, **stack.environment},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
        if created.returncode == 0:
            return
        output = created.stdout[-4000:] + created.stderr[-4000:]
        assert any(reason in output for reason in ("Another backfill is running", "database is locked")), output
        assert time.monotonic() < deadline, output
        time.sleep(5)


def _results(api: Airflow, dag: str, task: str, *, repeated: bool | None) -> list[dict[str, Any]]:
    """The XComs of the backfill's runs, once they are of work that an earlier run had done, or had not; None: either.
    The run that is scheduled for today has no source.
    """
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while True:
        found = api.get(f"/api/v2/dags/{dag}/dagRuns")["dag_runs"]
        runs = {run["dag_run_id"]: run["state"] for run in found if run["dag_run_id"] in INTERVAL_RUNS}
        assert "failed" not in runs.values(), runs
        if {name for name, state in runs.items() if state == "success"} == set(INTERVAL_RUNS):
            results = [api.xcom(dag, run, task) for run in INTERVAL_RUNS]
            if all(repeated in (None, result["repeated"]) for result in results):
                return results
        assert time.monotonic() < deadline, runs
        time.sleep(1)


def _final_states(api: Airflow) -> dict[str, Any]:
    """The state of the one task of each run, once all runs are over."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while True:
        runs = {run["dag_run_id"]: run["state"] for run in api.get("/api/v2/dags/own/dagRuns")["dag_runs"]}
        if set(runs) == set(RUNS) and set(runs.values()) <= {"success", "failed"}:
            return {run: api.tasks("own", run)["clean"]["state"] for run in RUNS}
        assert time.monotonic() < deadline, runs
        time.sleep(1)
