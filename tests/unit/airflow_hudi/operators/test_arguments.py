"""What Airflow asks of every operator: templated arguments are kept as given, and nothing is done at parse time."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from airflow.sdk import BaseOperator

from airflow_hudi.get_provider_info import get_provider_info
from airflow_hudi.operators.alert import HudiAlertOperator
from airflow_hudi.operators.table_services import HudiTableServicesOperator


def operators() -> list[type[BaseOperator]]:
    found: list[type[BaseOperator]] = []
    for name in get_provider_info()["operators"][0]["python-modules"]:
        members = vars(importlib.import_module(name)).values()
        found += [
            value
            for value in members
            if isinstance(value, type) and issubclass(value, BaseOperator) and value.__module__ == name
            if not value.__name__.startswith("Base")
        ]
    return found


def named(operator: Any) -> str:
    """The argument that names what the operator works on."""
    return "tables" if operator in (HudiTableServicesOperator, HudiAlertOperator) else "table"


@pytest.mark.parametrize("operator", operators())
def test_template_fields_are_arguments_kept_as_given(operator: Any) -> None:
    given = {name: f"{{{{ {name} }}}}" for name in operator.template_fields}
    made = operator(task_id="task", **given)
    assert {name: getattr(made, name) for name in operator.template_fields} == given
    of_jobs = set() if operator is HudiAlertOperator else {"spark_conn_id", "options"}
    assert {named(operator), "hudi_conn_id", *of_jobs} <= set(operator.template_fields)


def test_all_of_them_are_there() -> None:
    services = {
        "Archive",
        "Clean",
        "Clustering",
        "Compaction",
        "Indexing",
        "LogCompaction",
        "Metadata",
        "Restore",
        "Rollback",
        "Savepoint",
    }
    writes = {"CreateTable", "DeletePartition", "InsertOverwrite", "Write"}
    names = services | writes | {"Alert", "Doctor", "ProbeStore", "TableServices", "Takeover", "Unschedule"}
    assert {operator.__name__ for operator in operators()} == {f"Hudi{name}Operator" for name in names}


@pytest.mark.parametrize("operator", operators())
def test_every_argument_of_its_own_is_documented(operator: Any) -> None:
    base = {name for parent in operator.__mro__[1:] for name in getattr(parent, "template_fields", ())}
    own = set(operator.template_fields) - base
    assert [name for name in own if f":param {name}:" not in (operator.__doc__ or "")] == []


@pytest.mark.parametrize("operator", [operator for operator in operators() if "mode" in operator.template_fields])
def test_what_is_planned_is_run_and_what_is_due_is_planned_unless_a_mode_says_otherwise(operator: Any) -> None:
    assert operator(task_id="task", **{named(operator): "/nowhere"}).mode == "both"


@pytest.mark.parametrize("operator", operators())
def test_an_operator_is_at_most_three_levels_deep(operator: Any) -> None:
    assert sum(parent.__module__.startswith("airflow_hudi.") for parent in operator.__mro__) <= 3


@pytest.mark.parametrize("operator", operators())
def test_on_kill_before_a_job_does_nothing(operator: Any) -> None:
    more = {"policy": {}} if operator is HudiAlertOperator else {}
    operator(task_id="task", **{named(operator): "/nowhere"}, **more).on_kill()
