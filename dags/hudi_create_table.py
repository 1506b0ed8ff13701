"""Creates an empty Hudi table, which Hudi of its version and `hudi_merge_day` write to.

A table that is there already is left alone; if it is another one than the params describe, the run fails. The columns
are those of `like`, a Parquet file or a folder of them, or of `schema`, an Avro schema as JSON or its address. With
`dry_run` the result shows the table and its schema.

The table and the connections come from the run's params; their defaults from the environment, then from Airflow
Variables:

| param | environment | Variable |
|---|---|---|
| table | AIRFLOW_HUDI_TABLE | hudi_table |
| hudi_conn_id | AIRFLOW_HUDI_CONN_ID | hudi_conn_id (else hudi_default) |
| spark_conn_id | AIRFLOW_HUDI_SPARK_CONN_ID | hudi_spark_conn_id (else spark_default) |

AIRFLOW_HUDI_WRITER_OPTIONS are the options of the table's writers, by Hudi's names, as a JSON object without secrets.
The DAG runs when triggered.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from airflow.sdk import DAG, Param

from airflow_hudi.dag_params import (
    DRY_RUN,
    RUN_TYPES,
    TARGET,
    dry_run_param,
    optional_text,
    options_of_run,
    runs_at_once,
    table_params,
    work_params,
    writer_options,
)
from airflow_hudi.operators.create import HudiCreateTableOperator

with DAG(
    dag_id="hudi_create_table",
    dag_display_name="Hudi: create a table",
    schedule=None,
    start_date=datetime(2024, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=runs_at_once(None),
    allowed_run_types=RUN_TYPES,
    tags=["hudi", "write"],
    doc_md=__doc__,
    params={
        **table_params(),
        "like": optional_text("Parquet file, or a folder of them, with the table's columns"),
        "schema": optional_text("Avro schema as JSON, or its address, instead of such a file"),
        "table_name": Param("", type="string", minLength=1, description="Name of the table"),
        "record_key": Param("", type="string", minLength=1, description="Columns of the record key, by commas"),
        "partition_by": optional_text("Columns of partitions, separated by commas; empty: no partitions"),
        "ordering": optional_text("Columns that order the rows of a key, separated by commas"),
        "table_type": Param("cow", type="string", enum=["cow", "mor"], description="Copy on write, or merge on read"),
        "table_version": Param(9, type="integer", enum=[9, 8, 6], description="What the table's readers handle"),
        "hive_style": Param(False, type="boolean", description="Whether partition paths name their columns"),
        "dry_run": dry_run_param(),
        **work_params(),
    },
) as dag:
    HudiCreateTableOperator(
        task_id="create",
        like="{{ params.like or '' }}",
        schema="{{ params.schema or '' }}",
        table_name="{{ params.table_name }}",
        record_key="{{ params.record_key }}",
        partition_by="{{ params.partition_by or '' }}",
        ordering="{{ params.ordering or '' }}",
        table_type="{{ params.table_type }}",
        table_version="{{ params.table_version }}",
        hive_style="{{ params.hive_style }}",
        dry_run=DRY_RUN,
        options=options_of_run(writer_options()),
        **TARGET,
        retries=3,
        retry_delay=timedelta(minutes=1),
    )
