"""Merges the rows of a day into a Hudi table, once for each data interval.

A run upserts the rows of Parquet files: a row whose key the table has replaces the old row, by the table's merge rules;
other rows are inserted. The commit records the interval, so a run that is cleared, a second run of the interval beside
the first, or an interval that is backfilled twice, writes nothing more; another `token` writes it again. `airflow
backfill create` makes a run for each interval, and runs at the same time wait for each other. A run waits for a missing
source for `wait_minutes`, in the triggerer. If a complete folder has a file such as `_SUCCESS`, name this file as
`marker`. With `dry_run` the result says what would be written.

The table and the connections come from the run's params; their defaults from the environment, then from Airflow
Variables:

| param | environment | Variable |
|---|---|---|
| table | AIRFLOW_HUDI_TABLE | hudi_table |
| hudi_conn_id | AIRFLOW_HUDI_CONN_ID | hudi_conn_id (else hudi_default) |
| spark_conn_id | AIRFLOW_HUDI_SPARK_CONN_ID | hudi_spark_conn_id (else spark_default) |
| source | AIRFLOW_HUDI_MERGE_SOURCE | - |
| wait_minutes | AIRFLOW_HUDI_MERGE_WAIT_MINUTES | - |
| marker | AIRFLOW_HUDI_MERGE_MARKER | - |
| token, dry_run | - | - |

AIRFLOW_HUDI_MERGE_SOURCE is a template that each run fills in, such as `s3://bucket/orders/{{ ds }}`.
AIRFLOW_HUDI_MERGE_SCHEDULE is the schedule, a cron expression in UTC: with `@daily` a run starts when a day is over,
and `ds` is that day. Without it the DAG runs when triggered. AIRFLOW_HUDI_WRITER_OPTIONS are the options of the table's
writers, by Hudi's names, as a JSON object without secrets: the lock that they use is one of them.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone

from airflow.sdk import DAG, Param

from airflow_hudi.dag_params import (
    DRY_RUN,
    TARGET,
    dry_run_param,
    interval_schedule,
    number_in,
    optional_text,
    options_of_run,
    param_or_template,
    required_text,
    table_params,
    work_params,
    writer_options,
)
from airflow_hudi.operators.write import HudiWriteOperator

SOURCE = "AIRFLOW_HUDI_MERGE_SOURCE"
SCHEDULE = interval_schedule("AIRFLOW_HUDI_MERGE_SCHEDULE")

with DAG(
    dag_id="hudi_merge_day",
    dag_display_name="Hudi: merge a day",
    schedule=SCHEDULE,
    start_date=datetime(2024, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=1,  # Runs write in the order of their intervals: without an ordering field the last writer wins.
    tags=["hudi", "write"],
    doc_md=__doc__,
    params={
        **table_params(),
        "source": required_text(
            "Parquet file, or a folder of them",
            SOURCE,
            "that of the run's data interval",
            is_scheduled=SCHEDULE is not None,
        ),
        "wait_minutes": Param(
            number_in("AIRFLOW_HUDI_MERGE_WAIT_MINUTES", 0),
            type="integer",
            minimum=0,
            description="Minutes to wait for a source that is not there yet",
        ),
        "marker": optional_text(
            "File in the source's folder that is there when all others are, such as _SUCCESS; "
            "empty: Parquet files that are the same at two looks end the wait",
            os.environ.get("AIRFLOW_HUDI_MERGE_MARKER"),
        ),
        "token": optional_text("Name of the work; empty: the data interval, which is written once"),
        "dry_run": dry_run_param(),
        **work_params(),
    },
) as dag:
    HudiWriteOperator(
        task_id="merge",
        operation="upsert",
        source=param_or_template("source", SOURCE),
        wait_for_source="{{ params.wait_minutes }}m",
        source_marker="{{ params.marker or '' }}",
        source_poll_interval=number_in("AIRFLOW_HUDI_POLL_SECONDS", 60.0),
        token="{{ params.token or '' }}",
        dry_run=DRY_RUN,
        options=options_of_run(writer_options()),
        **TARGET,
        retries=3,
        retry_delay=timedelta(minutes=1),
    )
