"""Params for the trigger form of the ready-to-use DAGs, templates that read them, and the DAGs' kinds of runs."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from airflow.sdk import CronDataIntervalTimetable, Param
from airflow.sdk.exceptions import AirflowSkipException
from airflow.utils.types import DagRunType

from hudi_core.config.engine_config import ENGINES
from hudi_core.errors import ConfigError, HudiError

if TYPE_CHECKING:
    from airflow.sdk import Context

N = TypeVar("N", int, float)

INSTANT_PATTERN = r"^[0-9]{14,20}$"

RUN_TYPES = tuple(kind for kind in DagRunType if kind is not DagRunType.BACKFILL_JOB)
"""All kinds of runs but backfills: a service works on the table as it is now, so one run does a backfill's work."""

# Variables are read when a task runs, never when a DAG file is parsed.
TABLE = "{{ params.table or var.value.get('hudi_table', '') }}"
HUDI_CONN = "{{ params.hudi_conn_id or var.value.get('hudi_conn_id', 'hudi_default') }}"
SPARK_CONN = "{{ params.spark_conn_id or var.value.get('hudi_spark_conn_id', 'spark_default') }}"
ENGINE = "{{ params.engine or '' }}"
TARGET = {"table": TABLE, "hudi_conn_id": HUDI_CONN, "spark_conn_id": SPARK_CONN, "engine": ENGINE}
"""Arguments of an operator, as templates that read the params of `table_params` and `work_params`."""
CONFIRMED = "yes"
MANY_RUNS = 1000
"""The most runs of one DAG at a time, with the waiting ones. Airflow has no value for "any number"."""
_OF_SCHEDULE = ("scheduled",)
_NO_CRON = (None, "@once", "@continuous")
SORT_COLUMNS = "hoodie.clustering.plan.strategy.sort.columns"
DRY_RUN = "{{ params.dry_run }}"


def optional_text(description: str, default: str | None = None, *, pattern: str | None = None) -> Param:
    """Returns a param for a text that may be empty. Airflow's form requires an entry unless the type includes null."""
    rules: dict[str, Any] = {} if pattern is None else {"pattern": pattern}
    return Param(default or None, type=["null", "string"], description=description, **rules)


def number_in(variable: str, otherwise: N) -> N:
    """Returns the number in an environment variable, else `otherwise`. The number has the type of `otherwise`. Raises
    ConfigError for anything but a number from 0 on.
    """
    text = os.environ.get(variable) or str(otherwise)
    try:
        number = type(otherwise)(text)
    except ValueError:
        number = type(otherwise)(-1)
    if not 0 <= number < math.inf:
        kind = "whole number" if isinstance(otherwise, int) else "number"
        raise ConfigError(f"{variable} is {text!r}", remedy=f"give a {kind} from 0 on, without a unit")
    return number


def param_or_template(param: str, variable: str) -> str:
    """Returns the template of an argument: the value of the param, else the template in an environment variable.
    Airflow does not render a template in a param's value.
    """
    return f"{{% if params.{param} %}}{{{{ params.{param} }}}}{{% else %}}{os.environ.get(variable, '')}{{% endif %}}"


def interval_schedule(variable: str) -> CronDataIntervalTimetable | str | None:
    """Returns the schedule in a variable, with data intervals in UTC, or None. Airflow gives a cron text no intervals:
    the run of midnight would have the `ds` of the day that just started. Other texts (`@once`) stay as they are.
    """
    text = os.environ.get(variable) or None
    return CronDataIntervalTimetable(text, timezone="UTC") if text is not None and text not in _NO_CRON else text


def runs_at_once(schedule: str | None) -> int:
    """Returns how many runs may run at a time: one of a continuous DAG. Runs for one table take turns by claims."""
    return 1 if schedule == "@continuous" else MANY_RUNS


def looks_once_where_scheduled(schedule: str | None) -> dict[str, Any]:
    """Returns the arguments by which a sensor looks once in runs of a cron schedule. The next run looks again."""
    return {} if schedule in _NO_CRON else {"pre_execute": _skip_unless_there}


def _skip_unless_there(context: Context) -> None:
    if context["dag_run"].run_type not in _OF_SCHEDULE:
        return
    sensor: Any = context["task"]
    try:
        looked = sensor.poke(context)
    except HudiError:
        return  # The sensor looks itself, and handles the error.
    if not looked.is_done:
        raise AirflowSkipException("nothing is planned; the next run of the schedule looks again")


def options_of_run(*given: Mapping[str, str]) -> Callable[..., dict[str, Any]]:
    """Returns a function that makes the options of a task: the given ones, which may be templates, and the param
    `options`, which overrides them.
    """

    def options(context: Context, jinja_env: Any) -> dict[str, Any]:
        values = {name: value for some in given for name, value in some.items()}
        rendered = {name: jinja_env.from_string(value).render(context) for name, value in values.items()}
        return {**rendered, **(context["params"].get("options") or {})}

    return options


def writer_options() -> dict[str, str]:
    """Returns the options of the tables' writers, with their lock: the JSON object in AIRFLOW_HUDI_WRITER_OPTIONS."""
    found: dict[str, str] = json.loads(os.environ.get("AIRFLOW_HUDI_WRITER_OPTIONS") or "{}")
    return found


def sort_columns_param() -> Param:
    """Returns the param for the value of SORT_COLUMNS: the columns by which a clustering sorts. The default is
    AIRFLOW_HUDI_SORT_COLUMNS, else the writers' option.
    """
    return optional_text(
        "Columns to sort rows by, separated by commas; empty: files are joined as they are",
        os.environ.get("AIRFLOW_HUDI_SORT_COLUMNS") or writer_options().get(SORT_COLUMNS),
    )


def required_text(description: str, variable: str, otherwise: str, *, is_scheduled: bool) -> Param:
    """Returns a param for a text that the work needs. The text may be empty where an environment variable has a
    template for it; an empty text means `otherwise`. It may also be empty in a DAG with a schedule, because Airflow
    refuses a schedule beside a required param: the task of a scheduled run then says what it needs.
    """
    if os.environ.get(variable):
        return optional_text(f"{description}; empty: {otherwise}")
    if is_scheduled:
        return optional_text(f"{description}; scheduled runs need {variable}")
    return Param("", type="string", minLength=1, description=description)


def confirmation_param(what: str) -> Param:
    """Returns a param for a word to type before a run that may delete rows. Airflow refuses a run without the word."""
    return Param("", type="string", pattern=f"^{CONFIRMED}$", description=f"Type {CONFIRMED}: {what}")


def work_params(engine: str | None = None) -> dict[str, Param]:
    """Returns the params for the engine and for further options. Operators take them by ENGINE and options_of_run."""
    return {
        "engine": Param(
            engine or None,
            type=["null", "string"],
            enum=[None, *ENGINES],
            values_display={"null": "as the connection says, else Spark"},
            description="Where the work is done; auto: small plans beside the task, others on Spark",
        ),
        "options": Param(
            {},
            type=["object", "null"],
            additionalProperties={"type": ["string", "number", "boolean"]},
            description="Further options by Hudi's names, which count over all others; no secrets",
        ),
    }


def dry_run_param() -> Param:
    """Returns the param that makes a run only report what it would do. Operators take it by DRY_RUN."""
    return Param(False, type="boolean", description="Report what would be done, and write nothing")


def table_params() -> dict[str, Param]:
    """Returns the params for the table and the connections. Their defaults are in the environment."""
    return {
        "table": optional_text("Path or URI of the table", os.environ.get("AIRFLOW_HUDI_TABLE")),
        "hudi_conn_id": optional_text("Connection of type hudi", os.environ.get("AIRFLOW_HUDI_CONN_ID")),
        "spark_conn_id": optional_text(
            "Connection of the Spark provider", os.environ.get("AIRFLOW_HUDI_SPARK_CONN_ID")
        ),
    }
