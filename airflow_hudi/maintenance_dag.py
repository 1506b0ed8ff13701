"""A DAG that maintains tables by their policies."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Param
from airflow.sdk.exceptions import AirflowSkipException

from airflow_hudi.arguments import names_in, names_of_arguments, read_policies, refuse_unknown, tables_of
from airflow_hudi.dag_params import RUN_TYPES
from airflow_hudi.hooks import is_absolute
from airflow_hudi.operators.alert import HudiAlertOperator
from airflow_hudi.operators.table_services import HudiTableServicesOperator
from hudi_core.config.policy_file import TablePolicies, place_of
from hudi_core.errors import ConfigError

if TYPE_CHECKING:
    from airflow.sdk import Context

_NO_ID: Final = re.compile(r"[^A-Za-z0-9_.-]")


def hudi_maintenance_dag(
    dag_id: str,
    *,
    policy: str | Mapping[str, Any],
    tables: Sequence[str] = (),
    schedule: Any = "@hourly",
    one_task_per_table: bool = False,
    operator_args: Mapping[str, Any] | None = None,
    **dag_args: Any,
) -> DAG:
    """Returns a DAG that runs the pending and due services of tables by their policies, and then reports instants that
    are pending for too long. The DAG file reads the policies, so a mistake in them is an import error with its line;
    each task reads them again. Tables whose policies name a pool have their own task in that pool. The param `tables`
    of a run chooses some of the tables.

    :param policy: the path of a YAML file, or one policy as a dict
    :param tables: the tables; without them those of the file. A name below the connection's base path is refused where
        the policy has an address that ends with this name, because the base path is not known here
    :param schedule: the schedule of the DAG
    :param one_task_per_table: a mapped task for each table, with its own log and retries; else one task, and so one
        Spark job, for all tables of a pool
    :param operator_args: further arguments of HudiTableServicesOperator, such as `engine` and `hudi_conn_id`. Without
        `conflict_timeout` a task waits ten minutes for others, and delays no further run: retries and the next run try
        again
    :param dag_args: further arguments of the DAG
    """
    of_dag = [*names_of_arguments(hudi_maintenance_dag), *names_of_arguments(DAG)]
    refuse_unknown("hudi_maintenance_dag", dag_args, of_dag)
    policies = read_policies(policy)
    _refuse_other_names(tables, policies)
    named = tables_of(tables, policies)
    by_pool: dict[str, list[str]] = {}
    for table in named:
        by_pool.setdefault(policies.of(table).pool or "", []).append(table)
    given: dict[str, Any] = {
        "policy": policy if isinstance(policy, str) else dict(policy),
        "nothing_to_do": "succeed",
        "retries": 3,
        "retry_delay": timedelta(minutes=1),
        "conflict_timeout": 600.0,
        **(operator_args or {}),
    }
    if one_task_per_table:
        # Airflow makes mapped tasks only in the worker. This one shows mistakes in their arguments in the DAG file.
        HudiTableServicesOperator(task_id="services", **given)
    defaults = {
        "start_date": datetime(2024, 1, 1, tzinfo=timezone.utc),
        "catchup": False,
        "max_active_runs": 1,
        "allowed_run_types": RUN_TYPES,
        "tags": ["hudi", "maintain"],
        **dag_args,
        "params": {"tables": _choice_of(named), **(dag_args.get("params") or {})},
    }
    with DAG(dag_id=dag_id, schedule=schedule, **defaults) as dag:
        services: list[Any] = []
        for pool, of_pool in by_pool.items():
            task_id = "services" + (f"_{_NO_ID.sub('_', pool)}" if pool else "")
            while dag.has_task(task_id):  # Names of pools may differ only in characters that no task id may have.
                task_id += "_"
            services.append(_services(task_id, pool, of_pool, given, mapped=one_task_per_table))
        if any(policies.of(table).pending_age is not None for table in named):
            shared = {name: given[name] for name in ("hudi_conn_id", "retries", "retry_delay") if name in given}
            alerts = HudiAlertOperator(
                task_id="alerts",
                tables=named,
                policy=given["policy"],
                trigger_rule="all_done",
                pre_execute=_keep_chosen,
                **shared,
            )
            # The last task's state is the run's state: without this task, a run with a failed service would succeed.
            [*services, alerts] >> EmptyOperator(task_id="all_succeeded", trigger_rule="none_failed")
            services >> alerts
    return dag


def _choice_of(tables: Sequence[str]) -> Param:
    return Param(
        [],
        type=["array", "null"],
        items={"type": "string", "enum": list(tables)},
        examples=list(tables),
        description="Tables of this run; none chosen: all",
    )


def _refuse_other_names(tables: Sequence[str], policies: TablePolicies) -> None:
    entries = {place_of(entry): entry for entry in policies.tables if is_absolute(entry)}
    for table in tables:
        ends = [] if is_absolute(table) else [place for place in entries if place.endswith(f"/{place_of(table)}")]
        if ends:
            raise ConfigError(
                f"the table {table} may be {entries[ends[0]]} of the policy, by the connection's base path",
                remedy="name it alike in tables= and in the policy",
            )


def _services(task_id: str, pool: str, tables: Sequence[str], given: Mapping[str, Any], *, mapped: bool) -> Any:
    keep_chosen = partial(_keep_chosen, then=given.get("pre_execute"))
    fields = {**given, "pre_execute": keep_chosen, **({"pool": pool} if pool else {})}
    if not mapped:
        return HudiTableServicesOperator(task_id=task_id, tables=list(tables), **fields)
    return HudiTableServicesOperator.partial(task_id=task_id, **fields).expand(tables=list(tables))


def _keep_chosen(context: Context, then: Callable[[Context], Any] | None = None) -> None:
    """Leaves the task only the tables that the run's param names, and then calls `then`, the `pre_execute` of
    `operator_args`. Skips a task that has no table left, because it would work on all tables of its policy.
    """
    if chosen := context["params"].get("tables"):
        task: Any = context["task"]
        task.tables = [table for table in names_in(task.tables) if table in chosen]
        if not task.tables:
            raise AirflowSkipException("the run is for other tables")
    if then is not None:
        then(context)
