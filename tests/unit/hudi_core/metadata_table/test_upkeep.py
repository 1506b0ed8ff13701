"""The metadata table's own cleans, archivals and rollbacks: they change nothing of what it holds, wherever they are
killed.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.config.archive_config import ArchiveConfig
from hudi_core.errors import ConfigError
from hudi_core.history.archive_rounds import archive_writer
from hudi_core.metadata_table.file_changes import FileChanges
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.services.archival import Archived, MetadataArchival, to_archive
from hudi_core.metadata_table.services.cleaning import MetadataCleaning
from hudi_core.metadata_table.services.failed_deltacommits import roll_back_failed
from hudi_core.metadata_table.services.run import COMPACTION_TRIGGER, Upkeep, keep_up
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.model.names import parse_data_file
from hudi_core.storage.base import Storage
from hudi_core.testing.fault import MUTATIONS, FaultPlan, FaultStorage, InjectedCrash
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.instant_generator import InstantClock
from tests.golden_data import GoldenCase
from tests.unit.hudi_core.metadata_table.test_compaction import compaction, held
from tests.unit.hudi_core.metadata_table.whole_table import TOKEN, Table, complete_clean

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ("6", "8", "9")
SMALL = ArchiveConfig(keep_min=2, keep_max=3)


def clock(table: Table) -> InstantClock:
    return InstantClock(table.config.timezone, sleep=lambda seconds: None)


def own_of(table: Table, storage: Storage | None = None) -> MetadataTimeline:
    return MetadataTimeline(storage or table.storage, table.config, clock(table))


def tell(table: Table, times: int) -> None:
    """Some cleans of the data table that deleted nothing."""
    for _ in range(times):
        latest = max(
            item.completed_at[:17]
            for timeline in (table.data.load(), table.metadata_timeline.load())
            for item in timeline
        )
        instant = f"{int(latest[:17]) + 1}"
        table.data.create_requested(instant, Action.CLEAN, b"plan")
        table.publisher().publish_deletes(instant, FileChanges())
        complete_clean(table, instant)


def many_slices(golden: Golden, version: str) -> Table:
    """A metadata table that was compacted some times, and told of some actions since."""
    table = Table(golden(version, "mdt_all_mor_compacted").table)
    for _ in range(2):
        tell(table, 1)
        compaction(table).run(trigger=1)
    tell(table, 3)
    return table


def data_files(table: Table) -> int:
    return sum(1 for path in (table.path / ROOT).glob("*/*") if parse_data_file(path.name) is not None)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_clean_leaves_what_is_read(golden: Golden, version: str) -> None:
    table = many_slices(golden, version)
    before, files = held(table), data_files(table)
    done = MetadataCleaning(table.storage, own_of(table)).run(1)
    assert done.files > 4, done.reason
    (instant,) = done.instants
    assert version != "6" or instant.endswith("002")
    assert held(table) == before
    found = table.metadata_timeline.load().get(instant, Action.CLEAN)
    assert found.is_completed
    metadata = table.metadata_timeline.read_of(found)
    names = {
        (partition, name)
        for partition, part in metadata["partitionMetadata"].items()
        for name in part["successDeleteFiles"]
    }
    assert len(names) == metadata["totalFilesDeleted"] == done.files
    assert not any((table.path / ROOT / partition / name).exists() for partition, name in names)
    assert data_files(table) == files - done.files
    again = MetadataCleaning(table.storage, own_of(table)).run(1)
    assert not again.instants
    assert again.reason


@pytest.mark.parametrize("version", VERSIONS)
def test_a_clean_waits_for_readers_behind_a_compaction(golden: Golden, version: str) -> None:
    table = Table(golden(version, "mdt_all_mor_compacted").table)
    compaction(table).run(trigger=1)
    assert "instants came after compaction" in MetadataCleaning(table.storage, own_of(table)).run(1).reason
    fresh = Table(golden("6", "mdt_all_mor").table)
    assert "never compacted" in MetadataCleaning(fresh.storage, own_of(fresh)).run(1).reason


@pytest.mark.parametrize("version", VERSIONS)
def test_commits_that_a_clean_is_to_keep(golden: Golden, version: str) -> None:
    """With all of them kept, what goes are the slices before the one that the oldest of them reads; by versions, all
    but two slices.
    """
    table = many_slices(golden, version)
    done = MetadataCleaning(table.storage, own_of(table)).run(10000)
    assert bool(done.instants) is (version == "9")
    assert all(
        len(list(folder.glob("files-0000-0_*.hfile"))) == 2
        for folder in (table.path / ROOT).glob("files")
        if version == "9"
    )


def initialized(count: int) -> list[Instant]:
    times = [f"{number:017d}" for number in range(1, count + 1)]
    return [Instant(time, Action.DELTA_COMMIT, State.COMPLETED, f"{time}5", Action.DELTA_COMMIT) for time in times]


def cleans_in(found: Archived | list[Instant]) -> int:
    assert isinstance(found, list)
    return sum(1 for item in found if item.action == Action.CLEAN)


def test_what_may_be_archived() -> None:
    data = Timeline([Instant("8", Action.COMMIT, State.COMPLETED, "9", Action.COMMIT)])
    commits = initialized(9)
    kept = to_archive(Timeline(commits), data, 2, 3, counts_cleans=False)
    assert isinstance(kept, Archived)
    assert "never compacted" in kept.reason
    compacted = Instant(f"{7:017d}1", Action.COMMIT, State.COMPLETED, f"{7:017d}2", Action.COMPACTION)
    metadata_timeline = Timeline([*commits, compacted])
    assert to_archive(metadata_timeline, data, 2, 3, counts_cleans=False) == commits[:6]
    assert to_archive(metadata_timeline, data, 6, 8, counts_cleans=False) == commits[:3]
    few = to_archive(metadata_timeline, data, 8, 9, counts_cleans=False)
    assert isinstance(few, Archived)
    late = Instant(f"{3:017d}", Action.DELTA_COMMIT, State.COMPLETED, f"{8:017d}", Action.DELTA_COMMIT)
    out_of_order = Timeline(
        [item if item.requested_time != late.requested_time else late for item in metadata_timeline]
    )
    assert to_archive(out_of_order, data, 2, 3, counts_cleans=False) == commits[:2], "it is not in the compaction"
    active = Timeline([Instant(f"{4:017d}", Action.COMMIT, State.COMPLETED, "9", Action.COMMIT)])
    assert to_archive(metadata_timeline, active, 2, 3, counts_cleans=False) == commits[:3], (
        "the data table's timeline begins there"
    )
    pending = Instant(f"{2:017d}", Action.CLEAN, State.REQUESTED, None, Action.CLEAN)
    assert to_archive(Timeline([*metadata_timeline, pending]), data, 2, 3, counts_cleans=False) == commits[:1]
    cleans = [Instant(f"{number:017d}", Action.CLEAN, State.COMPLETED, "9", Action.CLEAN) for number in range(1, 7)]
    with_cleans = Timeline([*metadata_timeline, *cleans])
    assert cleans_in(to_archive(with_cleans, data, 2, 3, counts_cleans=False)) == 5
    assert cleans_in(to_archive(with_cleans, data, 2, 3, counts_cleans=True)) == 3


@pytest.mark.parametrize("version", VERSIONS)
def test_an_archival_leaves_what_is_read(golden: Golden, version: str) -> None:
    table = many_slices(golden, version)
    compaction(table).run(trigger=1)
    before, instants = held(table), list(table.metadata_timeline.load())
    gone = [item for item in table.data.load() if item.is_completed][:2]
    table.data.forget(gone)
    metadata_timeline = own_of(table)
    archival = MetadataArchival(table.storage, metadata_timeline, SMALL, lambda: None)
    done = archival.run(table.data.load())
    assert len(done.instants) > 2, done.reason
    left = {item.requested_time for item in table.metadata_timeline.load()}
    assert left.isdisjoint(done.instants)
    assert left | set(done.instants) == {item.requested_time for item in instants}
    archived = [item for item in instants if item.requested_time in done.instants]
    features, folder = metadata_timeline.features, metadata_timeline.history_folder
    writer = archive_writer(table.storage, features, folder, SMALL, lambda: None)
    assert writer.held(archived) or version != "6"
    assert list((table.path / metadata_timeline.history_folder).glob("*"))
    assert held(table) == before
    assert archival.run(table.data.load()).instants == ()


@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_dead_writer_left_is_taken_back(golden: Golden, version: str) -> None:
    table = Table(golden(version, "mor_basic").table)
    before = held(table)
    dead = table.new_instant()
    plan = FaultPlan(
        when=lambda operation: operation.kind == "create_exclusive" and operation.path.endswith(".deltacommit")
    )
    with contextlib.suppress(InjectedCrash):
        partition, *_ = sorted(path.name for path in table.path.iterdir() if path.name.startswith("2"))
        files = frozenset(path.name for path in (table.path / partition).glob("*.parquet"))
        table.publisher(FaultStorage(table.storage, plan)).publish_deletes(
            dead, FileChanges(deleted={partition: files})
        )
    assert plan.crashed
    assert table.metadata_timeline.load().find(dead, Action.DELTA_COMMIT) is not None
    assert roll_back_failed(table.storage, table.config, TOKEN, clock(table)) == (dead,)
    assert table.metadata_timeline.load().find(dead, Action.DELTA_COMMIT) is None
    assert held(table) == before
    assert roll_back_failed(table.storage, table.config, TOKEN, clock(table)) == ()


def test_what_is_pending_on_the_data_table_is_left_to_its_rollback(golden: Golden) -> None:
    table = Table(golden("8", "failed_after_metadata_mor").table)
    (failed,) = table.data.load().pending().requested_times
    table.metadata_timeline.remove(failed, Action.DELTA_COMMIT, State.COMPLETED)
    assert roll_back_failed(table.storage, table.config, TOKEN, clock(table)) == ()
    assert table.metadata_timeline.load().find(failed, Action.DELTA_COMMIT) is not None


def upkeep(table: Table, trigger: str, storage: Storage | None = None) -> Upkeep:
    options = {
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.clean.commits.retained": "1",
        COMPACTION_TRIGGER.name: trigger,
    }
    return keep_up(storage or table.storage, table.config, TOKEN, options, lambda: None, clock(table))


@pytest.mark.parametrize("version", VERSIONS)
def test_all_of_it_killed_anywhere(golden: Golden, version: str, tmp_path: Path) -> None:
    source = many_slices(golden, version)
    # Every thirteenth place to die at, most of them between two deletions; test_begin_and_compact_faults dies at each
    # of its own.
    expected = held(source)
    number = 0
    while True:
        table = Table(shutil.copytree(source.path, tmp_path / str(number)))
        plan = FaultPlan(kill_at=number, counts=MUTATIONS)
        with contextlib.suppress(InjectedCrash):
            upkeep(table, "2", FaultStorage(table.storage, plan))
        assert held(table) == expected, number
        done = upkeep(table, "2")
        assert held(table) == expected, (number, done)
        assert not table.metadata_timeline.load().pending().instants
        shutil.rmtree(table.path)
        if not plan.crashed:
            break
        number += 13
    assert number > 21


def test_options_are_checked_first(golden: Golden) -> None:
    table = Table(golden("8", "mor_basic").table)
    names = table.metadata_timeline.names()
    with pytest.raises(ConfigError, match="commits is"):
        upkeep(table, "none")
    assert table.metadata_timeline.names() == names
    assert "deltacommits since" in upkeep(table, "1000").compacted.reason
