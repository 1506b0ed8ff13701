"""`airflow backfill create` of three days for DAGs of the DAG folder, in this process.

Nothing executes the runs. What came of each DAG is one line of JSON after RESULT: `{"dag", "error", "runs": {id: [day,
begin and end of its interval]}}`.
"""

from __future__ import annotations

import json

from tests.airflow.airflow_forks import RESULT

DAYS = ("2026-02-01", "2026-02-03")


def main(*dag_ids: str) -> None:
    """Prints a line for each DAG."""
    from airflow.cli.cli_parser import get_parser
    from airflow.exceptions import AirflowException
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import select

    def command(*words: str) -> None:
        arguments = get_parser().parse_args(words)
        arguments.func(arguments)

    command("dags", "reserialize")
    for dag_id in dag_ids:
        error = None
        try:
            command("backfill", "create", "--dag-id", dag_id, "--from-date", DAYS[0], "--to-date", DAYS[1])
        except AirflowException as refused:
            error = str(refused)
        with create_session() as session:
            runs = {
                run.run_id: [
                    None if at is None else at.date().isoformat()
                    for at in (run.logical_date, run.data_interval_start, run.data_interval_end)
                ]
                for run in session.scalars(select(DagRun).where(DagRun.dag_id == dag_id))
            }
        print(RESULT + json.dumps({"dag": dag_id, "error": error, "runs": runs}), flush=True)
