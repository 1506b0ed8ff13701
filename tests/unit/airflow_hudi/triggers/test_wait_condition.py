from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.models.trigger import Trigger
from airflow.serialization.decoders import smart_decode_trigger_kwargs
from airflow.triggers.base import TriggerEvent

from airflow_hudi.conditions.condition import Condition, InstantCondition, NoPendingCondition
from airflow_hudi.conditions.writes import CommitCondition, PartitionCondition
from airflow_hudi.timeline_reader import TimelineReader
from airflow_hudi.triggers import wait
from airflow_hudi.triggers.wait import HudiConditionTrigger
from hudi_core.errors import StorageError
from hudi_core.storage.base import FileInfo
from hudi_core.storage.local import LocalStorage
from tests.support.commit_files import commit_file

PLANNED = "20260102000000000.compaction.requested"


def trigger_on(table: Path, waited: Condition | None = None, **arguments: Any) -> HudiConditionTrigger:
    found = (waited or InstantCondition("compaction")).to_json()
    return HudiConditionTrigger(
        **{"table": str(table), "condition": found, "hudi_conn_id": None, "poll_interval": 0.01, **arguments}
    )


async def first_event(trigger: HudiConditionTrigger) -> TriggerEvent:
    return await asyncio.wait_for(anext(trigger.run()), timeout=20)


def test_serialize_is_complete() -> None:
    given = {
        "table": "trips",
        "condition": InstantCondition("clean", "completed", "002", "001", "2026-01-02").to_json(),
        "hudi_conn_id": "other",
        "poll_interval": 7.0,
        "max_errors": 2,
    }
    path, arguments = HudiConditionTrigger(**given).serialize()
    assert path == "airflow_hudi.triggers.wait.HudiConditionTrigger"
    assert arguments == given
    assert HudiConditionTrigger(**arguments).serialize() == (path, given)


@pytest.mark.parametrize(
    "waited",
    [
        InstantCondition("clean"),
        NoPendingCondition(60),
        CommitCondition("2026-01-02"),
        PartitionCondition(["day=1", "day=2"]),
    ],
)
def test_airflow_gives_back_what_it_stored(waited: Condition) -> None:
    """As the worker, the database and the triggerer have it."""
    _, arguments = trigger_on(Path("trips"), waited).serialize()
    stored = Trigger.encrypt_kwargs(arguments)
    found = {name: smart_decode_trigger_kwargs(value) for name, value in Trigger._decrypt_kwargs(stored).items()}
    assert HudiConditionTrigger(**found).serialize()[1] == arguments


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
    monkeypatch.setattr(wait, "_SAID_EVERY", 0.5)
    put(PLANNED)
    waiting = asyncio.create_task(first_event(trigger_on(table, InstantCondition("compaction", "completed"))))
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
    assert event.payload["message"].startswith(f"{tmp_path} is not a Hudi table")
    assert event.payload["is_permanent"] is True
    gone = await first_event(trigger_on(Path("trips"), hudi_conn_id="nowhere", max_errors=3600))
    assert gone.payload["is_permanent"] is True


async def test_failures_that_may_pass_are_looked_past(
    table: Path, put: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(PLANNED)
    look, failures = TimelineReader.look, iter([StorageError("slow down"), StorageError("slow down")])

    def flaky(self: TimelineReader) -> Any:
        for failure in failures:
            raise failure
        return look(self)

    monkeypatch.setattr(TimelineReader, "look", flaky)
    assert (await first_event(trigger_on(table, max_errors=3))).payload["status"] == "success"


async def test_failures_that_do_not_pass_end_the_wait(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []

    def down(self: TimelineReader) -> Any:
        looks.append(1)
        raise StorageError("the store is down", path="s3://x")

    monkeypatch.setattr(TimelineReader, "look", down)
    event = await first_event(trigger_on(table, max_errors=3))
    assert event.payload == {
        "status": "error",
        "table": str(table),
        "message": "the store is down: s3://x",
        "is_permanent": False,
    }
    assert len(looks) == 3


async def test_a_commit_file_that_is_half_written_is_looked_at_again(table: Path, put: Callable[..., None]) -> None:
    whole = commit_file({"day=1": 3})
    name = "20260103000000000.deltacommit"
    put(name, whole[: len(whole) // 2])
    waited = PartitionCondition(["day=1"])
    failed = (await first_event(trigger_on(table, waited, max_errors=2))).payload
    assert (failed["status"], failed["is_permanent"]) == ("error", False), failed
    waiting = asyncio.create_task(first_event(trigger_on(table, waited, max_errors=3600)))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    put(name, whole)
    assert (await waiting).payload["status"] == "success"


async def test_a_condition_that_is_none_is_an_event(table: Path) -> None:
    """An error where the trigger is made would end the triggerer."""
    event = await first_event(trigger_on(table, condition={"kind": "instant", "action": "clean", "state": "done"}))
    assert event.payload["status"] == "error"
    assert "unknown instant state 'done'" in event.payload["message"]


async def test_waits_for_a_commit(table: Path, put: Callable[..., None]) -> None:
    first = (await first_event(trigger_on(table, CommitCondition()))).payload
    assert first["instant"] == "20260101000000000"
    waiting = asyncio.create_task(first_event(trigger_on(table, CommitCondition(first["completed"]))))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    put("20260103000000000.deltacommit", commit_file({"day=1": 3}))
    found = (await waiting).payload
    assert (found["status"], found["instant"], found["rows"]) == ("success", "20260103000000000", 3)


async def test_waits_for_partitions(table: Path, put: Callable[..., None]) -> None:
    put("20260103000000000.deltacommit", commit_file({"day=1": 3}))
    waiting = asyncio.create_task(first_event(trigger_on(table, PartitionCondition(["day=1", "day=2"]))))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    put("20260104000000000.deltacommit", commit_file({"day=2": 3}))
    found = (await waiting).payload
    assert [item["partition"] for item in found["partitions"]] == ["day=1", "day=2"]


async def test_waits_until_nothing_is_pending(table: Path, put: Callable[..., None]) -> None:
    put(PLANNED)
    waiting = asyncio.create_task(first_event(trigger_on(table, NoPendingCondition())))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    put("20260102000000000.commit", b"{}")
    assert (await waiting).payload == {"status": "success", "table": str(table), "pending": 0, "oldest": None}


async def test_only_a_timeline_that_changed_is_judged(
    table: Path, put: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    check, looks = InstantCondition.check, []

    def counted(self: InstantCondition, look: Any) -> Any:
        looks.append(len(look.timeline))
        return check(self, look)

    monkeypatch.setattr(InstantCondition, "check", counted)
    waiting = asyncio.create_task(first_event(trigger_on(table)))
    await asyncio.sleep(0.3)
    assert looks == [1]
    put("20260102000000000.clean.requested")
    await asyncio.sleep(0.3)
    assert looks == [1, 2]
    put(PLANNED)
    await waiting
    assert looks == [1, 2, 3]
