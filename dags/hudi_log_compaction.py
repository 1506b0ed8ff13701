"""Merges the log files of a Hudi table's file slices. It runs the oldest pending log compaction; with `plan` it plans
one if none is pending.

`plan` is off by default: queries of Hudi 0.15 to 1.1 read the merged blocks and also the original ones, so they are not
faster.

The table and the connections come from the run's params; their defaults from the environment, then from Airflow
Variables:

| param | environment | Variable |
|---|---|---|
| table | AIRFLOW_HUDI_TABLE | hudi_table |
| hudi_conn_id | AIRFLOW_HUDI_CONN_ID | hudi_conn_id (else hudi_default) |
| spark_conn_id | AIRFLOW_HUDI_SPARK_CONN_ID | hudi_spark_conn_id (else spark_default) |
| plan, blocks | - | - |

AIRFLOW_HUDI_LOG_COMPACTION_SCHEDULE is the schedule; without it the DAG runs when triggered.
AIRFLOW_HUDI_WRITER_OPTIONS are the options of the table's writers, by Hudi's names, as a JSON object without secrets.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone

from airflow.sdk import DAG, Param

from airflow_hudi.dag_params import (
    RUN_TYPES,
    TARGET,
    options_of_run,
    runs_at_once,
    table_params,
    work_params,
    writer_options,
)
from airflow_hudi.operators.service import HudiLogCompactionOperator

SCHEDULE = os.environ.get("AIRFLOW_HUDI_LOG_COMPACTION_SCHEDULE") or None

with DAG(
    dag_id="hudi_log_compaction",
    dag_display_name="Hudi: merge log files",
    schedule=SCHEDULE,
    start_date=datetime(2024, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=runs_at_once(SCHEDULE),
    allowed_run_types=RUN_TYPES,
    tags=["hudi", "maintain"],
    doc_md=__doc__,
    params={
        **table_params(),
        "plan": Param(False, type="boolean", description="Plan a log compaction where none is planned"),
        "blocks": Param(5, type="integer", minimum=1, description="Log blocks from which a file slice is taken"),
        **work_params(),
    },
) as dag:
    merge = HudiLogCompactionOperator(
        task_id="merge_logs",
        mode="{{ 'both' if params.plan else 'execute' }}",
        options=options_of_run(
            writer_options(),
            {
                "hoodie.log.compaction.enable": "{{ params.plan | string | lower }}",
                "hoodie.log.compaction.blocks.threshold": "{{ params.blocks }}",
            },
        ),
        retries=3,
        retry_delay=timedelta(minutes=1),
        **TARGET,
    )
