"""Rewrites small or unordered files of a Hudi table into new files, as a Spark job.

The task runs a planned clustering if there is one, also one that a writer planned. Else it plans a clustering and runs
it. Files that an earlier clustering already wrote in this form are not written again. The task is skipped if there is
nothing to do.

The table, the connections and the order of rows come from the run's params; their defaults from the environment, then
from Airflow Variables:

| param | environment | Variable |
|---|---|---|
| table | AIRFLOW_HUDI_TABLE | hudi_table |
| hudi_conn_id | AIRFLOW_HUDI_CONN_ID | hudi_conn_id (else hudi_default) |
| spark_conn_id | AIRFLOW_HUDI_SPARK_CONN_ID | hudi_spark_conn_id (else spark_default) |
| sort_columns | AIRFLOW_HUDI_SORT_COLUMNS (else as the writers) | - |
| layout | - (as the writers, else linear) | - |
| partitions, small_file_mb, target_file_mb | - | - |

AIRFLOW_HUDI_CLUSTERING_SCHEDULE is the schedule: a cron expression, `@daily`, `@continuous`…; without it the DAG runs
when triggered. AIRFLOW_HUDI_WRITER_OPTIONS are the options of the table's writers, by Hudi's names, as a JSON object
without secrets: the lock that they use is one of them.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone

from airflow.sdk import DAG, Param

from airflow_hudi.dag_params import (
    RUN_TYPES,
    SORT_COLUMNS,
    TARGET,
    optional_text,
    options_of_run,
    runs_at_once,
    sort_columns_param,
    table_params,
    work_params,
    writer_options,
)
from airflow_hudi.operators.service import HudiClusteringOperator

LAYOUT = "hoodie.layout.optimize.strategy"
LAYOUTS = ("linear", "z-order", "hilbert")
WRITERS = writer_options()
OPTIONS = {
    SORT_COLUMNS: "{{ params.sort_columns or '' }}",
    LAYOUT: "{{ params.layout }}",
    "hoodie.clustering.plan.strategy.partition.selected": "{{ params.partitions or '' }}",
    "hoodie.clustering.plan.strategy.small.file.limit": "{{ params.small_file_mb * 1048576 }}",
    "hoodie.clustering.plan.strategy.target.file.max.bytes": "{{ params.target_file_mb * 1048576 }}",
}

SCHEDULE = os.environ.get("AIRFLOW_HUDI_CLUSTERING_SCHEDULE") or None

with DAG(
    dag_id="hudi_clustering",
    dag_display_name="Hudi: cluster a table",
    schedule=SCHEDULE,
    start_date=datetime(2024, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=runs_at_once(SCHEDULE),
    allowed_run_types=RUN_TYPES,
    tags=["hudi", "maintain"],
    doc_md=__doc__,
    params={
        **table_params(),
        "sort_columns": sort_columns_param(),
        "layout": Param(
            WRITERS.get(LAYOUT, LAYOUTS[0]),
            enum=list(dict.fromkeys([*LAYOUTS, WRITERS.get(LAYOUT, LAYOUTS[0])])),
            description="Order by several columns: in turn, or a curve",
        ),
        "partitions": optional_text("Partitions to look at, separated by commas; empty: all"),
        "small_file_mb": Param(300, type="integer", minimum=1, description="MiB from which a file is left as it is"),
        "target_file_mb": Param(1024, type="integer", minimum=1, description="MiB of a new file at most"),
        **work_params(),
    },
) as dag:
    HudiClusteringOperator(
        task_id="cluster",
        options=options_of_run(WRITERS, OPTIONS),
        **TARGET,
        retries=3,
        retry_delay=timedelta(minutes=1),
    )
