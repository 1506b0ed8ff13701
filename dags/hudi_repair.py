"""Repairs a Hudi table by hand: a run with a verb and an instant runs that verb as a Spark job.

| verb | instant | what it does |
|---|---|---|
| rollback | the write; empty: every failed write | rolls back failed writes, a compaction attempt, the newest commit |
| restore | the commit to restore to | removes everything that was written since; stop all writers first |
| savepoint | the commit; empty: the newest | keeps its files until the savepoint is deleted; `comment` says why |
| delete_savepoint | the commit | deletes the savepoint |
| unschedule | the plan | drops a pending plan that will not be run |
| takeover | the instant | frees a pending instant whose owner is dead |

With `dry_run` a rollback, a restore and an unschedule report what they would remove; the other verbs refuse it.

The table and the connections come from the run's params; their defaults from the environment, then from Airflow
Variables, as for the other DAGs (AIRFLOW_HUDI_TABLE, AIRFLOW_HUDI_CONN_ID, AIRFLOW_HUDI_SPARK_CONN_ID; hudi_table,
hudi_conn_id, hudi_spark_conn_id). AIRFLOW_HUDI_WRITER_OPTIONS are the options of the table's writers, by Hudi's names,
as a JSON object without secrets: the lock that they use is one of them.
"""

from __future__ import annotations

from datetime import datetime, timezone

from airflow.sdk import DAG, Param, task
from airflow.sdk.exceptions import AirflowFailException

from airflow_hudi.dag_params import (
    DRY_RUN,
    INSTANT_PATTERN,
    RUN_TYPES,
    TARGET,
    confirmation_param,
    dry_run_param,
    optional_text,
    options_of_run,
    runs_at_once,
    table_params,
    work_params,
    writer_options,
)
from airflow_hudi.operators.base import flag
from airflow_hudi.operators.repair import (
    HudiRestoreOperator,
    HudiSavepointOperator,
    HudiTakeoverOperator,
    HudiUnscheduleOperator,
)
from airflow_hudi.operators.rollback import HudiRollbackOperator

VERBS = ("rollback", "restore", "savepoint", "delete_savepoint", "unschedule", "takeover")
NEED_AN_INSTANT = ("restore", "delete_savepoint", "unschedule", "takeover")
HAVE_A_DRY_RUN = ("rollback", "restore", "unschedule")
COMMON = {
    **TARGET,
    "options": options_of_run(writer_options()),
    "nothing_to_do": "succeed",
}
INSTANT = "{{ params.instant or '' }}"

with DAG(
    dag_id="hudi_repair",
    dag_display_name="Hudi: repair a table",
    schedule=None,
    start_date=datetime(2024, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=runs_at_once(None),
    allowed_run_types=RUN_TYPES,
    tags=["hudi", "repair"],
    doc_md=__doc__,
    params={
        "verb": Param("rollback", enum=list(VERBS), description="What to do"),
        "instant": optional_text(
            f"The instant that it is done to; {' and '.join(NEED_AN_INSTANT)} need one", pattern=INSTANT_PATTERN
        ),
        "comment": optional_text("Kept in a savepoint"),
        "dry_run": dry_run_param(),
        **table_params(),
        **work_params(),
        "confirm": confirmation_param("a rollback or a restore removes rows; dry_run says which files"),
    },
) as dag:

    @task.branch
    def choose(verb: str, instant: str, dry_run: bool | str = False) -> str:
        """Returns the verb, which is the id of the task to run. The other tasks are skipped."""
        if verb in NEED_AN_INSTANT and not instant:
            raise AirflowFailException(f"{verb} needs the param `instant`; `hudictl timeline TABLE` lists them")
        if flag(dry_run, name="dry_run") and verb not in HAVE_A_DRY_RUN:
            raise AirflowFailException(f"{verb} has no dry run; {', '.join(HAVE_A_DRY_RUN)} have one")
        return verb

    chosen = choose("{{ params.verb }}", INSTANT, DRY_RUN)
    chosen >> [
        HudiRollbackOperator(task_id="rollback", target=INSTANT, dry_run=DRY_RUN, **COMMON),
        HudiRestoreOperator(task_id="restore", instant=INSTANT, dry_run=DRY_RUN, **COMMON),
        HudiSavepointOperator(task_id="savepoint", instant=INSTANT, comment="{{ params.comment or '' }}", **COMMON),
        HudiSavepointOperator(task_id="delete_savepoint", action="delete", instant=INSTANT, **COMMON),
        HudiUnscheduleOperator(task_id="unschedule", instant=INSTANT, dry_run=DRY_RUN, **COMMON),
        HudiTakeoverOperator(task_id="takeover", instant=INSTANT, **COMMON),
    ]
