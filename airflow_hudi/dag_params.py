"""What the ready-to-use DAGs have in common.

The params of their trigger form, the templates that read them, and which kinds of runs they may have.
"""

from __future__ import annotations

import json
import os
from typing import Any

from airflow.sdk import CronDataIntervalTimetable, Param
from airflow.utils.types import DagRunType

INSTANT_PATTERN = r"^[0-9]{14,20}$"
"""Instants as the timeline names them."""

RUN_TYPES = tuple(kind for kind in DagRunType if kind is not DagRunType.BACKFILL_JOB)
"""All but those of a backfill: a table service works on the table as it is now, so one run does what all would do."""

# Variables are read when a task runs, never when a DAG file is parsed.
TABLE = "{{ params.table or var.value.get('hudi_table', '') }}"
HUDI_CONN = "{{ params.hudi_conn_id or var.value.get('hudi_conn_id', 'hudi_default') }}"
SPARK_CONN = "{{ params.spark_conn_id or var.value.get('hudi_spark_conn_id', 'spark_default') }}"
TARGET = {"table": TABLE, "hudi_conn_id": HUDI_CONN, "spark_conn_id": SPARK_CONN}
"""The arguments of an operator that the params of `table_params` give."""
SORT_COLUMNS = "hoodie.clustering.plan.strategy.sort.columns"
"""The option that `sort_columns_param` is for."""
DRY_RUN = "{{ params.dry_run }}"


def optional_text(description: str, default: str | None = None, *, pattern: str | None = None) -> Param:
    """A text that may be left empty. Airflow's form requires a text that may not be null, also an empty one."""
    rules: dict[str, Any] = {} if pattern is None else {"pattern": pattern}
    return Param(default or None, type=["null", "string"], description=description, **rules)


def param_or_template(param: str, variable: str) -> str:
    """The template of an argument: the param, or where that is empty, the template that an environment variable has.

    Airflow renders no params, so a default that is a template cannot be one of them.
    """
    return f"{{% if params.{param} %}}{{{{ params.{param} }}}}{{% else %}}{os.environ.get(variable, '')}{{% endif %}}"


def interval_schedule(variable: str) -> CronDataIntervalTimetable | str | None:
    """The schedule of a DAG whose runs are of data intervals, in UTC: the cron expression or preset of an environment
    variable; None without one. Of a cron text Airflow itself makes moments, whose interval is empty: the run of
    midnight would have the `ds` of the day that just started. What is no cron (`@once`, `@continuous`) stays a text.
    """
    text = os.environ.get(variable) or None
    is_cron = text is not None and text not in ("@once", "@continuous")
    return CronDataIntervalTimetable(text, timezone="UTC") if text and is_cron else text


def writer_options() -> dict[str, str]:
    """The options of the tables' writers, by Hudi's names: the JSON object in AIRFLOW_HUDI_WRITER_OPTIONS. A table does
    not record them, and the lock that writers use is one of them.
    """
    found: dict[str, str] = json.loads(os.environ.get("AIRFLOW_HUDI_WRITER_OPTIONS") or "{}")
    return found


def sort_columns_param() -> Param:
    """By which columns a clustering sorts, as SORT_COLUMNS; by default as the writers do."""
    return optional_text(
        "Columns to sort rows by, separated by commas; empty: files are joined as they are",
        os.environ.get("AIRFLOW_HUDI_SORT_COLUMNS") or writer_options().get(SORT_COLUMNS),
    )


def dry_run_param() -> Param:
    """Whether the run only reports what it would do; operators take it from DRY_RUN."""
    return Param(False, type="boolean", description="Report what would be done, and write nothing")


def table_params() -> dict[str, Param]:
    """The table and the connections; their defaults are in the environment."""
    return {
        "table": optional_text("Path or URI of the table", os.environ.get("AIRFLOW_HUDI_TABLE")),
        "hudi_conn_id": optional_text("Connection of type hudi", os.environ.get("AIRFLOW_HUDI_CONN_ID")),
        "spark_conn_id": optional_text(
            "Connection of the Spark provider", os.environ.get("AIRFLOW_HUDI_SPARK_CONN_ID")
        ),
    }
