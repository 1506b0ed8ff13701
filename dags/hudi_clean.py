"""Waits for a clean that a writer planned on a Hudi table and did not run, and runs it as a Spark job.

For writers with `hoodie.clean.automatic=true` and `hoodie.clean.async.enabled=true`, or whose cleans died. The table
and the connections come from the run's params; their defaults from the environment, then from Airflow Variables:

| param | environment | Variable |
|---|---|---|
| table | AIRFLOW_HUDI_TABLE | hudi_table |
| hudi_conn_id | AIRFLOW_HUDI_CONN_ID | hudi_conn_id (else hudi_default) |
| spark_conn_id | AIRFLOW_HUDI_SPARK_CONN_ID | hudi_spark_conn_id (else spark_default) |

AIRFLOW_HUDI_SCHEDULE is the schedule: a cron expression, `@hourly`, `@continuous`…; without it the DAG runs when
triggered.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone

from airflow.sdk import DAG, Param

from airflow_hudi.operators.clean import HudiCleanOperator
from airflow_hudi.sensors.instant import HudiInstantSensor

# Variables are read when a task runs, never when this file is parsed.
TABLE = "{{ params.table or var.value.get('hudi_table', '') }}"
HUDI_CONN = "{{ params.hudi_conn_id or var.value.get('hudi_conn_id', 'hudi_default') }}"
SPARK_CONN = "{{ params.spark_conn_id or var.value.get('hudi_spark_conn_id', 'spark_default') }}"

with DAG(
    dag_id="hudi_clean",
    schedule=os.environ.get("AIRFLOW_HUDI_SCHEDULE") or None,
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
    },
) as dag:
    wait = HudiInstantSensor(
        task_id="wait_for_clean",
        table=TABLE,
        hudi_conn_id=HUDI_CONN,
        action="clean",
        state="pending",
        poke_interval=float(os.environ.get("AIRFLOW_HUDI_POLL_SECONDS") or 30),
        timeout=timedelta(hours=24),
        retries=3,
        retry_delay=timedelta(minutes=1),
    )
    clean = HudiCleanOperator(
        task_id="clean",
        table=TABLE,
        hudi_conn_id=HUDI_CONN,
        spark_conn_id=SPARK_CONN,
        mode="execute",
        instant="{{ ti.xcom_pull(task_ids='wait_for_clean')['instant'] }}",
        retries=3,
        retry_delay=timedelta(minutes=1),
    )
    wait >> clean
