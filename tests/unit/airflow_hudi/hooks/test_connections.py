"""A secrets backend that is down, as Airflow meets it, and connections that are nowhere."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from airflow.sdk import BaseHook
from airflow.sdk.bases.secrets_backend import BaseSecretsBackend
from airflow.sdk.exceptions import AirflowFailException, AirflowNotFoundException

from airflow_hudi.exceptions import HudiConnectionUnreadable
from airflow_hudi.hooks.hudi import HudiHook
from airflow_hudi.operators.clean import HudiCleanOperator
from airflow_hudi.permanent_errors import is_permanent, may_pass
from airflow_hudi.triggers.condition import HudiConditionTrigger
from tests.support.fake_spark_submit import context

FAILURES: list[Exception] = []
ASKED: list[str] = []


class Vault(BaseSecretsBackend):
    """Fails, or knows nothing."""

    def get_connection(self, conn_id: str, team_name: str | None = None) -> Any:
        ASKED.append(conn_id)
        for failure in FAILURES:
            raise failure
        return None


@pytest.fixture
def vault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__SECRETS__BACKEND", f"{__name__}.Vault")
    FAILURES.clear()
    ASKED.clear()


def test_a_backend_that_is_down_is_asked_again_by_a_retry(vault: None) -> None:
    FAILURES.append(ConnectionError("no route to vault"))
    task = HudiCleanOperator(task_id="t", table="orders", hudi_conn_id="lake")
    said = r"'lake' was not found.*Vault: ConnectionError: no route to vault"
    with pytest.raises(HudiConnectionUnreadable, match=said) as down:
        task.execute(context())
    assert (is_permanent(down.value), may_pass(down.value)) == (False, True)

    async def event() -> Any:
        trigger = HudiConditionTrigger(
            table="orders", hudi_conn_id="lake", condition={"kind": "commit"}, poll_interval=0.01, max_errors=2
        )
        return (await asyncio.wait_for(anext(trigger.run()), timeout=20)).payload

    assert asyncio.run(event())["is_permanent"] is False


@pytest.mark.parametrize("failure", [None, ValueError("no JSON")])
def test_a_connection_that_no_backend_has_fails_for_good(vault: None, failure: Exception | None) -> None:
    FAILURES.extend([] if failure is None else [failure])
    with pytest.raises(AirflowFailException, match="isn't defined"):
        HudiCleanOperator(task_id="t", table="orders", hudi_conn_id="lake").execute(context())
    assert set(ASKED) == {"lake"}


class KeyedPath:
    """An ObjectStoragePath as that of a provider whose file system needs the connection."""

    def __init__(self, uri: str, conn_id: str) -> None:
        self.conn_id = conn_id

    @property
    def fs(self) -> Any:
        return BaseHook.get_connection(self.conn_id)


def test_the_storages_connection_is_told_apart_too(vault: None, monkeypatch: pytest.MonkeyPatch) -> None:
    fields = {"conn_type": "hudi", "host": "s3://lake/wh", "extra": {"storage_conn_id": "keys"}}
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps(fields))
    monkeypatch.setattr("airflow_hudi.hooks.hudi.ObjectStoragePath", KeyedPath)
    with pytest.raises(AirflowNotFoundException):
        HudiHook("lake").storage("orders")
    FAILURES.append(TimeoutError("slow"))
    with pytest.raises(HudiConnectionUnreadable, match="'keys' was not found"):
        HudiHook("lake").storage("orders")
