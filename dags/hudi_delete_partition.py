"""Deletes partitions of a Hudi table, once for each data interval. Queries no longer find the rows; a later clean
deletes the files.

The commit records the interval, so a run that is cleared, or an interval that is backfilled twice, deletes nothing
more. With `dry_run` the result says what would be deleted.

The table and the connections come from the run's params; their defaults from the environment, then from Airflow
Variables:

| param | environment | Variable |
|---|---|---|
| table | AIRFLOW_HUDI_TABLE | hudi_table |
| hudi_conn_id | AIRFLOW_HUDI_CONN_ID | hudi_conn_id (else hudi_default) |
| spark_conn_id | AIRFLOW_HUDI_SPARK_CONN_ID | hudi_spark_conn_id (else spark_default) |
| partitions | AIRFLOW_HUDI_DELETED_PARTITIONS | - |
| token, dry_run | - | - |

AIRFLOW_HUDI_DELETED_PARTITIONS is a template that each run fills in, such as `day={{ macros.ds_add(ds, -90) }}`, which
keeps rows for 90 days. AIRFLOW_HUDI_DELETION_SCHEDULE is the schedule, a cron expression in UTC: with `@daily` a run
starts when a day is over, and `ds` is that day. Without a schedule the DAG runs when triggered.
AIRFLOW_HUDI_WRITER_OPTIONS are the options of the table's writers, by Hudi's names, as a JSON object without secrets:
the lock that they use is one of them.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone

from airflow.sdk import DAG

from airflow_hudi.dag_params import (
    DRY_RUN,
    TARGET,
    dry_run_param,
    interval_schedule,
    optional_text,
    options_of_run,
    param_or_template,
    required_text,
    runs_at_once,
    table_params,
    work_params,
    writer_options,
)
from airflow_hudi.operators.overwrite import HudiDeletePartitionOperator

PARTITIONS = "AIRFLOW_HUDI_DELETED_PARTITIONS"
SCHEDULE = os.environ.get("AIRFLOW_HUDI_DELETION_SCHEDULE")

with DAG(
    dag_id="hudi_delete_partition",
    dag_display_name="Hudi: delete partitions",
    schedule=interval_schedule("AIRFLOW_HUDI_DELETION_SCHEDULE"),
    start_date=datetime(2024, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=runs_at_once(SCHEDULE),
    tags=["hudi", "write"],
    doc_md=__doc__,
    params={
        **table_params(),
        "partitions": required_text(
            "Partitions to delete, separated by commas",
            PARTITIONS,
            "those of the data interval",
            is_scheduled=bool(SCHEDULE),
        ),
        "token": optional_text("Name of the work; empty: the data interval, which is done once"),
        "dry_run": dry_run_param(),
        **work_params(),
    },
) as dag:
    HudiDeletePartitionOperator(
        task_id="delete",
        partitions=param_or_template("partitions", PARTITIONS),
        token="{{ params.token or '' }}",
        dry_run=DRY_RUN,
        options=options_of_run(writer_options()),
        **TARGET,
        retries=3,
        retry_delay=timedelta(minutes=1),
    )
