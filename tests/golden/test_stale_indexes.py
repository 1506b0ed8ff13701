"""Tables whose indexes real Hudi left something out of: no query of ours loses a row by them, `metadata update` mends
them, and doctor names them.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow.compute as pc
import pytest

from hudi_core.config.metadata_config import REBUILD_ROW_INDEXES
from hudi_core.engine.local import LocalEngine
from hudi_core.metadata_table.partition_type import RECORD_INDEX
from hudi_core.metadata_table.read.completeness import indexes_in_doubt
from hudi_core.services.metadata.index_drop import drop_metadata
from hudi_core.services.metadata.maintain import create_metadata
from tests.support.changed_tables import an_owner
from tests.support.golden_archives import archive_these
from tests.support.golden_cleans import context_of
from tests.support.golden_compactions import compact
from tests.support.stale_indexes import BULK, INDEX, StaleTable

Stale = Callable[[str], StaleTable]
REBUILD = {REBUILD_ROW_INDEXES.name: "true"}
NARROW = ("narrow_v8", "overtaken_v8")
PARTITIONS = ("2024-01-01", "2024-01-02")
BULKS = ("bulk_v8", "bulk_v9", "clustered_v9")


def of_ranges(table: StaleTable) -> list[str]:
    return [text for text in table.differences() if text.startswith("partition_stats")]


def of_secondary(table: StaleTable) -> list[str]:
    return [text for text in table.differences() if text.startswith("secondary_index")]


@pytest.mark.parametrize("name", NARROW)
def test_ranges_that_1_0_narrowed_hide_no_row(stale: Stale, name: str) -> None:
    """An upsert behind a pending compaction; that the compaction completes does not help."""
    table = stale(name)
    assert of_ranges(table), "the ranges lack the files of the slices to compact"
    for amount in (3.0, 500.0, 1000.0):
        assert table.due("amount", amount)
        assert table.found(f"amount = {amount}") == table.due("amount", amount)


@pytest.mark.parametrize("name", NARROW)
def test_an_update_widens_them(stale: Stale, name: str) -> None:
    table = stale(name)
    before = table.table.live()["partition_stats"]
    assert table.update().widened == PARTITIONS
    assert of_ranges(table) == []
    assert table.table.live()["partition_stats"].keys() == before.keys()
    instants = table.table.metadata_instants()
    assert table.update().widened == ()
    assert table.table.metadata_instants() == instants


def test_our_compaction_widens_them(stale: Stale) -> None:
    """Records under the compaction's own instant would be beneath the narrow ones."""
    table = stale("narrow_v8")
    compact(table.path)
    assert of_ranges(table) == []
    assert table.found("amount = 500.0") == table.due("amount", 500.0)


def test_ranges_of_1_2_hold_and_are_used(stale: Stale) -> None:
    table = stale("behind_v9")
    assert of_ranges(table) == []
    assert not indexes_in_doubt(table.table.storage, table.table.config)
    assert table.update().widened == ()


@pytest.mark.parametrize("name", BULKS)
def test_a_lookup_finds_what_bulk_insert_did_not_record(stale: Stale, name: str) -> None:
    table = stale(name)
    assert of_secondary(table), "the index lacks the rows"
    assert len(table.due("name", "bulk name 3")) == 1
    for value in ("bulk name 3", "told name 1", "name 3", "later 0"):
        assert table.found(f"name = '{value}'") == table.due("name", value) != []


@pytest.mark.parametrize("name", BULKS)
def test_only_the_file_groups_that_may_lack_rows_are_read_beside(stale: Stale, name: str) -> None:
    table = stale(name)
    groups = {group.file_id for group in table.metadata().groups_in_doubt(INDEX) or ()}
    places = {
        file.split("_")[0]
        for key, file in zip(
            table.rows["_hoodie_record_key"].to_pylist(), table.rows["_hoodie_file_name"].to_pylist(), strict=True
        )
        if key.startswith("bulk")
    }
    assert groups >= places
    if name != "clustered_v9":  # which put all rows into groups with some of these, and replaced the others
        assert groups == places
        assert {file.split("_")[0] for file in table.rows["_hoodie_file_name"].to_pylist()} - groups


@pytest.mark.parametrize("name", BULKS)
def test_an_update_rebuilds_the_index(stale: Stale, name: str) -> None:
    table = stale(name)
    without = table.update()
    assert (without.rebuilt, without.incomplete) == ((), (INDEX,)), "only where the options allow it"
    assert of_secondary(table)
    done = table.update(REBUILD)
    assert (done.rebuilt, done.incomplete) == ((INDEX,), ())
    assert table.differences() == []
    assert table.metadata().groups_in_doubt(INDEX) == frozenset()
    assert table.found(BULK) == table.due("name", "bulk name 3")
    assert table.update(REBUILD).rebuilt == ()


AGAIN = ("again_v6", "again_v8", "again_v9", "overtaken_again_v9")


@pytest.mark.parametrize("name", AGAIN)
def test_keys_that_were_deleted_and_written_again_are_found(stale: Stale, name: str) -> None:
    """The record index has no location of them, before the compaction and behind it."""
    table = stale(name)
    keys = table.due("amount", 77.0)
    assert len(keys) == 2
    assert table.metadata().record_locations(keys) == {}
    assert sum("is not mapped" in text for text in table.differences()) == 2
    for key in keys:
        assert table.found(f"id = '{key}'") == [key]
    told = next(key for key in table.rows["id"].to_pylist() if key not in keys)
    assert table.found(f"id IN ('{keys[0]}', '{told}')") == sorted([keys[0], told])
    assert table.found("id = 'no such key'") == []


@pytest.mark.parametrize("name", AGAIN)
def test_the_archive_may_hold_the_deletion(stale: Stale, name: str) -> None:
    table = stale(name)
    (key, _) = table.due("amount", 77.0)
    commits = table.table.data.load().completed().instants
    archive_these(table.path, commits[:2])
    assert table.found(f"id = '{key}'") == [key]
    assert table.metadata().groups_in_doubt(RECORD_INDEX) is None


@pytest.mark.parametrize("name", ["again_v6", "again_v9"])
def test_a_record_index_that_is_built_again_has_them(stale: Stale, name: str) -> None:
    table = stale(name)
    keys = table.due("amount", 77.0)
    context = context_of(table.path, {"hoodie.metadata.record.index.enable": "true"})
    drop_metadata(context, [RECORD_INDEX], an_owner())
    create_metadata(context, [RECORD_INDEX], LocalEngine(2), an_owner())
    assert table.differences() == []
    assert sorted(table.metadata().record_locations(keys)) == keys
    table.update()
    assert table.metadata().groups_in_doubt(RECORD_INDEX) == frozenset()


def test_rows_without_a_value_may_be_missing_in_an_index_of_1_0(stale: Stale) -> None:
    """No lookup is for a null."""
    table = stale("nulls_v8")
    assert table.rows.filter(pc.is_null(table.rows["name"])).num_rows == 1
    assert table.differences() == []
    assert table.found("name IS NULL") != []
    assert table.found("name = 'fresh name'") == table.due("name", "fresh name") != []
