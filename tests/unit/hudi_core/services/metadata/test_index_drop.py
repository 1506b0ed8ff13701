"""Row-level indexes that are dropped or rebuilt: delisted first, their files are deleted when no write is at work that
may tag by them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from hudi_core.config.metadata_config import REBUILD_ROW_INDEXES
from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConflictError, CorruptFileError, FormatError
from hudi_core.metadata_table.initialize.initialize import MetadataCreation
from hudi_core.metadata_table.partition_type import is_row_level
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.model.names import WriteToken
from hudi_core.services.indexing.build import group_counts
from hudi_core.services.indexing.job import IndexingJob
from hudi_core.services.metadata import index_drop, maintain
from hudi_core.services.metadata.index_drop import PLAN, drop_metadata
from hudi_core.services.metadata.initialization import Initializations, Snapshot
from hudi_core.services.metadata.maintain import Updated, create_metadata, update_metadata
from hudi_core.services.unschedule import unschedule
from hudi_core.services.waiting import wait_for_writers
from hudi_core.storage.base import Storage
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.instant import Action
from hudi_core.transaction.owner import Owner
from hudi_core.verbs.metadata import MetadataDropRequest
from tests.support.fault_storage import FaultPlan, FaultStorage, InjectedCrash
from tests.support.golden_cleans import context_of
from tests.support.golden_data import GoldenCase
from tests.support.kill_points import killed_at_each_change
from tests.support.metadata_records import Table
from tests.support.table_requests import perform
from tests.unit.hudi_core.metadata_table.initialize.test_exchange import timeless
from tests.unit.hudi_core.services.indexing.test_build_resize import RECORD_INDEX, groups, plan
from tests.unit.hudi_core.services.indexing.test_job import run as run_indexing
from tests.unit.hudi_core.services.metadata.test_catch_up import (
    NEVER,
    OF_9,
    REBUILDS,
    commits_of,
    findings,
    forget_these,
    updated,
)
from tests.unit.hudi_core.services.metadata.test_catch_up_missing_actions import missing
from tests.unit.hudi_core.services.metadata.test_columns_concurrent_writers import (
    AT_ONCE,
    BEATS,
    assert_said_once,
    at_work,
    beat,
)

Golden = Callable[[str, str], GoldenCase]
OWNER = Owner.current("test")
ENGINE = LocalEngine(2)


def files_of(table: Table, name: str = "record_index") -> int:
    return len(table.storage.list_files(f"{ROOT}/{name}"))


def drop(table: Table, *names: str, options: dict[str, str] | None = None) -> dict[str, Any]:
    request = MetadataDropRequest(str(table.path), partitions=names)
    return dict(perform(context_of(table.path, options or {}), request, ENGINE, OWNER).document or {})


@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize("names", [("record_index",), ("files",)])
def test_a_drop_waits_for_writes_that_may_tag_by_the_index(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, version: str, names: tuple[str, ...]
) -> None:
    table = Table(golden(version, "mdt_record_index_lookup").table)
    whole, writer = files_of(table), at_work(table)
    seen: list[tuple[bool, int]] = []

    def wait(context: Any, awaited: frozenset[str]) -> frozenset[str]:
        assert awaited == {writer}
        with context.lock(Owner.current("the writer")):
            seen.append(("record_index" in table.config.metadata_partitions, files_of(table)))
        table.data.delete_instant(writer, Action.COMMIT)
        return wait_for_writers(context, awaited)

    monkeypatch.setattr(index_drop, "wait_for_writers", wait)
    done = drop(table, *names, options=BEATS)
    assert seen == [(False, whole)], "off the list, and whole, and the writer gets the lock"
    assert "record_index" in done["dropped"]
    assert files_of(table) == 0
    assert table.config.metadata_partitions == frozenset() if names == ("files",) else findings(table) == []


def test_a_drop_says_at_once_for_whom_it_waits(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table = Table(golden("9", "mdt_record_index_lookup").table)
    writer = at_work(table)

    def ends(_: float) -> None:
        table.data.delete_instant(writer, Action.COMMIT)

    monkeypatch.setattr(index_drop, "wait_for_writers", lambda *given: wait_for_writers(*given, sleep=ends))
    drop(table, "record_index", options=BEATS)
    assert_said_once(caplog, writer)


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_drop_that_timed_out_is_run_again(golden: Golden, version: str) -> None:
    table = Table(golden(version, "mdt_record_index_lookup").table)
    whole, writer = files_of(table), at_work(table)
    for _ in range(2):
        with pytest.raises(ConflictError, match=f"{writer}, which began before, is still at work"):
            drop(table, "record_index", options=AT_ONCE)
        assert ("record_index" in table.config.metadata_partitions, files_of(table)) == (False, whole)
    beat(table, writer, ago=3600)
    assert drop(table, "record_index", options=AT_ONCE)["dropped"] == ["record_index"]
    assert files_of(table) == 0


def test_an_index_that_a_writer_builds_meanwhile_stays(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    """Real Hudi's does, where its options enable the index: it uses it from then on."""
    table = Table(golden("8", "mdt_record_index_lookup").table)
    writer = at_work(table)

    def wait(context: Any, awaited: frozenset[str]) -> frozenset[str]:
        table.data.delete_instant(writer, Action.COMMIT)
        create_metadata(context, ["record_index"], ENGINE, Owner.current("the writer"), 7)
        return frozenset()

    monkeypatch.setattr(index_drop, "wait_for_writers", wait)
    with pytest.raises(ConflictError, match="rebuilt record_index meanwhile"):
        drop(table, "record_index", options=BEATS)
    assert "record_index" in table.config.metadata_partitions
    assert findings(table) == []


@pytest.mark.parametrize("version", ["8", "9"])
def test_an_unscheduled_resize_does_not_delete_an_index_in_use(golden: Golden, version: str) -> None:
    table = Table(golden(version, "mdt_record_index_lookup").table)
    whole, options = files_of(table), RECORD_INDEX | groups(3)
    instant = plan(table.path, options).instant
    writer = at_work(table, instant=str(int(instant) - 1))
    with pytest.raises(ConflictError, match="still at work"):
        run_indexing(table.path, instant, options | AT_ONCE)
    assert "record_index" not in table.config.metadata_partitions
    with pytest.raises(ConflictError, match=f"record_index may be in use by {writer}"):
        unschedule(context_of(table.path, BEATS), instant, OWNER)
    assert files_of(table) == whole
    beat(table, writer, ago=3600)
    unschedule(context_of(table.path, BEATS), instant, OWNER)
    assert files_of(table) == 0


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_resize_does_not_complete_with_the_number_of_another_writer(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    """A writer that enables the index builds and lists it before the run's build begins."""
    table = Table(golden(version, "mdt_record_index_lookup").table)
    options = RECORD_INDEX | groups(3)
    instant, runs, metadata_timeline = plan(table.path, options).instant, list[int](), IndexingJob._delist_misfits

    def delist(self: IndexingJob, *arguments: Any) -> None:
        metadata_timeline(self, *arguments)
        if not runs:
            runs.append(1)
            build_beside(table, instant, 7)

    monkeypatch.setattr(IndexingJob, "_delist_misfits", delist)
    with pytest.raises(ConflictError, match="built record_index itself meanwhile"):
        run_indexing(table.path, instant, options)
    assert group_counts(table.storage, "record_index") == {"record-index": 7}
    assert run_indexing(table.path, instant, options) == "completed"
    assert group_counts(table.storage, "record_index") == {"record-index": 3}
    assert findings(table) == []


def build_beside(table: Table, indexing: str, count: int) -> None:
    """As a writer of Hudi builds an index, which does not look whether another process builds it."""
    least, most = (f"hoodie.metadata.record.index.{end}.filegroup.count" for end in ("min", "max"))
    context = context_of(table.path, {least: str(count), most: str(count)})
    initialized = Initializations(context, context.workers(ENGINE, 0)).initialization(
        "record_index", Snapshot.of(context), {}
    )
    creation = MetadataCreation(context.storage, WriteToken(0, 99, 0), context.clock())
    creation._begin(*creation._data(), initialized)


# Indexes that are rebuilt, as a missing commit cannot be applied to them


def rebuilt(
    table: Table, options: dict[str, str] | None = None, storage: Storage | None = None, owner: Owner = OWNER
) -> Updated:
    of_9 = OF_9 if table.config.raw["hoodie.table.version"] == "9" else {}
    chosen = NEVER | of_9 | {REBUILD_ROW_INDEXES.name: "true"} | (options or {})
    return update_metadata(context_of(table.path, chosen, storage), ENGINE, owner, 3)


def row_indexes(table: Table) -> set[str]:
    return {name for name in table.config.metadata_partitions if is_row_level(name)}


@pytest.mark.slow
@pytest.mark.parametrize("version", ["8", "9"])
def test_a_rebuild_waits_for_writes_that_may_tag_by_the_index(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    table = Table(golden(version, "mdt_all_mor").table)
    indexes, before = row_indexes(table), timeless(table.live())
    missing = commits_of(table)[-2]
    forget_these(table, [missing])
    whole, writer, seen = files_of(table), at_work(table), list[tuple[set[str], int]]()

    def wait(context: Any, awaited: frozenset[str], **rules: Any) -> frozenset[str]:
        if awaited:
            assert awaited == {writer}
            with context.lock(Owner.current("the writer")):
                seen.append((row_indexes(table), files_of(table)))
            table.data.delete_instant(writer, Action.COMMIT)
        return wait_for_writers(context, awaited, **rules)

    monkeypatch.setattr(maintain, "wait_for_writers", wait)
    done = rebuilt(table, BEATS)
    assert (done.applied, set(done.rebuilt)) == ((missing,), indexes)
    assert seen == [(set(), whole)], "off the list, and whole, and the writer gets the lock"
    after = timeless(table.live())
    assert {name: after[name] for name in indexes} == {name: before[name] for name in indexes}
    assert findings(table) == []
    assert not table.storage.exists(PLAN)


@pytest.mark.slow
def test_a_rebuild_waits_for_writes_that_began_without_the_index(
    golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a write records nothing in an index that is listed when it completes."""
    table = Table(golden("9", "mdt_all_mor").table)
    forget_these(table, commits_of(table)[-2:-1])
    waited = list[set[str]]()

    def wait(context: Any, awaited: frozenset[str], **rules: Any) -> frozenset[str]:
        waited.append(set(awaited))
        if len(waited) == 1:
            at_work(table)
        else:
            (writer,) = awaited
            assert row_indexes(table) == set()
            table.data.delete_instant(writer, Action.COMMIT)
        return wait_for_writers(context, awaited, **rules)

    monkeypatch.setattr(maintain, "wait_for_writers", wait)
    assert row_indexes(table) == set(rebuilt(table, BEATS).rebuilt)
    assert [len(item) for item in waited] == [0, 1]
    assert findings(table) == []


@pytest.mark.slow
@pytest.mark.parametrize("version", ["8", "9"])
def test_a_rebuild_that_timed_out_is_continued(golden: Golden, version: str) -> None:
    """By the next update, whatever its options."""
    table = Table(golden(version, "mdt_all_mor").table)
    indexes = row_indexes(table)
    forget_these(table, commits_of(table)[-2:-1])
    whole, writer = files_of(table), at_work(table)
    for _ in range(2):
        with pytest.raises(ConflictError, match=f"{writer}, which began before"):
            rebuilt(table, AT_ONCE)
        assert row_indexes(table) == set()
        assert files_of(table) == whole
        assert missing(table) == [], "everything else is kept up"
    table.data.delete_instant(writer, Action.COMMIT)
    done = rebuilt(table, {REBUILD_ROW_INDEXES.name: "false"})
    assert set(done.rebuilt) == indexes == row_indexes(table)
    assert findings(table) == []
    assert rebuilt(table).rebuilt == ()


def test_version_6_rebuilds_nothing_beside_a_write(golden: Golden) -> None:
    """Nothing begins there while an action is pending."""
    table = Table(golden("6", "mdt_all_mor").table)
    indexes = row_indexes(table)
    forget_these(table, commits_of(table)[-2:-1])
    writer = at_work(table)
    with pytest.raises(ConflictError, match="cannot begin while actions of the table are pending"):
        rebuilt(table, BEATS)
    assert row_indexes(table) == indexes
    assert not table.storage.exists(PLAN)
    table.data.delete_instant(writer, Action.COMMIT)
    assert set(rebuilt(table).rebuilt) == indexes


EVERYWHERE = [
    pytest.param("9", 30),
    *(pytest.param(version, 1, marks=pytest.mark.conformance) for version in ("6", "8", "9")),
]


@pytest.mark.slow
@pytest.mark.parametrize(("version", "step"), EVERYWHERE)
def test_killed_anywhere_a_rebuild_is_continued(golden: Golden, version: str, step: int) -> None:
    origin = golden(version, "mdt_all_mor").table
    indexes = row_indexes(Table(origin))
    forget_these(Table(origin), commits_of(Table(origin))[-2:-1])
    crashes = 0
    for at, table in killed_at_each_change(
        origin, step, lambda table, storage: rebuilt(table, None, storage, replace(OWNER, process_start="1"))
    ):
        crashes += 1
        rebuilt(table)
        assert row_indexes(table) == indexes, at
        assert not table.storage.exists(PLAN), at
        assert findings(table) == [], at
    assert crashes > 1


def test_what_is_dropped_is_not_rebuilt(golden: Golden) -> None:
    table = Table(golden("9", "mdt_all_mor").table)
    forget_these(table, commits_of(table)[-2:-1])
    at_work(table)
    with pytest.raises(ConflictError):
        rebuilt(table, AT_ONCE)
    table.data.delete_instant(table.data.load().pending().instants[-1].requested_time, Action.COMMIT)
    drop_metadata(context_of(table.path), ["record_index"], OWNER)
    assert "record_index" not in rebuilt(table).rebuilt
    assert "record_index" not in table.config.metadata_partitions
    drop_metadata(context_of(table.path), ["files"], OWNER)
    assert not table.storage.exists(PLAN)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b'{"indexes": "record_index"}',
        b'{"indexes": ["column_stats"]}',
        b'{"indexes": ["secondary_index_../x"]}',
    ],
)
def test_a_damaged_plan_is_refused(golden: Golden, content: bytes) -> None:
    table = Table(golden("9", "mdt_all_mor").table)
    table.storage.write(PLAN, content)
    names = table.metadata_timeline.names()
    with pytest.raises((CorruptFileError, FormatError)) as caught:
        rebuilt(table)
    assert PLAN in str(caught.value)
    assert table.metadata_timeline.names() == names


@pytest.mark.slow
def test_a_killed_rebuild_leaves_nothing_stale(golden: Golden) -> None:
    """The indexes are not listed any more; the next update builds them, whatever its options."""
    table = Table(golden("9", "mdt_all_mor").table)
    rows = {name for name in table.config.metadata_partitions if is_row_level(name)}
    forget_these(table, commits_of(table)[-2:-1])
    plan = FaultPlan(
        when=lambda operation: (
            operation.path.startswith(f"{ROOT}/record_index/") and operation.kind == "create_exclusive"
        )
    )
    with pytest.raises(InjectedCrash):
        updated(table, FaultStorage(LocalStorage(table.path), plan), REBUILDS)
    assert table.config.metadata_partitions.isdisjoint(rows)
    assert findings(table) == []
    done = updated(table)
    assert (done.applied, set(done.rebuilt)) == ((), rows)
    assert table.config.metadata_partitions >= rows
    assert findings(table) == []
