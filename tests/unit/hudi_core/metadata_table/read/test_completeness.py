"""What real Hudi leaves out of indexes is in tests/golden/test_stale_indexes.py; here is what is not known."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace

import pytest

from hudi_core.config.table_config import update_properties
from hudi_core.filegroup.merge.table_policy import MERGE_MODE_KEY
from hudi_core.metadata_table.indexed_table import load_index_definitions, put_index_definitions
from hudi_core.metadata_table.instants import marks
from hudi_core.metadata_table.partition_type import RECORD_INDEX
from hudi_core.metadata_table.read.completeness import indexes_in_doubt
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.metadata_table.read.snapshot import MetadataTableSnapshot
from hudi_core.timeline.actions.rollback import (
    RestoredInstant,
    RestorePlan,
    encode_restore_plan,
    encode_rollback_plan,
)
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.timeline import Timeline
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import Table
from tests.support.stale_indexes import BULK, INDEX, StaleTable

Golden = Callable[[str, str], GoldenCase]
Stale = Callable[[str], StaleTable]
NAME = "secondary_index_idx_name"
CASES = [(version, case) for version in ("8", "9") for case in ("mdt_all_cow", "mdt_all_mor_compacted")]


def doubt(table: Table, timeline: Timeline | None = None, index: str = NAME) -> frozenset[object] | None:
    metadata = MetadataTable(table.storage, table.config, timeline or table.data.load())
    return metadata.groups_in_doubt(index)


def mark(table: Table, index: str = NAME, timeline: Timeline | None = None) -> None:
    folder = table.storage.list_files(f"{ROOT}/{index}")
    update_properties(table.storage, marks(timeline or table.data.load(), {index: folder}))


@pytest.mark.parametrize(("version", "case"), CASES)
def test_an_index_by_an_indexing_action_is_whole(golden: Golden, version: str, case: str) -> None:
    assert doubt(Table(golden(version, case).table)) == frozenset()


@pytest.mark.parametrize("version", ["8", "9"])
def test_a_merged_commit_with_an_unfinished_savepoint_is_no_uncommitted_one(golden: Golden, version: str) -> None:
    table = Table(golden(version, "mdt_all_mor_compacted").table)
    (first, *_) = table.data.load().commits()
    table.data.to_inflight(first.requested_time, Action.SAVEPOINT)
    assert doubt(table) == frozenset()
    table.data.remove(first.requested_time, first.action, State.COMPLETED)
    assert doubt(table) is None, "so that it is merged"


def last_only(timeline: Timeline) -> Timeline:
    """What archivals leave of it."""
    return Timeline(timeline.completed().instants[-1:])


@pytest.mark.parametrize(("version", "case"), CASES)
def test_nobody_knows_when_the_commits_since_are_archived(golden: Golden, version: str, case: str) -> None:
    table = Table(golden(version, case).table)
    archived = last_only(table.data.load())
    assert doubt(table, archived) is None
    mark(table)
    assert doubt(table, archived) == frozenset(), "our mark"


def test_an_indexing_action_whose_deltacommit_is_archived(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table(golden("9", "mdt_all_cow").table)
    monkeypatch.setattr(MetadataTableSnapshot, "built_at", lambda self, name: None)
    every = table.data.load()
    assert doubt(table, every) == frozenset()
    assert doubt(table, every.filter(lambda item: item.action != Action.INDEXING)) is None


def test_a_mark_is_of_one_folder_and_one_course_of_the_table(golden: Golden) -> None:
    table = Table(golden("9", "mdt_all_cow").table)
    archived = last_only(table.data.load())
    mark(table)
    assert doubt(table, archived) == frozenset()
    later = str(int(max(archived.requested_times)) + 1)
    restored = Timeline([*archived, Instant(later, Action.RESTORE, State.COMPLETED, later)])
    assert doubt(table, restored) is None
    folder = table.path / ROOT / NAME
    shutil.copytree(folder, folder.with_name("kept"), copy_function=shutil.copy)
    shutil.rmtree(folder)
    folder.with_name("kept").rename(folder)
    assert doubt(table, archived) is None, "built again"


def test_a_commit_that_goes_during_the_lookup(stale: Stale, monkeypatch: pytest.MonkeyPatch) -> None:
    table = stale("bulk_v9").table
    timeline = table.data.load()
    last = timeline.commits().after(min(timeline.of_actions(Action.INDEXING).requested_times)).first()
    assert last is not None
    (table.path / table.data.path_of(last)).unlink()
    assert doubt(table, timeline, INDEX) is None


def test_a_mark_before_a_bulk_insert_does_not_hide_it(stale: Stale) -> None:
    table = stale("bulk_v9")
    every = table.table.data.load()
    first = every.commits().first()
    assert first is not None
    mark(table.table, INDEX, every.up_to(first.requested_time))
    assert table.metadata().groups_in_doubt(INDEX)
    assert table.found(BULK) == table.due("name", "bulk name 3")


@pytest.mark.parametrize(
    ("version", "case", "expected"),
    [
        ("8", "mdt_all_mor", {"partition_stats", "expr_index_idx_day"}),
        ("8", "mdt_all_cow", set()),
        ("9", "mdt_all_mor", set()),
        ("9", "mdt_all_cow", set()),
    ],
)
def test_ranges_of_merge_on_read_tables_by_1_0_may_be_narrow(
    golden: Golden, version: str, case: str, expected: set[str]
) -> None:
    table = Table(golden(version, case).table)
    assert indexes_in_doubt(table.storage, table.config) == expected


def test_an_index_of_unknown_age_may_be_narrow(golden: Golden) -> None:
    """An upgrade to version 9 keeps the index of version 8, and its definition."""
    table = Table(golden("9", "mdt_all_mor").table)
    definitions = load_index_definitions(table.storage, table.config)
    put_index_definitions(table.storage, table.config, [replace(definitions["column_stats"], version=1)])
    assert indexes_in_doubt(table.storage, table.config) == {"partition_stats"}
    put_index_definitions(table.storage, table.config, [], ["column_stats"])
    assert indexes_in_doubt(table.storage, table.config) == {"partition_stats"}


@pytest.mark.parametrize(("version", "case"), [("9", "mdt_all_cow"), ("6", "mdt_all_cow")])
def test_a_restore_says_nothing_of_missing_keys(golden: Golden, version: str, case: str) -> None:
    """Copy on write, too: Hudi 1.2 does not bring them back."""
    table = Table(golden(version, case).table)
    data = table.data.load()
    assert doubt(table, data, RECORD_INDEX) == frozenset()
    later = str(int(max(data.requested_times)) + 1)
    completion = later if version == "9" else None
    assert (
        doubt(table, Timeline([*data, Instant(later, Action.RESTORE, State.COMPLETED, completion)]), RECORD_INDEX)
        is None
    )


def test_updates_before_deletions_are_told(stale: Stale) -> None:
    table = stale("again_v9").table
    first, deletion, again = table.data.load().commits()
    assert doubt(table, Timeline([first, again]), RECORD_INDEX) == frozenset()
    update_properties(table.storage, {MERGE_MODE_KEY: "COMMIT_TIME_ORDERING"})
    assert doubt(table, Timeline([first, deletion]), RECORD_INDEX) == frozenset()
    assert len(doubt(table, Timeline([first, deletion, again]), RECORD_INDEX) or ()) == 2


def test_a_deletion_may_lose_by_ordering_values(stale: Stale) -> None:
    """Its row stays then, without a place in the index."""
    table = stale("again_v9").table
    first, deletion, _ = table.data.load().commits()
    assert len(doubt(table, Timeline([first, deletion]), RECORD_INDEX) or ()) == 2
    mark(table, RECORD_INDEX, Timeline([first, deletion]))
    assert doubt(table, Timeline([first, deletion]), RECORD_INDEX) == frozenset()


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_commit_that_became_pending_behind_a_compaction(golden: Golden, version: str) -> None:
    """A rollback that Hudi has started and refused leaves it so. The log blocks of later commits do not count then."""
    table = Table(golden(version, "mdt_all_mor_compacted").table)
    data, own = table.data.load(), table.metadata_timeline.load().completed()
    merged_at = max(own.of_actions(Action.COMMIT).requested_times)
    written = [item for item in data.commits() if own.contains(item.requested_time)]
    answers = {}
    for commit in written:
        pending = replace(commit, state=State.INFLIGHT, completion_time=None)
        timeline = Timeline([pending if item == commit else item for item in data])
        found = MetadataTable(table.storage, table.config, timeline)
        deltacommit = next(item for item in own if item.requested_time == commit.requested_time)
        answers[deltacommit.completed_at < merged_at] = (
            found.completeness.has_true_locations,
            found.groups_in_doubt(RECORD_INDEX),
        )
        if deltacommit.completed_at < merged_at:
            assert found.may_have_narrow_ranges
            assert version == "6" or found.groups_in_doubt(NAME) is None
    assert answers[True] == (False, None)
    assert answers.get(False, (True, frozenset()))[0]


@pytest.mark.parametrize("by_restore", [True, False])
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_commit_that_an_unfinished_rollback_took_off_the_timeline(
    golden: Golden, version: str, *, by_restore: bool
) -> None:
    """Hudi removes the commit's instant first, and then refuses, as a restore beyond a second savepoint does."""
    table = Table(golden(version, "mdt_all_mor_compacted").table)
    data, own = table.data.load(), table.metadata_timeline.load().completed()
    merged_at = max(own.of_actions(Action.COMMIT).requested_times)
    merged = {item.requested_time for item in own if item.completed_at < merged_at}
    (commit, *_) = [item for item in data.commits() if item.requested_time in merged]
    action, plan = Action.ROLLBACK, encode_rollback_plan(commit.requested_time, commit.action, [])
    if by_restore:
        target = RestoredInstant(commit.requested_time, commit.action)
        action, plan = Action.RESTORE, encode_restore_plan(RestorePlan("0", (target,)))
    assert found(table, data).completeness.uncommitted == frozenset()
    rest = Timeline([item for item in data if item != commit])
    pending = table.data.create_requested("20990101000000000", action, plan)
    behind = found(table, Timeline([*rest, pending]))
    assert behind.may_have_narrow_ranges
    assert behind.completeness.uncommitted == {commit.requested_time}
    assert behind.groups_in_doubt(RECORD_INDEX) is None


def found(table: Table, timeline: Timeline) -> MetadataTable:
    return MetadataTable(table.storage, table.config, timeline)
