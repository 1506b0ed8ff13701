"""Where the metadata table cannot be restored, and what lies in its way when it can."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.records.file_statistics import FileChanges
from hudi_core.timeline.actions.compaction import CompactionOperation, CompactionPlan, encode_compaction_plan
from hudi_core.timeline.instant import Action
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import Table, complete_clean
from tests.support.metadata_services import metadata_timeline_of
from tests.support.tiers import tiered
from tests.unit.hudi_core.metadata_table.write.test_publish_partition_types import (
    COMPACTED_LATELY,
    indexes,
    listed,
    remove_data,
    some_files,
    stored,
    with_pending,
)

Golden = Callable[[str, str], GoldenCase]
COMPACTED = [*COMPACTED_LATELY, ("8", "mdt_all_cow_compacted"), ("9", "mdt_all_cow_compacted")]


@pytest.mark.parametrize(("version", "case"), COMPACTED)
def test_a_metadata_table_that_was_compacted_since_is_dropped(golden: Golden, version: str, case: str) -> None:
    table = Table(golden(version, case).table)
    compacted = table.metadata_timeline.load().completed().of_actions(Action.COMMIT).instants[0].requested_time
    target = next(item for item in reversed(table.data.load().commits().instants) if item.requested_time <= compacted)
    config = table.publisher().prepare_restore(target.requested_time)
    assert config.metadata_partitions == table.config.metadata_partitions == frozenset()
    assert not table.path.joinpath(ROOT).exists()
    assert table.config.raw == {
        **config.raw,
        "hoodie.table.metadata.partitions": "",
        "hoodie.table.metadata.partitions.inflight": "",
    }


@pytest.mark.parametrize("version", ["8", "9"])
def test_a_metadata_table_without_the_target_is_dropped(golden: Golden, version: str) -> None:
    table = Table(golden(version, "cow_basic").table)
    assert table.publisher().prepare_restore("20200101000000000").metadata_partitions == frozenset()
    assert not table.path.joinpath(ROOT).exists()


def test_a_metadata_table_that_begins_after_the_target_is_dropped(golden: Golden) -> None:
    """Version 6: it was deleted and rebuilt, at the instant of that time."""
    table = Table(golden("6", "savepoint_cow").table)
    target = table.data.load().commits().instants[0].requested_time
    first = table.metadata_timeline.load().instants[0].requested_time
    for path in table.path.glob(f"{ROOT}/**/*{first}*"):
        path.rename(path.with_name(path.name.replace(first, f"{target}010")))
    assert table.publisher().prepare_restore(target).metadata_partitions == frozenset()


@pytest.mark.parametrize("version", tiered(["8", "9"], ["9"]))
def test_a_restore_goes_back_behind_a_later_compaction(golden: Golden, version: str) -> None:
    """An older compaction lies before the target, so that Hudi rolls the later one back, with its base files."""
    table = Table(golden(version, "mdt_all_cow").table)
    *_, target, _ = table.data.load().commits().instants
    until = target.completed_at
    earlier = table.live(with_pending(table, lambda item: item.completed_at > until))
    older = table.metadata_timeline.load().completed().of_actions(Action.COMMIT).instants[0].requested_time
    assert older < target.requested_time
    later = table.new_instant()
    for partition in sorted(table.config.metadata_partitions):
        for info in table.storage.list_files(f"{ROOT}/{partition}"):
            if info.name.endswith(f"_{older}.hfile"):
                table.storage.write(info.path.replace(older, later), table.storage.read(info.path))
    table.metadata_timeline.create_requested(later, Action.COMPACTION, b"plan")
    table.metadata_timeline.to_inflight(later, Action.COMPACTION)
    table.metadata_timeline.complete(later, Action.COMPACTION, b"done", table.later(later))
    restore = str(int(later) + 10)
    remove_data(table, until, restore)
    assert table.publisher().restore(target.requested_time, restore).metadata_partitions == earlier.keys()
    assert not table.metadata_timeline.load().contains(later)
    assert not list(table.path.glob(f"{ROOT}/*/*_{later}.hfile"))
    assert listed(table) == stored(table)
    assert indexes(table.live()) == indexes(earlier)


@pytest.mark.parametrize("version", ["8", "9"])
def test_a_restore_behind_a_compaction_whose_slices_were_cleaned_drops(golden: Golden, version: str) -> None:
    """The base files before the target are gone, though logs of that time may be left: they are not what the index
    was.
    """
    table = Table(golden(version, "mdt_all_cow").table)
    *_, target, _ = table.data.load().commits().instants
    older = table.metadata_timeline.load().completed().of_actions(Action.COMMIT).instants[0].requested_time
    for info in table.storage.list_files(f"{ROOT}/files"):
        if f"_{older}." in info.name or "_0000000000000000" in info.name:
            table.storage.delete(info.path)
    assert table.publisher().prepare_restore(target.requested_time).metadata_partitions == frozenset()


@pytest.mark.parametrize("case", ["mdt_all_cow", "mdt_all_mor"])
def test_a_restore_of_version_6_rolls_a_pending_compaction_back(golden: Golden, case: str) -> None:
    """New log files have joined the slice that it begins; they go with it, and commands go to the slice before."""
    table = Table(golden("6", case).table)
    *_, target, last = table.data.load().commits().instants
    earlier = table.live(with_pending(table, lambda item: item.completed_at > target.requested_time))
    compaction = f"{last.requested_time}001"
    (place,) = metadata_timeline_of(table).latest_slices(table.metadata_timeline.load(), "files")
    operation = CompactionOperation(
        "files", place.file_id, place.base_instant, None, tuple(info.name for info in place.logs)
    )
    table.metadata_timeline.create_requested(
        compaction, Action.COMPACTION, encode_compaction_plan(CompactionPlan((operation,)))
    )
    clean = table.new_instant()
    table.data.create_requested(clean, Action.CLEAN, b"plan")
    table.publisher().publish_deletes(clean, some_files(table))
    assert list(table.path.glob(f"{ROOT}/files/.*_{compaction}.log.1_*"))
    assert not list(table.path.glob(f"{ROOT}/column_stats/.*_{compaction}.log.*")), "the plan does not merge that one"
    complete_clean(table, clean)
    restore = str(int(clean) + 10)
    remove_data(table, target.requested_time, restore)
    assert table.publisher().restore(target.requested_time, restore).metadata_partitions == earlier.keys()
    assert not table.metadata_timeline.load().contains(compaction)
    assert not list(table.path.glob(f"{ROOT}/files/.*_{compaction}.log.*"))
    assert listed(table) == stored(table)
    assert indexes(table.live()) == indexes(earlier)


@pytest.mark.parametrize("version", ["8", "9"])
def test_an_index_that_was_built_since_is_dropped(golden: Golden, version: str) -> None:
    """What it held at the earlier time is not known: it indexed the table as it was when it was built."""
    table = Table(golden(version, "mdt_all_cow").table)
    for compaction in table.metadata_timeline.load().of_actions(Action.COMMIT):
        for partition in table.config.metadata_partitions:
            for info in table.storage.list_files(f"{ROOT}/{partition}"):
                if f"_{compaction.requested_time}." in info.name:
                    table.storage.delete(info.path)
        table.metadata_timeline.delete_instant(compaction.requested_time, compaction.pending_action)
    first, second, third, *_ = table.data.load().commits().instants
    everything = table.config.metadata_partitions
    assert table.publisher().prepare_restore(second.requested_time).metadata_partitions == everything
    (made,) = table.path.joinpath(table.metadata_timeline.folder).glob("00000000000000002_*.deltacommit")
    made.rename(made.with_name(f"00000000000000002_{third.completion_time}.deltacommit"))
    left = table.publisher().prepare_restore(second.requested_time).metadata_partitions
    assert left == table.config.metadata_partitions == everything - {"bloom_filters"}
    assert not table.path.joinpath(ROOT, "bloom_filters").exists()
    assert table.path.joinpath(ROOT, "column_stats").exists()
    # Those with a definition cannot go alone: Hudi would look for them.
    assert (
        table.publisher().prepare_restore(first.requested_time).metadata_partitions
        == table.config.metadata_partitions
        == frozenset()
    )
    assert table.path.joinpath(".hoodie/.index_defs/index.json").exists(), (
        "by which Hudi's next write builds them again"
    )


@pytest.mark.parametrize("version", ["6", "9"])
def test_cleans_after_the_target_are_recorded_again(golden: Golden, version: str) -> None:
    """Their deltacommits go with the rest, but the files are gone: `files` and the statistics are updated again."""
    table = Table(golden(version, "mdt_all_cow").table)
    *_, target, _ = table.data.load().commits().instants
    oldest = {
        partition: min(names, key=lambda name: name.rpartition("_")[2]) for partition, names in listed(table).items()
    }
    changes, clean = (
        FileChanges(deleted={partition: frozenset({name}) for partition, name in oldest.items()}),
        table.new_instant(),
    )
    gone = set(oldest.values())
    table.data.create_requested(clean, Action.CLEAN, b"plan")
    table.publisher().publish_deletes(clean, changes)
    complete_clean(table, clean)
    restore = str(int(clean) + 10)
    remove_data(table, target.completed_at, restore)
    for partition, names in changes.deleted.items():
        for name in names:
            table.storage.delete(f"{partition}/{name}")
    table.publisher().restore(target.requested_time, restore)
    assert listed(table) == stored(table)
    statistics = table.live()["column_stats"].values()
    assert gone.isdisjoint(value.name for value in statistics)
    assert statistics
