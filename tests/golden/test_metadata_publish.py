"""Cleans, rollbacks and restores of what tests/golden/make_metadata_tables.py had real Hudi write: no partitions, odd
keys, partitioned indexes.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hudi_core.timeline.instant import Action
from tests.support.metadata_records import (
    Table,
    comparable,
    complete_clean,
    complete_rollback,
    crash_before_completion,
)
from tests.support.tiers import tiered
from tests.unit.hudi_core.metadata_table.write.test_publish_partition_types import (
    indexes,
    listed,
    remove_data,
    some_files,
    stored,
    with_pending,
)

TABLES = ("types_v6", "types_v8", "types_v9", "keys_v8", "keys_v9", "incomplete_v9", "partitioned_v9")


def copy_of(written: Path, name: str, scratch: Path) -> Table:
    shutil.copytree(written / name, scratch / name)
    return Table(scratch / name)


@pytest.mark.parametrize("name", tiered(TABLES, ["types_v6", "keys_v8", "partitioned_v9"]))
def test_a_clean(written: Path, tmp_path: Path, name: str) -> None:
    table = copy_of(written, name, tmp_path)
    changes, before = some_files(table), listed(table)
    gone = {name for names in changes.deleted.values() for name in names}
    instant = table.new_instant()
    table.publisher().check()
    table.data.create_requested(instant, Action.CLEAN, b"plan")
    table.publisher().publish_deletes(instant, changes)
    complete_clean(table, instant)
    assert listed(table) == {
        partition: {file: size for file, size in files.items() if file not in gone}
        for partition, files in before.items()
    }
    for kind in ("column_stats", "bloom_filters"):
        assert not [value for value in table.live().get(kind, {}).values() if getattr(value, "name", None) in gone]


@pytest.mark.parametrize("name", TABLES)
def test_a_rollback(written: Path, tmp_path: Path, name: str) -> None:
    table = copy_of(written, name, tmp_path)
    failed = table.data.load().commits().instants[-1].requested_time
    crash_before_completion(table, failed)
    earlier, rollback = table.live(), table.new_instant()
    table.publisher().check_roll_back(failed)
    table.publisher().roll_back(failed, rollback)
    complete_rollback(table, failed, rollback)
    assert comparable(table.live()) == comparable(earlier)


@pytest.mark.parametrize("name", tiered(TABLES, ["types_v6", "types_v8", "keys_v9"]))
def test_a_restore(written: Path, tmp_path: Path, name: str) -> None:
    table = copy_of(written, name, tmp_path)
    *_, target, _ = table.data.load().commits().instants
    earlier = table.live(with_pending(table, lambda item: item.completed_at > target.completed_at))
    restore = table.new_instant()
    remove_data(table, target.completed_at, restore)
    left = table.publisher().restore(target.requested_time, restore).metadata_partitions
    assert left == earlier.keys()
    assert indexes(table.live()) == indexes(earlier)
    assert listed(table) == stored(table)


def test_a_restore_takes_the_file_groups_of_a_later_partition(written: Path, tmp_path: Path) -> None:
    """A partitioned record index has file groups for each data partition, which begin with the commit that brought
    it.
    """
    table = copy_of(written, "partitioned_v9", tmp_path)
    first, target, last = table.data.load().commits().instants
    for path in table.path.glob(f".hoodie/metadata/record_index/.record-index-us*_{first.requested_time}.*"):
        path.rename(path.with_name(path.name.replace(first.requested_time, last.requested_time)))
    restore = table.new_instant()
    remove_data(table, target.completed_at, restore)
    left = table.publisher().restore(target.requested_time, restore).metadata_partitions
    assert left == table.config.metadata_partitions >= {"record_index"}
    groups = {
        path.name.rpartition("_")[0].rpartition("-")[0]
        for path in table.path.glob(".hoodie/metadata/record_index/.record-*")
    }
    assert groups
    assert not any("us" in group.split("-")[2].split("%") for group in groups)
    assert table.live()["record_index"]
