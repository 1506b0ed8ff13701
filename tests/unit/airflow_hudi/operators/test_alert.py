"""Alerts about instants that are pending for too long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_hudi.operators.alert import HudiAlertOperator
from tests.support.fake_spark_submit import context
from tests.support.golden_data import GoldenCase

Golden = Callable[[str, str], GoldenCase]
HOUR = {"alerts": {"pending_age": "1h"}}


def operator(policy: dict[str, Any], *tables: Any) -> HudiAlertOperator:
    return HudiAlertOperator(task_id="alerts", tables=list(map(str, tables)), policy=policy, hudi_conn_id=None)


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_what_is_pending_for_too_long_fails_the_task(golden: Golden, version: str) -> None:
    pending, idle = golden(version, "mor_compaction_requested").table, golden(version, "mor_basic").table
    run = context()
    with pytest.raises(AirflowFailException, match=r"compaction \d+ is requested for \d+ s, longer than 3600 s"):
        operator(HOUR, pending, idle).execute(run)
    (alert,) = run["ti"].pushed["return_value"]["alerts"]
    assert (alert["table"], alert["action"], alert["state"]) == (str(pending), "compaction", "requested")
    assert alert["age_seconds"] > 3600
    assert operator(HOUR, idle).execute(run) == {"alerts": []}
    assert operator({"alerts": {"pending_age": "36500d"}}, pending).execute(run) == {"alerts": []}


def test_a_policy_without_an_age_looks_at_nothing() -> None:
    assert operator({}, "/no/such/table").execute(context()) == {"alerts": []}


def test_bad_input_is_not_tried_again(tmp_path: Any) -> None:
    with pytest.raises(AirflowFailException):
        operator(HOUR, tmp_path).execute(context())
