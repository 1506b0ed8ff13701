"""Repairs a Hudi table by hand: triggered with the verb and the instant, it runs that verb as a Spark job.

| verb | instant | what it does |
|---|---|---|
| rollback | the write; empty: every failed write | undoes failed writes, a compaction attempt, the newest commit |
| restore | the commit to restore to | removes all that was written since; stop all writers first |
| savepoint | the commit; empty: the newest | keeps its files until the savepoint is deleted; `comment` says why |
| delete_savepoint | the commit | deletes the savepoint |
| unschedule | the plan | drops a pending plan that will not be run |
| takeover | the instant | frees a pending instant whose owner is dead |

The table and the connections come from the run's params; their defaults from the environment, then from Airflow
Variables, as for the other DAGs (AIRFLOW_HUDI_TABLE, AIRFLOW_HUDI_CONN_ID, AIRFLOW_HUDI_SPARK_CONN_ID; hudi_table,
hudi_conn_id, hudi_spark_conn_id).
"""

from __future__ import annotations

import os
from datetime import datetime, timezone

from airflow.sdk import DAG, Param, task

from airflow_hudi.operators.repair import HudiTakeoverOperator, HudiUnscheduleOperator
from airflow_hudi.operators.restore import HudiRestoreOperator
from airflow_hudi.operators.rollback import HudiRollbackOperator
from airflow_hudi.operators.savepoint import HudiSavepointOperator

VERBS = ("rollback", "restore", "savepoint", "delete_savepoint", "unschedule", "takeover")
# Variables are read when a task runs, never when this file is parsed.
COMMON = {
    "table": "{{ params.table or var.value.get('hudi_table', '') }}",
    "hudi_conn_id": "{{ params.hudi_conn_id or var.value.get('hudi_conn_id', 'hudi_default') }}",
    "spark_conn_id": "{{ params.spark_conn_id or var.value.get('hudi_spark_conn_id', 'spark_default') }}",
    "nothing_to_do": "succeed",
}
INSTANT = "{{ params.instant }}"

with DAG(
    dag_id="hudi_repair",
    schedule=None,
    start_date=datetime(2024, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=1,
    tags=["hudi"],
    doc_md=__doc__,
    params={
        "verb": Param("rollback", enum=list(VERBS), description="What to do"),
        "instant": Param("", type="string", description="The instant that it is done to"),
        "comment": Param("", type="string", description="Kept in a savepoint"),
        "table": Param(os.environ.get("AIRFLOW_HUDI_TABLE", ""), type="string", description="Path or URI of the table"),
        "hudi_conn_id": Param(
            os.environ.get("AIRFLOW_HUDI_CONN_ID", ""), type="string", description="Connection of type hudi"
        ),
        "spark_conn_id": Param(
            os.environ.get("AIRFLOW_HUDI_SPARK_CONN_ID", ""),
            type="string",
            description="Connection of the Spark provider",
        ),
    },
) as dag:

    @task.branch
    def choose(verb: str) -> str:
        """The task that has the verb's name; the others are skipped."""
        return verb

    chosen = choose("{{ params.verb }}")
    chosen >> [
        HudiRollbackOperator(task_id="rollback", target=INSTANT, **COMMON),
        HudiRestoreOperator(task_id="restore", instant=INSTANT, **COMMON),
        HudiSavepointOperator(task_id="savepoint", instant=INSTANT, comment="{{ params.comment }}", **COMMON),
        HudiSavepointOperator(task_id="delete_savepoint", action="delete", instant=INSTANT, **COMMON),
        HudiUnscheduleOperator(task_id="unschedule", instant=INSTANT, **COMMON),
        HudiTakeoverOperator(task_id="takeover", instant=INSTANT, **COMMON),
    ]
