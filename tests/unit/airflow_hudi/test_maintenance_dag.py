"""DAGs made of policies."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowSkipException

from airflow_hudi.maintenance_dag import hudi_maintenance_dag
from hudi_core.errors import ConfigError

POLICIES = """\
policies:
  default: {alerts: {pending_age: 1h}}
  large: {pool: large_tables}
tables: [a, {table: b, policy: large}, c, {table: d, policy: large}]
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "policy.yaml"
    path.write_text(POLICIES)
    return str(path)


def upstream(dag: DAG) -> dict[str, set[str]]:
    return {task.task_id: task.upstream_task_ids for task in dag.tasks}


def test_one_task_for_all_tables_of_a_pool(file: str) -> None:
    dag = hudi_maintenance_dag("fleet", policy=file, operator_args={"engine": "auto", "hudi_conn_id": "lake"})
    assert upstream(dag) == {
        "services": set(),
        "services_large_tables": set(),
        "alerts": {"services", "services_large_tables"},
        "all_succeeded": {"services", "services_large_tables", "alerts"},
    }
    default, large, alerts = (dag.get_task(name) for name in ("services", "services_large_tables", "alerts"))
    assert (default.tables, large.tables, alerts.tables) == (["a", "c"], ["b", "d"], ["a", "b", "c", "d"])
    assert (default.pool, large.pool, default.engine, alerts.hudi_conn_id) == (
        "default_pool",
        "large_tables",
        "auto",
        "lake",
    )
    assert (alerts.trigger_rule, alerts.retries, dag.get_task("all_succeeded").trigger_rule) == (
        "all_done",
        default.retries,
        "none_failed",
    )
    assert (dag.max_active_runs, dag.catchup) == (1, False)


def test_a_task_for_each_table(file: str) -> None:
    dag = hudi_maintenance_dag("fleet", policy=file, one_task_per_table=True, schedule=None, max_active_runs=2)
    mapped: Any = dag.get_task("services_large_tables")
    assert mapped.expand_input.value == {"tables": ["b", "d"]}
    assert (mapped.pool, dag.max_active_runs) == ("large_tables", 2)
    assert "task.tables" in mapped.map_index_template


@pytest.mark.parametrize("one_task_per_table", [False, True])
def test_a_run_may_be_for_some_of_the_tables(file: str, one_task_per_table: bool) -> None:
    """A task without any of them is skipped: without tables it would work on all of the file."""
    dag = hudi_maintenance_dag("fleet", policy=file, one_task_per_table=one_task_per_table)
    assert dag.params.get_param("tables").schema["items"]["enum"] == ["a", "b", "c", "d"]
    for chosen, kept in (([], ["b", "d"]), (None, ["b", "d"]), (["a", "d"], ["d"]), (["a"], None)):
        for task_id in ("services_large_tables", "alerts"):
            task: Any = dag.get_task(task_id)
            of_task = SimpleNamespace(tables=["b", "d"])
            context: Any = {"params": {"tables": chosen}, "task": of_task}
            hook = task.partial_kwargs["pre_execute"] if task.is_mapped else task._pre_execute_hook
            if kept is None:
                with pytest.raises(AirflowSkipException, match="for other tables"):
                    hook(context)
            else:
                hook(context)
                assert of_task.tables == kept
    of_task = SimpleNamespace(tables="b")
    context = {"params": {"tables": ["b"]}, "task": of_task}
    task = dag.get_task("services_large_tables")
    (task.partial_kwargs["pre_execute"] if task.is_mapped else task._pre_execute_hook)(context)
    assert of_task.tables == ["b"], "a mapped task has one, as a text"


@pytest.mark.parametrize("one_task_per_table", [False, True])
def test_what_a_user_wants_called_before_a_task_is_called_after_the_choice(one_task_per_table: bool) -> None:
    called: list[list[str]] = []
    dag = hudi_maintenance_dag(
        "fleet",
        policy={},
        tables=["a", "b"],
        operator_args={"pre_execute": lambda context: called.append(context["task"].tables)},
        one_task_per_table=one_task_per_table,
    )
    task: Any = dag.get_task("services")
    hook = task.partial_kwargs["pre_execute"] if task.is_mapped else task._pre_execute_hook
    hook({"params": {"tables": ["b"]}, "task": SimpleNamespace(tables=["a", "b"])})
    assert called == [["b"]]
    with pytest.raises(AirflowSkipException, match="for other tables"):
        hook({"params": {"tables": ["b"]}, "task": SimpleNamespace(tables=["a"])})
    assert called == [["b"]]


def test_a_pool_may_have_any_name() -> None:
    dag = hudi_maintenance_dag("fleet", policy={"pool": "night & day"}, tables=["t"])
    assert {task.task_id: task.pool for task in dag.tasks} == {"services_night___day": "night & day"}


def test_pools_whose_names_differ_in_what_no_id_has_are_two_tasks() -> None:
    pools = {"a b": "x", "a_b": "y", "a-b": "z"}
    policy = {
        "policies": {name: {"pool": pool} for pool, name in pools.items()},
        "tables": [{"table": name, "policy": name} for name in pools.values()],
    }
    dag = hudi_maintenance_dag("fleet", policy=policy)
    assert {task.task_id: (task.pool, task.tables) for task in dag.tasks} == {
        "services_a_b": ("a b", ["x"]),
        "services_a_b_": ("a_b", ["y"]),
        "services_a-b": ("a-b", ["z"]),
    }


def test_a_table_that_others_hold_holds_up_the_fleet_for_minutes(file: str) -> None:
    assert hudi_maintenance_dag("fleet", policy=file).get_task("services").conflict_timeout == 600.0
    given = hudi_maintenance_dag("fleet", policy=file, operator_args={"conflict_timeout": 7200.0})
    assert given.get_task("services").conflict_timeout == 7200.0


def test_a_policy_without_alerts(file: str) -> None:
    dag = hudi_maintenance_dag("one", policy={"services": {"clean": {"commits": 5}}}, tables=["s3://lake/t"])
    assert upstream(dag) == {"services": set()}
    assert dag.get_task("services").policy == {"services": {"clean": {"commits": 5}}}


def test_a_table_whose_entry_may_have_another_name_is_refused() -> None:
    """The base path of the connection is not known where DAGs are parsed: the entry's pool and alerts would be lost."""
    policy = {
        "policies": {"default": None, "large": {"pool": "x"}},
        "tables": [{"table": "/wh/a/b", "policy": "large"}],
    }
    for name in ("a/b", "./b", "b/"):
        with pytest.raises(ConfigError, match=f"the table {name} may be /wh/a/b of the policy"):
            hudi_maintenance_dag("one", policy=policy, tables=["c", name])
    dag = hudi_maintenance_dag("one", policy=policy, tables=["/wh//a/b", "file:/wh/c", "d/a/b", "bb"])
    assert {task.task_id: task.tables for task in dag.tasks} == {
        "services_x": ["/wh//a/b"],
        "services": ["file:/wh/c", "d/a/b", "bb"],
    }


@pytest.mark.parametrize(
    "policy",
    [
        {"services": {"clean": {"files": 5}}},
        {"services": {"clean": None}},
        {"alerts": {"pending_age": timedelta(hours=2)}},
    ],
)
def test_mistakes_are_import_errors(policy: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        hudi_maintenance_dag("one", policy=policy)
