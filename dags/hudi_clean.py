"""Waits for a clean that a writer planned on a Hudi table and did not run, and runs it as a Spark job.

It is for writers with `hoodie.clean.automatic=true` and `hoodie.clean.async.enabled=true`, and for writers whose cleans
died. The table and the connections come from the run's params; their defaults from the environment, then from Airflow
Variables:

| param | environment | Variable |
|---|---|---|
| table | AIRFLOW_HUDI_TABLE | hudi_table |
| hudi_conn_id | AIRFLOW_HUDI_CONN_ID | hudi_conn_id (else hudi_default) |
| spark_conn_id | AIRFLOW_HUDI_SPARK_CONN_ID | hudi_spark_conn_id (else spark_default) |

AIRFLOW_HUDI_SCHEDULE is the schedule: a cron expression, `@hourly`, `@continuous`…; without it the DAG runs when
triggered. AIRFLOW_HUDI_WRITER_OPTIONS are the options of the table's writers, by Hudi's names, as a JSON object
without secrets: the lock that they use is one of them.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone

from airflow.sdk import DAG

from airflow_hudi.dag_params import (
    HUDI_CONN,
    RUN_TYPES,
    TABLE,
    TARGET,
    looks_once_where_scheduled,
    number_in,
    options_of_run,
    runs_at_once,
    table_params,
    work_params,
    writer_options,
)
from airflow_hudi.operators.service import HudiCleanOperator
from airflow_hudi.sensors import HudiInstantSensor

SCHEDULE = os.environ.get("AIRFLOW_HUDI_SCHEDULE") or None

with DAG(
    dag_id="hudi_clean",
    dag_display_name="Hudi: run a planned clean",
    schedule=SCHEDULE,
    start_date=datetime(2024, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=runs_at_once(SCHEDULE),
    allowed_run_types=RUN_TYPES,
    tags=["hudi", "maintain"],
    doc_md=__doc__,
    params={**table_params(), **work_params()},
) as dag:
    wait = HudiInstantSensor(
        task_id="wait_for_clean",
        table=TABLE,
        hudi_conn_id=HUDI_CONN,
        action="clean",
        state="pending",
        poke_interval=number_in("AIRFLOW_HUDI_POLL_SECONDS", 30.0),
        timeout=timedelta(hours=24),
        retries=3,
        retry_delay=timedelta(minutes=1),
        **looks_once_where_scheduled(SCHEDULE),
    )
    clean = HudiCleanOperator(
        task_id="clean",
        **TARGET,
        mode="execute",
        options=options_of_run(writer_options()),
        instant="{{ ti.xcom_pull(task_ids='wait_for_clean')['instant'] }}",
        retries=3,
        retry_delay=timedelta(minutes=1),
    )
    wait >> clean
