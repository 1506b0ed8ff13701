"""Maintains a Hudi table: rolls back failed writes, deletes files that no kept commit needs, archives old instants.

The order matters: a failed write holds up archival and keeps files, and what is archived can no longer be rolled back.

The table, the connections and what is kept come from the run's params; their defaults from the environment, then from
Airflow Variables:

| param | environment | Variable |
|---|---|---|
| table | AIRFLOW_HUDI_TABLE | hudi_table |
| hudi_conn_id | AIRFLOW_HUDI_CONN_ID | hudi_conn_id (else hudi_default) |
| spark_conn_id | AIRFLOW_HUDI_SPARK_CONN_ID | hudi_spark_conn_id (else spark_default) |
| commits_retained | AIRFLOW_HUDI_COMMITS_RETAINED (else 10) | - |
| min_commits, max_commits | AIRFLOW_HUDI_MIN_COMMITS (else 20), AIRFLOW_HUDI_MAX_COMMITS (else 30) | - |

A clean keeps the files of `commits_retained` commits; archival begins when the timeline has more than `max_commits` and
leaves `min_commits`. AIRFLOW_HUDI_MAINTENANCE_SCHEDULE is the schedule, `@hourly` without it; empty: the DAG runs when
triggered. Failed writes are those whose heartbeat expired; writers must use the policy LAZY
(`hoodie.clean.failed.writes.policy`, `hoodie.cleaner.policy.failed.writes`).
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone

from airflow.sdk import DAG, Param

from airflow_hudi.operators.archive import HudiArchiveOperator
from airflow_hudi.operators.clean import HudiCleanOperator
from airflow_hudi.operators.rollback import HudiRollbackOperator

# Variables are read when a task runs, never when this file is parsed.
TABLE = "{{ params.table or var.value.get('hudi_table', '') }}"
HUDI_CONN = "{{ params.hudi_conn_id or var.value.get('hudi_conn_id', 'hudi_default') }}"
SPARK_CONN = "{{ params.spark_conn_id or var.value.get('hudi_spark_conn_id', 'spark_default') }}"
OPTIONS = {
    "hoodie.clean.commits.retained": "{{ params.commits_retained }}",
    "hoodie.keep.min.commits": "{{ params.min_commits }}",
    "hoodie.keep.max.commits": "{{ params.max_commits }}",
}
COMMON = {
    "table": TABLE,
    "hudi_conn_id": HUDI_CONN,
    "spark_conn_id": SPARK_CONN,
    # Nothing to do must not skip the tasks behind.
    "nothing_to_do": "succeed",
    "retries": 3,
    "retry_delay": timedelta(minutes=1),
}


def number(name: str, default: int, description: str) -> Param:
    """A param with a default of the environment."""
    return Param(
        int(os.environ.get(f"AIRFLOW_HUDI_{name.upper()}") or default),
        type="integer",
        minimum=1,
        description=description,
    )


with DAG(
    dag_id="hudi_table_maintenance",
    schedule=os.environ.get("AIRFLOW_HUDI_MAINTENANCE_SCHEDULE", "@hourly") or None,
    start_date=datetime(2024, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=1,
    tags=["hudi"],
    doc_md=__doc__,
    params={
        "table": Param(os.environ.get("AIRFLOW_HUDI_TABLE", ""), type="string", description="Path or URI of the table"),
        "hudi_conn_id": Param(
            os.environ.get("AIRFLOW_HUDI_CONN_ID", ""), type="string", description="Connection of type hudi"
        ),
        "spark_conn_id": Param(
            os.environ.get("AIRFLOW_HUDI_SPARK_CONN_ID", ""),
            type="string",
            description="Connection of the Spark provider",
        ),
        "commits_retained": number("commits_retained", 10, "Commits whose files a clean keeps"),
        "min_commits": number(
            "min_commits", 20, "Commits that archival leaves on the timeline; more than a clean keeps"
        ),
        "max_commits": number("max_commits", 30, "Archival starts when the timeline has more commits"),
    },
) as dag:
    roll_back = HudiRollbackOperator(task_id="roll_back_failed_writes", options=OPTIONS, **COMMON)
    clean = HudiCleanOperator(task_id="clean", options=OPTIONS, **COMMON)
    archive = HudiArchiveOperator(task_id="archive", options=OPTIONS, **COMMON)
    roll_back >> clean >> archive
