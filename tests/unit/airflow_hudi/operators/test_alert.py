"""Alerts about instants that are pending for too long."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_hudi.operators import alert
from airflow_hudi.operators.alert import HudiAlertOperator
from airflow_hudi.task_fate import HudiTableUnreadable
from airflow_hudi.timeline_reader import Look, TimelineReader
from hudi_core.errors import StorageError, TimelineError
from hudi_core.timeline.timeline import LONG_AGO
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
    (found,) = run["ti"].pushed["return_value"]["alerts"]
    assert (found["table"], found["action"], found["state"]) == (str(pending), "compaction", "requested")
    assert found["age_seconds"] > 3600
    nothing = {"alerts": [], "errors": []}
    assert operator(HOUR, idle).execute(run) == nothing
    assert operator({"alerts": {"pending_age": "36500d"}}, pending).execute(run) == nothing
    always = {**HOUR, "quiet_hours": ["00:00-12:00", "12:00-00:00"]}
    assert operator(always, pending).execute(run) == nothing


def test_the_policy_is_that_of_the_whole_address(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the entry has it, and the task a name below the connection's base path. What has none hides no alert."""
    table = golden("9", "mor_compaction_requested").table
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps({"conn_type": "hudi", "host": str(table.parent)}))
    policy = {"policies": {"one": HOUR, "two": {}}, "tables": [{"table": str(table), "policy": "one"}]}
    task = HudiAlertOperator(task_id="a", tables=["none", table.name], policy=policy, hudi_conn_id="lake")
    run = context()
    with pytest.raises(AirflowFailException, match="longer than 3600 s"):
        task.execute(run)
    found = run["ti"].pushed["return_value"]
    assert [item["table"] for kind in ("alerts", "errors") for item in found[kind]] == [table.name, "none"]
    assert "no policy is for" in found["errors"][0]["error"]


def test_a_policy_without_an_age_looks_at_nothing() -> None:
    assert operator({}, "/no/such/table").execute(context()) == {"alerts": [], "errors": []}


def test_bad_input_is_not_tried_again(tmp_path: Any) -> None:
    with pytest.raises(AirflowFailException):
        operator(HOUR, tmp_path).execute(context())


def test_an_instant_whose_time_is_no_date_is_an_alert_and_hides_no_other(golden: Golden) -> None:
    odd, pending = golden("6", "mor_basic").table, golden("9", "mor_compaction_requested").table
    (odd / ".hoodie" / "00000000000002.compaction.requested").touch()
    run = context()
    with pytest.raises(AirflowFailException, match="compaction 00000000000002 is requested for long"):
        operator(HOUR, odd, pending).execute(run)
    found = run["ti"].pushed["return_value"]
    assert [item["table"] for item in found["alerts"]] == [str(odd), str(pending)]
    assert (found["alerts"][0]["age_seconds"], found["errors"]) == (LONG_AGO, [])


def test_a_timeline_that_cannot_be_judged_hides_no_alert(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    odd, pending = golden("8", "mor_compaction_requested").table, golden("9", "mor_compaction_requested").table
    judge = alert.pending_longer_than

    def damaged(timeline: Any, seconds: int, now: Any, zone: str) -> Any:
        if not calls:
            calls.append(zone)
            raise TimelineError("no such time")
        return judge(timeline, seconds, now, zone)

    calls: list[str] = []
    monkeypatch.setattr(alert, "pending_longer_than", damaged)
    run = context()
    with pytest.raises(AirflowFailException, match="no such time"):
        operator(HOUR, odd, pending).execute(run)
    found = run["ti"].pushed["return_value"]
    assert [item["table"] for kind in ("alerts", "errors") for item in found[kind]] == [str(pending), str(odd)]


def test_a_table_that_cannot_be_looked_at_hides_no_alert(
    golden: Golden, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pending, idle = golden("9", "mor_compaction_requested").table, golden("9", "mor_basic").table
    run = context()
    with pytest.raises(AirflowFailException, match=rf"{pending}: .*longer than 3600 s\n{tmp_path}: "):
        operator(HOUR, tmp_path, pending).execute(run)
    found = run["ti"].pushed["return_value"]
    assert [item["table"] for kind in ("alerts", "errors") for item in found[kind]] == [str(pending), str(tmp_path)]
    look = TimelineReader.look

    def slow(self: TimelineReader) -> Look:
        if self.storage.uri == str(idle):
            raise StorageError("slow down")
        return look(self)

    monkeypatch.setattr(TimelineReader, "look", slow)
    with pytest.raises(HudiTableUnreadable, match="slow down"):
        operator({"alerts": {"pending_age": "36500d"}}, idle, pending).execute(run)
