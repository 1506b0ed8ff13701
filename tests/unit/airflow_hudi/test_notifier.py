"""Messages to a webhook, which is a real server."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

from airflow_hudi.notifier import HudiNotifier
from airflow_hudi.operators.service import HudiCleanOperator
from airflow_hudi.operators.table_services import HudiTableServicesOperator
from airflow_hudi.results import FinishedWork
from airflow_hudi.task_fate import HudiNotificationFailed
from tests.support.fake_spark_submit import Store, context
from tests.support.golden_data import GoldenCase

Golden = Callable[[str, str], GoldenCase]


class Webhook:
    """Keeps what is posted, and answers with `status`."""

    def __init__(self) -> None:
        self.posted: list[tuple[str, Any]] = []
        self.status = 200
        webhook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                webhook.posted.append((self.path, json.loads(body)))
                self.send_response(webhook.status)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Nothing on stderr."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)


@pytest.fixture
def webhook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Webhook]:
    found = Webhook()
    thread = Thread(target=found.server.serve_forever)
    thread.start()
    connection = {
        "conn_type": "http",
        "host": f"http://127.0.0.1:{found.server.server_port}/",
        "password": "/services/T0/the-secret",
    }
    monkeypatch.setenv("AIRFLOW_CONN_HUDI_WEBHOOK", json.dumps(connection))
    yield found
    found.server.shutdown()
    thread.join()
    found.server.server_close()


def failed(table: str) -> Any:
    task = HudiCleanOperator(task_id="clean", table=table, hudi_conn_id=None)
    ti = SimpleNamespace(dag_id="maintenance", task_id="clean", run_id="r1", try_number=2)
    return {"ti": ti, "task": task, "exception": RuntimeError("no space at s3://key:hidden@lake/t")}


def test_a_failure_is_told_with_what_is_pending(golden: Golden, webhook: Webhook) -> None:
    table = golden("9", "mor_compaction_requested").table
    HudiNotifier(hudi_conn_id=None)(failed(str(table)))
    ((path, message),) = webhook.posted
    assert path == "/services/T0/the-secret"
    assert [message[name] for name in ("dag_id", "task_id", "run_id", "try_number")] == [
        "maintenance",
        "clean",
        "r1",
        2,
    ]
    ((pending,),) = [item["pending"] for item in message["tables"]]
    assert (pending["action"], pending["state"]) == ("compaction", "requested")
    assert pending["age_seconds"] > 0
    first, second = message["text"].splitlines()
    assert first.startswith("maintenance.clean of r1: no space at ")
    assert "hidden" not in json.dumps(message)
    assert second.startswith(f"{table}: compaction {pending['instant']} is requested for ")


def test_what_was_done_is_told_with_a_link_to_the_run(
    golden: Golden, submitted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the task failed, on another table."""
    table = golden("9", "mor_compaction_requested").table
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example/")
    services = HudiTableServicesOperator(
        task_id="services", tables=[str(table), "/no/table"], services="compaction", hudi_conn_id=None, mode="execute"
    )
    with pytest.raises(AirflowFailException, match="1 of 2 runs failed"):
        services.execute(context(Store()))
    ti = RuntimeTaskInstance.model_construct(
        dag_id="maintenance", task_id="services", run_id="r 1", map_index=-1, try_number=2
    )
    message = HudiNotifier(text="late").message({"ti": ti, "task": services})
    (done,) = message["done"]
    instant = done["instant"]
    written = [file.stat().st_size for file in table.glob(f"**/*_{instant}.parquet") if ".hoodie" not in file.parts]
    assert done == {
        "table": str(table),
        "service": "compaction",
        "instant": instant,
        "files_deleted": 0,
        "files_written": len(written),
        "bytes_written": sum(written),
    }
    link = "https://airflow.example/dags/maintenance/runs/r%201/tasks/services?try_number=2"
    assert message["url"] == link
    assert message["text"].splitlines()[:3] == [
        *("late", link),
        f"{table}: compaction {instant}: {len(written)} files written ({sum(written)} bytes)",
    ]


def test_only_what_this_try_did_is_told() -> None:
    task = HudiCleanOperator(task_id="clean", table="/no/table", hudi_conn_id=None)
    task.works = [
        FinishedWork("/t", "compaction", "1", earlier=True, files_written=3),
        FinishedWork("/t", "clean", "2", files_written=0, files_deleted=12),
        *(FinishedWork("/t", "archive", None) for _ in range(20)),
    ]
    message = HudiNotifier(text="done").message({"task": task})
    assert message["text"].splitlines()[1:-1] == [
        *("/t: clean 2: 12 files deleted", *["/t: archive: done"] * 19, "and 1 more")
    ]


def test_other_tables_and_words(golden: Golden, webhook: Webhook) -> None:
    idle = golden("9", "cow_basic").table
    HudiNotifier(hudi_conn_id=None, tables=[str(idle), "/no/table"], text="late: {{ ti.run_id }}")(failed("/other"))
    ((_, message),) = webhook.posted
    first, second, third = message["text"].splitlines()
    assert (first, second) == ("late: r1", f"{idle}: nothing is pending")
    assert third.startswith("/no/table: ")
    assert message["tables"][1]["error"]


def test_a_message_is_sent_though_the_connection_is_missing(webhook: Webhook) -> None:
    """That may be why the task failed."""
    run = failed("s3://lake/orders")
    run["task"].hudi_conn_id = "hudi_default"
    HudiNotifier(webhook_conn_id="hudi_webhook")(run)
    ((_, message),) = webhook.posted
    (table,) = message["tables"]
    assert table["error"].startswith("AirflowNotFoundException: ")
    assert "s3://lake/orders: AirflowNotFoundException: " in message["text"]


def test_a_message_is_sent_though_the_tasks_policy_is_wrong(webhook: Webhook) -> None:
    run = failed("/unused")
    run["task"] = HudiTableServicesOperator(task_id="services", policy="/no/such/file", hudi_conn_id=None)
    HudiNotifier()(run)
    ((_, message),) = webhook.posted
    assert (message["tables"], "no space" in message["text"]) == ([], True)


def test_tables_are_looked_at_by_the_tasks_connection(
    golden: Golden, webhook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = golden("9", "mor_compaction_requested").table
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps({"conn_type": "hudi", "host": str(table.parent)}))
    run = failed(table.name)
    run["task"].hudi_conn_id = "lake"
    HudiNotifier()(run)
    HudiNotifier(hudi_conn_id=None)(run)
    (_, first), (_, second) = webhook.posted
    assert [item["action"] for item in first["tables"][0]["pending"]] == ["compaction"]
    assert "not absolute" in second["tables"][0]["error"]


def test_templates_of_a_task_that_never_ran_are_rendered(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    """The DAG processor sends the message of a task whose worker died, and renders no task."""
    table = golden("9", "mor_compaction_requested").table
    for name in ("LAKE", "HUDI_DEFAULT"):
        monkeypatch.setenv(f"AIRFLOW_CONN_{name}", json.dumps({"conn_type": "hudi", "host": str(table.parent)}))
    run = failed("/unused") | {"lake": "lake", "name": table.name}
    raw = "{{ nothing.there }}"
    for conn_id, one, many, explicit in (
        ("{{ lake }}", "{{ name }}", "{{ name }}, {{ name }}", ()),
        (raw, "{{ name }}", ["{{ name }}"], ()),
        ("{{ lake }}", raw, raw, [table.name]),
        (raw, raw, [raw], [table.name]),
    ):
        clean = HudiCleanOperator(task_id="clean", table=one, hudi_conn_id=conn_id)
        services = HudiTableServicesOperator(task_id="services", tables=many, hudi_conn_id=conn_id)
        for task in (clean, services):
            message = HudiNotifier(tables=explicit).message(run | {"task": task})
            assert [(item["error"], len(item["pending"])) for item in message["tables"]] == [(None, 1)]
            assert task.hudi_conn_id == conn_id
            if explicit:
                assert HudiNotifier().message(run | {"task": task})["tables"] == []


def test_a_webhook_that_refuses_is_an_error_without_its_address(
    webhook: Webhook, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    webhook.status = 403
    notifier = HudiNotifier(hudi_conn_id=None, tables=["/no/table"])
    with pytest.raises(HudiNotificationFailed, match="answered 403") as error:
        notifier.notify(failed("/t"))
    assert "the-secret" not in str(error.value)
    monkeypatch.setenv("AIRFLOW_CONN_CLOSED", json.dumps({"host": "http://127.0.0.1:1", "password": "the-secret"}))
    with (
        caplog.at_level(logging.INFO),
        pytest.raises(HudiNotificationFailed, match="cannot be reached: ConnectError") as error,
    ):
        HudiNotifier(hudi_conn_id=None, webhook_conn_id="closed").notify(failed("/t"))
    assert error.value.__cause__ is None
    assert "the-secret" not in caplog.text


async def test_in_the_triggerer(webhook: Webhook) -> None:
    await HudiNotifier(hudi_conn_id=None, text="a deadline").async_notify({})
    ((_, message),) = webhook.posted
    assert (message["text"], message["tables"]) == ("a deadline", [])
