"""Examines a Hudi table every day, and fails when something is wrong.

It checks for stuck instants, orphans, a wrong metadata table, clocks, locks and wheels.

Nothing is written to the table. The findings and their fixes are in the log and in the XCom of `doctor`. A run with
`probe_store` also tests the storage of the table, by races in their own folder: one such run per storage is enough.

The table and the connections come from the run's params; their defaults from the environment, then from Airflow
Variables:

| param | environment | Variable |
|---|---|---|
| table | AIRFLOW_HUDI_TABLE | hudi_table |
| hudi_conn_id | AIRFLOW_HUDI_CONN_ID | hudi_conn_id (else hudi_default) |
| spark_conn_id | AIRFLOW_HUDI_SPARK_CONN_ID | hudi_spark_conn_id (else spark_default) |
| fail_on | AIRFLOW_HUDI_DOCTOR_FAIL_ON (else error) | - |
| probe_store | - | - |

AIRFLOW_HUDI_DOCTOR_SCHEDULE is the schedule, `@daily` without it; empty: the DAG runs when triggered.
AIRFLOW_HUDI_WRITER_OPTIONS are the options of the table's writers, by Hudi's names, as a JSON object without secrets: a
table does not record them.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone

from airflow.sdk import DAG, Param, task

from airflow_hudi.dag_params import (
    RUN_TYPES,
    TARGET,
    options_of_run,
    runs_at_once,
    table_params,
    work_params,
    writer_options,
)
from airflow_hudi.operators.doctor import HudiDoctorOperator, HudiProbeStoreOperator

COMMON = {
    **TARGET,
    "retries": 3,
    "retry_delay": timedelta(minutes=1),
}

SCHEDULE = os.environ.get("AIRFLOW_HUDI_DOCTOR_SCHEDULE", "@daily") or None

with DAG(
    dag_id="hudi_doctor",
    dag_display_name="Hudi: examine a table",
    schedule=SCHEDULE,
    start_date=datetime(2024, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=runs_at_once(SCHEDULE),
    allowed_run_types=RUN_TYPES,
    tags=["hudi", "maintain"],
    doc_md=__doc__,
    params={
        **table_params(),
        "fail_on": Param(
            os.environ.get("AIRFLOW_HUDI_DOCTOR_FAIL_ON") or "error",
            enum=["error", "warning", "never"],
            description="The least severity of a finding that fails the run",
        ),
        "probe_store": Param(False, type="boolean", description="Race writers on the storage, too"),
        **work_params(),
    },
) as dag:

    @task.short_circuit
    def probe_wanted(params: dict[str, object]) -> bool:
        """Returns whether the run was triggered with `probe_store`."""
        return params["probe_store"] is True

    HudiDoctorOperator(
        task_id="doctor",
        fail_on="{{ '' if params.fail_on == 'never' else params.fail_on }}",
        options=options_of_run(writer_options()),
        **COMMON,
    )
    probe_wanted() >> HudiProbeStoreOperator(task_id="probe_store", **COMMON)
