"""Maintains a Hudi table: rolls back failed writes, deletes files that no kept commit needs, archives old instants.

The order matters: a failed write blocks archival and keeps files, and an archived write can no longer be rolled back.

The table, the connections and the numbers of commits come from the run's params; their defaults from the environment,
then from Airflow Variables:

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
(`hoodie.clean.failed.writes.policy`, `hoodie.cleaner.policy.failed.writes`). AIRFLOW_HUDI_WRITER_OPTIONS are the
options of the table's writers, by Hudi's names, as a JSON object without secrets: the lock that they use is one of
them. The params override them.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone

from airflow.sdk import DAG, Param

from airflow_hudi.dag_params import (
    RUN_TYPES,
    TARGET,
    number_in,
    options_of_run,
    runs_at_once,
    table_params,
    work_params,
    writer_options,
)
from airflow_hudi.operators.archive import HudiArchiveOperator
from airflow_hudi.operators.rollback import HudiRollbackOperator
from airflow_hudi.operators.service import HudiCleanOperator

OPTIONS = options_of_run(
    writer_options(),
    {
        "hoodie.clean.commits.retained": "{{ params.commits_retained }}",
        "hoodie.keep.min.commits": "{{ params.min_commits }}",
        "hoodie.keep.max.commits": "{{ params.max_commits }}",
    },
)
COMMON = {
    **TARGET,
    # A task with nothing to do must not skip the following tasks.
    "nothing_to_do": "succeed",
    "retries": 3,
    "retry_delay": timedelta(minutes=1),
}


def number(name: str, default: int, description: str) -> Param:
    """Returns a param for a number whose default comes from the environment."""
    return Param(
        number_in(f"AIRFLOW_HUDI_{name.upper()}", default),
        type="integer",
        minimum=1,
        description=description,
    )


SCHEDULE = os.environ.get("AIRFLOW_HUDI_MAINTENANCE_SCHEDULE", "@hourly") or None

with DAG(
    dag_id="hudi_table_maintenance",
    dag_display_name="Hudi: roll back, clean, archive a table",
    schedule=SCHEDULE,
    start_date=datetime(2024, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=runs_at_once(SCHEDULE),
    allowed_run_types=RUN_TYPES,
    tags=["hudi", "maintain"],
    doc_md=__doc__,
    params={
        **table_params(),
        "commits_retained": number("commits_retained", 10, "Commits whose files a clean keeps"),
        "min_commits": number(
            "min_commits", 20, "Commits that archival leaves on the timeline; more than a clean keeps"
        ),
        "max_commits": number("max_commits", 30, "Archival starts when the timeline has more commits"),
        **work_params(),
    },
) as dag:
    roll_back = HudiRollbackOperator(task_id="roll_back_failed_writes", options=OPTIONS, **COMMON)
    clean = HudiCleanOperator(task_id="clean", options=OPTIONS, **COMMON)
    archive = HudiArchiveOperator(task_id="archive", options=OPTIONS, **COMMON)
    roll_back >> clean >> archive
