"""A verb of one class and one line as an operator of one class and one line: its arguments are the verb's fields."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowSkipException

from airflow_hudi.operators.base import BaseHudiOperator
from airflow_hudi.operators.service import HudiCleanOperator
from airflow_hudi.operators.table_services import HudiTableServicesOperator
from hudi_core.errors import ConfigError
from tests.support.fake_spark_submit import Store, context
from tests.support.golden_data import GoldenCase
from tests.support.toy_operator import HudiWeighOperator
from tests.support.toy_verb import WeighRequest, register_in


def test_its_arguments_are_the_fields_of_the_verb() -> None:
    own: Any = inspect.signature(HudiWeighOperator.__init__).parameters
    assert {name: own[name].default for name in ("unit", "partitions", "dry_run")} == {
        "unit": 1,
        "partitions": (),
        "dry_run": False,
    }
    assert HudiWeighOperator.template_fields == ("unit", "partitions", "dry_run", *BaseHudiOperator.template_fields)
    assert HudiWeighOperator.__doc__ == WeighRequest.__doc__
    task = HudiWeighOperator(task_id="t", table="a", unit="{{ x }}", default_args={"partitions": "p", "engine": "auto"})
    assert (task.unit, task.partitions, task.engine, task.nothing_to_do) == ("{{ x }}", "p", "auto", "skip")  # type: ignore[attr-defined]
    with DAG("d", schedule=None, default_args={"unit": 7}):
        assert HudiWeighOperator(task_id="t", table="a").unit == 7  # type: ignore[attr-defined]


def test_mistakes_are_errors_of_the_import() -> None:
    with pytest.raises(ConfigError, match="unit is 'many'"):
        HudiWeighOperator(task_id="t", table="a", unit="many")
    with pytest.raises(ConfigError, match="dry_run is 'maybe'"):
        HudiWeighOperator(task_id="t", table="a", dry_run="maybe")
    with pytest.raises(TypeError, match="missing keyword argument 'table'"):
        HudiWeighOperator(task_id="t")
    with pytest.raises(TypeError, match="untis"):
        HudiWeighOperator(task_id="t", table="a", untis=2)


def test_names_of_a_users_own_class_stay_its_own() -> None:
    class OwnOperator(HudiCleanOperator):
        links: ClassVar[tuple[str, ...]] = ()
        start_from_trigger: bool = False

        def __init__(self, *args: Any, mine: str = "", **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.request, self.mine = "http", mine

    task: Any = OwnOperator(task_id="t", table="a", mine="b")
    assert (task.request, task.mine, task.mode) == ("http", "b", "both")
    assert task.tables_of_work == ("a",)


def test_a_task_of_many_tables_takes_no_single_one() -> None:
    with pytest.raises(TypeError, match=r"no argument 'table' .did you mean 'tables'"):
        HudiTableServicesOperator(task_id="t", policy="p.yaml", table="sales/orders")
    task: Any = HudiTableServicesOperator(task_id="t", policy="p.yaml", default_args={"table": "of other tasks"})
    assert task.tables == ()


def test_it_runs(golden: Callable[[str, str], GoldenCase], tmp_path: Path) -> None:
    register_in(tmp_path)
    table = golden("9", "mor_basic").table
    given: dict[str, Any] = {
        "task_id": "t",
        "table": str(table),
        "hudi_conn_id": None,
        "engine": "local",
        "env_vars": {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])},
    }
    weight = HudiWeighOperator(**given).execute(context(Store()))
    assert (weight["table"], weight["bytes"] > 1000, weight["reason"]) == (str(table), True, None)
    in_units = HudiWeighOperator(**given, unit="1000", dry_run="true").execute(context(Store()))
    assert (in_units["bytes"], in_units["dry_run"]) == (weight["bytes"] // 1000, True)
    given["engine"] = "spark"  # which is looked for first, and not started
    nothing = HudiWeighOperator(**given, partitions="nowhere", nothing_to_do="succeed").execute(context(Store()))
    assert (nothing["bytes"], nothing["reason"]) == (0, "the table has no partition")
    with pytest.raises(AirflowSkipException, match="no partition"):
        HudiWeighOperator(**given, partitions=["nowhere"]).execute(context(Store()))
