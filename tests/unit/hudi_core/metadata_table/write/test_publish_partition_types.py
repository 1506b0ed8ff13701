"""Cleans, rollbacks and restores of tables with every partition type: what each of them holds afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from hudi_core.errors import TimelineError
from hudi_core.metadata_table.record import ALL_PARTITIONS
from hudi_core.metadata_table.records.file_statistics import FileChanges
from hudi_core.metadata_table.records.files import live_entries
from hudi_core.model.names import BaseFileName, parse_data_file
from hudi_core.model.partition import PARTITION_METADATA
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.timeline import Timeline
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import (
    Records,
    Table,
    comparable,
    complete_clean,
    complete_rollback,
    crash_before_completion,
)
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]

ALL_PARTITION_TYPES = [(version, case) for version in ("6", "8", "9") for case in ("mdt_all_cow", "mdt_all_mor")]
DEFAULT_PARTITIONS = [
    (version, case) for version in ("6-by-1.2.0", "8", "8-by-1.2.0", "9") for case in ("cow_basic", "mor_basic")
]
TABLES = [*ALL_PARTITION_TYPES, *DEFAULT_PARTITIONS]
CORE = [("6", "mdt_all_mor"), ("6-by-1.2.0", "cow_basic"), ("8-by-1.2.0", "mor_basic"), ("9", "mdt_all_cow")]
COMPACTED_LATELY = [("8", "mdt_all_mor"), ("9", "mdt_all_mor")]
"""Their metadata tables were compacted behind the last commit but one."""


def listed(table: Table) -> dict[str, dict[str, int]]:
    records = table.records()["files"]
    return {partition: live_entries(record) for partition, record in records.items() if partition != ALL_PARTITIONS}


def some_files(table: Table) -> FileChanges:
    """All files of one file group of every partition: what a clean of replaced file groups takes."""
    deleted: dict[str, frozenset[str]] = {}
    for partition, files in listed(table).items():
        groups = {
            name: parsed.file_id
            for name, parsed in ((name, parse_data_file(name)) for name in files)
            if parsed is not None
        }
        first = min(groups.values())
        deleted[partition.removeprefix(".")] = frozenset(name for name, group in groups.items() if group == first)
    return FileChanges(deleted=deleted)


def with_pending(table: Table, is_pending: Callable[[Instant], bool]) -> Timeline:
    """The data timeline with some completed instants shown as inflight: what they wrote does not count then."""
    shown = (
        replace(item, state=State.INFLIGHT, completion_time=None) if is_pending(item) else item
        for item in table.data.load()
    )
    return Timeline(shown)


def file_of(value: Any) -> str | None:
    """The file that a record of statistics is about."""
    return getattr(value, "name", None)


@pytest.mark.parametrize(("version", "case"), tiered(TABLES, CORE))
def test_a_clean_deletes_in_every_partition_type_of_files(golden: Golden, version: str, case: str) -> None:
    table = Table(golden(version, case).table)
    before, files = table.live(), listed(table)
    changes = some_files(table)
    gone = {name for names in changes.deleted.values() for name in names}
    assert gone
    instant = table.new_instant()
    table.publisher().check()
    table.data.create_requested(instant, Action.CLEAN, b"plan")
    table.publisher().publish_deletes(instant, changes)
    assert comparable(table.live()) == comparable(before), "not before the clean completes"
    complete_clean(table, instant)
    after = table.live()
    assert listed(table) == {
        partition: {name: size for name, size in sizes.items() if name not in gone}
        for partition, sizes in files.items()
    }
    for name in before.keys() - {"files"}:
        if name == "column_stats" or name == "expr_index_idx_day":
            assert after[name] == {key: value for key, value in before[name].items() if file_of(value) not in gone}
            assert len(after[name]) < len(before[name])
        elif name in ("bloom_filters", "expr_index_idx_low"):
            bases = [name for name in gone if isinstance(parse_data_file(name), BaseFileName)]
            assert len(after[name]) == len(before[name]) - len(bases)
            assert comparable(after)[name].items() <= comparable(before)[name].items()
        else:
            assert after[name] == before[name]


@pytest.mark.parametrize(("version", "case"), tiered(TABLES, CORE))
def test_a_clean_that_drops_a_partition(golden: Golden, version: str, case: str) -> None:
    table = Table(golden(version, case).table)
    partition, files = max(listed(table).items())
    instant = table.new_instant()
    table.data.create_requested(instant, Action.CLEAN, b"plan")
    table.publisher().publish_deletes(
        instant, FileChanges(deleted={partition: frozenset(files)}, dropped_partitions=frozenset({partition}))
    )
    complete_clean(table, instant)
    records = table.records()["files"]
    assert partition not in live_entries(records[ALL_PARTITIONS])
    assert live_entries(records[partition]) == {}


@pytest.mark.parametrize(("version", "case"), tiered(TABLES, CORE))
def test_a_rollback_removes_the_instant_from_every_partition_type(golden: Golden, version: str, case: str) -> None:
    table = Table(golden(version, case).table)
    failed = table.data.load().commits().instants[-1].requested_time
    earlier = table.live(with_pending(table, lambda item: item.requested_time == failed))
    assert comparable(table.live()) != comparable(earlier)
    crash_before_completion(table, failed)
    rollback = table.new_instant()
    publisher = table.publisher()
    publisher.check_roll_back(failed)
    publisher.roll_back(failed, rollback)
    assert not publisher.footprint(failed)
    complete_rollback(table, failed, rollback)
    assert comparable(table.live()) == comparable(earlier)
    names = table.metadata_timeline.names()
    publisher.roll_back(failed, rollback)
    assert table.metadata_timeline.names() == names


@pytest.mark.parametrize(
    ("version", "case"),
    [(version, case) for version in "689" for case in ("mdt_all_cow_compacted", "mdt_all_mor_compacted")],
)
def test_an_instant_that_was_compacted_cannot_be_rolled_back(golden: Golden, version: str, case: str) -> None:
    table = Table(golden(version, case).table)
    metadata_timeline = table.metadata_timeline.load()
    compaction = metadata_timeline.completed().of_actions(Action.COMMIT).instants[-1].requested_time
    assert table.publisher().latest_compaction() == compaction
    failed = next(item.requested_time for item in table.data.load().commits() if item.completed_at <= compaction[:17])
    names = table.metadata_timeline.names()
    for call in (
        lambda: table.publisher().check_roll_back(failed),
        lambda: table.publisher().roll_back(failed, table.new_instant()),
    ):
        with pytest.raises(TimelineError, match=compaction):
            call()
    assert table.metadata_timeline.names() == names


@pytest.mark.parametrize(
    ("version", "case"), tiered([table for table in TABLES if table not in COMPACTED_LATELY], CORE)
)
def test_a_restore_restores_every_partition_type(golden: Golden, version: str, case: str) -> None:
    table = Table(golden(version, case).table)
    *_, target, _ = table.data.load().commits().instants
    until = target.completed_at
    earlier = table.live(with_pending(table, lambda item: item.completed_at > until))
    restore = table.new_instant()
    remove_data(table, until, restore)
    config = table.publisher().restore(target.requested_time, restore)
    assert config.metadata_partitions == table.config.metadata_partitions == earlier.keys()
    after = table.live()
    assert listed(table) == stored(table)
    assert indexes(after) == indexes(earlier)
    names = table.metadata_timeline.names()
    table.publisher().restore(target.requested_time, restore)
    assert table.metadata_timeline.names() == names, "done already"


def indexes(records: Records) -> Records:
    """What is held of every partition but the listing."""
    return {name: items for name, items in comparable(records).items() if name != "files"}


def remove_data(table: Table, until: str, restore: str) -> None:
    """A pending restore, the commits after `until` gone, and their files as far as their names carry their instants."""
    table.data.create_requested(restore, Action.RESTORE, b"plan")
    table.data.to_inflight(restore, Action.RESTORE)
    later = [item for item in table.data.load().commits() if item.completed_at > until]
    assert later
    for item in later:
        table.data.delete_instant(item.requested_time, item.pending_action)
        for partition in stored(table):
            for info in table.storage.list_files(partition.removeprefix(".")):
                if f"_{item.requested_time}." in info.name:
                    table.storage.delete(info.path)


def stored(table: Table) -> dict[str, dict[str, int]]:
    """The data files in the storage, by partition as `files` names it."""
    found = {}
    for marker in table.path.rglob(f"{PARTITION_METADATA}*"):
        if ".hoodie" not in marker.relative_to(table.path).parts[:-1]:
            infos = table.storage.list_files(str(marker.parent.relative_to(table.path)).removeprefix("."))
            found[str(marker.parent.relative_to(table.path))] = {
                info.name: info.size for info in infos if parse_data_file(info.name) is not None
            }
    return found
