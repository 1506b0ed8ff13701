"""Maintains a fleet of tables by a file of policies: runs the pending and due services of all tables as one job.

The file names the tables. It says when each service of a table is due, the order of the services, their limits of time
and bytes, and the quiet hours (docs/use/fleets.md). A mistake in the file is an import error of this DAG, with its
line. After the services, a task fails if an instant is pending for too long. Without a file and without tables there is
no DAG. The params of a run choose some of the tables, and the engine and options of its work.

| what | environment |
|---|---|
| path of the file | AIRFLOW_HUDI_POLICY_FILE; without it rollback, compaction, clean and archive, by their triggers |
| tables | those of the file; without one AIRFLOW_HUDI_TABLES (else AIRFLOW_HUDI_TABLE), paths or URIs with commas |
| connections | AIRFLOW_HUDI_CONN_ID (else hudi_default), AIRFLOW_HUDI_SPARK_CONN_ID (else spark_default) |
| engine | AIRFLOW_HUDI_FLEET_ENGINE (else auto), and the run's param `engine` |
| writers' options | AIRFLOW_HUDI_WRITER_OPTIONS, a JSON object without secrets, where all tables have the same |
| schedule | AIRFLOW_HUDI_FLEET_SCHEDULE: a cron expression, `@hourly`, `@continuous`…; without it by hand |
"""

from __future__ import annotations

import os

from airflow_hudi.arguments import names_in
from airflow_hudi.dag_params import ENGINE, options_of_run, work_params, writer_options
from airflow_hudi.maintenance_dag import hudi_maintenance_dag

OPERATOR_ARGS = {
    "hudi_conn_id": os.environ.get("AIRFLOW_HUDI_CONN_ID") or "hudi_default",
    "spark_conn_id": os.environ.get("AIRFLOW_HUDI_SPARK_CONN_ID") or "spark_default",
    "engine": ENGINE,
    "options": options_of_run(writer_options()),
}
TABLES = os.environ.get("AIRFLOW_HUDI_TABLES") or os.environ.get("AIRFLOW_HUDI_TABLE") or ""
FILE = os.environ.get("AIRFLOW_HUDI_POLICY_FILE")

if FILE or TABLES:
    dag = hudi_maintenance_dag(
        "hudi_fleet",
        policy=FILE or {"alerts": {"pending_age": "1d"}},
        tables=() if FILE else names_in(TABLES),
        schedule=os.environ.get("AIRFLOW_HUDI_FLEET_SCHEDULE") or None,
        operator_args=OPERATOR_ARGS,
        dag_display_name="Hudi: maintain a fleet of tables",
        params=work_params(os.environ.get("AIRFLOW_HUDI_FLEET_ENGINE") or "auto"),
        doc_md=__doc__,
    )
