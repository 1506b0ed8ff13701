"""Runs the services that a writer planned on a table, soon after it plans them: compactions, clusterings, cleans,
indexings.

The triggerer looks at the table's timeline, and an event of the table's asset starts a run. A run runs everything that
is pending, and not only the instants of the event, because Airflow joins the events that come before a run starts into
one run. This DAG plans nothing.

The table and the connections come from the run's params; their defaults from the environment, then from Airflow
Variables:

| param | environment | Variable |
|---|---|---|
| table | AIRFLOW_HUDI_WATCHED_TABLE (else AIRFLOW_HUDI_TABLE) | hudi_table |
| hudi_conn_id | AIRFLOW_HUDI_CONN_ID | hudi_conn_id (else hudi_default) |
| spark_conn_id | AIRFLOW_HUDI_SPARK_CONN_ID | hudi_spark_conn_id (else spark_default) |

Only the environment sets what the triggerer watches: the table AIRFLOW_HUDI_WATCHED_TABLE, by the connection
AIRFLOW_HUDI_CONN_ID, every AIRFLOW_HUDI_POLL_SECONDS (else 10). Instants that are still pending after
AIRFLOW_HUDI_REPEAT_SECONDS (else 900) have another event. AIRFLOW_HUDI_FLEET_ENGINE (else auto) is the engine. Without
a watched table the DAG runs when triggered. AIRFLOW_HUDI_WRITER_OPTIONS are the options of the table's writers, by
Hudi's names, as a JSON object without secrets: the lock that they use is one of them.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone

from airflow.sdk import DAG

from airflow_hudi.assets import watched_assets
from airflow_hudi.dag_params import (
    ENGINE,
    HUDI_CONN,
    RUN_TYPES,
    SPARK_CONN,
    TABLE,
    optional_text,
    options_of_run,
    table_params,
    work_params,
    writer_options,
)
from airflow_hudi.operators.table_services import HudiTableServicesOperator

WATCHED = os.environ.get("AIRFLOW_HUDI_WATCHED_TABLE")

with DAG(
    dag_id="hudi_services_on_events",
    dag_display_name="Hudi: run what writers plan",
    schedule=watched_assets(),
    start_date=datetime(2024, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=1,  # Airflow joins the events that come before a run starts into one run.
    allowed_run_types=RUN_TYPES,
    tags=["hudi", "events"],
    doc_md=__doc__,
    params={
        **table_params(),
        "table": optional_text("Path or URI of the table", WATCHED or os.environ.get("AIRFLOW_HUDI_TABLE")),
        **work_params(os.environ.get("AIRFLOW_HUDI_FLEET_ENGINE") or "auto"),
    },
) as dag:
    HudiTableServicesOperator(
        task_id="run_pending",
        tables=TABLE,
        services="rollback, compaction, log_compaction, clustering, indexing, clean",
        mode="execute",
        options=options_of_run(writer_options()),
        hudi_conn_id=HUDI_CONN,
        spark_conn_id=SPARK_CONN,
        engine=ENGINE,
        nothing_to_do="succeed",
        retries=3,
        retry_delay=timedelta(minutes=1),
    )
