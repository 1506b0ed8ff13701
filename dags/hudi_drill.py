"""A drill: takes a savepoint of a Hudi table, breaks it by deleting a partition, and restores it.

It proves that the table can be restored, and shows how long that takes. **Stop all writers first**: the restore removes
everything that they write after the savepoint, and all instants that are pending then. You can also use a copy of a
table.

1. `choose` takes the partition: the param, or one that the newest commits wrote; `savepoint` keeps the newest commit.
2. `break_table` deletes the partition.
3. `restore` restores the table to the savepoint, also if the step before failed.
4. `check` fails if the newest commit is not the one of the savepoint, or an instant is pending, or a step failed.
5. `doctor` examines the table with its metadata table; then `delete_savepoint` deletes the savepoint.

If a step fails, the savepoint is kept: `hudi_repair` with the verb `restore` restores the table to it.

The table and the connections come from the run's params; their defaults from the environment, then from Airflow
Variables:

| param | environment | Variable |
|---|---|---|
| table | AIRFLOW_HUDI_TABLE | hudi_table |
| hudi_conn_id | AIRFLOW_HUDI_CONN_ID | hudi_conn_id (else hudi_default) |
| spark_conn_id | AIRFLOW_HUDI_SPARK_CONN_ID | hudi_spark_conn_id (else spark_default) |
| partition | AIRFLOW_HUDI_DRILL_PARTITION | - |

AIRFLOW_HUDI_WRITER_OPTIONS are the options of the table's writers, by Hudi's names, as a JSON object without secrets.
"""

from __future__ import annotations

import os
from datetime import datetime, timezone

from airflow.sdk import DAG, task
from airflow.sdk.exceptions import AirflowFailException

from airflow_hudi.dag_params import (
    HUDI_CONN,
    RUN_TYPES,
    TABLE,
    TARGET,
    confirmation_param,
    optional_text,
    options_of_run,
    table_params,
    work_params,
    writer_options,
)
from airflow_hudi.hooks import HudiHook
from airflow_hudi.operators.doctor import HudiDoctorOperator
from airflow_hudi.operators.overwrite import HudiDeletePartitionOperator
from airflow_hudi.operators.repair import HudiRestoreOperator, HudiSavepointOperator

COMMON = {**TARGET, "options": options_of_run(writer_options())}
# `choose` returns a dict, because a plain text of digits would come out of an XCom as a number.
CHOSEN = "{{ ti.xcom_pull(task_ids='choose')['partition'] }}"
KEPT = "{{ ti.xcom_pull(task_ids='savepoint')['instant'] }}"

with DAG(
    dag_id="hudi_drill",
    dag_display_name="Hudi: drill a restore",
    schedule=None,
    start_date=datetime(2024, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=1,  # A second drill of a table would restore what the first one deletes.
    allowed_run_types=RUN_TYPES,
    tags=["hudi", "repair"],
    doc_md=__doc__,
    params={
        "partition": optional_text(
            "The partition that is deleted and restored; empty: one that the newest commits wrote",
            os.environ.get("AIRFLOW_HUDI_DRILL_PARTITION"),
        ),
        **table_params(),
        **work_params(),
        "confirm": confirmation_param("rows of the partition are gone until the restore, and no writer may be at work"),
    },
) as dag:

    @task
    def choose(table: str, hudi_conn_id: str, partition: str) -> dict[str, str]:
        """Returns the partition to delete."""
        if partition:
            return {"partition": partition}
        reader = HudiHook(hudi_conn_id).timeline(table)
        for commit in reversed(reader.load().commits().instants):
            for name in sorted(reader.active().read_commit(commit).partition_to_write_stats):
                if name:
                    return {"partition": name}
        raise AirflowFailException(f"no commit on the timeline of {table} wrote a partition that has a name")

    @task
    def check(table: str, hudi_conn_id: str, instant: str) -> dict[str, str]:
        """Returns the newest commit. Fails if it is not the commit of the savepoint, or if an instant is pending."""
        timeline = HudiHook(hudi_conn_id).timeline(table).load()
        newest = timeline.commits().last()
        if newest is None or newest.requested_time != instant:
            found = "none" if newest is None else newest.requested_time
            raise AirflowFailException(f"the newest commit of {table} is {found}, not {instant} as before")
        if pending := timeline.pending().first():
            raise AirflowFailException(f"{pending.pending_action} {pending.requested_time} of {table} is pending")
        return {"instant": newest.requested_time}

    savepoint = HudiSavepointOperator(task_id="savepoint", comment="a drill", **COMMON)
    chosen = choose(TABLE, HUDI_CONN, "{{ params.partition or '' }}")
    break_table = HudiDeletePartitionOperator(task_id="break_table", partitions=CHOSEN, **COMMON)
    restore = HudiRestoreOperator(
        task_id="restore", instant=KEPT, nothing_to_do="succeed", trigger_rule="all_done_min_one_success", **COMMON
    )
    doctor = HudiDoctorOperator(task_id="doctor", **COMMON)
    delete_savepoint = HudiSavepointOperator(task_id="delete_savepoint", action="delete", instant=KEPT, **COMMON)

    checked = check(TABLE, HUDI_CONN, KEPT)
    chosen >> savepoint >> break_table >> restore
    savepoint >> restore
    [break_table, restore] >> checked >> doctor >> delete_savepoint
