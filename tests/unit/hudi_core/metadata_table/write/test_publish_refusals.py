"""What the publisher refuses before anything is written."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable

import pytest

from hudi_core.config.table_config import update_properties
from hudi_core.errors import (
    CorruptFileError,
    MetadataUnavailableError,
    StorageNotFoundError,
    TimelineError,
    UnsupportedError,
)
from hudi_core.metadata_table.read.file_group import ROOT, partition_folders
from hudi_core.metadata_table.record import ALL_PARTITIONS
from hudi_core.metadata_table.records.file_statistics import FileChanges
from hudi_core.metadata_table.records.files import live_entries
from hudi_core.metadata_table.write.lifetime import drop_metadata_table
from hudi_core.timeline.actions.compaction import CompactionOperation, CompactionPlan, encode_compaction_plan
from hudi_core.timeline.actions.content import encode_datum
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, State
from tests.support.golden_data import GoldenCase
from tests.support.memory_storage import MemoryStorage
from tests.support.metadata_records import Table, crash_before_completion

Golden = Callable[[str, str], GoldenCase]


@pytest.mark.parametrize(
    ("version", "case"),
    [("6", "mdt_all_cow"), ("8", "mdt_all_mor"), ("9", "mdt_all_mor_compacted"), ("8-by-1.2.0", "mor_basic")],
)
def test_real_tables_are_taken(golden: Golden, version: str, case: str) -> None:
    Table(golden(version, case).table).publisher().check()


def test_a_partition_type_of_a_later_hudi_is_refused(golden: Golden) -> None:
    table = Table(golden("9", "cow_basic").table)
    update_properties(table.storage, {"hoodie.table.metadata.partitions": "files,vector_index"})
    with pytest.raises(UnsupportedError, match="vector_index"):
        table.publisher().check()


def test_an_expression_index_without_definition_is_refused(golden: Golden) -> None:
    table = Table(golden("9", "mdt_all_cow").table)
    path = table.path / ".hoodie/.index_defs/index.json"
    document = json.loads(path.read_text())
    del document["indexDefinitions"]["expr_index_idx_day"]
    path.write_text(json.dumps(document))
    with pytest.raises(UnsupportedError, match="expr_index_idx_day"):
        table.publisher().check()
    names = table.metadata_timeline.names()
    with pytest.raises(UnsupportedError, match="expr_index_idx_day"):
        table.publisher().publish_deletes(table.new_instant(), FileChanges(deleted={"2024-01-01": frozenset({"x"})}))
    assert table.metadata_timeline.names() == names


def test_a_listed_partition_without_file_groups_is_refused(golden: Golden) -> None:
    table = Table(golden("6", "mdt_all_cow").table)
    shutil.rmtree(table.path / ROOT / "bloom_filters")
    with pytest.raises(StorageNotFoundError, match="bloom_filters"):
        table.publisher().check()


def test_a_metadata_table_that_is_gone_is_refused(golden: Golden) -> None:
    table = Table(golden("8", "cow_basic").table)
    shutil.rmtree(table.path / ROOT)
    with pytest.raises(MetadataUnavailableError):
        table.publisher().check()


def test_a_pending_compaction_of_the_metadata_table_stops_a_rollback(golden: Golden) -> None:
    """Its plan names the instant's log file, which must not go before the plan is done."""
    table = Table(golden("9", "cow_basic").table)
    failed = table.data.load().commits().instants[-1].requested_time
    crash_before_completion(table, failed)
    compaction = table.new_instant()
    operation = CompactionOperation(
        "files", "files-0000-0", "00000000000000000", None, (f".files-0000-0_{failed}.log.1_0-1-2",)
    )
    table.metadata_timeline.create_requested(
        compaction, Action.COMPACTION, encode_compaction_plan(CompactionPlan((operation,)))
    )
    with pytest.raises(TimelineError, match="about to be compacted"):
        table.publisher().check_roll_back(failed)


@pytest.mark.parametrize("version", ["8", "9"])
def test_a_deltacommit_that_never_completed_is_rolled_back(golden: Golden, version: str) -> None:
    table = Table(golden(version, "mor_basic").table)
    failed = table.data.load().commits().instants[-1].requested_time
    crash_before_completion(table, failed)
    table.metadata_timeline.remove(failed, Action.DELTA_COMMIT, State.COMPLETED)
    publisher = table.publisher()
    assert publisher.footprint(failed)
    publisher.roll_back(failed, table.new_instant())
    assert not publisher.footprint(failed)
    assert not list(table.path.glob(f".hoodie/metadata/*/*_{failed}.*"))


def test_no_compaction_yet(golden: Golden) -> None:
    assert Table(golden("8", "cow_basic").table).publisher().latest_compaction() is None


def test_a_metadata_table_without_properties_cannot_be_written(golden: Golden) -> None:
    table = Table(golden("8", "cow_basic").table)
    table.path.joinpath(ROOT, ".hoodie/hoodie.properties").unlink()
    with pytest.raises(MetadataUnavailableError, match="cannot be read"):
        table.publisher().footprint("20260101000000000")
    drop_metadata_table(table.storage)
    assert not table.path.joinpath(ROOT).exists(), "but it can be dropped"


def test_a_restore_plan_that_names_no_instants_is_damaged(golden: Golden) -> None:
    table = Table(golden("9", "cow_basic").table)
    *_, target, _ = table.data.load().commits().instants
    restore = table.new_instant()
    table.data.create_requested(restore, Action.RESTORE, b"plan")
    plan = {
        "instantsToRollback": [{"commitTime": "", "action": "deltacommit"}],
        "version": 2,
        "savepointToRestoreTimestamp": target.requested_time,
    }
    table.metadata_timeline.create_requested(
        str(int(restore) + 1), Action.RESTORE, encode_datum("HoodieRestorePlan", plan)
    )
    with pytest.raises(CorruptFileError, match="without time or action") as damaged:
        table.publisher().restore(target.requested_time, restore)
    assert "drop the metadata table" in (damaged.value.remedy or "")


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_partition_that_is_gone_leaves_the_listing_with_a_restore(golden: Golden, version: str) -> None:
    table = Table(golden(version, "savepoint_cow").table)
    *_, target, last = table.data.load().commits().instants
    restore = table.new_instant()
    table.data.create_requested(restore, Action.RESTORE, b"plan")
    table.data.delete_instant(last.requested_time, last.pending_action)
    shutil.rmtree(table.path / "2024-01-03")
    table.publisher().restore(target.requested_time, restore)
    found = table.records()["files"]
    assert "2024-01-03" not in live_entries(found[ALL_PARTITIONS])
    assert live_entries(found["2024-01-03"]) == {}


@pytest.mark.parametrize("version", ["6", "9"])
def test_on_an_object_store(golden: Golden, version: str) -> None:
    """The same calls leave the same metadata table; plans carry the addresses of the store."""
    tables = [Table(golden(version, "mor_basic" if version == "9" else "failed_after_metadata_mor").table)]
    failed = tables[0].data.load().instants[-1].requested_time
    if version == "9":
        crash_before_completion(tables[0], failed)
    store = MemoryStorage("memory://bucket/table")
    for path in tables[0].path.rglob("*"):
        if path.is_file() and not path.name.endswith(".crc"):
            store.write(str(path.relative_to(tables[0].path)), path.read_bytes())
    rollback, clean = tables[0].new_instant(), str(int(tables[0].new_instant()) + 10)
    changes = FileChanges(deleted={"2024-01-01": frozenset({"a-0_0-1-2_20260101000000000.parquet"})})
    for storage in (tables[0].storage, store):
        tables[0].publisher(storage).roll_back(failed, rollback)
        tables[0].publisher(storage).publish_deletes(clean, changes)
    metadata_timeline = ActiveTimeline(store, tables[0].config, ROOT)
    assert [(item.requested_time, item.action, item.state) for item in metadata_timeline.load()] == [
        (item.requested_time, item.action, item.state) for item in tables[0].metadata_timeline.load()
    ]
    files = {
        path.relative_to(tables[0].path).as_posix()
        for path in tables[0].path.glob(f"{ROOT}/*/*")
        if not path.name.endswith(".crc")
    }
    assert {info.path for name in partition_folders(store) for info in store.list_files(f"{ROOT}/{name}")} == {
        path for path in files if not path.startswith(f"{ROOT}/.hoodie/")
    }
    plan = metadata_timeline.read_any(
        metadata_timeline.load().of_actions(Action.ROLLBACK).instants[-1].requested_time,
        Action.ROLLBACK,
        State.REQUESTED,
    )
    assert plan["RollbackRequests"]
    for request in plan["RollbackRequests"]:
        for address in (*request["filesToBeDeleted"], *request["logBlocksToBeDeleted"]):
            assert address.startswith(f"memory://bucket/table/{ROOT}/")
