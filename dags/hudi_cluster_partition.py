"""Clusters one partition of a table, for each partition that hudi_changed_partitions found.

A run has the partition as its partition key, or as its param when it is triggered by hand. It joins small files, and
sorts rows if there are sort columns. Files that an earlier clustering already wrote in this form are not written again.
Clusterings of any partition that are pending when the run starts are run first.

| param | environment | Variable |
|---|---|---|
| table | AIRFLOW_HUDI_WATCHED_TABLE (else AIRFLOW_HUDI_TABLE) | hudi_table |
| hudi_conn_id | AIRFLOW_HUDI_CONN_ID | hudi_conn_id (else hudi_default) |
| spark_conn_id | AIRFLOW_HUDI_SPARK_CONN_ID | hudi_spark_conn_id (else spark_default) |
| partition | - | - |
| sort_columns | AIRFLOW_HUDI_SORT_COLUMNS (else as the writers) | - |

AIRFLOW_HUDI_WRITER_OPTIONS are the options of the table's writers, by Hudi's names, as a JSON object without secrets:
the lock that they use is one of them. AIRFLOW_HUDI_FLEET_ENGINE is the engine, else `auto`.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone

from airflow.sdk import DAG, PartitionedAssetTimetable

from airflow_hudi.assets import watched_changes
from airflow_hudi.dag_params import (
    ENGINE,
    HUDI_CONN,
    RUN_TYPES,
    SORT_COLUMNS,
    SPARK_CONN,
    TABLE,
    optional_text,
    options_of_run,
    sort_columns_param,
    table_params,
    work_params,
    writer_options,
)
from airflow_hudi.operators.table_services import HudiTableServicesOperator

WATCHED = os.environ.get("AIRFLOW_HUDI_WATCHED_TABLE") or os.environ.get("AIRFLOW_HUDI_TABLE")
CHANGED = watched_changes()

with DAG(
    dag_id="hudi_cluster_partition",
    dag_display_name="Hudi: cluster one partition",
    schedule=PartitionedAssetTimetable(assets=CHANGED) if CHANGED else None,
    start_date=datetime(2024, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=1,  # The clusterings of the table's partitions take turns.
    allowed_run_types=RUN_TYPES,
    tags=["hudi", "events"],
    doc_md=__doc__,
    params={
        **table_params(),
        "table": optional_text("Path or URI of the table", WATCHED),
        "partition": optional_text("Partition to cluster; empty: that of the run, else all"),
        "sort_columns": sort_columns_param(),
        **work_params(os.environ.get("AIRFLOW_HUDI_FLEET_ENGINE") or "auto"),
    },
) as dag:
    HudiTableServicesOperator(
        task_id="cluster",
        tables=TABLE,
        services="clustering",
        options=options_of_run(
            writer_options(),
            {
                "hoodie.clustering.plan.strategy.partition.selected": (
                    "{{ params.partition or dag_run.partition_key or '' }}"
                ),
                SORT_COLUMNS: "{{ params.sort_columns or '' }}",
            },
        ),
        hudi_conn_id=HUDI_CONN,
        spark_conn_id=SPARK_CONN,
        engine=ENGINE,
        retries=3,
        retry_delay=timedelta(minutes=1),
    )
