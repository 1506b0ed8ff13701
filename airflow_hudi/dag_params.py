"""What the ready-to-use DAGs share: params of their form, templates that read them, and their kinds of runs."""

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
"""All but those of a backfill: a table service works on the table as it is now, so one run does what all would do."""

# Variables are read when a task runs, never when a DAG file is parsed.
TABLE = "{{ params.table or var.value.get('hudi_table', '') }}"
HUDI_CONN = "{{ params.hudi_conn_id or var.value.get('hudi_conn_id', 'hudi_default') }}"
SPARK_CONN = "{{ params.spark_conn_id or var.value.get('hudi_spark_conn_id', 'spark_default') }}"
ENGINE = "{{ params.engine or '' }}"
TARGET = {"table": TABLE, "hudi_conn_id": HUDI_CONN, "spark_conn_id": SPARK_CONN, "engine": ENGINE}
"""The arguments of an operator that the params of `table_params` and `work_params` give."""
CONFIRMED = "yes"
MANY_RUNS = 1000
"""Of one DAG at a time, waiting ones among them. Airflow has no word for any number."""
_OF_SCHEDULE = ("scheduled",)
_NO_CRON = (None, "@once", "@continuous")
SORT_COLUMNS = "hoodie.clustering.plan.strategy.sort.columns"
DRY_RUN = "{{ params.dry_run }}"


def optional_text(description: str, default: str | None = None, *, pattern: str | None = None) -> Param:
    """A text that may be left empty. Airflow's form requires a text that may not be null, also an empty one."""
    rules: dict[str, Any] = {} if pattern is None else {"pattern": pattern}
    return Param(default or None, type=["null", "string"], description=description, **rules)


def number_in(variable: str, otherwise: N) -> N:
    """The number from 0 on in an environment variable, else `otherwise`, whose type it has. Raises ConfigError."""
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
    """The template of an argument: the param, else the template in an environment variable, which no param can hold."""
    return f"{{% if params.{param} %}}{{{{ params.{param} }}}}{{% else %}}{os.environ.get(variable, '')}{{% endif %}}"


def interval_schedule(variable: str) -> CronDataIntervalTimetable | str | None:
    """The schedule of a DAG whose runs are of data intervals, in UTC: the cron expression or preset of an environment
    variable; None without one. Of a cron text Airflow itself makes moments, whose interval is empty: the run of
    midnight would have the `ds` of the day that just started. What is no cron (`@once`, `@continuous`) stays a text.
    """
    text = os.environ.get(variable) or None
    return CronDataIntervalTimetable(text, timezone="UTC") if text is not None and text not in _NO_CRON else text


def runs_at_once(schedule: str | None) -> int:
    """Those of one table take turns by claims. A continuous DAG has one run at a time, says Airflow."""
    return 1 if schedule == "@continuous" else MANY_RUNS


def looks_once_where_scheduled(schedule: str | None) -> dict[str, Any]:
    """The arguments by which a sensor does not wait in the runs of a cron schedule, whose next run looks again."""
    return {} if schedule in _NO_CRON else {"pre_execute": _skip_unless_there}


def _skip_unless_there(context: Context) -> None:
    if context["dag_run"].run_type not in _OF_SCHEDULE:
        return
    sensor: Any = context["task"]
    try:
        looked = sensor.poke(context)
    except HudiError:
        return  # which the sensor's own look judges
    if not looked.is_done:
        raise AirflowSkipException("nothing is planned; the next run of the schedule looks again")


def options_of_run(*given: Mapping[str, str]) -> Callable[..., dict[str, Any]]:
    """The options of a task: those given, which may be templates, and over them the param `options`."""

    def options(context: Context, jinja_env: Any) -> dict[str, Any]:
        values = {name: value for some in given for name, value in some.items()}
        rendered = {name: jinja_env.from_string(value).render(context) for name, value in values.items()}
        return {**rendered, **(context["params"].get("options") or {})}

    return options


def writer_options() -> dict[str, str]:
    """The options of the tables' writers, their lock among them: the JSON object in AIRFLOW_HUDI_WRITER_OPTIONS."""
    found: dict[str, str] = json.loads(os.environ.get("AIRFLOW_HUDI_WRITER_OPTIONS") or "{}")
    return found


def sort_columns_param() -> Param:
    """By which columns a clustering sorts, as SORT_COLUMNS; by default as the writers do."""
    return optional_text(
        "Columns to sort rows by, separated by commas; empty: files are joined as they are",
        os.environ.get("AIRFLOW_HUDI_SORT_COLUMNS") or writer_options().get(SORT_COLUMNS),
    )


def required_text(description: str, variable: str, otherwise: str, *, is_scheduled: bool) -> Param:
    """A text without which there is nothing to do. Where an environment variable has a template for it, it may be left
    empty, which means `otherwise`. Airflow refuses a schedule beside a param that is required: without a template, the
    task of a scheduled run says what it needs.
    """
    if os.environ.get(variable):
        return optional_text(f"{description}; empty: {otherwise}")
    if is_scheduled:
        return optional_text(f"{description}; scheduled runs need {variable}")
    return Param("", type="string", minLength=1, description=description)


def confirmation_param(what: str) -> Param:
    """A word to type before something is done that may take rows away; a run without it is refused."""
    return Param("", type="string", pattern=f"^{CONFIRMED}$", description=f"Type {CONFIRMED}: {what}")


def work_params(engine: str | None = None) -> dict[str, Param]:
    """Where the work is done, and further options of it; operators take them by ENGINE and options_of_run."""
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
