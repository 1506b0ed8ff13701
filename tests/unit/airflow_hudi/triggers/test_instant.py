from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.triggers.base import TriggerEvent

from airflow_hudi.timeline_reader import TimelineReader
from airflow_hudi.triggers import instant
from airflow_hudi.triggers.instant import HudiInstantTrigger
from hudi_core.errors import ConfigError, StorageError
from hudi_core.storage.base import FileInfo
from hudi_core.storage.local import LocalStorage

PLANNED = "20260102000000000.compaction.requested"


def trigger_on(table: Path, **arguments: Any) -> HudiInstantTrigger:
    return HudiInstantTrigger(
        **{"table": str(table), "action": "compaction", "hudi_conn_id": None, "poll_interval": 0.01, **arguments}
    )


async def first_event(trigger: HudiInstantTrigger) -> TriggerEvent:
    return await asyncio.wait_for(anext(trigger.run()), timeout=20)


def test_serialize_is_complete() -> None:
    given = {
        "table": "trips",
        "action": "clean",
        "state": "completed",
        "instant": "002",
        "after": "001",
        "hudi_conn_id": "other",
        "poll_interval": 7.0,
        "max_errors": 2,
    }
    path, arguments = HudiInstantTrigger(**given).serialize()
    assert path == "airflow_hudi.triggers.instant.HudiInstantTrigger"
    assert arguments == given
    assert HudiInstantTrigger(**arguments).serialize() == (path, given)


async def test_fires_for_an_instant_that_is_there(table: Path, put: Callable[..., None]) -> None:
    put(PLANNED)
    event = await first_event(trigger_on(table))
    assert event.payload == {
        "status": "success",
        "table": str(table),
        "instant": "20260102000000000",
        "action": "compaction",
        "state": "requested",
    }


async def test_fires_once_the_instant_appears(table: Path, put: Callable[..., None]) -> None:
    waiting = asyncio.create_task(first_event(trigger_on(table)))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    put(PLANNED)
    assert (await waiting).payload["instant"] == "20260102000000000"


async def test_a_wait_says_for_what_and_who_is_at_work(
    table: Path, put: Callable[..., None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(instant, "_SAID_EVERY", 0.5)
    put(PLANNED)
    waiting = asyncio.create_task(first_event(trigger_on(table, state="completed")))
    await asyncio.sleep(0.9)
    claimed = table / ".hoodie" / ".airflow_hudi" / "claims" / "20260102000000000" / "000001.json"
    claimed.parent.mkdir(parents=True)
    claimed.write_text('{"owner": {"text": "me", "pid": 7, "host": "b"}}')
    await asyncio.sleep(0.6)
    put("20260102000000000.commit", b"{}")
    await waiting
    said = [line for line in capsys.readouterr().out.splitlines() if "shows no completed compaction yet: " in line]
    assert 2 <= len(said) <= 4
    assert f"{table} shows no completed compaction yet: compaction 20260102000000000 is requested, " in said[0]
    assert "claimed by no process now; waiting for 0 s" in said[0]
    assert "run by me (process 7 on b) since" in said[-1]


async def test_a_slow_store_never_blocks_the_event_loop(
    table: Path, put: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(PLANNED)
    answer = threading.Event()
    listing = LocalStorage.list_files

    def slow(self: LocalStorage, folder: str) -> list[FileInfo]:
        assert answer.wait(20)
        return listing(self, folder)

    monkeypatch.setattr(LocalStorage, "list_files", slow)
    waiting = asyncio.create_task(first_event(trigger_on(table)))
    for _ in range(20):
        await asyncio.sleep(0.01)
    assert not waiting.done()
    answer.set()
    assert (await waiting).payload["status"] == "success"


async def test_what_no_wait_can_mend_is_an_event_at_once(tmp_path: Path) -> None:
    event = await first_event(trigger_on(tmp_path, max_errors=3600))
    assert event.payload["status"] == "error"
    assert event.payload["message"].startswith("ConfigError: ")


async def test_failures_that_may_pass_are_looked_past(
    table: Path, put: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(PLANNED)
    load, failures = TimelineReader.load, iter([StorageError("slow down"), StorageError("slow down")])

    def flaky(self: TimelineReader) -> Any:
        for failure in failures:
            raise failure
        return load(self)

    monkeypatch.setattr(TimelineReader, "load", flaky)
    assert (await first_event(trigger_on(table, max_errors=3))).payload["status"] == "success"


async def test_failures_that_do_not_pass_end_the_wait(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []

    def down(self: TimelineReader) -> Any:
        looks.append(1)
        raise StorageError("the store is down", path="s3://x")

    monkeypatch.setattr(TimelineReader, "load", down)
    event = await first_event(trigger_on(table, max_errors=3))
    assert event.payload == {
        "status": "error",
        "table": str(table),
        "message": "StorageError: s3://x: the store is down",
    }
    assert len(looks) == 3


def test_a_condition_that_can_never_hold_is_refused() -> None:
    with pytest.raises(ConfigError):
        HudiInstantTrigger(table="t", action="compaction", state="done")
