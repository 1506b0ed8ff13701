"""The DAG files, parsed as a DAG processor would: no connection, no Variable, no network."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]

PROGRAM = """
import copy, importlib.util, json, os, sys
from types import SimpleNamespace
from jinja2 import Environment
from airflow.sdk.exceptions import AirflowFailException, ParamValidationError
for number, path in enumerate(sys.argv[1:]):
    spec = importlib.util.spec_from_file_location(f"dag_file_{number}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    dag = module.dag
    heavy = [name for name in ("pyarrow", "pyspark") if name in sys.modules]
    upstream = {task.task_id: sorted(task.upstream_task_ids) for task in dag.tasks}
    waits = [task for task in dag.tasks if getattr(task, "deferrable", False)]
    intervals = [getattr(task, "poke_interval", None) or task.source_poll_interval for task in waits]
    try:
        dag.params.validate()
        valid = True
    except ParamValidationError:
        valid = False
    params = {name: dag.params.get_param(name).value for name in dag.params}
    forms = {name: dag.params.get_param(name).schema for name in dag.params}
    accepted = []
    for change in json.loads(os.environ["CHANGES"]).get(dag.dag_id, []):
        changed = copy.deepcopy(dag.params)
        try:
            changed.update(change)
            changed.validate()
            accepted.append(True)
        except ParamValidationError:
            accepted.append(False)
    refused = []
    for verb in json.loads(os.environ["VERBS"]) if dag.dag_id == "hudi_repair" else []:
        for given in (("", "False"), ("20260102030405678", "True")):
            try:
                refused.append(dag.get_task("choose").python_callable(verb, *given))
            except AirflowFailException as error:
                refused.append(str(error))
    retries = {task.task_id: task.retries for task in dag.tasks} if "Asset" in type(dag.timetable).__name__ else None
    of_run = {"params": {**params, "options": {"hoodie.free": 1}}, "dag_run": SimpleNamespace(partition_key=None)}
    jobs = [task for task in dag.tasks if hasattr(task, "options")]
    options = {task.task_id: task.options and task.options(of_run, Environment()) for task in jobs}
    engines = {task.task_id: task.engine for task in jobs}
    line = [dag.dag_id, heavy, dag.max_active_runs, upstream, retries, intervals, options]
    line += [params, forms, valid, engines, [dag.dag_display_name, sorted(dag.tags)], accepted, refused]
    print("FOUND", json.dumps(line))
"""
YES = {"confirm": "yes"}
REQUIRED = {
    "hudi_repair": ["confirm"],
    "hudi_drill": ["confirm"],
    "hudi_insert_overwrite": ["source"],
    "hudi_merge_day": ["source"],
    "hudi_delete_partition": ["partitions"],
    "hudi_create_table": ["table_name", "record_key"],
}
"""What has to be typed."""
EVENTS = {"hudi_changed_partitions", "hudi_cluster_partition", "hudi_services_on_events"}
OF_INTERVALS = {"hudi_insert_overwrite", "hudi_merge_day"}
ONE_AT_A_TIME = {*EVENTS, *OF_INTERVALS, "hudi_drill", "hudi_fleet"}
"""DAGs whose runs are all of the same tables or in the order of their intervals, or whose events become one run."""
PURPOSES = {
    "events": EVENTS,
    "repair": {"hudi_drill", "hudi_repair"},
    "write": {"hudi_create_table", "hudi_delete_partition", *OF_INTERVALS},
}
CHANGES = {
    "hudi_repair": [
        *(
            {"verb": verb, "instant": "20260102030405678", **YES}
            for verb in ("rollback", "restore", "savepoint", "unschedule")
        ),
        {"verb": "delete_savepoint", "instant": "20260102030405", "comment": "why", **YES},
        {"verb": "takeover", "instant": None, "comment": None, "table": None, **YES},
        {"verb": "repair", **YES},
        {"dry_run": "maybe", **YES},
        {"instant": "yesterday", **YES},
        {"instant": "2026-01-02", **YES},
        {},
        {"confirm": "no"},
    ],
    "hudi_drill": [YES, {"partition": "day=1", **YES}, {"partition": "day=1"}],
    "hudi_compaction": [
        {"engine": "auto", "options": {"hoodie.a": "b", "hoodie.c": 1, "hoodie.d": True}},
        {"engine": None, "options": None},
        {"engine": "sprak"},
        {"options": {"hoodie.a": {}}},
        {"options": "hoodie.a=b"},
    ],
    "hudi_fleet": [{"tables": ["s3://b/u"], "engine": "local"}, {"tables": None}, {"tables": ["s3://b/other"]}],
    "hudi_clustering": [
        {"sort_columns": "city,ts", "layout": "hilbert"},
        {"layout": "random"},
        {"target_file_mb": 0},
    ],
    "hudi_table_maintenance": [{"commits_retained": 3}, {"commits_retained": 0}, {"table": "s3://b/other"}],
    "hudi_log_compaction": [{"plan": True, "blocks": 1}, {"blocks": 0}, {"plan": "later"}],
    "hudi_insert_overwrite": [
        {"source": "s3://b/rows", "whole_table": True},
        {"source": "s3://b/rows", "whole_table": "all"},
        {"source": "s3://b/rows", "wait_minutes": 90, "marker": "_SUCCESS"},
        {"source": "s3://b/rows", "wait_minutes": -1},
        {"whole_table": True},
    ],
    "hudi_merge_day": [
        {"source": "s3://b/rows", "token": "once", "dry_run": True},
        {"source": "s3://b/rows", "wait_minutes": 90, "marker": "_SUCCESS"},
        {"source": "s3://b/rows", "wait_minutes": -1},
        {"token": "once"},
    ],
    "hudi_create_table": [
        {"like": "s3://b/rows", "table_name": "t", "record_key": "id", "table_type": "mor", "table_version": 6},
        {"like": "s3://b/rows", "table_name": "t", "record_key": "id", "table_version": 7},
        {"like": "s3://b/rows"},
    ],
    "hudi_delete_partition": [
        {"partitions": "day=1,day=2", "token": "once", "dry_run": True},
        {"partitions": 1},
        {"dry_run": True},
    ],
}
ACCEPTED = {
    "hudi_repair": [True] * 6 + [False] * 6,
    "hudi_drill": [True, True, False],
    "hudi_compaction": [True, True, False, False, False],
    "hudi_fleet": [True, True, False],
    "hudi_clustering": [True, False, False],
    "hudi_table_maintenance": [True, False, True],
    "hudi_log_compaction": [True, False, False],
    "hudi_insert_overwrite": [True, False, True, False, False],
    "hudi_merge_day": [True, True, False, False],
    "hudi_create_table": [True, False, False],
    "hudi_delete_partition": [True, False, False],
}
"""What is typed into the trigger form, and whether Airflow's schema of the params takes it."""
LOCK, SORT_COLUMNS, LAYOUT = (
    "hoodie.write.lock.provider",
    "hoodie.clustering.plan.strategy.sort.columns",
    "hoodie.layout.optimize.strategy",
)
WRITERS = {LOCK: "zookeeper", SORT_COLUMNS: "city", LAYOUT: "ZORDER"}
VERBS = ("rollback", "savepoint", "restore", "delete_savepoint", "unschedule", "takeover")
UPSTREAM = {
    "hudi_compaction": {"wait_for_compaction": [], "compact": ["wait_for_compaction"]},
    "hudi_clustering": {"cluster": []},
    "hudi_clean": {"wait_for_clean": [], "clean": ["wait_for_clean"]},
    "hudi_table_maintenance": {
        "roll_back_failed_writes": [],
        "clean": ["roll_back_failed_writes"],
        "archive": ["clean"],
    },
    "hudi_doctor": {"doctor": [], "probe_wanted": [], "probe_store": ["probe_wanted"]},
    "hudi_indexing": {"build": [], "validate": ["build"]},
    "hudi_log_compaction": {"merge_logs": []},
    "hudi_metadata": {"update": [], "validate": ["update"]},
    "hudi_tables": {"run_services": []},
    "hudi_fleet": {"services": [], "alerts": ["services"], "all_succeeded": ["alerts", "services"]},
    "hudi_services_on_events": {"run_pending": []},
    "hudi_changed_partitions": {"find_changed": []},
    "hudi_cluster_partition": {"cluster": []},
    "hudi_insert_overwrite": {"overwrite": []},
    "hudi_merge_day": {"merge": []},
    "hudi_create_table": {"create": []},
    "hudi_delete_partition": {"delete": []},
    "hudi_drill": {
        "choose": [],
        "savepoint": ["choose"],
        "break_table": ["savepoint"],
        "restore": ["break_table", "savepoint"],
        "check": ["break_table", "restore"],
        "doctor": ["check"],
        "delete_savepoint": ["doctor"],
    },
    "hudi_repair": {
        "choose": [],
        **{
            verb: ["choose"]
            for verb in ("rollback", "restore", "savepoint", "delete_savepoint", "unschedule", "takeover")
        },
    },
}


def test_every_dag_file_is_known() -> None:
    assert {path.stem for path in (ROOT / "dags").glob("*.py")} == set(UPSTREAM)


@pytest.fixture(scope="module")
def parsed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """What each file's DAG is, by its id: all are parsed by one process, as Airflow takes seconds to import."""
    mine = {"AIRFLOW_HUDI_TABLE": "s3://b/t", "AIRFLOW_HUDI_POLL_SECONDS": "5", "AIRFLOW_HUDI_COMMITS_RETAINED": "7"}
    mine["AIRFLOW_HUDI_TABLES"], mine["AIRFLOW_HUDI_WATCHED_TABLE"] = "s3://b/t, s3://b/u", "s3://b/t"
    mine["AIRFLOW_HUDI_WRITER_OPTIONS"] = json.dumps(WRITERS)
    mine["CHANGES"], mine["VERBS"] = json.dumps(CHANGES), json.dumps(VERBS)
    environment = {**os.environ, "AIRFLOW_HOME": str(tmp_path_factory.mktemp("airflow")), **mine}
    command = [sys.executable, "-c", PROGRAM, *(str(ROOT / "dags" / f"{name}.py") for name in UPSTREAM)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line.removeprefix("FOUND ")) for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    return {line[0]: line[1:] for line in lines}


def test_tasks_that_events_start_are_tried_again(parsed: dict[str, list[Any]]) -> None:
    """An event is consumed by one run: where that fails, nothing else does its work."""
    on_events = {name: found[3] for name, found in parsed.items() if found[3] is not None}
    assert on_events.keys() == {"hudi_services_on_events", "hudi_changed_partitions", "hudi_cluster_partition"}
    assert [name for name, retries in on_events.items() if not all(retries.values())] == []


@pytest.mark.parametrize("name", UPSTREAM)
def test_a_ready_to_use_dag_parses(parsed: dict[str, list[Any]], name: str) -> None:
    heavy, runs, upstream, _, intervals, _, params, *_ = parsed[name]
    assert (heavy, runs, upstream) == ([], 1 if name in ONE_AT_A_TIME else 1000, UPSTREAM[name])
    assert intervals == ([5.0] if name in {"hudi_compaction", "hudi_clean", *OF_INTERVALS} else [])
    if name == "hudi_tables":
        assert params["tables"] == "s3://b/t, s3://b/u"
    elif name not in ("hudi_fleet", "hudi_changed_partitions"):
        assert params["table"] == "s3://b/t"
    if name == "hudi_table_maintenance":
        assert (params["commits_retained"], params["min_commits"], params["max_commits"]) == (7, 20, 30)


@pytest.mark.parametrize("name", UPSTREAM)
def test_every_task_that_may_write_to_a_table_has_the_options_of_its_writers(
    parsed: dict[str, list[Any]], name: str
) -> None:
    """Their lock is one of them. A probe has a folder of its own."""
    found = {task: (options or {}).get(LOCK) for task, options in parsed[name][5].items() if task != "probe_store"}
    assert found == dict.fromkeys(found, "zookeeper")
    assert bool(found) == (name != "hudi_changed_partitions")


@pytest.mark.parametrize("name", UPSTREAM)
def test_a_run_says_where_its_work_is_done_and_by_which_further_options(
    parsed: dict[str, list[Any]], name: str
) -> None:
    _, _, _, _, _, options, params, forms, _, engines, *_ = parsed[name]
    if name == "hudi_changed_partitions":
        assert (options, "engine" in params) == ({}, False)
        return
    assert forms["engine"]["enum"] == [None, "spark", "auto", "local"]
    watched = ("hudi_services_on_events", "hudi_cluster_partition", "hudi_fleet")
    assert (params["engine"], params["options"]) == ("auto" if name in watched else None, {})
    assert set(engines.values()) == {"{{ params.engine or '' }}"}
    assert {(given or {}).get("hoodie.free") for task, given in options.items() if task != "probe_store"} == {1}


@pytest.mark.parametrize("name", UPSTREAM)
def test_a_dag_has_a_name_for_people_and_a_tag_of_its_purpose(parsed: dict[str, list[Any]], name: str) -> None:
    shown, tags = parsed[name][10]
    purpose = next((tag for tag, names in PURPOSES.items() if name in names), "maintain")
    assert (shown.startswith("Hudi: "), tags) == (True, sorted(["hudi", purpose]))


def test_a_clustering_orders_rows_as_the_writers_do(parsed: dict[str, list[Any]]) -> None:
    for name in ("hudi_clustering", "hudi_cluster_partition"):
        options, params = parsed[name][5]["cluster"], parsed[name][6]
        assert options[SORT_COLUMNS] == params["sort_columns"] == "city"
        assert options[LAYOUT] == "ZORDER"


@pytest.mark.parametrize("name", UPSTREAM)
def test_the_trigger_form_asks_for_what_a_run_needs_alone(parsed: dict[str, list[Any]], name: str) -> None:
    """Airflow's form takes a field for required whose type does not include null; an empty one keeps its button grey
    (FlexibleForm: isRequired).
    """
    params, forms, valid = parsed[name][6:9]
    required = [
        field
        for field, form in forms.items()
        if form.get("type") and not (isinstance(form["type"], list) and "null" in form["type"])
    ]
    assert [field for field in required if params[field] in (None, "")] == REQUIRED.get(name, [])
    assert valid == (name not in REQUIRED)


@pytest.mark.parametrize("name", CHANGES)
def test_the_trigger_form_takes_what_means_something(parsed: dict[str, list[Any]], name: str) -> None:
    assert parsed[name][-2] == ACCEPTED[name]


def test_a_verb_that_needs_an_instant_is_refused_without_one_by_the_name_of_the_param(
    parsed: dict[str, list[Any]],
) -> None:
    refused = parsed["hudi_repair"][-1][::2]
    assert refused[:2] == ["rollback", "savepoint"]
    assert refused[2:] == [
        f"{verb} needs the param `instant`; `hudictl timeline TABLE` lists them" for verb in VERBS[2:]
    ]


def test_a_verb_without_a_dry_run_refuses_one(parsed: dict[str, list[Any]]) -> None:
    found = dict(zip(VERBS, parsed["hudi_repair"][-1][1::2], strict=True))
    refused = {verb: said for verb, said in found.items() if said != verb}
    assert refused == {
        verb: f"{verb} has no dry run; rollback, restore, unschedule have one"
        for verb in ("savepoint", "delete_savepoint", "takeover")
    }
