"""A build of a partition beside writers: what is listed at each step, and what ends it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_core.config.table_config import METADATA, METADATA_INFLIGHT, update_properties
from hudi_core.errors import BuildRolledBackError, ConflictError, LockError, MetadataUnavailableError
from hudi_core.metadata_table.initialize.indexing import Build, IndexBuild
from hudi_core.metadata_table.instants import may_be_of_indexer
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.write.lifetime import drop_metadata_table, drop_partitions
from hudi_core.timeline.instant import Action
from hudi_core.transaction.instant_generator import InstantClock
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import TOKEN, Table
from tests.unit.hudi_core.metadata_table.initialize.test_initialize import VERSIONS, creation, filters, lost_after

Golden = Callable[[str, str], GoldenCase]
NAME = "bloom_filters"


class Builder:
    """Builds `bloom_filters` of a golden table that has `files` alone."""

    def __init__(self, golden: Golden, version: str) -> None:
        self.table = Table(golden(version, "cow_basic").table)
        drop_metadata_table(self.table.storage)
        creation(self.table).initialize_table()
        self.initializations = [filters(self.table, count=3)]
        self.instant = self.table.new_instant()
        clock = InstantClock(self.table.config.timezone, sleep=lambda seconds: None)
        self.build = IndexBuild(self.table.storage, self.instant, TOKEN, clock)

    def begin(self) -> Build:
        return self.build.begin(self.initializations, self.table.data.load())

    def publish(self, build: Build, guard: Callable[[], None] = lambda: None) -> None:
        self.build.publish(build, self.build.fill(build, self.initializations), guard)

    def lists(self) -> tuple[bool, bool]:
        """Whether the partition is listed, and whether as inflight."""
        config = self.table.config
        return NAME in config.metadata_partitions, NAME in config.metadata_partitions_inflight

    def pending(self) -> set[str]:
        return set(self.table.metadata_timeline.load().pending().requested_times)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_build_is_inflight_until_it_is_published(golden: Golden, version: str) -> None:
    """Its deltacommit has the instant of the action; version 6 has none, and an early base instant."""
    builder = Builder(golden, version)
    build = builder.begin()
    assert builder.lists() == (False, True)
    assert build.deltacommit == (None if version == "6" else builder.instant)
    assert builder.pending() == (set() if version == "6" else {builder.instant})
    assert build.targets[NAME].instant < builder.instant or version != "6"
    builder.publish(build)
    assert builder.lists() == (True, False)
    assert builder.pending() == set()
    assert len(builder.table.records()[NAME]) == 20


@pytest.mark.parametrize("version", VERSIONS)
def test_a_dead_attempt_is_replaced(golden: Golden, version: str) -> None:
    builder = Builder(golden, version)
    first = builder.begin()
    builder.build.fill(first, builder.initializations)
    left = set((builder.table.path / ROOT / NAME).glob("*.hfile"))
    assert left
    second = builder.begin()
    assert not any(path.exists() for path in left)
    builder.publish(second)
    assert builder.lists() == (True, False)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_build_that_was_rolled_back_is_not_published(golden: Golden, version: str) -> None:
    builder = Builder(golden, version)
    build = builder.begin()
    written = builder.build.fill(build, builder.initializations)
    config = builder.build.roll_back([NAME], builder.table.data.load())
    assert NAME not in config.metadata_partitions_inflight
    assert builder.pending() == set()
    assert not (builder.table.path / ROOT / NAME).exists()
    with pytest.raises(BuildRolledBackError, match="run the indexing again"):
        builder.build.publish(build, written, lambda: None)
    with pytest.raises(BuildRolledBackError):
        builder.build.fill(build, builder.initializations)


def test_a_partition_that_another_process_built_is_a_conflict(golden: Golden) -> None:
    builder = Builder(golden, "8")
    build = builder.begin()
    written = builder.build.fill(build, builder.initializations)
    listed = ",".join(sorted(builder.table.config.metadata_partitions | {NAME}))
    update_properties(builder.table.storage, {METADATA.name: listed, METADATA_INFLIGHT.name: ""})
    with pytest.raises(ConflictError):
        builder.build.publish(build, written, lambda: None)


@pytest.mark.parametrize(("version", "calls"), [("6", 0), ("8", 0), ("8", 1), ("9", 0), ("9", 1)])
def test_nothing_is_published_behind_a_lost_lock(golden: Golden, version: str, calls: int) -> None:
    """Version 6 has no deltacommit to complete before."""
    builder = Builder(golden, version)
    with pytest.raises(LockError):
        builder.publish(builder.begin(), lost_after(calls))
    assert builder.lists() == (False, True)
    builder.publish(builder.begin())
    assert builder.lists() == (True, False)
    assert len(builder.table.records()[NAME]) == 20


@pytest.mark.parametrize("version", VERSIONS)
def test_file_groups_that_are_gone_are_not_listed(golden: Golden, version: str) -> None:
    builder = Builder(golden, version)
    build = builder.begin()
    written = builder.build.fill(build, builder.initializations)
    builder.table.storage.delete_folder(f"{ROOT}/{NAME}")
    with pytest.raises(BuildRolledBackError, match="while it was built"):
        builder.build.publish(build, written, lambda: None)
    assert builder.lists()[0] is False


def test_a_listed_partition_keeps_its_files(golden: Golden) -> None:
    """Those of an index that another action built."""
    builder = Builder(golden, "9")
    builder.publish(builder.begin())
    before = builder.table.records()[NAME]
    other = IndexBuild(builder.table.storage, builder.table.new_instant(), TOKEN, InstantClock("UTC"))
    other.roll_back([NAME], builder.table.data.load())
    assert builder.table.records()[NAME] == before


@pytest.mark.parametrize("version", ["8", "9"])
def test_a_deltacommit_stays_while_a_partition_of_it_is_listed(golden: Golden, version: str) -> None:
    """Nor can it begin again; delisted, it is rolled back and built again."""
    builder = Builder(golden, version)
    assert not builder.build.has_completed()
    builder.publish(builder.begin())
    before = builder.table.records()[NAME]
    assert builder.build.has_completed()
    for names in ([], ["column_stats"], [NAME]):
        builder.build.roll_back(names, builder.table.data.load())
    assert builder.build.listed_by_deltacommit() == {NAME}
    with pytest.raises(ConflictError, match=f"has listed {NAME} before"):
        builder.begin()
    assert builder.table.records()[NAME] == before
    listed = ",".join(sorted(builder.table.config.metadata_partitions - {NAME}))
    update_properties(builder.table.storage, {METADATA.name: listed})
    assert builder.build.listed_by_deltacommit() == frozenset()
    build = builder.begin()
    assert builder.pending() == {builder.instant}
    builder.publish(build)
    assert builder.table.records()[NAME] == before


def test_a_pending_deltacommit_of_hudis_indexer_is_rolled_back_in_version_6(golden: Golden) -> None:
    """It is found by the files that are named after it."""
    builder = Builder(golden, "6")
    instant = f"{builder.table.new_instant()}004"
    assert may_be_of_indexer(instant)
    timeline = builder.table.metadata_timeline
    timeline.create_requested(instant, Action.DELTA_COMMIT)
    timeline.to_inflight(instant, Action.DELTA_COMMIT)
    builder.table.storage.write(f"{ROOT}/{NAME}/.bloom-filters-0000-0_{instant}.log.1_0-0-0", b"")
    builder.begin()
    assert timeline.load().find(instant, Action.DELTA_COMMIT) is None


def test_a_table_without_a_metadata_table_has_no_build(golden: Golden) -> None:
    builder = Builder(golden, "8")
    drop_partitions(builder.table.storage, builder.table.config, ["files"])
    with pytest.raises(MetadataUnavailableError):
        builder.begin()
