"""An index whose table changes while it is built: by writers that update it, that do not, and that die."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConflictError, LockError, UnsupportedError
from hudi_core.metadata_table.initialize.indexing import IndexBuild
from hudi_core.services.clean.planner import CleanService
from hudi_core.services.compaction.planner import CompactionService
from hudi_core.services.indexing import job as running
from hudi_core.services.indexing.planner import IndexingService
from hudi_core.services.metadata.index_drop import drop_metadata
from hudi_core.services.waiting import wait_for_writers
from hudi_core.table import HudiTable
from hudi_core.timeline.instant import Action, State
from hudi_core.transaction.owner import Owner
from tests.support.golden_cleans import context_of
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import Table
from tests.support.tiers import tiered
from tests.unit.hudi_core.services.indexing.test_job import differences, planned, run
from tests.unit.hudi_core.services.metadata.test_columns_concurrent_writers import BEATS, assert_said_once

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ("6", "8", "9")
OWNER = Owner.current("test")
ALL = {
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "2",
    "hoodie.metadata.record.index.max.filegroup.count": "2",
}


def schedule(table: Path, options: dict[str, str]) -> str:
    instant = IndexingService().schedule(context_of(table, options), OWNER, dry_run=False).instant
    assert instant is not None
    return instant


def during_the_build(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> list[int]:
    """Does something once, when the base files are written; the builds that were started, counted."""
    fill, initialized = IndexBuild.fill, [0]

    def filled(self: IndexBuild, *arguments: object) -> object:
        found = fill(self, *arguments)  # type: ignore[arg-type]
        initialized[0] += 1
        if initialized[0] == 1:
            act()
        return found

    monkeypatch.setattr(IndexBuild, "fill", filled)
    return initialized


def without_indexes(table: Path) -> None:
    listed = Table(table).config.metadata_partitions
    drop_metadata(context_of(table), listed - {"files"}, OWNER)


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_our_own_compaction_tells_an_index_that_is_being_built(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    table = golden(version, "mor_compaction_requested").table
    (compaction,) = HudiTable.open(str(table)).timeline().pending_compactions()
    without_indexes(table)
    instant = schedule(table, {"hoodie.metadata.index.column.stats.enable": "true"})

    def compact() -> None:
        assert Table(table).config.metadata_partitions_inflight == {"column_stats"}
        done = CompactionService().run(context_of(table), compaction.requested_time, LocalEngine(1), OWNER, None)
        assert done.state == "completed"

    initialized = during_the_build(monkeypatch, compact)
    assert run(table, instant) == "completed"
    assert initialized == [1], "updated, so that nothing was built twice"
    assert "column_stats" in Table(table).config.metadata_partitions
    assert differences(table) == []


def later_commit(table: Table) -> Callable[[], None]:
    """Takes the last commit from the table, also from its metadata table; returns what puts it back.

    As one of a writer that had read the properties before the index was inflight.
    """
    last = table.data.load().commits().last()
    assert last is not None
    kept = {
        path: path.read_bytes()
        for path in table.path.joinpath(table.data.folder).glob(f"{last.requested_time}*")
        if last.requested_time in path.name
    }
    completed = {path: data for path, data in kept.items() if not path.name.endswith((".inflight", ".requested"))}
    assert len(completed) == 1
    for path in completed:
        path.unlink()
    folder = table.path.joinpath(table.metadata_timeline.folder)
    (metadata_timeline,) = folder.glob(f"{last.requested_time}*deltacommit")
    recorded = metadata_timeline.read_bytes()
    metadata_timeline.unlink()

    def commit() -> None:
        metadata_timeline.write_bytes(recorded)
        for path, data in completed.items():
            path.write_bytes(data)

    return commit


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_a_commit_that_does_not_tell_the_index_is_caught_up(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    case = golden(version, "indexing_requested")
    instant = planned(case.table)
    commit = later_commit(Table(case.table))
    monkeypatch.setattr(running, "wait_for_writers", lambda *arguments: frozenset())
    initialized = during_the_build(monkeypatch, commit)
    assert run(case.table, instant) == "completed"
    assert initialized[0] > 1
    assert differences(case.table) == []


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_an_index_that_is_built_under_the_lock_is_not_published_without_it(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    """The last build takes longer than the lock holds, and a writer of Hudi has broken it."""
    path = golden(version, "indexing_requested").table
    instant, lock = planned(path), path / ".hoodie" / "lock"
    commit, fill, builds = later_commit(Table(path)), IndexBuild.fill, list[bool]()

    def filled(self: IndexBuild, *arguments: object) -> object:
        builds.append(lock.exists())
        if builds == [False]:
            commit()
        if lock.exists():
            lock.write_bytes(b"")
        return fill(self, *arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(running, "wait_for_writers", lambda *arguments: frozenset())
        patch.setattr(running, "ATTEMPTS", 1)
        patch.setattr(IndexBuild, "fill", filled)
        with pytest.raises(LockError):
            run(path, instant)
    assert builds[-1], "built under the lock at last"
    table = Table(path)
    assert not table.config.metadata_partitions_inflight.intersection(table.config.metadata_partitions)
    assert "column_stats" in table.config.metadata_partitions_inflight
    lock.unlink()
    assert run(path, instant) == "completed"
    assert "column_stats" in table.config.metadata_partitions
    assert differences(path) == []


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_every_partition_type_is_scheduled_and_built_at_once(golden: Golden, version: str) -> None:
    table = golden(version, "mor_basic").table
    if "files" not in Table(table).config.metadata_partitions:
        pytest.fail("the case has a metadata table")
    without_indexes(table)
    options = ALL | (
        {} if version == "6" else {"hoodie.metadata.index.secondary.column": "name", "hoodie.index.name": "by_name"}
    )
    dry = IndexingService().schedule(context_of(table, options), OWNER, dry_run=True)
    assert (dry.instant, dry.plan is not None) == (None, True)
    instant = schedule(table, options)
    again = IndexingService().schedule(context_of(table, options), OWNER, dry_run=False)
    assert (again.instant, again.plan) == (None, None)
    assert "planned already" in str(again.reason)
    assert run(table, instant, options) == "completed"
    named = {"column_stats", "bloom_filters", "record_index", "files"} | (
        set() if version == "6" else {"secondary_index_by_name"}
    )
    assert Table(table).config.metadata_partitions == named
    assert differences(table) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_a_dropped_index_takes_its_plan_along(golden: Golden, version: str) -> None:
    table = golden(version, "indexing_requested").table
    instant = planned(table)
    drop_metadata(context_of(table), ["column_stats"], OWNER)
    assert not HudiTable.open(str(table)).timeline().contains(instant)


def pending_write(table: Path, instant: str, *, beats: float | None) -> None:
    """A write that began before the index; `beats`: seconds since its last heartbeat."""
    Table(table).data.create_requested(instant, Action.COMMIT)
    Table(table).data.to_inflight(instant, Action.COMMIT)
    if beats is not None:
        beat = table / ".hoodie" / ".heartbeat" / instant
        beat.parent.mkdir(exist_ok=True)
        beat.touch()
        os.utime(beat, (time.time() - beats, time.time() - beats))


def test_a_dead_writer_is_not_waited_for_and_cannot_complete(golden: Golden) -> None:
    table = golden("8", "indexing_requested").table
    instant = planned(table)
    dead = str(int(instant) - 1)
    pending_write(table, dead, beats=3600)
    assert run(table, instant) == "completed"
    assert not HudiTable.open(str(table)).timeline().contains(dead), "rolled back"
    assert differences(table) == []


def test_an_indexing_says_at_once_for_whom_it_waits(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table = golden("9", "indexing_requested").table
    instant = planned(table)
    alive = str(int(instant) - 1)
    pending_write(table, alive, beats=0)

    def ends(_: float) -> None:
        Table(table).data.delete_instant(alive, Action.COMMIT)

    monkeypatch.setattr(running, "wait_for_writers", lambda *given: wait_for_writers(*given, sleep=ends))
    assert run(table, instant, BEATS) == "completed"
    assert_said_once(caplog, alive)


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_a_living_writer_is_waited_for_as_long_as_the_options_say(golden: Golden, version: str) -> None:
    table = golden(version, "indexing_requested").table
    instant = planned(table)
    alive = str(int(instant) - 1)
    pending_write(table, alive, beats=0)
    slept: list[float] = []
    options = {"airflow_hudi.indexing.catchup_minutes": "0"}
    context = context_of(table, options)
    with pytest.raises(ConflictError, match="still at work after 0 minutes"):
        wait_for_writers(context, {alive}, lambda: None, slept.append)
    with pytest.raises(ConflictError, match=alive):
        run(table, instant, {**options, "hoodie.client.heartbeat.interval_in_ms": "60000"})
    table_now = Table(table)
    assert table_now.config.metadata_partitions_inflight == {"column_stats"} | (
        {"bloom_filters"} if version == "9" else set()
    )
    assert table_now.data.load().find(instant, Action.INDEXING).state is State.INFLIGHT

    def ends(seconds: float) -> None:
        slept.append(seconds)
        table_now.data.delete_instant(alive, Action.COMMIT)

    assert wait_for_writers(context_of(table), {alive}, lambda: None, ends) == frozenset()
    assert len(slept) == 1
    assert run(table, instant) == "completed"
    assert differences(table) == []


def test_what_a_table_cannot_have_is_refused(golden: Golden) -> None:
    table = golden("6", "mor_basic").table
    with pytest.raises(UnsupportedError, match="table version 8"):
        schedule(table, {"hoodie.metadata.index.secondary.column": "name"})


def test_a_clean_tells_an_index_that_is_being_built(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    table = golden("8", "clean_requested_cow").table
    (clean,) = HudiTable.open(str(table)).timeline().pending().of_actions(Action.CLEAN)
    without_indexes(table)
    instant = schedule(table, {"hoodie.metadata.index.column.stats.enable": "true"})
    initialized = during_the_build(
        monkeypatch,
        lambda: [CleanService().run(context_of(table), clean.requested_time, LocalEngine(1), OWNER, None)].clear(),
    )
    assert run(table, instant) == "completed"
    assert initialized == [1]
    assert differences(table) == []
