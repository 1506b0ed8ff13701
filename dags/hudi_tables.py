"""Runs the pending and due services of many tables as one job.

One process looks at several tables at a time, and all work for Spark is one Spark job. The tables and the connections
come from the run's params; their defaults from the environment, then from Airflow Variables:

| param | environment | Variable |
|---|---|---|
| tables | AIRFLOW_HUDI_TABLES | hudi_tables |
| hudi_conn_id | AIRFLOW_HUDI_CONN_ID | hudi_conn_id (else hudi_default) |
| spark_conn_id | AIRFLOW_HUDI_SPARK_CONN_ID | hudi_spark_conn_id (else spark_default) |

`tables` are paths or URIs, separated by commas or lines. A compaction is planned after `delta_commits` delta commits.
A clean keeps the files of `commits_retained` commits.
AIRFLOW_HUDI_SCHEDULE is the schedule: a cron expression, `@hourly`, `@continuous`…; without it the DAG runs when
triggered. AIRFLOW_HUDI_WRITER_OPTIONS are the options of the tables' writers, by Hudi's names, as a JSON object without
secrets: the lock that they use is one of them. The params override them.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone

from airflow.sdk import DAG, Param

from airflow_hudi.dag_params import (
    ENGINE,
    HUDI_CONN,
    RUN_TYPES,
    SPARK_CONN,
    optional_text,
    options_of_run,
    runs_at_once,
    table_params,
    work_params,
    writer_options,
)
from airflow_hudi.operators.table_services import HudiTableServicesOperator

SCHEDULE = os.environ.get("AIRFLOW_HUDI_SCHEDULE") or None

with DAG(
    dag_id="hudi_tables",
    dag_display_name="Hudi: services of many tables",
    schedule=SCHEDULE,
    start_date=datetime(2024, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=runs_at_once(SCHEDULE),
    allowed_run_types=RUN_TYPES,
    tags=["hudi", "maintain"],
    doc_md=__doc__,
    params={
        "tables": optional_text("Paths or URIs, separated by commas", os.environ.get("AIRFLOW_HUDI_TABLES")),
        "services": Param(
            "rollback, compaction, clean, archive", type="string", description="The services of each table, in order"
        ),
        "delta_commits": Param(5, type="integer", minimum=1, description="Delta commits after which to compact"),
        "commits_retained": Param(10, type="integer", minimum=1, description="Commits whose files a clean keeps"),
        **{name: param for name, param in table_params().items() if name != "table"},
        **work_params(),
    },
) as dag:
    HudiTableServicesOperator(
        task_id="run_services",
        tables="{{ params.tables or var.value.get('hudi_tables', '') }}",
        services="{{ params.services }}",
        hudi_conn_id=HUDI_CONN,
        spark_conn_id=SPARK_CONN,
        engine=ENGINE,
        options=options_of_run(
            writer_options(),
            {
                "hoodie.compact.inline.max.delta.commits": "{{ params.delta_commits }}",
                "hoodie.clean.commits.retained": "{{ params.commits_retained }}",
            },
        ),
        retries=3,
        retry_delay=timedelta(minutes=1),
    )
