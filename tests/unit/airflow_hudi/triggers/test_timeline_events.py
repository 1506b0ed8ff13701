"""Events of a timeline: at once, in one event a look, from a mark that survives the triggerer."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import Asset
from airflow.sdk.execution_time.context import AssetStateStoreAccessors
from airflow.triggers.base import TriggerEvent

from airflow_hudi.assets import event_partitions
from airflow_hudi.conditions.writes import is_of_writer
from airflow_hudi.timeline_reader import TimelineReader
from airflow_hudi.triggers import timeline_events
from airflow_hudi.triggers.timeline_events import HudiTimelineEventTrigger, instant_details
from hudi_core.errors import ConfigError, StorageError
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import COMMIT_ACTIONS, Instant
from hudi_core.timeline.timeline import Timeline
from tests.support.golden_data import GoldenCase

Golden = Callable[[str, str], GoldenCase]


class Store:
    """An asset's state store."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    async def aget(self, key: str, default: Any = None) -> Any:
        return self.values.get(key, default)

    async def aset(self, key: str, value: Any) -> None:
        self.values[key] = value


def trigger_on(table: Path, store: Store | None = None, **arguments: Any) -> HudiTimelineEventTrigger:
    given = {"table": str(table), "hudi_conn_id": None, "poll_interval": 0.01, **arguments}
    made = HudiTimelineEventTrigger(**given)
    made.asset_state_store = store  # type: ignore[assignment]
    return made


async def next_event(events: AsyncIterator[TriggerEvent]) -> Any:
    return (await asyncio.wait_for(anext(events), timeout=20)).payload


async def no_event(events: AsyncIterator[TriggerEvent]) -> None:
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(anext(events), timeout=0.3)


def test_serialize_is_complete() -> None:
    given = {"table": "t", "hudi_conn_id": "c", "state": "completed", "actions": ["commit"], "poll_interval": 3.0}
    given["repeat_seconds"] = 60.0
    path, arguments = HudiTimelineEventTrigger(**given).serialize()  # type: ignore[arg-type]
    assert path == "airflow_hudi.triggers.timeline_events.HudiTimelineEventTrigger"
    assert arguments == given
    assert HudiTimelineEventTrigger(**arguments).serialize() == (path, given)


async def test_what_is_pending_is_one_event_and_what_follows_another(table: Path, put: Callable[..., None]) -> None:
    put("20260102000000000.compaction.requested")
    put("20260103000000000.clean.requested")
    events = trigger_on(table).run()
    first = await next_event(events)
    assert [(item["instant"], item["action"], item["state"]) for item in first["instants"]] == [
        ("20260102000000000", "compaction", "requested"),
        ("20260103000000000", "clean", "requested"),
    ]
    assert (first["table"], first["state"]) == (str(table), "pending")
    put("20260104000000000.replacecommit.requested")
    put("20260105000000000.compaction.requested")
    second = await next_event(events)
    assert [item["instant"] for item in second["instants"]] == ["20260105000000000"]


async def test_a_restarted_triggerer_goes_on_at_its_mark(
    table: Path, put: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeline_events, "_UNCHANGED_SECONDS", 0.05)
    monkeypatch.setattr(timeline_events, "_STORED_AFTER_SECONDS", 0.05)
    store = Store()
    put("20260102000000000.compaction.requested")
    events = trigger_on(table, store).run()
    await next_event(events)
    await no_event(events)
    await no_event(trigger_on(table, store).run())
    put("20260103000000000.clean.requested")
    (again,) = (await next_event(trigger_on(table, store).run()))["instants"]
    assert again["instant"] == "20260103000000000"


async def test_the_mark_is_stored_when_the_event_is_in_airflows_database(
    table: Path, put: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The triggerer puts an event there some time after the generator goes on."""
    now, store = [1000.0], Store()
    monkeypatch.setattr(timeline_events, "time", SimpleNamespace(monotonic=lambda: now[0], time=time.time))
    reader = TimelineReader(LocalStorage(table))
    put("20260102000000000.compaction.requested")

    def reported() -> set[str]:
        return set(store.values.get("airflow_hudi_mark", {}).get("reported", ()))

    async def looks() -> AsyncIterator[Timeline]:
        for seconds, stored in ((0, 0), (9, 0), (2, 1), (9, 1), (2, 2), (30, 3)):
            now[0] += seconds
            if seconds == 9:
                put(f"{20260103000000000 + int(now[0])}.clean.requested")
            yield reader.load()
            assert len(reported()) == stored

    events = [event async for event in trigger_on(table, store).filter_shared_stream(looks())]
    assert len(events) == 3


async def test_an_event_that_was_not_taken_comes_again(table: Path, put: Callable[..., None]) -> None:
    """The mark is stored once the event is on its way."""
    store = Store()
    put("20260102000000000.compaction.requested")
    first = trigger_on(table, store).run()
    await next_event(first)
    await first.aclose()  # type: ignore[attr-defined]
    assert store.values == {}
    assert (await next_event(trigger_on(table, store).run()))["instants"]


async def test_what_stays_pending_has_another_event(
    table: Path, put: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a timeline that nothing is put on any more: the run that the event started has failed."""
    monkeypatch.setattr(timeline_events, "_UNCHANGED_SECONDS", 0.05)
    monkeypatch.setattr(timeline_events, "_STORED_AFTER_SECONDS", 0.05)
    put("20260102000000000.compaction.requested")
    store = Store()
    events = trigger_on(table, store, repeat_seconds=0.5).run()
    first = await next_event(events)
    again = await next_event(events)
    assert [item["instant"] for item in again["instants"]] == [item["instant"] for item in first["instants"]]
    await events.aclose()  # type: ignore[attr-defined]
    await no_event(trigger_on(table, store, repeat_seconds=60.0).run())


@pytest.mark.parametrize("version", ["6", "8", "9"])
async def test_completed_writes_say_what_they_wrote(golden: Golden, version: str) -> None:
    table = golden(version, "insert_overwrite_table").table
    reader = TimelineReader(LocalStorage(table))
    found = [instant_details(reader, item) for item in reader.load().commits()]
    assert found[-1]["operation"] in ("INSERT_OVERWRITE_TABLE", "UPSERT", "INSERT")
    assert all(item["partitions"] and item["rows"] >= 0 for item in found)
    store = Store()
    await no_event(trigger_on(table, store, state="completed").run())
    store.values["airflow_hudi_mark"] = {}
    event = await next_event(trigger_on(table, store, state="completed").run())
    assert sorted(item["instant"] for item in event["instants"]) == sorted(item["instant"] for item in found)


async def test_a_planned_clustering_has_an_event_and_a_pending_overwrite_none(golden: Golden) -> None:
    """Layout 1 names both replacecommit."""
    table = golden("6", "clustering_requested_cow").table
    (planned,) = TimelineReader(LocalStorage(table)).load().pending()
    timeline = table / ".hoodie"
    (timeline / "20300101000000000.replacecommit.requested").touch()
    event = await next_event(trigger_on(table).run())
    assert [(item["instant"], item["action"]) for item in event["instants"]] == [(planned.requested_time, "clustering")]


async def test_a_damaged_plan_is_read_again(table: Path, put: Callable[..., None]) -> None:
    put("20260102000000000.replacecommit.requested", b"damaged")
    put("20260103000000000.compaction.requested")
    events = trigger_on(table).run()
    waiting = asyncio.ensure_future(next_event(events))
    await asyncio.sleep(0.2)
    assert not waiting.done()
    (table / ".hoodie" / "20260102000000000.replacecommit.requested").unlink()
    assert [item["action"] for item in (await waiting)["instants"]] == ["compaction"]


async def test_writes_that_were_archived_unseen_are_warned_of(
    table: Path, put: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    store = Store()
    store.values["airflow_hudi_mark"] = {"newest": "20251201000000000", "at": ["20251201000000000"]}
    event = await next_event(trigger_on(table, store, state="completed").run())
    assert [item["instant"] for item in event["instants"]] == ["20260101000000000"]
    (said,) = [line for line in caplog.messages if "archived" in line]
    assert f"Writes of {table} from 20251201000000000 to 20260101000000000 may have been archived" in said


async def test_one_trigger_of_two_assets_says_what_to_change(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trigger = trigger_on(table)
    assets = [Asset(name=name, uri=f"hudi://lake/{name}") for name in "ab"]
    trigger.asset_state_store = AssetStateStoreAccessors(inlets=assets)
    monkeypatch.setattr(timeline_events, "_LONGEST_PAUSE", 0.3)
    started = time.monotonic()
    with pytest.raises(ConfigError, match=f"several assets watch {table}.*another poll_interval"):
        await next_event(trigger.run())
    assert time.monotonic() - started >= 0.3, "the triggerer makes it anew at once"


async def test_watchers_of_one_table_share_one_listing(table: Path, put: Callable[..., None]) -> None:
    put("20260102000000000.compaction.requested")
    put("20260103000000000.clean.requested")
    compactions, cleans = trigger_on(table, actions=["compaction"]), trigger_on(table, actions=["clean"])
    assert compactions.shared_stream_key() == cleans.shared_stream_key()
    assert compactions.shared_stream_key() != trigger_on(table, poll_interval=1.0).shared_stream_key()
    stream = HudiTimelineEventTrigger.open_shared_stream(compactions.serialize()[1])
    timeline = await asyncio.wait_for(anext(stream), timeout=20)

    async def only() -> AsyncIterator[Any]:
        yield timeline

    for trigger, action in ((compactions, "compaction"), (cleans, "clean")):
        (event,) = [event async for event in trigger.filter_shared_stream(only())]
        assert [item["action"] for item in event.payload["instants"]] == [action]


async def test_storage_that_fails_is_looked_at_again(
    table: Path, put: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    put("20260102000000000.compaction.requested")
    look, failures = TimelineReader.look, [StorageError("slow down"), StorageError("slow down")]

    def sometimes(self: TimelineReader) -> Any:
        if failures:
            raise failures.pop()
        return look(self)

    monkeypatch.setattr(TimelineReader, "look", sometimes)
    assert (await next_event(trigger_on(table).run()))["instants"]
    assert failures == []


@pytest.mark.parametrize("connection", [None, "missing"])
async def test_a_table_that_is_not_there_is_looked_for_less_and_less_often(
    table: Path,
    put: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    connection: str | None,
) -> None:
    """A stream that ends is started anew by the triggerer at once, for ever."""
    pauses, sleep = [], asyncio.sleep

    async def counted(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 8:
            hidden.rename(table)
            monkeypatch.setenv("AIRFLOW_CONN_MISSING", '{"conn_type": "hudi"}')
        await sleep(0)

    put("20260102000000000.compaction.requested")
    hidden = table.rename(table.with_name("hidden"))
    monkeypatch.setattr(timeline_events.asyncio, "sleep", counted)
    event = await next_event(trigger_on(table, hudi_conn_id=connection, poll_interval=7.0).run())
    assert [item["action"] for item in event["instants"]] == ["compaction"]
    assert pauses == [7.0, 14.0, 28.0, 56.0, 112.0, 224.0, 300.0, 300.0]
    (said,) = [line for line in caplog.messages if "cannot be looked at" in line]
    assert said.startswith(f"{table} cannot be looked at, and will be looked for again")


@pytest.mark.parametrize("archived", [False, True], ids=["with its plan", "without its plan"])
@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize("name", ["mor_compacted", "clustered_cow"])
async def test_compactions_and_clusterings_wake_no_reader(
    golden: Golden, version: str, name: str, archived: bool
) -> None:
    """As for HudiCommitSensor. Archival removes the pending files of a compaction first."""
    table = golden(version, name).table
    timeline = TimelineReader(LocalStorage(table)).load()
    reader = TimelineReader(LocalStorage(table))
    of_services = {
        item.requested_time for item in timeline.commits() if not is_of_writer(reader.active().read_commit(item))
    }
    assert of_services
    if archived:
        for time_ in of_services:
            for path in (table / ".hoodie").rglob(f"{time_}.*"):
                if path.suffix in (".requested", ".inflight"):
                    path.unlink()
    store = Store()
    store.values["airflow_hudi_mark"] = {}
    event = await next_event(trigger_on(table, store, state="completed").run())
    found = {item["instant"] for item in event["instants"]}
    assert found == {item.requested_time for item in timeline.commits()} - of_services
    event = await next_event(trigger_on(table, store, state="completed", actions=list(COMMIT_ACTIONS)).run())
    assert found | of_services == {item["instant"] for item in event["instants"]}


async def test_a_service_alone_has_no_event(table: Path, put: Callable[..., None]) -> None:
    store = Store()
    await no_event(trigger_on(table, store, state="completed").run())
    put("20260102000000000.commit", b'{"operationType": "COMPACT"}')
    await no_event(trigger_on(table, store, state="completed").run())
    put("20260103000000000.deltacommit", b'{"operationType": "UPSERT"}')
    event = await next_event(trigger_on(table, store, state="completed").run())
    assert [item["instant"] for item in event["instants"]] == ["20260103000000000"]


async def test_a_write_during_a_restart_has_an_event_though_none_came_before(
    table: Path, put: Callable[..., None]
) -> None:
    store = Store()
    await no_event(trigger_on(table, store, state="completed").run())
    put("20260102000000000.deltacommit.requested")
    put("20260102000000000.deltacommit.inflight")
    put("20260102000000000.deltacommit", b"{}")
    event = await next_event(trigger_on(table, store, state="completed").run())
    assert [item["instant"] for item in event["instants"]] == ["20260102000000000"]


async def test_every_instant_and_partition_is_in_the_event(table: Path, put: Callable[..., None]) -> None:
    stats = {f"day={number:03}": [{"path": f"day={number:03}/f"}] for number in range(150)}
    commit = json.dumps({"partitionToWriteStats": stats, "operationType": "UPSERT"}).encode()
    for number in range(120):
        put(f"20260102000000{number:03}.deltacommit", commit if number == 7 else b"{}")
    store = Store()
    store.values["airflow_hudi_mark"] = {}
    event = await next_event(trigger_on(table, store, state="completed").run())
    assert len(event["instants"]) == 121
    assert event_partitions(event) == stats.keys()


async def test_a_commit_that_cannot_be_read_now_is_in_a_later_event(
    table: Path, put: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeline_events, "_UNCHANGED_SECONDS", 0.05)
    read, failures = ActiveTimeline.read_commit, [StorageError("slow down"), StorageError("slow down")]

    def read_commit(self: ActiveTimeline, instant: Instant) -> CommitMetadata:
        if failures:
            raise failures.pop()
        return read(self, instant)

    monkeypatch.setattr(ActiveTimeline, "read_commit", read_commit)
    store = Store()
    store.values["airflow_hudi_mark"] = {}
    event = await next_event(trigger_on(table, store, state="completed").run())
    assert failures == []
    assert [item["rows"] for item in event["instants"]] == [0]
