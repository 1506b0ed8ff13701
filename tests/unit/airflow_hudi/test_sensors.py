"""What all sensors have in common."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import (
    AirflowFailException,
    AirflowRescheduleException,
    AirflowSensorTimeout,
    AirflowSkipException,
    TaskDeferred,
)
from airflow.serialization.serialized_objects import DagSerialization

from airflow_hudi.sensors import (
    BaseHudiSensor,
    HudiCommitSensor,
    HudiInstantSensor,
    HudiNoPendingSensor,
    HudiPartitionSensor,
)
from airflow_hudi.task_fate import HudiSensorFailed
from airflow_hudi.timeline_reader import Look, TimelineReader
from airflow_hudi.triggers.wait import HudiConditionTrigger, condition_of
from hudi_core.errors import CorruptFileError, CredentialsMissingError, FormatError, StorageError, UnsupportedError
from tests.support.counting_storage import CountingStorage
from tests.support.fake_spark_submit import Store

FAR = "2100-01-01"
UNMET: dict[type[BaseHudiSensor], dict[str, Any]] = {
    HudiInstantSensor: {"action": "clean", "state": "completed", "completed_after": FAR},
    HudiNoPendingSensor: {"pending_age": "1h", "action": "clean"},
    HudiCommitSensor: {"completed_after": FAR},
    HudiPartitionSensor: {"partitions": "day=1", "completed_after": FAR},
}
"""Each sensor, and what the table of the tests does not have."""
every_sensor = pytest.mark.parametrize("kind", UNMET)


@pytest.fixture
def unmet(table: Path, put: Callable[..., None]) -> Callable[..., BaseHudiSensor]:
    put("20260102000000000.clean.requested")

    def make(kind: type[BaseHudiSensor], **arguments: Any) -> BaseHudiSensor:
        return kind(**{"task_id": "wait", "table": str(table), "hudi_conn_id": None, **UNMET[kind], **arguments})

    return make


@every_sensor
def test_defers_to_a_trigger_of_the_same_condition(
    unmet: Callable[..., BaseHudiSensor], kind: type[BaseHudiSensor], table: Path
) -> None:
    sensor = unmet(kind, poke_interval=7, timeout=90)
    assert sensor.deferrable
    with pytest.raises(TaskDeferred) as deferred:
        sensor.execute({})
    trigger = deferred.value.trigger
    assert isinstance(trigger, HudiConditionTrigger)
    assert (trigger.table, trigger.hudi_conn_id, trigger.poll_interval) == (str(table), None, 7.0)
    assert condition_of(trigger.condition).to_json() == sensor.condition().to_json()
    assert (deferred.value.timeout, deferred.value.method_name) == (timedelta(seconds=90), "execute_complete")


@every_sensor
def test_a_poke_is_one_listing(
    unmet: Callable[..., BaseHudiSensor],
    kind: type[BaseHudiSensor],
    table: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    storage = CountingStorage(table)
    monkeypatch.setattr("airflow_hudi.hooks.HudiHook.storage", lambda *_: storage)
    monkeypatch.setattr("airflow_hudi.timeline_reader.TimelineReader.at_work", lambda *_: None)
    sensor = unmet(kind)
    assert not sensor.poke({}).is_done
    storage.requests.clear()
    assert not sensor.poke({}).is_done
    assert storage.requests == ["list .hoodie"]


@every_sensor
def test_a_wait_that_took_too_long_says_for_what(
    unmet: Callable[..., BaseHudiSensor], kind: type[BaseHudiSensor], table: Path
) -> None:
    shown = f"{table} has shown {unmet(kind).condition().unmet()} for"
    with pytest.raises(AirflowSensorTimeout) as poked:
        unmet(kind, deferrable=False, poke_interval=0.01, timeout=0.05).execute({})
    assert str(poked.value) == f"{shown} 0 s"
    with pytest.raises(AirflowSensorTimeout) as deferred:
        unmet(kind, timeout=90).resume_execution("__fail__", {"error": "Trigger timeout"}, {})
    assert str(deferred.value) == f"{shown} 90 s"


@every_sensor
def test_the_triggers_event_is_the_xcom_or_the_error(
    unmet: Callable[..., BaseHudiSensor], kind: type[BaseHudiSensor]
) -> None:
    event = {"status": "success", "table": "t", "instant": "1"}
    assert unmet(kind).execute_complete({}, event) == {"table": "t", "instant": "1"}
    for permanent, expected in ((False, HudiSensorFailed), (True, AirflowFailException)):
        failed = {"event": {"status": "error", "message": "no table", "is_permanent": permanent}}
        with pytest.raises(expected, match="no table"):
            unmet(kind).resume_execution("execute_complete", failed, {})
        with pytest.raises(AirflowSkipException):
            unmet(kind, soft_fail=True).resume_execution("execute_complete", failed, {})


@every_sensor
@pytest.mark.parametrize("deferrable", [True, False])
def test_what_no_retry_can_repair_fails_for_good(
    unmet: Callable[..., BaseHudiSensor],
    kind: type[BaseHudiSensor],
    tmp_path: Path,
    deferrable: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A folder that is no table, a connection that is not there, credentials that are not: one line, not a chain."""

    def no_credentials(_: TimelineReader) -> Look:
        raise CredentialsMissingError("this process has no credentials for s3://b/t")

    for arguments, said in (
        ({"table": str(tmp_path)}, f"{tmp_path} is not a Hudi table"),
        ({"table": "trips", "hudi_conn_id": "nowhere"}, "The conn_id `nowhere` isn't defined"),
        ({}, "this process has no credentials"),
    ):
        if not arguments:
            monkeypatch.setattr(TimelineReader, "look", no_credentials)
        with pytest.raises(AirflowFailException, match=f"^{said}") as raised:
            unmet(kind, deferrable=deferrable, **arguments).execute({})
        assert raised.value.__cause__ is None
        assert raised.value.__suppress_context__


@every_sensor
def test_every_argument_but_deferrable_is_a_template(kind: type[BaseHudiSensor], table: Path) -> None:
    """As given: whatever is templated is not looked at before it is rendered."""
    given = {name: f"{{{{ params.{name} }}}}" for name in kind.template_fields}
    sensor = kind(task_id="wait", **given)
    assert {name: getattr(sensor, name) for name in kind.template_fields} == given
    with DAG("d", params={"table": str(table)}) as dag:
        kind(task_id="wait", **given)
    stored = DagSerialization.from_dict(DagSerialization.to_dict(dag))
    assert stored.get_task("wait").template_fields == list(kind.template_fields)
    rendered = {**dict.fromkeys(kind.template_fields, ""), **UNMET[kind], "table": str(table)}
    sensor.render_template_fields({"params": rendered})
    assert sensor.table == str(table)
    assert sensor.hudi_conn_id == ""
    assert sensor.condition().unmet() == kind(task_id="same", table="t", **UNMET[kind]).condition().unmet()


@every_sensor
def test_storage_that_fails_is_looked_at_again(
    unmet: Callable[..., BaseHudiSensor], kind: type[BaseHudiSensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first look of a deferrable sensor is one of many; in a worker the fifth failure in a row is one."""
    looks: list[None] = []

    def fail(_: TimelineReader) -> Look:
        looks.append(None)
        raise StorageError("slow down")

    monkeypatch.setattr(TimelineReader, "look", fail)
    with pytest.raises(TaskDeferred):
        unmet(kind).execute({})
    looks.clear()
    with pytest.raises(StorageError, match="slow down"):
        unmet(kind, deferrable=False, poke_interval=0.0, timeout=60).execute({})
    assert len(looks) == 5


@every_sensor
@pytest.mark.parametrize(("error", "looked"), [(CorruptFileError, 5), (UnsupportedError, 1)])
def test_a_file_that_is_half_there_is_looked_at_again(
    unmet: Callable[..., BaseHudiSensor],
    kind: type[BaseHudiSensor],
    monkeypatch: pytest.MonkeyPatch,
    error: type[FormatError],
    looked: int,
) -> None:
    """A writer may be at it. What this engine refuses by name stays refused."""
    looks: list[None] = []

    def fail(_: TimelineReader) -> Look:
        looks.append(None)
        raise error("no such bytes")

    monkeypatch.setattr(TimelineReader, "look", fail)
    with pytest.raises(TaskDeferred if looked > 1 else AirflowFailException):
        unmet(kind).execute({})
    looks.clear()
    with pytest.raises(error if looked > 1 else AirflowFailException, match="no such bytes"):
        unmet(kind, deferrable=False, poke_interval=0.0, timeout=60).execute({})
    assert len(looks) == looked


def test_failures_of_rescheduled_looks_are_counted(
    unmet: Callable[..., BaseHudiSensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each one is another process; a look that goes well, and a try that failed, begin anew."""
    store, good = Store(), TimelineReader.look
    now = SimpleNamespace(get_first_reschedule_date=lambda _: None)

    def looks() -> str:
        sensor = unmet(HudiCommitSensor, deferrable=False, mode="reschedule", timeout=60)
        with pytest.raises((AirflowRescheduleException, StorageError)) as raised:
            sensor.execute({"ti": now, "task_state_store": store})
        return raised.typename

    def fail(_: TimelineReader) -> Look:
        raise StorageError("slow down")

    again, failed = "AirflowRescheduleException", "StorageError"
    monkeypatch.setattr(TimelineReader, "look", fail)
    assert [looks() for _ in range(4)] == [again] * 4
    monkeypatch.setattr(TimelineReader, "look", good)
    assert looks() == again
    monkeypatch.setattr(TimelineReader, "look", fail)
    assert [looks() for _ in range(6)] == [again] * 4 + [failed, again]


@every_sensor
@pytest.mark.parametrize("flag", ["soft_fail", "never_fail"])
@pytest.mark.parametrize("deferrable", [True, False])
def test_a_look_minds_the_flags(
    unmet: Callable[..., BaseHudiSensor], kind: type[BaseHudiSensor], tmp_path: Path, flag: str, deferrable: bool
) -> None:
    with pytest.raises(AirflowSkipException, match=f"is not a Hudi table|Skipping due to {flag}"):
        unmet(kind, table=str(tmp_path), deferrable=deferrable, **{flag: True}).execute({})
