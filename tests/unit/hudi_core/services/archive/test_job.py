"""Archival of golden tables: nothing is lost between timeline and archive, and what the archive says is what the
timeline said.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_core.config.options import KEYS
from hudi_core.config.services.retention_config import ARCHIVE_KEYS, ArchiveConfig
from hudi_core.errors import LockError
from hudi_core.history import archiving
from hudi_core.history.manifest import read_manifest, read_snapshot
from hudi_core.metadata_table.write.staged_logs import staged_instants, staging_folder
from hudi_core.services.archive.job import ArchiveService
from hudi_core.services.service import service_of
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action, Instant, State
from hudi_core.transaction.locks.filesystem import FileSystemLock
from hudi_core.transaction.owner import Owner
from tests.support.golden_archives import CASES, TIGHT, active_of, archive, history_of
from tests.support.golden_cleans import context_of
from tests.support.golden_data import GoldenCase
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import assert_metadata_true, read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]


def recorded_by_the_timeline(table: Path) -> dict[Instant, Any]:
    """What a completed instant's file says, commits without the members that the archive of layout 1 does not keep."""
    active = context_of(table).active
    timeline = active.load().completed()
    return {
        item: essence(active.read_commit(item)) if item.action in COMMIT_ACTIONS else active.read_of(item)
        for item in timeline
    }


def essence(commit: CommitMetadata) -> Any:
    """What both archives keep of a commit."""
    stats = {
        partition: [
            (stat.file_id, stat.path, stat.num_writes, stat.num_inserts, stat.file_size_in_bytes) for stat in found
        ]
        for partition, found in commit.partition_to_write_stats.items()
    }
    operation = "COMPACT" if commit.compacted else commit.operation_type
    return stats, operation, commit.schema_text, dict(commit.replaced_file_ids or {})


@pytest.mark.parametrize(
    ("folder", "name"), tiered(CASES, [("6", "archived_timeline_cow"), ("9", "archived_timeline_mor")])
)
def test_a_table_and_its_history_say_what_they_said(golden: Golden, folder: str, name: str) -> None:
    table = golden(folder, name).table
    rows, recorded = read_rows(table), recorded_by_the_timeline(table)
    before = active_of(table) + history_of(table)
    plans = {
        item: context_of(table).active.read_any(item.requested_time, item.pending_action, State.REQUESTED)
        for item in recorded
    }
    went = archive(table)
    assert len(went) >= 4
    assert sorted(active_of(table) + history_of(table)) == sorted(before)
    assert not set(went) & set(active_of(table))
    assert set(went) <= set(history_of(table))
    assert_metadata_true(table)
    history = context_of(table).history()
    for instant, said in recorded.items():
        if (instant.requested_time, instant.action) not in went:
            continue
        if instant.action in COMMIT_ACTIONS:
            archived = history.commit(instant.requested_time)
            assert archived is not None
            assert essence(archived) == said
        else:
            assert history.content(instant) == said
        assert history.completion_time(instant.requested_time) == (instant.completion_time or instant.requested_time)
        if instant.action == Action.CLEAN or instant.pending_action == Action.COMPACTION:
            assert history.plan(instant) == plans[instant]
    assert_same_rows(read_rows(table), rows)
    commits = {time for time, action in active_of(table) if action in COMMIT_ACTIONS}
    left = [path.name for path in (table / context_of(table).active.folder).iterdir() if path.is_file()]
    assert not [
        item for item in left if any(item.startswith(time) for time, action in went if action in COMMIT_ACTIONS)
    ]
    assert len(commits) == 2


@pytest.mark.parametrize("folder", ["6", "8", "9"])
def test_what_dead_attempts_staged_for_the_metadata_table_goes(golden: Golden, folder: str) -> None:
    """Of instants that are archived, completed or unknown; a pending one's attempt may be at work."""
    table = golden(folder, "archived_timeline_mor").table
    active = context_of(table).active
    (oldest, action), *_, (newest, _) = active_of(table)
    pending = str(int(newest) + 1)
    active.create_requested(pending, Action.DELTA_COMMIT)
    for instant in (oldest, newest, "20200101000000000", pending):
        staged = table / staging_folder(instant, 1) / "files_a_0-1-0"
        staged.parent.mkdir(parents=True)
        staged.write_bytes(b"blocks")
    assert (oldest, action) in archive(table)
    assert staged_instants(LocalStorage(table)) == {pending}


@pytest.mark.parametrize(("folder", "name"), CASES)
def test_a_second_run_finds_nothing(golden: Golden, folder: str, name: str) -> None:
    table = golden(folder, name).table
    assert archive(table)
    names = sorted(path.as_posix() for path in table.rglob("*"))
    assert archive(table) == []
    assert sorted(path.as_posix() for path in table.rglob("*")) == names


@pytest.mark.parametrize(("folder", "name"), CASES)
def test_the_preview_is_what_goes_and_writes_nothing(golden: Golden, folder: str, name: str) -> None:
    table = golden(folder, name).table
    names = sorted(path.as_posix() for path in table.rglob("*"))
    planned = ArchiveService().schedule(context_of(table, TIGHT), Owner.current("test"), dry_run=True)
    assert sorted(path.as_posix() for path in table.rglob("*")) == names
    assert (planned.instant, planned.reason) == (None, None)
    assert isinstance(planned.plan, dict)
    assert planned.plan["held_by"] == "hoodie.keep.min.commits is 2"
    assert [(item["instant"], item["action"]) for item in planned.plan["instants"]] == archive(table)
    nothing = ArchiveService().schedule(context_of(table, TIGHT), Owner.current("test"), dry_run=True)
    assert nothing.plan is None
    assert nothing.reason == "the timeline has 2 commits and hoodie.keep.max.commits is 3"


@pytest.mark.parametrize("folder", ["6", "8", "9"])
def test_in_rounds_and_across_files(golden: Golden, folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = golden(folder, "archived_timeline_mor").table
    before = sorted(active_of(table) + history_of(table))
    monkeypatch.setattr(archiving, "ROUND_INSTANTS", 2)
    steps: list[tuple[int, int]] = []
    went = (
        ArchiveService()
        .run_now(context_of(table, TIGHT), Owner.current("test"), lambda done, total: steps.append((done, total)))
        .instants
    )
    assert steps[-1] == (len(went), len(went))
    assert len(steps) == -(-len(went) // 2) > 2
    assert sorted(active_of(table) + history_of(table)) == before


@pytest.mark.parametrize("folder", ["6", "9"])
def test_what_a_round_holds_is_bounded_by_its_bytes(
    golden: Golden, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = golden(folder, "archived_timeline_cow").table
    context = context_of(table)
    completed = context.active.load().completed().instants
    monkeypatch.setattr(archiving, "ROUND_BYTES", 12_000)
    taken = list(archiving.rounds(context.storage, context.active, "UTC", completed))
    assert [item.instant for found in taken for item in found] == list(completed)
    assert len(taken) > 2
    assert all(len(found) == 1 or sum(item.size for item in found) <= 12_000 for found in taken)


@pytest.mark.parametrize("folder", ["6", "8", "9"])
def test_markers_of_archived_instants_go(golden: Golden, folder: str) -> None:
    table = golden(folder, "archived_timeline_cow").table
    times = [time for time, action in active_of(table) if action in COMMIT_ACTIONS]
    for time in (times[0], times[-1]):
        (table / ".hoodie/.temp" / time).mkdir(parents=True)
        (table / ".hoodie/.temp" / time / "MARKERS0").write_bytes(b"")
    archive(table)
    assert [path.name for path in (table / ".hoodie/.temp").iterdir()] == [times[-1]]


@pytest.mark.parametrize("folder", ["6", "8", "9"])
def test_empty_files_that_a_crash_left_are_archived_empty(golden: Golden, folder: str) -> None:
    table = golden(folder, "archived_timeline_cow").table
    context = context_of(table)
    first = context.active.load().commits().instants[0]
    (table / context.active.path_of(first)).write_bytes(b"")
    went = archive(table)
    assert (first.requested_time, first.action) in went
    assert context.history().commit(first.requested_time) == CommitMetadata()
    assert context.history().content(first) == {}


def test_a_commit_that_an_upgrade_left_in_json_becomes_avro(golden: Golden) -> None:
    """Rows of the archive of layout 2 do not say in which form they are."""
    old, table = golden("6", "archived_timeline_cow").table, golden("9", "archived_timeline_cow").table
    legacy = context_of(old).active.load().commits().instants[0]
    active = context_of(table).active
    (table / active.folder / f"{legacy.requested_time}.commit").write_bytes(context_of(old).active.read_details(legacy))
    went = archive(table)
    assert (legacy.requested_time, "commit") in went
    archived = context_of(table).history().commit(legacy.requested_time)
    assert archived is not None
    assert essence(archived) == essence(context_of(old).active.read_commit(legacy))
    assert not (table / active.folder / f"{legacy.requested_time}.commit").exists()


@pytest.mark.parametrize("folder", ["8", "9"])
def test_levels_are_merged_and_old_snapshots_go(golden: Golden, folder: str) -> None:
    table = golden(folder, "archived_timeline_mor").table
    context = context_of(table)
    assert len(read_snapshot(context.storage, context.config.history_folder)) == 1
    archive(table, {**TIGHT, "hoodie.keep.min.commits": "5", "hoodie.keep.max.commits": "6"})
    archive(table)
    files = read_snapshot(context.storage, context.config.history_folder)
    # Two files of level 0 became a second one of level 1, and both of these one of level 2.
    assert [file.level for file in files] == [2]
    names = {path.name for path in (table / context.config.history_folder).iterdir()}
    # Snapshots 4 and 5 were before the second run; it wrote 6, merged to 7 and to 8, and keeps three and one for each
    # merge.
    assert sorted(name for name in names if name.startswith("manifest")) == [
        f"manifest_{number}" for number in (4, 5, 6, 7, 8)
    ]
    named = {
        file.name
        for number in (4, 5, 6, 7, 8)
        for file in read_manifest(context.storage, context.config.history_folder, number)
    }
    assert {name for name in names if name.endswith(".parquet")} == named


@pytest.mark.parametrize(("folder", "last"), [("6", 2), ("9", 5)])
def test_a_lock_lost_on_the_way_stops_it(
    golden: Golden, folder: str, last: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`last` is the check right before instants are taken off the timeline."""
    table = golden(folder, "archived_timeline_cow").table
    before = sorted(active_of(table) + history_of(table))
    calls: list[int] = []

    def check(self: FileSystemLock) -> None:
        calls.append(1)
        if len(calls) == last:
            raise LockError("the lock is another's now")

    monkeypatch.setattr(FileSystemLock, "check", check)
    with pytest.raises(LockError):
        archive(table)
    monkeypatch.undo()
    assert sorted(set(active_of(table) + history_of(table))) == before
    assert len(active_of(table)) + len(history_of(table)) > len(before), (
        "written to the archive, and not yet taken off the timeline"
    )
    assert archive(table)
    assert sorted(active_of(table) + history_of(table)) == before


def test_the_registry_has_it() -> None:
    assert isinstance(service_of("archive"), ArchiveService)


def test_options() -> None:
    config = ArchiveConfig.of(
        {
            "hoodie.keep.max.commits": "9",
            "hoodie.keep.min.commits": "8",
            "hoodie.timeline.manifest.retained.versions": "5",
        }
    )
    assert (config.keep_min, config.keep_max, config.manifests_retained) == (8, 9, 5)
    assert {item.name for item in ARCHIVE_KEYS} <= {item.name for item in KEYS}
