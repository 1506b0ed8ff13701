"""Builds indexes of a Hudi table's metadata table while its writers continue, then validates the metadata table.

A task runs a planned indexing if there is one, also one that a Hudi writer planned. Else it plans and builds the
indexes that the params name. Existing indexes are not changed. The tasks are skipped if there is nothing to do.

The table and the connections come from the run's params; their defaults from the environment, then from Airflow
Variables:

| param | environment | Variable |
|---|---|---|
| table | AIRFLOW_HUDI_TABLE | hudi_table |
| hudi_conn_id | AIRFLOW_HUDI_CONN_ID | hudi_conn_id (else hudi_default) |
| spark_conn_id | AIRFLOW_HUDI_SPARK_CONN_ID | hudi_spark_conn_id (else spark_default) |
| column_stats, bloom_filters, partition_stats, record_index | - | - |
| secondary_column, expression_column, expression_options, index_name | - | - |

AIRFLOW_HUDI_INDEXING_SCHEDULE is the schedule; without it the DAG runs when triggered. AIRFLOW_HUDI_WRITER_OPTIONS are
the options of the table's writers, by Hudi's names, as a JSON object without secrets. They include the writers' lock
and the columns that have statistics.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone

from airflow.sdk import DAG, Param

from airflow_hudi.dag_params import (
    RUN_TYPES,
    TARGET,
    optional_text,
    options_of_run,
    runs_at_once,
    table_params,
    work_params,
    writer_options,
)
from airflow_hudi.operators.metadata import HudiMetadataOperator
from airflow_hudi.operators.service import HudiIndexingOperator

COMMON = {
    **TARGET,
    "retries": 3,
    "retry_delay": timedelta(minutes=1),
}
INDEXES = {
    "hoodie.metadata.index.column.stats.enable": "{{ params.column_stats | string | lower }}",
    "hoodie.metadata.index.bloom.filter.enable": "{{ params.bloom_filters | string | lower }}",
    "hoodie.metadata.index.partition.stats.enable": "{{ params.partition_stats | string | lower }}",
    "hoodie.metadata.global.record.level.index.enable": "{{ params.record_index | string | lower }}",
    "hoodie.metadata.index.secondary.column": "{{ params.secondary_column or '' }}",
    "hoodie.metadata.index.expression.column": "{{ params.expression_column or '' }}",
    "hoodie.metadata.index.expression.options": "{{ params.expression_options or '' }}",
    "hoodie.index.name": "{{ params.index_name or '' }}",
}

SCHEDULE = os.environ.get("AIRFLOW_HUDI_INDEXING_SCHEDULE") or None

with DAG(
    dag_id="hudi_indexing",
    dag_display_name="Hudi: build indexes",
    schedule=SCHEDULE,
    start_date=datetime(2024, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=runs_at_once(SCHEDULE),
    allowed_run_types=RUN_TYPES,
    tags=["hudi", "maintain"],
    doc_md=__doc__,
    params={
        **table_params(),
        "column_stats": Param(True, type="boolean", description="Statistics of columns"),
        "bloom_filters": Param(False, type="boolean", description="Bloom filters of base files"),
        "partition_stats": Param(
            False, type="boolean", description="Statistics of partitions (table versions 8 and 9)"
        ),
        "record_index": Param(False, type="boolean", description="The record index over all partitions"),
        "secondary_column": optional_text("A secondary index on this column (table versions 8 and 9)"),
        "expression_column": optional_text("An index on an expression of this column (table versions 8 and 9)"),
        "expression_options": optional_text("The expression: expr=from_unixtime,format=yyyy-MM-dd"),
        "index_name": optional_text("Name of the secondary or expression index; the column's when empty"),
        **work_params(),
    },
) as dag:
    build = HudiIndexingOperator(task_id="build", options=options_of_run(writer_options(), INDEXES), **COMMON)
    validate = HudiMetadataOperator(
        task_id="validate", verb="validate", options=options_of_run(writer_options()), **COMMON
    )
    build >> validate
