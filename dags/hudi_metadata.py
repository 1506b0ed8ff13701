"""Updates the metadata table of a Hudi table every day, then validates it and fails when anything differs.

`update` applies commits, cleans, rollbacks and restores that a writer missed, rolls failed deltacommits back, and
cleans, compacts and archives the metadata table, all without a write of data. `validate` reads every data file once.

The table and the connections come from the run's params; their defaults from the environment, then from Airflow
Variables:

| param | environment | Variable |
|---|---|---|
| table | AIRFLOW_HUDI_TABLE | hudi_table |
| hudi_conn_id | AIRFLOW_HUDI_CONN_ID | hudi_conn_id (else hudi_default) |
| spark_conn_id | AIRFLOW_HUDI_SPARK_CONN_ID | hudi_spark_conn_id (else spark_default) |

AIRFLOW_HUDI_METADATA_SCHEDULE is the schedule, `@daily` without it; empty: the DAG runs when triggered.
AIRFLOW_HUDI_WRITER_OPTIONS are the options of the table's writers, by Hudi's names, as a JSON object without secrets:
how often the metadata table is compacted is one of them.
"""

from __future__ import annotations

import json
import os
from datetime import datetime, timedelta, timezone

from airflow.sdk import DAG, Param

from airflow_hudi.operators.metadata import HudiMetadataOperator

# Variables are read when a task runs, never when this file is parsed.
COMMON = {
    "table": "{{ params.table or var.value.get('hudi_table', '') }}",
    "hudi_conn_id": "{{ params.hudi_conn_id or var.value.get('hudi_conn_id', 'hudi_default') }}",
    "spark_conn_id": "{{ params.spark_conn_id or var.value.get('hudi_spark_conn_id', 'spark_default') }}",
    "options": json.loads(os.environ.get("AIRFLOW_HUDI_WRITER_OPTIONS") or "{}"),
    "retries": 3,
    "retry_delay": timedelta(minutes=1),
}

with DAG(
    dag_id="hudi_metadata",
    schedule=os.environ.get("AIRFLOW_HUDI_METADATA_SCHEDULE", "@daily") or None,
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
    update = HudiMetadataOperator(task_id="update", verb="update", **COMMON)
    validate = HudiMetadataOperator(task_id="validate", verb="validate", **COMMON)
    update >> validate
