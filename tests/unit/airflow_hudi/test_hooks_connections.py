"""A secrets backend that is down, as Airflow meets it, and connections that are nowhere."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, cast

import pytest
import requests
from airflow.sdk import BaseHook, Connection
from airflow.sdk.bases.secrets_backend import BaseSecretsBackend
from airflow.sdk.exceptions import AirflowFailException, AirflowNotFoundException
from airflow.sdk.io.fs import _register_filesystems
from fsspec import AbstractFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from airflow_hudi.hooks import HudiHook
from airflow_hudi.operators.service import HudiCleanOperator
from airflow_hudi.task_fate import HudiConnectionUnreadable, is_permanent, may_pass
from airflow_hudi.triggers.wait import HudiConditionTrigger
from tests.support.fake_spark_submit import context
from tests.support.submission_operators import ROOT, providers

ANSWERS: list[Any] = []
"""An error or a connection for each question; the last one is for all further ones."""
ASKED: list[str] = []
DOWN = ConnectionError("no route to vault, token s.SECRET")


class Vault(BaseSecretsBackend):
    """Fails, knows a connection, or by default none."""

    def get_connection(self, conn_id: str, team_name: str | None = None) -> Any:
        ASKED.append(conn_id)
        answer = ANSWERS[min(len(ASKED), len(ANSWERS)) - 1] if ANSWERS else None
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def vault(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Airflow keeps a backend that it has loaded: it knows nothing afterwards."""
    monkeypatch.setenv("AIRFLOW__SECRETS__BACKEND", f"{__name__}.Vault")
    ASKED.clear()
    yield
    ANSWERS.clear()


def test_a_backend_that_is_down_is_asked_again_by_a_retry(vault: None) -> None:
    ANSWERS.append(DOWN)
    task = HudiCleanOperator(task_id="t", table="orders", hudi_conn_id="lake")
    said = r"'lake' was not found.*Vault fails with ConnectionError \(a retry"
    with pytest.raises(HudiConnectionUnreadable, match=said) as down:
        task.execute(context())
    assert "SECRET" not in str(down.value)
    assert (is_permanent(down.value), may_pass(down.value)) == (False, True)

    async def event() -> Any:
        trigger = HudiConditionTrigger(
            table="orders", hudi_conn_id="lake", condition={"kind": "commit"}, poll_interval=0.01, max_errors=2
        )
        return (await asyncio.wait_for(anext(trigger.run()), timeout=20)).payload

    assert asyncio.run(event())["is_permanent"] is False


def test_a_backend_that_failed_once_is_asked_again_by_a_retry(vault: None) -> None:
    ANSWERS.extend([TimeoutError("glitch"), Connection(conn_id="lake", conn_type="hudi", host="/wh")])
    with pytest.raises(HudiConnectionUnreadable, match="'lake' was not found, and a secrets backend has it now: Vault"):
        HudiCleanOperator(task_id="t", table="orders", hudi_conn_id="lake").execute(context())


def test_the_page_of_a_proxy_is_no_answer_of_a_backend(vault: None) -> None:
    response = requests.Response()
    response.status_code, response._content = 502, b"<html>Bad Gateway</html>"
    with pytest.raises(requests.exceptions.JSONDecodeError) as page:
        response.json()
    ANSWERS.append(page.value)
    with pytest.raises(HudiConnectionUnreadable, match="Vault fails with JSONDecodeError"):
        HudiCleanOperator(task_id="t", table="orders", hudi_conn_id="lake").execute(context())


@pytest.mark.parametrize("failure", [None, ValueError("no JSON")])
def test_a_connection_that_no_backend_has_fails_for_good(vault: None, failure: Exception | None) -> None:
    ANSWERS.append(failure)
    with pytest.raises(AirflowFailException, match="isn't defined"):
        HudiCleanOperator(task_id="t", table="orders", hudi_conn_id="lake").execute(context())
    assert set(ASKED) == {"lake"}


def without_credentials(conn_id: str | None) -> AbstractFileSystem:
    """As Amazon's provider opens S3 where it does not find the connection."""
    with suppress(AirflowNotFoundException):
        BaseHook.get_connection(conn_id or "")
    return MemoryFileSystem()


def test_the_storages_connection_is_told_apart_too(vault: None, monkeypatch: pytest.MonkeyPatch) -> None:
    fields = {"conn_type": "hudi", "host": "s3://lake/wh", "extra": {"storage_conn_id": "keys"}}
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps(fields))
    monkeypatch.setitem(cast("dict[str, Any]", _register_filesystems()), "s3", without_credentials)
    assert HudiHook("lake").storage("orders").list_names("") == []
    ANSWERS.append(DOWN)
    with pytest.raises(HudiConnectionUnreadable, match="'keys' was not found"):
        HudiHook("lake").storage("orders")


CREDENTIALS = """
import airflow.providers
from airflow.sdk.bases.secrets_backend import BaseSecretsBackend
from airflow_hudi.hooks import HudiHook

airflow.providers.__path__ = [*airflow.providers.__path__, PROVIDERS + "/airflow/providers"]

class Down(BaseSecretsBackend):
    def get_connection(self, conn_id, team_name=None):
        raise TimeoutError("slow")

def said():
    try:
        return HudiHook("lake").credentials("orders")
    except Exception as error:
        return error

from airflow.sdk.execution_time import supervisor
known = supervisor.ensure_secrets_backend_loaded()
print("FOUND", type(said()).__name__)
supervisor.ensure_secrets_backend_loaded = lambda: [Down(), *known]
print("FOUND", type(said()).__name__)
"""


def test_credentials_are_not_taken_for_missing_while_a_backend_is_down() -> None:
    """By Amazon's own hook, which the tests' Python lacks."""
    fields = {"conn_type": "hudi", "host": "s3://lake/wh", "extra": {"storage_conn_id": "keys"}}
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
        "AIRFLOW_CONN_LAKE": json.dumps(fields),
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "spark_jobs"), str(providers())]),
    }
    command = [sys.executable, "-c", f"PROVIDERS = {str(providers())!r}\n{CREDENTIALS}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    found = [line for line in done.stdout.splitlines() if line.startswith("FOUND")]
    assert found == ["FOUND CredentialsMissingError", "FOUND HudiConnectionUnreadable"], done.stderr
