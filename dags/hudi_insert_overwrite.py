"""Replaces partitions of a Hudi table by the rows of Parquet files, once for each data interval.

A run replaces the partitions of the rows, or the named partitions, or with `whole_table` all partitions. The commit
records the interval, so a run that is cleared, or an interval that is backfilled twice, writes nothing more; another
`token` writes it again. `airflow backfill create` makes a run for each interval, and runs at the same time wait for
each other. A run waits for a missing source for `wait_minutes`, in the triggerer. If a complete folder has a file such
as `_SUCCESS`, name this file as `marker`. With `dry_run` the result says what would be replaced.

The table and the connections come from the run's params; their defaults from the environment, then from Airflow
Variables:

| param | environment | Variable |
|---|---|---|
| table | AIRFLOW_HUDI_TABLE | hudi_table |
| hudi_conn_id | AIRFLOW_HUDI_CONN_ID | hudi_conn_id (else hudi_default) |
| spark_conn_id | AIRFLOW_HUDI_SPARK_CONN_ID | hudi_spark_conn_id (else spark_default) |
| source | AIRFLOW_HUDI_OVERWRITE_SOURCE | - |
| partitions | AIRFLOW_HUDI_OVERWRITE_PARTITIONS | - |
| wait_minutes | AIRFLOW_HUDI_OVERWRITE_WAIT_MINUTES | - |
| marker | AIRFLOW_HUDI_OVERWRITE_MARKER | - |
| whole_table, token, dry_run | - | - |

AIRFLOW_HUDI_OVERWRITE_SOURCE and AIRFLOW_HUDI_OVERWRITE_PARTITIONS are templates that each run fills in, such as
`s3://bucket/orders/{{ ds }}` and `day={{ ds }}`. AIRFLOW_HUDI_OVERWRITE_SCHEDULE is the schedule, a cron expression in
UTC: with `@daily` a run starts when a day is over, and `ds` is that day. Without it the DAG runs when triggered.
AIRFLOW_HUDI_WRITER_OPTIONS are the options of the table's writers, by Hudi's names, as a JSON object without secrets:
the lock that they use is one of them.
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
from airflow_hudi.operators.overwrite import HudiInsertOverwriteOperator

SOURCE = "AIRFLOW_HUDI_OVERWRITE_SOURCE"
SCHEDULE = interval_schedule("AIRFLOW_HUDI_OVERWRITE_SCHEDULE")

with DAG(
    dag_id="hudi_insert_overwrite",
    dag_display_name="Hudi: overwrite partitions",
    schedule=SCHEDULE,
    start_date=datetime(2024, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=1,  # Runs write in the order of their intervals, because the last run that writes wins.
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
            number_in("AIRFLOW_HUDI_OVERWRITE_WAIT_MINUTES", 0),
            type="integer",
            minimum=0,
            description="Minutes to wait for a source that is not there yet",
        ),
        "marker": optional_text(
            "File in the source's folder that is there when all others are, such as _SUCCESS; "
            "empty: Parquet files that are the same at two looks end the wait",
            os.environ.get("AIRFLOW_HUDI_OVERWRITE_MARKER"),
        ),
        "partitions": optional_text("Partitions to replace, separated by commas; empty: those that rows belong to"),
        "whole_table": Param(False, type="boolean", description="Replace all partitions"),
        "token": optional_text("Name of the work; empty: the data interval, which is written once"),
        "dry_run": dry_run_param(),
        **work_params(),
    },
) as dag:
    HudiInsertOverwriteOperator(
        task_id="overwrite",
        source=param_or_template("source", SOURCE),
        wait_for_source="{{ params.wait_minutes }}m",
        source_marker="{{ params.marker or '' }}",
        source_poll_interval=number_in("AIRFLOW_HUDI_POLL_SECONDS", 60.0),
        partitions=param_or_template("partitions", "AIRFLOW_HUDI_OVERWRITE_PARTITIONS"),
        whole_table="{{ params.whole_table }}",
        token="{{ params.token or '' }}",
        dry_run=DRY_RUN,
        options=options_of_run(writer_options()),
        **TARGET,
        retries=3,
        retry_delay=timedelta(minutes=1),
    )
