"""The archives that real Hudi wrote, in both layouts: nothing is lost between the archive and the active timeline."""

from __future__ import annotations

import pytest

from hudi_core.config.table_config import TableConfig
from hudi_core.history.archived import ArchivedTimeline, CompletionTimes, latest_commits, load_history
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import State
from hudi_core.timeline.schemas import schema_of
from tests.support.golden_timelines import info_of, load_table
from tests.support.memory_storage import MemoryStorage

CASES = [(version, case) for version in ("6", "8", "9") for case in ("archived_timeline_cow", "archived_timeline_mor")]


def _open(version: str, case: str) -> tuple[MemoryStorage, TableConfig, ActiveTimeline, ArchivedTimeline]:
    storage = load_table(case, version)
    config = TableConfig.load(storage)
    return storage, config, ActiveTimeline(storage, config), load_history(storage, config)


@pytest.mark.parametrize(("version", "case"), CASES)
def test_archive_and_active_timeline_are_all_that_ever_happened(version: str, case: str) -> None:
    _, _, active, history = _open(version, case)
    reported = {
        tuple(text.split(" ")[:2])
        for operation in info_of(case, version)["operations"]
        for text in operation["new_instants"]
    }
    expected = {(time, action.split("(")[0]) for time, action in reported}
    archived = {(instant.requested_time, instant.action) for instant in history.instants()}
    live = {(instant.requested_time, instant.action) for instant in active.load().completed()}
    assert archived
    assert archived | live == expected
    assert not archived & live


@pytest.mark.parametrize(("version", "case"), CASES)
def test_what_an_archived_instant_says(version: str, case: str) -> None:
    _, _, _, history = _open(version, case)
    timeline = history.timeline()
    assert all(instant.state is State.COMPLETED for instant in timeline)
    commits = dict(history.commits(timeline))
    assert set(commits) == set(timeline.commits())
    for instant, metadata in commits.items():
        assert metadata == history.commit(instant.requested_time)
        assert metadata.schema_text
        assert all(stat.path.endswith(("parquet", "-0")) or ".log." in stat.path for stat in metadata.write_stats())
        assert any(instant.requested_time in stat.path or ".log." in stat.path for stat in metadata.write_stats())
        metadata.check_paths(source="archive")
        assert history.content(instant)["operationType"] == metadata.operation_type
        assert bool(history.plan(instant)) == (metadata.operation_type in ("COMPACT", "INSERT_OVERWRITE"))
    for clean in timeline.of_actions("clean"):
        assert "startCleanTime" in history.content(clean)
        assert history.commit(clean.requested_time) is None


@pytest.mark.parametrize(("version", "case"), CASES)
def test_ranges(version: str, case: str) -> None:
    _, _, _, history = _open(version, case)
    every = history.instants()
    assert [instant.requested_time for instant in every] == sorted(instant.requested_time for instant in every)
    first, second, *_, last = every
    assert history.instants(after=first.requested_time) == every[1:]
    assert history.instants(up_to=second.requested_time) == every[:2]
    assert history.instants(first.requested_time, second.requested_time) == [second]
    assert history.instants(after=last.requested_time) == []
    assert history.completed_in(None, None) == sorted(
        every, key=lambda instant: (instant.completed_at, instant.sort_key)
    )
    assert history.completed_in(first.completed_at, second.completed_at) == [second]
    assert history.completed_in(None, first.completed_at) == [first]


@pytest.mark.parametrize(("version", "case"), CASES)
def test_completion_times_come_from_both(version: str, case: str) -> None:
    _, _, active, history = _open(version, case)
    timeline = active.load()
    times = CompletionTimes(timeline, lambda: history)
    for instant in [*history.instants(), *timeline.completed()]:
        assert times.of(instant.requested_time) == instant.completed_at
        assert (instant.completion_time is None) == (version == "6")
        assert instant.completed_at >= instant.requested_time
    assert times.of("20200101000000000") is None
    assert times.of("29990101000000000") is None


@pytest.mark.parametrize(("version", "case"), CASES)
def test_a_schema_that_only_the_archive_has(version: str, case: str) -> None:
    storage, _, active, history = _open(version, case)
    timeline = active.load()
    nothing = timeline.before("0")
    schema = schema_of(nothing, active.read_details, archived=lambda: latest_commits(history))
    assert schema == schema_of(timeline, active.read_details)
    assert storage.exists(".hoodie/hoodie.properties")


def test_the_archive_is_not_touched_without_a_request() -> None:
    storage = load_table("archived_timeline_mor", "9")
    config = TableConfig.load(storage)
    timeline = ActiveTimeline(storage, config).load()
    for info in storage.list_files(config.history_folder):
        storage.write(info.path, b"broken")
    history = load_history(storage, config)
    times = CompletionTimes(timeline, lambda: history)
    last = timeline.completed().instants[-1]
    assert times.of(last.requested_time) == last.completion_time


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_table_that_was_never_archived_has_an_empty_archive(version: str) -> None:
    storage = load_table("cow_basic", version)
    history = load_history(storage, TableConfig.load(storage))
    assert history.instants() == []
    assert history.completed_in(None, None) == []
    assert history.commit("20261120223013006") is None
    assert history.completion_time("20261120223013006") is None
    assert len(history.timeline()) == 0
    assert list(latest_commits(history)) == []


def test_the_metadata_table_has_an_archive_of_its_own() -> None:
    storage = load_table("archived_timeline_mor", "9")
    config = TableConfig.load(storage)
    every = load_history(storage, config).instants()
    for info in storage.list_files(config.history_folder):
        storage.write(f".hoodie/metadata/{info.path}", storage.read(info.path))
        storage.delete(info.path)
    assert load_history(storage, config).instants() == []
    assert load_history(storage, config, ".hoodie/metadata").instants() == every
