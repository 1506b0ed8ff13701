"""Metrics, as a StatsD server receives them."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from airflow.sdk.exceptions import AirflowFailException
from airflow.sdk.observability import stats
from airflow.sdk.observability.metrics import stats_utils

from airflow_hudi import metrics
from airflow_hudi.hooks import HudiHook
from airflow_hudi.operators.alert import HudiAlertOperator
from airflow_hudi.operators.service import HudiCompactionOperator
from airflow_hudi.results import FinishedWork
from airflow_hudi.sensors import HudiNoPendingSensor
from airflow_hudi.timeline_reader import TimelineReader
from airflow_hudi.triggers.shared_timeline import SharedTimeline
from tests.support.fake_spark_submit import Store, context, real_job
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import Table
from tests.support.tiers import tiered
from tests.unit.hudi_core.services.metadata.test_catch_up import forget

Golden = Callable[[str, str], GoldenCase]


class Server:
    """What was sent, by name and tags."""

    def __init__(self, server: socket.socket) -> None:
        self._server = server

    def received(self) -> dict[tuple[str, frozenset[str]], str]:
        found = {}
        self._server.settimeout(0.3)
        while True:
            try:
                text = self._server.recv(4096).decode()
            except TimeoutError:
                return found
            name, _, value = text.partition(":")
            first, *tags = name.split(",")
            found[(first, frozenset(tags))] = value


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        for name, value in {
            "STATSD_ON": "True",
            "STATSD_HOST": "127.0.0.1",
            "STATSD_PORT": str(receiver.getsockname()[1]),
            "STATSD_PREFIX": "airflow",
            "STATSD_INFLUXDB_ENABLED": "True",
        }.items():
            monkeypatch.setenv(f"AIRFLOW__METRICS__{name}", value)
        stats.initialize(factory=stats_utils.get_stats_factory(), export_legacy_names=False)
        yield Server(receiver)
    monkeypatch.undo()
    stats.initialize(factory=stats_utils.get_stats_factory(), export_legacy_names=False)


def test_work_is_counted_once(server: Server) -> None:
    done = FinishedWork("/t", "compaction", "1", seconds=1.5, bytes_written=300)
    metrics.report_work([done, FinishedWork("/t", "clean", "2", earlier=True, seconds=9.0, bytes_written=9)])
    tags = frozenset({"table=/t", "service=compaction"})
    assert server.received() == {
        ("airflow.hudi.service_seconds", tags): "1500.000000|ms",
        ("airflow.hudi.bytes_written", tags): "300|c",
    }


def test_a_task_reports_its_table(
    golden: Golden, server: Server, submitted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = golden("9", "mor_compaction_requested").table
    real_job(monkeypatch)
    metrics.LookMetrics(HudiHook(None)).report(HudiHook(None).timeline(str(table)).look())
    before = server.received()
    of_table = frozenset({f"table={table}"})
    assert int(before[("airflow.hudi.pending_age", of_table)].removesuffix("|g")) > 3600
    assert before[("airflow.hudi.metadata_lag", of_table)] == "0|g"
    done = HudiCompactionOperator(task_id="t", table=str(table), hudi_conn_id=None).execute(context(Store()))
    after = server.received()
    assert after[("airflow.hudi.pending_age", of_table)] == "0|g"
    service = of_table | {"service=compaction"}
    assert after[("airflow.hudi.bytes_written", service)] == f"{done['bytes_written']}|c"
    assert ("airflow.hudi.service_seconds", service) in after


@pytest.mark.parametrize("mode", tiered(["execute", "both"], ["execute"]))
def test_who_lost_a_race_sends_no_work(
    golden: Golden, server: Server, submitted: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    table = golden("8", "mor_compaction_requested").table
    real_job(monkeypatch, lost_race=True)
    compact = HudiCompactionOperator(task_id="t", table=str(table), hudi_conn_id=None, mode=mode)
    assert compact.execute(context(Store()))["already_completed"]
    assert {name for name, _ in server.received()} <= {"airflow.hudi.pending_age", "airflow.hudi.metadata_lag"}


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_write_that_the_metadata_table_lacks_makes_it_lag(golden: Golden, version: str) -> None:
    table = golden(version, "mor_basic").table
    reader = HudiHook(None).timeline(str(table))
    recorded = HudiHook(None).timeline(f"{table}/{metrics.METADATA_TABLE}")
    assert metrics.metadata_lag(reader.look(), recorded.load()) == 0
    (gone,) = forget(Table(table), 1)
    lag = metrics.metadata_lag(reader.look(), recorded.load())
    (newest,) = [item for item in reader.load() if item.requested_time == gone]
    completed = reader.look().completed_at(newest)
    age = datetime.now(timezone.utc) - datetime.strptime(completed[:14], "%Y%m%d%H%M%S").replace(tzinfo=timezone.utc)
    assert abs(timedelta(seconds=lag) - age) < timedelta(days=1)


def of_triggerer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Airflow sets up no metrics of the SDK there."""
    with monkeypatch.context() as unmeasured:
        unmeasured.setenv("AIRFLOW__METRICS__STATSD_ON", "False")
        stats.initialize(factory=stats_utils.get_stats_factory(), export_legacy_names=False)
    metrics.start_in_triggerer.cache_clear()
    monkeypatch.setenv("AIRFLOW__METRICS__LEGACY_NAMES_ON", "False")


async def test_sensors_and_triggers_report_their_looks(
    golden: Golden, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lag of the metadata table, by a listing of it, where the timeline has changed."""
    table = golden("9", "mor_compaction_requested").table
    look, looks = TimelineReader.look, []
    monkeypatch.setattr(TimelineReader, "look", lambda reader: looks.append(reader.storage.uri) or look(reader))
    age, lag = ((f"airflow.hudi.{name}", frozenset({f"table={table}"})) for name in ("pending_age", "metadata_lag"))
    both = [str(table), f"{table}/{metrics.METADATA_TABLE}"]

    def expect(seen: list[str], *names: object) -> None:
        assert (looks, {*server.received()}) == (seen, {*names})
        looks.clear()

    sensor = HudiNoPendingSensor(task_id="t", table=str(table), hudi_conn_id=None)
    assert not sensor.poke({}).is_done
    expect(both, age, lag)
    sensor.poke({})
    expect(both[:1], age)
    rescheduled = HudiNoPendingSensor(
        task_id="t", table=str(table), hudi_conn_id=None, mode="reschedule", deferrable=False
    )
    assert not rescheduled.poke({}).is_done
    expect(both[:1], age)

    of_triggerer(monkeypatch)
    shared = SharedTimeline.of(str(table), None)
    await shared.look(0)
    expect(both, age, lag)
    await shared.look(0)
    expect(both[:1], age)
    (gone,) = forget(Table(table), 1)
    (planned,) = table.glob(".hoodie/timeline/*.compaction.requested")
    planned.unlink()
    await shared.look(0)
    assert looks == both
    assert int(server.received()[lag].removesuffix("|g")) > 3600, gone


def test_without_a_backend_nothing_is_read(golden: Golden, submitted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = golden("9", "mor_compaction_requested").table
    real_job(monkeypatch)
    monkeypatch.setattr(metrics, "metadata_lag", pytest.fail)
    done = HudiCompactionOperator(task_id="t", table=str(table), hudi_conn_id=None).execute(context(Store()))
    assert (metrics.is_measured(), done["state"]) == (False, "completed")


def test_a_metadata_table_that_cannot_be_read_keeps_no_alert_back(
    golden: Golden, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    table = golden("9", "mor_compaction_requested").table
    shutil.rmtree(table / metrics.METADATA_TABLE)
    alert = HudiAlertOperator(
        task_id="t", policy={"alerts": {"pending_age": "1h"}}, tables=[str(table)], hudi_conn_id=None
    )
    with pytest.raises(AirflowFailException, match="is requested for"):
        alert.execute(context())
    assert ("airflow.hudi.pending_age", frozenset({f"table={table}"})) in server.received()
    assert "are not complete" in caplog.text
