"""Hudi's heartbeats, and which writes have failed by each policy."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_core.config.concurrency_config import HeartbeatConfig
from hudi_core.errors import ConfigError
from hudi_core.model.names import HUDI_HEARTBEATS, FileGroupId
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.instant_time import parse_instant
from hudi_core.timeline.pending_plans import pending_ingestion
from hudi_core.transaction.writer_heartbeats import (
    FailedWrites,
    Heartbeats,
    came_with_a_copy,
    eager_writers,
    expired_writes,
    failed_writes_policy,
    may_be_alive,
    read_heartbeats,
    silent_seconds,
    warn_of_eager_writers,
)
from tests.support.changed_tables import open_context
from tests.support.golden_data import GoldenCase
from tests.support.golden_timelines import load_timelines, timelines_of
from tests.support.inflight_compactions import Layout
from tests.support.memory_storage import MemoryStorage
from tests.support.pending_operations import Operations

BEAT = HeartbeatConfig(60_000, 2)
A, B, C, D, E, F = (f"2026112021490500{number}" for number in range(6))


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_heartbeat_is_alive_up_to_the_interval_times_the_misses() -> None:
    clock = Clock()
    storage = MemoryStorage(clock=clock)
    storage.write(f"{HUDI_HEARTBEATS}/{A}", b"")
    clock.now = 1100.0
    storage.write(f"{HUDI_HEARTBEATS}/{B}", b"")
    storage.write(f"{HUDI_HEARTBEATS}/.{B}.crc", b"")
    storage.write(f"{HUDI_HEARTBEATS}/not-an-instant", b"")
    clock.now = 1120.0
    beats = read_heartbeats(storage, BEAT)
    assert beats == Heartbeats({A: 1000.0, B: 1100.0}, 1120.0, 120.0)
    assert (beats.age(A), beats.age(B), beats.age(C)) == (120.0, 20.0, None)
    assert [beats.is_expired(instant) for instant in (A, B, C)] == [False, False, True]
    clock.now = 1120.001
    assert read_heartbeats(storage, BEAT).live() == {B}
    assert storage.list_files(".hoodie/.airflow_hudi/clock") == []


def test_a_dry_run_writes_nothing_to_know_the_time() -> None:
    storage = MemoryStorage(clock=lambda: 0.0)
    storage.write(f"{HUDI_HEARTBEATS}/{A}", b"")
    before = storage.list_folders(".hoodie")
    assert read_heartbeats(storage, BEAT, now=lambda: 121.0).live() == frozenset()
    assert storage.list_folders(".hoodie") == before


def test_the_policy_is_lazy_unless_the_run_says_otherwise() -> None:
    assert failed_writes_policy({}) is FailedWrites.LAZY
    assert failed_writes_policy({"hoodie.cleaner.policy.failed.writes": "eager"}) is FailedWrites.EAGER
    assert failed_writes_policy({"hoodie.clean.failed.writes.policy": "NEVER"}) is FailedWrites.NEVER
    with pytest.raises(ConfigError, match=r"hoodie\.cleaner\.policy\.failed\.writes"):
        failed_writes_policy({"hoodie.cleaner.policy.failed.writes": "sometimes"})


class Writers:
    """A timeline with pending instants of every action, the clock far ahead of them."""

    def __init__(self, layout: int) -> None:
        self.clock = Clock()
        self.storage = MemoryStorage(clock=self.clock)
        self.active = ActiveTimeline(self.storage, Layout(layout))
        self.pend(A, Action.DELTA_COMMIT)
        self.pend(B, Action.COMPACTION)
        Operations(self.active).overwrite(C)
        Operations(self.active).cluster(D, FileGroupId("p", "f-0"), started=False)
        self.active.create_requested(E, Action.COMMIT)
        self.pend(F, Action.CLEAN)
        self.clock.now = 10_000.0

    def pend(self, time: str, action: str) -> None:
        self.active.create_requested(time, action, b"plan")
        self.active.to_inflight(time, action)

    def beats(self) -> Heartbeats:
        return read_heartbeats(self.storage, BEAT)

    def expired(self, policy: FailedWrites = FailedWrites.LAZY) -> list[str]:
        return [
            instant.requested_time for instant in expired_writes(self.active, self.active.load(), self.beats(), policy)
        ]


@pytest.fixture(params=[1, 2])
def writers(request: pytest.FixtureRequest) -> Writers:
    return Writers(request.param)


def test_only_ingestion_fails_services_are_run_again(writers: Writers) -> None:
    found = pending_ingestion(writers.active, writers.active.load())
    assert [instant.requested_time for instant in found] == [A, C, E]


def test_lazy_takes_those_whose_heartbeat_expired_newest_first(writers: Writers) -> None:
    assert writers.expired() == [E, C, A]
    writers.storage.write(f"{HUDI_HEARTBEATS}/{C}", b"")
    assert writers.expired() == [E, A]
    writers.clock.now += 120.5
    assert writers.expired() == [E, C, A]


def test_eager_takes_all_of_them_and_never_none(writers: Writers) -> None:
    writers.storage.write(f"{HUDI_HEARTBEATS}/{C}", b"")
    assert writers.expired(FailedWrites.EAGER) == [E, C, A]
    assert writers.expired(FailedWrites.NEVER) == []


def test_a_young_write_without_a_heartbeat_is_not_taken_for_dead_but_its_writer_for_eager(
    writers: Writers, caplog: pytest.LogCaptureFixture
) -> None:
    assert warn_of_eager_writers(writers.active, writers.active.load(), writers.beats()) == []
    assert not caplog.records
    young = "20261120214905009"
    writers.pend(young, Action.DELTA_COMMIT)
    writers.clock.now += 100
    assert young not in writers.expired()
    found = warn_of_eager_writers(writers.active, writers.active.load(), writers.beats())
    assert [instant.requested_time for instant in found] == [young]
    assert young in caplog.text
    assert "hoodie.cleaner.policy.failed.writes" in caplog.text
    writers.clock.now += 100
    assert young in writers.expired()
    assert eager_writers(writers.active, writers.active.load(), writers.beats()) == []


def test_a_silent_write_gets_an_hour_unless_lazy_is_set_by_name(writers: Writers) -> None:
    """An EAGER writer may work for long and never beats; where LAZY is set by name every writer does."""
    young = "20261120214905009"
    writers.pend(young, Action.DELTA_COMMIT)
    writers.clock.now += 3500
    by_default, lazy = silent_seconds({}), silent_seconds({"hoodie.cleaner.policy.failed.writes": "LAZY"})

    def expired(silent: float) -> list[str]:
        beats = read_heartbeats(writers.storage, BEAT, silent_seconds=silent)
        return [instant.requested_time for instant in expired_writes(writers.active, writers.active.load(), beats)]

    assert young not in expired(by_default)
    assert young in expired(lazy)
    writers.clock.now += 200
    assert young in expired(by_default)
    assert silent_seconds({"airflow_hudi.failed_writes.silent_minutes": "5"}) == 300


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_silent_write_in_a_copy_of_a_table_has_failed(
    golden: Callable[[str, str], GoldenCase], version: str, tmp_path: Path
) -> None:
    """No process writes to the copy. Copies that keep the times of modification, and what begins on a copy, are judged
    by their age.
    """
    case = golden(version, "failed_inflight_mor")
    for file in (case.table / open_context(case.table).active.folder).glob("2*.*"):
        moment = parse_instant(file.name.partition(".")[0].partition("_")[0], "UTC").timestamp()
        os.utime(file, (moment, moment))
    copy, kept = tmp_path / "copy", tmp_path / "kept"
    shutil.copytree(case.table, copy, copy_function=shutil.copyfile)
    shutil.copytree(case.table, kept)
    (operation,) = open_context(copy).active.load().pending()
    copied_at = parse_instant(operation.requested_time, "UTC").timestamp() + 86_400 + 450
    for file in (copy / open_context(copy).active.folder).glob("2*.*"):
        os.utime(file, (copied_at, copied_at))
    for table, young in ((case.table, True), (kept, True), (copy, False)):
        context = open_context(table)
        active, timeline = context.active, context.active.load()
        (pending,) = timeline.pending()
        changed = active.modified()
        beats = Heartbeats({}, changed[active.path_of(pending)] + 60, 120.0, 3600.0)
        assert may_be_alive(pending, active, changed, beats) is young
    operation_start = pending.requested_time
    ours = f"{int(operation_start) + 10_000_000_000}"  # the next year: on the copy, some minutes after it was made
    active = open_context(copy).active
    active.create_requested(ours, Action.DELTA_COMMIT)
    changed = active.modified()
    started, begun = (active.path(time, Action.DELTA_COMMIT, State.REQUESTED) for time in (operation_start, ours))
    changed[begun] += 600
    assert (came_with_a_copy(started, changed), came_with_a_copy(begun, changed)) == (True, False)


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("zone_minutes", [0, 345, -570])
@pytest.mark.parametrize(("late", "is_copied"), [(0.2, False), (8, False), (-2, False), (20, True), (-20, True)])
def test_a_write_that_began_right_after_its_table_was_copied_is_alive(
    layout: int, zone_minutes: int, late: float, is_copied: bool
) -> None:
    """Its requested file is of its own time, in the zone of the table; all other files are of the copy's."""
    clock = Clock()
    storage = MemoryStorage(clock=clock)
    active = ActiveTimeline(storage, Layout(layout))
    older, fresh = "20261124120000000", "20261128052945678"
    clock.now = parse_instant(fresh, "UTC").timestamp() - 60 * zone_minutes - 3
    for time in (A, older):
        active.create_requested(time, Action.DELTA_COMMIT)
        active.to_inflight(time, Action.DELTA_COMMIT)
    clock.now += 3 + late
    active.create_requested(fresh, Action.DELTA_COMMIT)
    changed = active.modified()
    beats = Heartbeats({}, clock.now + 60, 120.0, 3600.0)
    alive = [item for item in active.load().pending() if may_be_alive(item, active, changed, beats)]
    assert [item.requested_time for item in alive] == [A] + ([] if is_copied else [fresh])
    copied = [active.path(time, Action.DELTA_COMMIT, State.REQUESTED) for time in (older, fresh)]
    assert [came_with_a_copy(path, changed) for path in copied] == [True, is_copied]


def test_many_young_writes_are_not_compared_with_each_other(writers: Writers) -> None:
    class Counted(dict[str, float]):
        looks = 0

        def items(self) -> Any:
            for item in super().items():
                self.looks += 1
                yield item

    times = [f"20261121{hour:02d}{minute:02d}00000" for hour in range(4) for minute in range(60)]
    for time in times:
        writers.pend(time, Action.DELTA_COMMIT)
        writers.clock.now += 60
    changed = Counted(writers.active.modified())
    pending = [item for item in writers.active.load().pending() if item.requested_time in times]
    beats = Heartbeats({}, writers.clock.now, 120.0, 1e6)
    assert all(may_be_alive(item, writers.active, changed, beats) for item in pending)
    assert len(pending) == len(times)
    assert changed.looks < 20 * len(times)


def test_a_young_write_whose_heartbeat_stopped_has_failed(writers: Writers) -> None:
    """A heartbeat that is there and old is a death certificate, whenever the instant last changed."""
    writers.storage.write(f"{HUDI_HEARTBEATS}/{A}", b"")
    writers.clock.now += 121
    writers.storage.write(writers.active.path_of(writers.active.load().get(A, Action.DELTA_COMMIT)), b"touched")
    assert A in writers.expired()


@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize("case", ["failed_inflight_cow", "failed_inflight_mor", "failed_inflight_mor_direct_markers"])
def test_the_failed_writes_of_real_hudi(version: str, case: str) -> None:
    storage = load_timelines(case, version)
    active = timelines_of(storage)[0]
    timeline = active.load()
    beats = Heartbeats({}, 2.0**40, 120.0)
    pending = [instant.requested_time for instant in timeline.pending()]
    assert [instant.requested_time for instant in expired_writes(active, timeline, beats)] == pending
    assert len(pending) == 1


@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize(
    "case", ["compaction_inflight", "clustering_requested_cow", "clean_requested_mor", "indexing_requested"]
)
def test_the_pending_services_of_real_hudi_have_not_failed(version: str, case: str) -> None:
    active = timelines_of(load_timelines(case, version))[0]
    assert active.load().pending()
    assert expired_writes(active, active.load(), Heartbeats({}, 2.0**40, 120.0), FailedWrites.EAGER) == []
