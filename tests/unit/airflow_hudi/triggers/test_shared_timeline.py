"""Triggers of one table share their looks."""

from __future__ import annotations

import asyncio
import gc
import selectors
import threading
import time
from collections.abc import Callable
from contextlib import closing
from contextvars import ContextVar
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_hudi.conditions.condition import InstantCondition
from airflow_hudi.hooks import HudiHook
from airflow_hudi.timeline_reader import TimelineReader
from airflow_hudi.triggers import shared_timeline, timeline_events, wait
from airflow_hudi.triggers.shared_timeline import THREADS, SharedTimeline
from airflow_hudi.triggers.timeline_events import HudiTimelineEventTrigger
from airflow_hudi.triggers.wait import HudiConditionTrigger
from hudi_core.errors import StorageError

Put = Callable[..., None]
NAME: ContextVar[str] = ContextVar("NAME", default="nobody")


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The moments at which a listing began."""
    look, found = TimelineReader.look, []

    def counted(self: TimelineReader) -> Any:
        found.append(time.monotonic())
        return look(self)

    monkeypatch.setattr(TimelineReader, "look", counted)
    return found


def test_a_table_is_known_as_long_as_it_is_held(table: Path) -> None:
    gc.collect()
    known = len(SharedTimeline._known)
    held = SharedTimeline.of(str(table), None)
    assert SharedTimeline.of(str(table), "") is held
    assert SharedTimeline.of(str(table), None, "compaction") is held
    clusterings = SharedTimeline.of(str(table), None, "clustering")
    assert clusterings is not held
    assert SharedTimeline.of(str(table), "other") is not held
    assert len(SharedTimeline._known) == known + 2
    del held, clusterings
    gc.collect()
    assert len(SharedTimeline._known) == known


async def test_looks_at_one_time_are_one(table: Path, looks: list[float]) -> None:
    shared = SharedTimeline.of(str(table), None)
    found = await asyncio.gather(*(shared.look(60) for _ in range(50)))
    assert len({id(look) for look in found}) == 1
    assert await shared.look(60) is found[0]
    assert len(looks) == 1


async def test_a_look_counts_for_half_an_interval(table: Path, put: Put, looks: list[float]) -> None:
    shared = SharedTimeline.of(str(table), None)
    await shared.look(60)
    put("20260102000000000.clean.requested")
    assert len((await shared.look(60)).timeline) == 1
    await asyncio.sleep(0.06)
    assert len((await shared.look(0.1)).timeline) == 2
    assert len(looks) == 2


def waiting_looks(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Every look waits for the event, as for a storage that does not answer."""
    answer, look = threading.Event(), TimelineReader.look

    def slow(self: TimelineReader) -> Any:
        assert answer.wait(20)
        return look(self)

    monkeypatch.setattr(TimelineReader, "look", slow)
    return answer


async def test_the_next_look_is_an_interval_after_the_last(table: Path) -> None:
    shared = SharedTimeline.of(str(table), None)
    await shared.look(60)
    await asyncio.sleep(0.1)
    assert 59 < shared.until_next(60) <= 59.9
    assert shared.until_next(0.02) == 0.01, "behind it, the triggers rest for half of one"


async def test_a_trigger_that_is_cancelled_takes_no_look_from_others(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = waiting_looks(monkeypatch)
    shared = SharedTimeline.of(str(table), None)
    first, second = asyncio.create_task(shared.look(60)), asyncio.create_task(shared.look(60))
    await asyncio.sleep(0.05)
    first.cancel()
    await asyncio.sleep(0.05)
    answer.set()
    assert len((await second).timeline) == 1
    assert first.cancelled()


async def test_a_look_that_failed_is_made_anew_with_the_connection_as_it_is(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look, opened = TimelineReader.look, []
    timeline = HudiHook.timeline

    def once(self: TimelineReader) -> Any:
        monkeypatch.setattr(TimelineReader, "look", look)
        raise StorageError("slow down")

    def counted(self: HudiHook, *arguments: Any) -> TimelineReader:
        opened.append(arguments)
        return timeline(self, *arguments)

    monkeypatch.setattr(TimelineReader, "look", once)
    monkeypatch.setattr(HudiHook, "timeline", counted)
    shared = SharedTimeline.of(str(table), None)
    results = await asyncio.gather(shared.look(60), shared.look(60), return_exceptions=True)
    assert [type(result) for result in results] == [StorageError, StorageError]
    assert len((await shared.look(60)).timeline) == 1
    assert len(opened) == 2


async def test_work_in_a_thread_has_the_context_of_its_trigger() -> None:
    NAME.set("mine")
    shared = SharedTimeline.of("s3://lake/t", None)
    assert await shared.in_thread(NAME.get) == "mine"
    name = await shared.in_thread(lambda: threading.current_thread().name)
    assert name.startswith("hudi-look")


async def test_looks_are_bounded_and_leave_the_loops_threads_alone(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer, at_work, most = threading.Event(), [0], [0]
    count = threading.Lock()

    def slow() -> None:
        with count:
            at_work[0] += 1
            most[0] = max(most[0], at_work[0])
        assert answer.wait(20)
        with count:
            at_work[0] -= 1

    waiting = [SharedTimeline.of(f"s3://hangs/{number}", None).in_thread(slow) for number in range(3 * THREADS)]
    assert await asyncio.wait_for(asyncio.to_thread(lambda: 7), timeout=20) == 7
    for other, connection in (("s3://other/t", None), ("gs://hangs/t", None), ("t", "eu"), ("t", "us"), ("/t", None)):
        assert await asyncio.wait_for(SharedTimeline.of(other, connection).in_thread(lambda: 7), timeout=20) == 7
    answer.set()
    await asyncio.gather(*waiting)
    assert most[0] <= THREADS


@pytest.mark.parametrize(
    ("table", "connection", "place"),
    [
        ("s3://lake/a/b", "eu", "s3://lake"),
        ("s3://lake", None, "s3://lake"),
        ("hdfs://nn:8020/t", None, "hdfs://nn:8020"),
        ("/data/t", None, "file://"),
        ("file:///data/t", "eu", "file://"),
        ("file:/data/t", "eu", "file://"),
        ("file://host/data/t", "eu", "file://host"),
        ("orders", "eu", "the connection eu"),
        ("orders", None, "the connection None"),
    ],
)
def test_places(table: str, connection: str | None, place: str) -> None:
    assert SharedTimeline(table, connection).place == place


async def test_a_look_that_hangs_is_named(
    table: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    answer = waiting_looks(monkeypatch)
    monkeypatch.setattr(shared_timeline, "_SLOW_SECONDS", 0.1)
    shared = SharedTimeline.of(str(table), None)
    looks = [asyncio.create_task(shared.look(0.03)) for _ in range(3)]
    await asyncio.sleep(0.3)
    answer.set()
    await asyncio.gather(*looks)
    assert [line for line in caplog.messages if "not done" in line] == [
        f"A look at {table} is not done after 0.1 s: its storage does not answer, or many other looks at file:// wait"
    ]


class ClockLoop(asyncio.SelectorEventLoop):
    """An event loop with a clock of its own: where all tasks sleep, it is at once the moment at which the first one
    wakes. Work in threads is done in place (`in_place`), for such a clock does not wait for it.
    """

    def __init__(self) -> None:
        super().__init__(self._Selector(self))
        self.now = 0.0

    def time(self) -> float:
        return self.now

    class _Selector(selectors.DefaultSelector):
        def __init__(self, loop: ClockLoop) -> None:
            super().__init__()
            self._loop = loop

        def select(self, timeout: float | None = None) -> Any:
            self._loop.now += timeout or 0.0
            return super().select(0)


def in_place(_: SharedTimeline, work: Callable[..., Any], *arguments: Any) -> asyncio.Future[Any]:
    done = asyncio.get_running_loop().create_future()
    done.set_result(work(*arguments))
    return done


def test_waits_and_watchers_of_a_table_fall_into_step(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty triggers that began at different moments take one listing an interval."""
    interval, loop = 0.4, ClockLoop()
    look, looks = TimelineReader.look, []
    monkeypatch.setattr(TimelineReader, "look", lambda reader: looks.append(loop.time()) or look(reader))
    monkeypatch.setattr(SharedTimeline, "in_thread", in_place)
    for module in (shared_timeline, timeline_events, wait):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=loop.time, time=loop.time))

    def waiting() -> HudiConditionTrigger:
        condition = InstantCondition("compaction").to_json()
        return HudiConditionTrigger(table=str(table), condition=condition, hudi_conn_id=None, poll_interval=interval)

    async def run() -> None:
        watcher = HudiTimelineEventTrigger(table=str(table), hudi_conn_id=None, poll_interval=interval)
        tasks = [asyncio.create_task(anext(trigger.run())) for trigger in [watcher, *(waiting() for _ in range(10))]]
        for _ in range(9):
            await asyncio.sleep(interval / 10)
            tasks.append(asyncio.create_task(anext(waiting().run())))
        await asyncio.sleep(2 * interval)
        looks.clear()
        await asyncio.sleep(5 * interval)
        assert not any(task.done() for task in tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    with closing(loop):
        loop.run_until_complete(run())
    assert [later - earlier for earlier, later in pairwise(looks)] == [pytest.approx(interval)] * 4
