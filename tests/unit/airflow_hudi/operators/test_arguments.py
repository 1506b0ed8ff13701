"""What Airflow asks of every operator: templated arguments are kept as given, and nothing is done at parse time."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from airflow.sdk import BaseOperator

from airflow_hudi.get_provider_info import get_provider_info


def operators() -> list[type[BaseOperator]]:
    found: list[type[BaseOperator]] = []
    for name in get_provider_info()["operators"][0]["python-modules"]:
        members = vars(importlib.import_module(name)).values()
        found += [
            value
            for value in members
            if isinstance(value, type) and issubclass(value, BaseOperator) and value.__module__ == name
        ]
    return found


@pytest.mark.parametrize("kind", operators())
def test_template_fields_are_arguments_kept_as_given(kind: Any) -> None:
    given = {name: f"{{{{ {name} }}}}" for name in kind.template_fields}
    made = kind(task_id="task", **given)
    assert {name: getattr(made, name) for name in kind.template_fields} == given
    assert {"table", "hudi_conn_id", "spark_conn_id", "options"} <= set(kind.template_fields)


def test_all_of_them_are_there() -> None:
    services = {"Archive", "Clean", "Compaction", "Indexing", "Metadata", "Restore", "Rollback", "Savepoint"}
    names = services | {"Doctor", "ProbeStore", "Takeover", "Unschedule"}
    assert {kind.__name__ for kind in operators()} == {f"Hudi{name}Operator" for name in names}


@pytest.mark.parametrize("kind", operators())
def test_every_argument_of_its_own_is_documented(kind: Any) -> None:
    base = {name for parent in kind.__mro__[1:] for name in getattr(parent, "template_fields", ())}
    own = set(kind.template_fields) - base
    assert [name for name in own if f":param {name}:" not in (kind.__doc__ or "")] == []


@pytest.mark.parametrize("kind", operators())
def test_on_kill_before_a_job_does_nothing(kind: Any) -> None:
    kind(task_id="task", table="/nowhere").on_kill()
