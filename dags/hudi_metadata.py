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

import os
from datetime import datetime, timedelta, timezone

from airflow.sdk import DAG

from airflow_hudi.dag_params import (
    RUN_TYPES,
    TARGET,
    options_of_run,
    runs_at_once,
    table_params,
    work_params,
    writer_options,
)
from airflow_hudi.operators.metadata import HudiMetadataOperator

COMMON = {
    **TARGET,
    "options": options_of_run(writer_options()),
    "retries": 3,
    "retry_delay": timedelta(minutes=1),
}

SCHEDULE = os.environ.get("AIRFLOW_HUDI_METADATA_SCHEDULE", "@daily") or None

with DAG(
    dag_id="hudi_metadata",
    dag_display_name="Hudi: maintain the metadata table",
    schedule=SCHEDULE,
    start_date=datetime(2024, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=runs_at_once(SCHEDULE),
    allowed_run_types=RUN_TYPES,
    tags=["hudi", "maintain"],
    doc_md=__doc__,
    params={**table_params(), **work_params()},
) as dag:
    update = HudiMetadataOperator(task_id="update", verb="update", **COMMON)
    validate = HudiMetadataOperator(task_id="validate", verb="validate", **COMMON)
    update >> validate
